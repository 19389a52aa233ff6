//! PURE: proposals, answers and messages as bytes, as the scripts write and read them. Numbers are little-endian.

use crate::change::{Change, Outcome, Position, Proposal};
use crate::log::{Appended, EngineError};

/// The largest number that a script can represent exactly: its numbers are 64-bit floating point.
const LARGEST: u64 = (1 << 53) - 1;

pub(super) fn proposals(proposals: &[Proposal]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(proposals.len() * 21);
    for proposal in proposals {
        let (kind, hash, until, end) = match *proposal {
            Proposal::Revoke { hash, until, end, .. } => (b'R', hash, until.min(LARGEST), end),
            Proposal::Restore { hash, .. } => (b'O', hash, 0, 0),
        };
        bytes.push(kind);
        bytes.extend(hash.to_le_bytes());
        bytes.extend(until.to_le_bytes());
        bytes.extend(end.to_le_bytes());
    }
    bytes
}

pub(super) fn appended(bytes: &[u8]) -> Result<Appended, EngineError> {
    let read = |bytes: &mut Bytes<'_>| {
        let position = bytes.u64()?;
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
        Some(Appended { position, outcomes })
    };
    read(&mut Bytes(bytes)).ok_or_else(|| EngineError::Damaged("the engine's answer to an append is not one".into()))
}

/// Decodes a message: when the engine took it, and its changes.
pub(super) fn message(position: Position, bytes: &[u8]) -> Result<(u64, Vec<Change>), EngineError> {
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
        (!changes.is_empty() && (ticks == 0 || changes.len() == 1)).then_some((at, changes))
    };
    read(&mut Bytes(bytes)).ok_or_else(|| {
        EngineError::Damaged(format!(
            "message {position} of the log ({} bytes) is not one that this version knows; run the same version on all \
             nodes",
            bytes.len()
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

    fn payload(changes: &[u8]) -> Vec<u8> {
        [&7_u64.to_le_bytes(), changes].concat()
    }

    #[test]
    fn a_message_that_is_cut_off_or_unknown_is_damaged() {
        let insert = [b"I".as_slice(), &1_u64.to_le_bytes(), &2_u32.to_le_bytes()].concat();
        let tick = [b"T".as_slice(), &3_u32.to_le_bytes()].concat();
        let whole = payload(&[insert.clone(), insert.clone()].concat());
        assert_eq!(message(1, &whole).unwrap(), (7, vec![Change::Insert { hash: 1, end: 2 }; 2]));
        for len in (0..whole.len()).filter(|&len| len != 8 + insert.len()) {
            assert!(matches!(message(1, &whole[..len]), Err(EngineError::Damaged(_))), "{len} bytes");
        }
        let mut unknown = whole;
        unknown[8] = b'X';
        let beside_a_tick = payload(&[insert, tick].concat());
        for bytes in [unknown, beside_a_tick] {
            assert!(matches!(message(1, &bytes), Err(EngineError::Damaged(_))), "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_off_or_unknown_is_damaged() {
        let full = [&9_u64.to_le_bytes(), b"F".as_slice(), &1_u64.to_le_bytes(), &2_u64.to_le_bytes()].concat();
        let answer = Appended { position: 9, outcomes: vec![Outcome::Full { live: 1, capacity: 2 }] };
        assert_eq!(appended(&full).unwrap(), answer);
        for len in (0..full.len()).filter(|&len| len != 8) {
            assert!(matches!(appended(&full[..len]), Err(EngineError::Damaged(_))), "{len} bytes");
        }
        let unknown = [&full[..8], b"x"].concat();
        assert!(matches!(appended(&unknown), Err(EngineError::Damaged(_))));
    }
}
