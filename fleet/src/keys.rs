//! The names and values of a fleet's keys in etcd.
//!
//! | key | value |
//! |---|---|
//! | `FLEET/token/ID` | until when the token is revoked, or 0 if it was restored, with a check that only holders of the fleet's key can compute |
//! | `FLEET/head` | random bytes of the last change, and the time of its node. Each change puts it in its transaction, so each change has a revision of its own, and the head at a revision names the history up to there |
//! | `FLEET/agreement` | the settings that all nodes share, the cluster in which they are, and whether this cluster has lost something ([`history`](crate::history)) |
//!
//! # A record can't be replayed
//! The check of a record covers what etcd itself counts for the key: its version (1 for the first value, then one more for
//! each put) and the revision that created it. A node knows both before it writes, because its transaction compares the
//! record that it has read. A client outside the fleet that writes an older value of the same key back gives it another
//! version, and one that deletes the key first gives it another creation. So such a value is as invalid as a made-up one,
//! for every reader, whether it watched or not.

use std::fmt;

use concurrent_cuckoo_filter::{Hashed, StableHashBuilder};
use ring::hmac;

use crate::etcd::messages::KeyValue;

/// A token, as everybody except its bearer knows it: the first 16 bytes of its HMAC-SHA-256 under the fleet's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenId(pub(crate) [u8; 16]);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The state of a token's record in etcd on which a change is decided. All zeros if there is no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The revision of its last change.
    pub(crate) revision: i64,
    version: i64,
    created: i64,
}

impl Record {
    pub(crate) fn of(found: Option<&KeyValue>) -> Self {
        let of = |kv: &KeyValue| Self { revision: kv.mod_revision, version: kv.version, created: kv.create_revision };
        found.map(of).unwrap_or_default()
    }

    /// What etcd counts for the key after one more put.
    fn next(self) -> Version {
        Version { number: self.version + 1, created: self.created }
    }
}

/// Which of a key's values a value is. The revision that creates a key is not known to its writer, so it counts from the
/// second value on.
#[derive(Clone, Copy)]
struct Version {
    number: i64,
    created: i64,
}

/// The key of a fleet, which its nodes share and etcd does not have.
pub(crate) struct Secret {
    ids: hmac::Key,
    hasher: StableHashBuilder,
}

impl Secret {
    pub(crate) fn new(key: [u8; 16]) -> Self {
        Self { ids: hmac::Key::new(hmac::HMAC_SHA256, &key), hasher: StableHashBuilder::with_key(key) }
    }

    pub(crate) fn id(&self, token: &str) -> TokenId {
        let mut id = [0; 16];
        id.copy_from_slice(&hmac::sign(&self.ids, token.as_bytes()).as_ref()[..16]);
        TokenId(id)
    }

    /// The hash in the filters.
    pub(crate) fn hash(&self, id: TokenId) -> Hashed {
        Hashed(self.hasher.hash_bytes(&id.0))
    }

    /// The value, in place of this record, of a token that is revoked until this time, in seconds since 1970.
    pub(crate) fn value(&self, id: TokenId, end: u64, before: Record) -> [u8; 16] {
        let mut value = [0; 16];
        value[..8].copy_from_slice(&end.to_be_bytes());
        value[8..].copy_from_slice(&self.check(id, end, before.next()).to_be_bytes());
        value
    }

    /// The end in a record; `None` if no node has written it there.
    pub(crate) fn end(&self, id: TokenId, record: &KeyValue) -> Option<u64> {
        let (end, check) = record.value.split_first_chunk::<8>()?;
        let end = u64::from_be_bytes(*end);
        let created = if record.version == 1 { 0 } else { record.create_revision };
        let version = Version { number: record.version, created };
        (check == self.check(id, end, version).to_be_bytes()).then_some(end)
    }

    fn check(&self, id: TokenId, end: u64, version: Version) -> u64 {
        let mut bytes = [0; 41];
        bytes[0] = b'c'; // Longer than an identifier, so no hash in a filter is the check of a value.
        bytes[1..17].copy_from_slice(&id.0);
        bytes[17..25].copy_from_slice(&end.to_be_bytes());
        bytes[25..33].copy_from_slice(&version.number.to_be_bytes());
        bytes[33..].copy_from_slice(&version.created.to_be_bytes());
        self.hasher.hash_bytes(&bytes)
    }

    /// Differs for nodes of another key, and does not reveal it.
    pub(crate) fn fingerprint(&self) -> TokenId {
        self.id("\0which key?")
    }
}

