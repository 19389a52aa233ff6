//! shadowsocks-rust's protector. It has no tests of its own: these are the cases of its code.

use concurrent_cuckoo_filter::BuildError;
use replay::adopters::shadowsocks::{CipherKind, RecentNonces, ReplayProtector};

use crate::{RATE, keys};

#[derive(Clone, Copy)]
enum Method {
    Aead,
    Aead2022,
}

impl CipherKind for Method {
    fn is_aead_2022(&self) -> bool {
        matches!(self, Self::Aead2022)
    }
}

fn protector() -> RecentNonces {
    RecentNonces::new(1000, 1000, RATE).unwrap()
}

#[test]
fn a_nonce_is_refused_the_second_time() {
    for method in [Method::Aead, Method::Aead2022] {
        let protector = protector();
        assert!(!protector.check_nonce_and_set(method, &[7; 32]));
        assert!(protector.check_nonce_and_set(method, &[7; 32]));
        assert!(!protector.check_nonce_and_set(method, &[7; 24]), "another");
    }
}

#[test]
fn a_cipher_without_nonces_is_never_refused() {
    let protector = protector();
    assert!((0..10).all(|_| !protector.check_nonce_and_set(Method::Aead, &[])));
}

#[test]
fn nonces_and_salts_of_2022_are_two_sets() {
    let protector = protector();
    assert!(!protector.check_nonce_and_set(Method::Aead, &[7; 32]));
    assert!(!protector.check_nonce_and_set(Method::Aead2022, &[7; 32]));
}

#[test]
fn a_salt_is_known_for_a_minute() {
    for used_at in 0..20 {
        let protector = protector();
        assert!(!protector.check_at(true, &[7; 32], used_at));
        assert!((used_at..=used_at + 60).all(|now| protector.check_at(true, &[7; 32], now)), "{used_at}");
        assert!(!protector.check_at(true, &[7; 32], used_at + 70), "{used_at}");
    }
}

/// The LRU cache grows without bound instead.
#[test]
fn if_too_many_salts_come_in_a_minute_new_ones_are_refused_and_no_old_one_passes() {
    let (protector, salts) = (protector(), keys(3000, 4));
    let refused = salts.iter().filter(|salt| protector.check_at(true, *salt, 0)).count();
    assert!((1..=2000).contains(&refused), "{refused}");
    assert!(salts.iter().all(|salt| protector.check_at(true, salt, 60)));
}

/// Where this does not pay: a client has ten thousand nonces at 1e-15.
#[test]
fn the_rate_of_a_client_is_too_low() {
    let error = RecentNonces::new(10_000, 1000, 1e-15).unwrap_err();
    assert!(matches!(error, BuildError::RateTooLow { .. }), "{error}");
}
