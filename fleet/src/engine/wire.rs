//! PURE: proposals, answers and messages as bytes, as the scripts write and read them. Numbers are little-endian.

use sha1::{Digest, Sha1};

use crate::change::{Change, Outcome, Proposal, Tick, TokenId};
use crate::log::{Appended, Chain, EngineError, Epoch, Message, Place};

/// The largest number that a script can represent exactly: its numbers are 64-bit floating point.
const LARGEST: u64 = (1 << 53) - 1;

/// A hash, as the scripts write it.
pub(super) fn hexadecimal(chain: Chain) -> String {
    format!("{:016x}", chain.0)
}

pub(super) fn chain(hexadecimal: &[u8]) -> Option<Chain> {
    let digits = std::str::from_utf8(hexadecimal).ok().filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().map(Chain)
}

pub(super) fn proposals(proposals: &[Proposal]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(proposals.len() * 37);
    for proposal in proposals {
        let (kind, token, hash, until, end) = match *proposal {
            Proposal::Revoke { token, hash, until, end } => (b'R', token, hash, until.min(LARGEST), end),
            Proposal::Restore { token, hash } => (b'O', token, hash, 0, 0),
        };
        bytes.push(kind);
        bytes.extend(token.0);
        bytes.extend(hash.to_le_bytes());
        bytes.extend(until.to_le_bytes());
        bytes.extend(end.to_le_bytes());
    }
    bytes
}

pub(super) fn appended(epoch: Epoch, bytes: &[u8]) -> Result<Appended, EngineError> {
    let read = |bytes: &mut Bytes<'_>| {
        let place = Place { epoch, position: bytes.u64()?, chain: chain(&bytes.take::<16>()?)? };
        let mut outcomes = Vec::new();
        while let Some(kind) = bytes.kind() {
            outcomes.push(match kind {
                b'R' => Outcome::Revoked { until: bytes.u64()? },
                b'A' => Outcome::AlreadyRevoked { until: bytes.u64()? },
                b'O' => Outcome::Restored,
                b'N' => Outcome::NotRevoked,
                b'E' => Outcome::Expired,
                b'L' => Outcome::TooLate { latest: bytes.u32()? },
                b'F' => Outcome::Full { live: bytes.u64()?, capacity: bytes.u64()? },
                _ => return None,
            });
        }
        Some(Appended { place, outcomes })
    };
    read(&mut Bytes(bytes)).ok_or_else(|| EngineError::Damaged("the engine's answer to an append is not one".into()))
}

/// The parts of the record that `records.lua` returns.
pub(super) fn records(bytes: &[u8]) -> Vec<(TokenId, Tick)> {
    let (records, _) = bytes.as_chunks::<20>();
    let read = |record: &[u8; 20]| {
        let mut bytes = Bytes(record);
        Some((TokenId(bytes.take()?), bytes.u32()?))
    };
    records.iter().filter_map(read).collect()
}

/// Decodes the message that follows this place, and compares its hash with the one that follows from the place's.
pub(super) fn message(after: Place, bytes: &[u8]) -> Result<Message, EngineError> {
    let Place { epoch, position, chain: before } = after;
    let (position, (hash, body)) = (position + 1, bytes.split_at(bytes.len().min(16)));
    let sum = Sha1::new().chain_update(hexadecimal(before)).chain_update(body).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&sum[..8]);
    let found = chain(hash).unwrap_or(Chain::START);
    let place = Place { epoch, position, chain: Chain(u64::from_be_bytes(first)) };
    if found != place.chain {
        return Err(EngineError::AnotherLog { expected: place, found: Some(Place { chain: found, ..place }) });
    }
    decode(place, body)
}

/// The same without a comparison, for the controls of tests.
#[cfg(test)]
pub(super) fn unchecked(after: Place, position: u64, bytes: &[u8]) -> Result<Message, EngineError> {
    let (hash, body) = bytes.split_at(bytes.len().min(16));
    decode(Place { position, chain: chain(hash).unwrap_or(Chain::START), ..after }, body)
}

