//! What the fleet has in etcd.
//!
//! | key | value |
//! |---|---|
//! | `FLEET/epoch` | an [`Epoch`], as JSON |
//! | `FLEET/head` | a [`Head`]: each change puts a new one in its transaction, so it names the history up to there |
//! | `FLEET/token/ID` | until when the token is revoked, in seconds since 1970, in 8 bytes. It only grows |
//!
//! A record has a lease, and etcd deletes it some time after its end.

use prost::bytes::Bytes;
use serde::{Deserialize, Serialize};
use token_key::TokenError;
use tonic::Status;

use crate::etcd::messages::{KeyValue, TxnRequest, TxnResponse};
use crate::etcd::{keys, range, range_of, txn};

/// Under what the fleet runs. Only operators begin a new one: `fleet found`, `fleet accept`. Each change compares its
/// revision, and each node joins again when it finds another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Epoch {
    /// How many there were, with this one.
    pub number: u64,
    /// The identifier of the cluster, in hexadecimal digits. A copy of its data in another cluster is a loss.
    pub cluster: String,
    /// What the cluster has lost, until an operator accepts it.
    pub lost: Option<String>,
    /// The settings of all nodes.
    pub settings: Shared,
}

/// The settings that all nodes share. They are in etcd, so no node can have others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    /// How many tokens may be revoked at a time.
    pub capacity: u64,
    /// How far in the future the expiry of a token may be, in seconds. A token of unknown expiry is rejected for so long.
    pub longest_lifetime: u64,
    /// How long a token is rejected after its expiry, in seconds: at least by how much the clocks of nodes, and of those
    /// who issue tokens, may differ.
    pub margin: u64,
}

impl Default for Shared {
    fn default() -> Self {
        Self { capacity: 1_000_000, longest_lifetime: DAY, margin: 90 }
    }
}

/// Some of the settings that all nodes share.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SharedArguments {
    /// How many tokens may be revoked at a time [default: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub capacity: Option<u64>,

    /// How far in the future the expiry of a token may be, in seconds. A token of unknown expiry is rejected for so long
    /// [default: 86400]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=LONGEST))]
    pub longest_lifetime: Option<u64>,

    /// How long a token is rejected after its expiry, in seconds: at least by how much the clocks of nodes, and of those
    /// who issue tokens, may differ [default: 90]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=DAY))]
    pub margin: Option<u64>,
}

impl SharedArguments {
    /// The settings, with those that are not given as they are here.
    pub fn over(&self, settings: &Shared) -> Shared {
        Shared {
            capacity: self.capacity.unwrap_or(settings.capacity),
            longest_lifetime: self.longest_lifetime.unwrap_or(settings.longest_lifetime),
            margin: self.margin.unwrap_or(settings.margin),
        }
    }
}

/// The greatest capacity.
const MOST: u64 = 10_000_000_000;

/// The longest lifetime in seconds: ten years. (A lease of etcd can last for 285.)
const LONGEST: u64 = 10 * 366 * DAY;

const DAY: u64 = 86_400;

impl Shared {
    /// The longest time for which a record is needed, in seconds.
    pub(crate) fn longest(&self) -> u64 {
        self.longest_lifetime + 2 * self.margin
    }

    fn is_valid(&self) -> bool {
        (1..=MOST).contains(&self.capacity) && (1..=LONGEST).contains(&self.longest_lifetime) && self.margin <= DAY
    }
}

/// The keys of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    pub(crate) all: String,
    pub(crate) epoch: String,
    pub(crate) head: String,
    tokens: String,
}

impl Names {
    pub(crate) fn of(fleet: &str) -> Self {
        let of = |name: &str| format!("{fleet}/{name}");
        Self { all: of(""), epoch: of("epoch"), head: of("head"), tokens: of("token/") }
    }

    pub(crate) fn token(&self, id: TokenId) -> String {
        format!("{}{id}", self.tokens)
    }

    /// The token and its end, if this is the record of one.
    pub(crate) fn record(&self, kv: &KeyValue) -> Option<(TokenId, u64)> {
        let digits = kv.key.strip_prefix(self.tokens.as_bytes()).filter(|digits| digits.len() == 32)?;
        let id = u128::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        Some((TokenId(id), end(kv)?))
    }
}

/// The end in a token's record.
pub(crate) fn end(record: &KeyValue) -> Option<u64> {
    record.value.as_ref().try_into().ok().map(u64::from_be_bytes)
}

/// A token, as etcd and logs know it: the first half of the SHA-256 of its key ([`token_key::key`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(u128);

impl TokenId {
    /// The identifier of this token.
    ///
    /// # Errors
    /// If the token has no key.
    pub fn of(token: &str) -> Result<Self, TokenError> {
        let digest = ring::digest::digest(&ring::digest::SHA256, token_key::key(token)?.as_bytes());
        let half = digest.as_ref().first_chunk().copied().unwrap_or_default();
        Ok(Self(u128::from_be_bytes(half)))
    }
}

