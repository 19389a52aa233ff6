//! Makes and revokes tokens, and checks that they are refused.

use crate::support::Client;

pub(crate) fn tokens(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{name}-{i}")).collect()
}

pub(crate) fn revoke_all(client: &Client, tokens: impl IntoIterator<Item = String>) {
    for token in tokens {
        assert_eq!(client.put(&format!("/revoked/{token}")).status, 201, "{token}");
    }
}

#[track_caller]
pub(crate) fn assert_all_revoked(client: &Client, tokens: &[String]) {
    let passed: Vec<_> = tokens.iter().filter(|token| client.protected(token, None) != 401).collect();
    assert!(passed.is_empty(), "{} of {} revoked tokens pass: {:?}", passed.len(), tokens.len(), passed.first());
}