fn decode(place: Place, body: &[u8]) -> Result<Message, EngineError> {
    let position = place.position;
    let read = |bytes: &mut Bytes<'_>| {
        let at = bytes.u64()?;
        // The smallest change has 5 bytes, most have 13.
        let mut changes = Vec::with_capacity(bytes.0.len() / 13 + 1);
        while let Some(kind) = bytes.kind() {
            changes.push(match kind {
                b'I' => Change::Insert { hash: bytes.u64()?, end: bytes.u32()? },
                b'R' => Change::Remove { hash: bytes.u64()?, end: bytes.u32()? },
                b'E' => Change::Extend { hash: bytes.u64()?, from: bytes.u32()?, to: bytes.u32()? },
                b'T' => Change::Tick { now: bytes.u32()? },
                _ => return None,
            });
        }
        let ticks = changes.iter().filter(|change| matches!(change, Change::Tick { .. })).count();
        (!changes.is_empty() && (ticks == 0 || changes.len() == 1)).then_some(Message { place, changes, at })
    };
    read(&mut Bytes(body)).ok_or_else(|| {
        EngineError::Damaged(format!(
            "message {position} of the log ({} bytes) is not one that this version knows; run the same version on all \
             nodes",
            body.len()
        ))
    })
}

/// The bytes that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn kind(&mut self) -> Option<u8> {
        let (&kind, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(kind)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Place = Place { epoch: Epoch(1), position: 4, chain: Chain(0xabc) };

    fn payload(changes: &[u8]) -> Vec<u8> {
        let body = [&7_u64.to_le_bytes(), changes].concat();
        let sum = Sha1::new().chain_update("0000000000000abc").chain_update(&body).finalize();
        let hash: String = sum[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        [hash.as_bytes(), &body].concat()
    }

    #[test]
    fn a_message_that_is_unknown_or_of_another_history_is_refused() {
        let insert = [b"I".as_slice(), &1_u64.to_le_bytes(), &2_u32.to_le_bytes()].concat();
        let tick = [b"T".as_slice(), &3_u32.to_le_bytes()].concat();
        let whole = payload(&[insert.clone(), insert.clone()].concat());
        let read = message(AFTER, &whole).unwrap();
        assert_eq!((read.place.position, read.at, read.changes), (5, 7, vec![Change::Insert { hash: 1, end: 2 }; 2]));
        let another = |place, bytes: &[u8]| matches!(message(place, bytes), Err(EngineError::AnotherLog { .. }));
        // Each byte counts, and so does all that came before.
        for byte in 0..whole.len() {
            let mut changed = whole.clone();
            changed[byte] ^= 1;
            assert!(another(AFTER, &changed), "byte {byte}");
            assert!(another(AFTER, &whole[..byte]), "{byte} bytes");
        }
        assert!(another(Place { chain: Chain(0xabd), ..AFTER }, &whole));
        for changes in [&insert[..5], b"X", b"", &[insert.clone(), tick].concat()] {
            assert!(matches!(message(AFTER, &payload(changes)), Err(EngineError::Damaged(_))), "{changes:?}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_or_unknown_is_damaged() {
        let place = [&9_u64.to_le_bytes()[..], b"000000000000abcd"].concat();
        let full = [&place[..], b"F", &1_u64.to_le_bytes(), &2_u64.to_le_bytes()].concat();
        let place = Place { epoch: Epoch(1), position: 9, chain: Chain(0xabcd) };
        let answer = Appended { place, outcomes: vec![Outcome::Full { live: 1, capacity: 2 }] };
        assert_eq!(appended(Epoch(1), &full).unwrap(), answer);
        for len in (0..full.len()).filter(|&len| len != 24) {
            assert!(matches!(appended(Epoch(1), &full[..len]), Err(EngineError::Damaged(_))), "{len} bytes");
        }
        let unknown = [&full[..24], b"x"].concat();
        assert!(matches!(appended(Epoch(1), &unknown), Err(EngineError::Damaged(_))));
    }
}