/// The names of a fleet's keys.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    fleet: String,
}

impl Names {
    pub(crate) fn new(fleet: &str) -> Self {
        Self { fleet: fleet.to_owned() }
    }

    pub(crate) fn all(&self) -> Vec<u8> {
        format!("{}/", self.fleet).into_bytes()
    }

    pub(crate) fn tokens(&self) -> Vec<u8> {
        format!("{}/token/", self.fleet).into_bytes()
    }

    pub(crate) fn token(&self, id: TokenId) -> Vec<u8> {
        format!("{}/token/{id}", self.fleet).into_bytes()
    }

    /// The token of such a key; `None` if it is no such key.
    pub(crate) fn id(&self, key: &[u8]) -> Option<TokenId> {
        let digits = std::str::from_utf8(key.strip_prefix(self.tokens().as_slice())?).ok()?;
        let id = TokenId(u128::from_str_radix(digits, 16).ok()?.to_be_bytes());
        // Only as a node writes it.
        (self.token(id) == key).then_some(id)
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        format!("{}/head", self.fleet).into_bytes()
    }

    pub(crate) fn agreement(&self) -> Vec<u8> {
        format!("{}/agreement", self.fleet).into_bytes()
    }
}

/// The random bytes that name a change, and the time of the node that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChangeId(pub(crate) [u8; 16]);

impl ChangeId {
    pub(crate) fn head(self, now: u64) -> Vec<u8> {
        [self.0.as_slice(), &now.to_be_bytes()].concat()
    }

    pub(crate) fn of_head(value: &[u8]) -> Option<(Self, u64)> {
        let (id, time) = value.split_first_chunk::<16>()?;
        Some((Self(*id), u64::from_be_bytes(time.try_into().ok()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::build::after;

    /// A record as etcd has it after a put.
    fn record(value: &[u8], version: i64, created: i64) -> KeyValue {
        KeyValue { value: value.to_vec().into(), version, create_revision: created, ..KeyValue::default() }
    }

    #[test]
    fn only_a_node_of_the_fleet_can_write_a_value() {
        let (ours, theirs) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let (alice, bob) = (ours.id("alice"), ours.id("bob"));
        assert_ne!(alice.0, theirs.id("alice").0);
        let value = ours.value(alice, 1_900_000_000, Record::default());
        assert_eq!(ours.end(alice, &record(&value, 1, 17)), Some(1_900_000_000));
        let mut longer = value;
        longer[7] += 1;
        for (id, value) in [(bob, &value[..]), (alice, &longer), (alice, &value[..15]), (alice, b"")] {
            assert_eq!(ours.end(id, &record(value, 1, 17)), None);
        }
        assert_eq!(theirs.end(alice, &record(&value, 1, 17)), None);
    }

    #[test]
    fn a_value_is_valid_only_where_its_node_has_put_it() {
        let secret = Secret::new([1; 16]);
        let id = secret.id("alice");
        // Revoked, restored, and revoked again.
        let first = record(&secret.value(id, 100, Record::default()), 1, 17);
        let second = record(&secret.value(id, 0, Record::of(Some(&first))), 2, 17);
        let third = record(&secret.value(id, 200, Record::of(Some(&second))), 3, 17);
        let end = |record: &KeyValue| secret.end(id, record);
        assert_eq!((end(&first), end(&second), end(&third)), (Some(100), Some(0), Some(200)));
        // An older value is written back: its version goes on.
        assert_eq!(end(&record(&second.value, 4, 17)), None);
        // The key is deleted and its first two values are written again: it has another creation.
        assert_eq!(end(&record(&second.value, 2, 40)), None);
    }

    #[test]
    fn a_key_is_read_as_it_is_written_and_in_no_other_way() {
        let names = Names::new("a");
        let id = TokenId([0xab; 16]);
        assert_eq!(names.id(&names.token(id)), Some(id));
        for key in [&b"a/token/"[..], b"a/token/AB", b"a/head", &Names::new("ab").token(id), b"a/token/\xff"] {
            assert_eq!(names.id(key), None);
        }
        let upper = String::from_utf8(names.token(id)).unwrap().replace("ab", "AB");
        assert_eq!(names.id(upper.as_bytes()), None);
        let (tokens, key) = (names.tokens(), names.token(id));
        assert!(tokens < key && key < after(&tokens) && names.head() < tokens);
    }
}