impl std::fmt::Display for TokenId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The last change: the revision of etcd at which it was made, and its value. The value is 16 random bytes, a term of raft,
/// a token of the change, and the end of its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) revision: i64,
    pub(crate) value: Bytes,
}

impl Head {
    /// The value of a new head. `term` is one that the cluster has had.
    pub(crate) fn value(term: u64, token: TokenId, end: u64) -> Result<Vec<u8>, getrandom::Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)?;
        Ok([&random[..], &term.to_be_bytes(), &token.0.to_be_bytes(), &end.to_be_bytes()].concat())
    }

    pub(crate) fn of(kv: KeyValue) -> Self {
        Self { revision: kv.mod_revision, value: kv.value }
    }

    /// A term of raft that the cluster had before this change. In a restored cluster, terms start anew.
    fn term(&self) -> u64 {
        self.value.get(16..24).and_then(|term| term.try_into().ok()).map_or(0, u64::from_be_bytes)
    }

    /// A token of the change, and its end.
    pub(crate) fn token(&self) -> Option<(TokenId, u64)> {
        let (id, end) = self.value.get(24..)?.split_first_chunk()?;
        Some((TokenId(u128::from_be_bytes(*id)), u64::from_be_bytes(end.try_into().ok()?)))
    }
}

/// What a majority of a cluster says of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) cluster: u64,
    pub(crate) revision: i64,
    pub(crate) term: u64,
    /// `None` if there is none, or if it can't be read.
    pub(crate) epoch: Option<Epoch>,
    /// The revision of the epoch's record; 0 if there is none.
    pub(crate) epoch_revision: i64,
    pub(crate) head: Head,
    /// The record of the token that was asked for.
    pub(crate) token: Option<KeyValue>,
}

impl Said {
    /// The questions to which this is the answer.
    pub(crate) fn questions(names: &Names, token: Option<TokenId>) -> TxnRequest {
        let token = token.map(|id| range(&names.token(id)));
        txn(vec![], [range(&names.epoch), range(&names.head)].into_iter().chain(token).collect(), vec![])
    }

    pub(crate) fn of(answer: TxnResponse) -> Result<Self, Status> {
        let header = answer.header.unwrap_or_default();
        let epoch = keys(&answer, 0)?.pop();
        let head = keys(&answer, 1)?.pop().map(Head::of).unwrap_or_default();
        let token = if answer.responses.len() > 2 { keys(&answer, 2)?.pop() } else { None };
        let read = |kv: &KeyValue| serde_json::from_slice(&kv.value).ok().filter(|of: &Epoch| of.settings.is_valid());
        Ok(Self {
            cluster: header.cluster_id,
            revision: header.revision,
            term: header.raft_term,
            epoch: epoch.as_ref().and_then(read),
            epoch_revision: epoch.map_or(0, |kv| kv.mod_revision),
            head,
            token,
        })
    }

    pub(crate) fn cluster(&self) -> String {
        format!("{:x}", self.cluster)
    }

    /// Whether there are keys of the fleet.
    pub(crate) fn has_fleet(&self) -> bool {
        self.epoch_revision > 0 || self.head.revision > 0
    }

    /// The epoch under which the fleet goes on in this cluster, or why it does not.
    pub(crate) fn valid(&self) -> Result<&Epoch, String> {
        let here = self.cluster();
        let Some(epoch) = &self.epoch else {
            return Err(match self.has_fleet() {
                true => "the record of the fleet's epoch was deleted or damaged: run `fleet accept`".into(),
                false => format!(
                    "there is no fleet of this name in cluster {here}: correct --fleet or --etcd, or run `fleet found` if \
                     there has never been one"
                ),
            });
        };
        if let Some(lost) = &epoch.lost {
            return Err(format!("the cluster has lost something: {lost}; run `fleet accept`"));
        }
        if epoch.cluster != here {
            return Err(format!(
                "the fleet is in cluster {of}, and this is a copy of it in cluster {here}: stop all members of {of} for \
                 good, then run `fleet accept --from {of}`",
                of = epoch.cluster
            ));
        }
        // An operator who has accepted a loss has accepted this, too.
        if self.head.revision > self.epoch_revision && self.term < self.head.term() {
            return Err(format!(
                "raft is in term {}, and was in term {} before: a backup was restored; run `fleet accept`",
                self.term,
                self.head.term()
            ));
        }
        Ok(epoch)
    }
}

/// The question for all tokens whose identifiers begin with this byte, at a revision. (Etcd counts all keys of a range,
/// whatever the limit, so pages of one large range would cost it the square of their number.)
pub(crate) fn part(names: &Names, first: u8, revision: i64) -> TxnRequest {
    txn(vec![], vec![range_of(&format!("{}{first:02x}", names.tokens), revision)], vec![])
}
