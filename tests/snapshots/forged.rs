//! Forged snapshots with correct seals (checksums), and how their refusal is checked.

use concurrent_cuckoo_filter::{LoadError, SnapshotInfo};

use crate::filters::{Expiring, Filter, Maplet, build, load, saved};
use crate::support::LAYOUTS;

/// Asserts that an error is the expected one, and that its message contains the expected words.
macro_rules! assert_refused {
    ($error:expr, $pattern:pat $(if $guard:expr)?, names $($named:expr),*) => {
        let error = $error;
        assert!(matches!(&error, $pattern $(if $guard)?), "{error:?}");
        $(assert!(error.to_string().contains(&$named.to_string()), "{error}");)*
    };
}
pub(crate) use assert_refused;

/// A snapshot of one table with all its seals. Each part may be wrong.
pub(crate) struct Forged {
    pub(crate) magic: [u8; 8],
    pub(crate) version: u16,
    pub(crate) kind: u8,
    pub(crate) probe: u64,
    pub(crate) schema: Vec<u8>,
    pub(crate) flag: u8,
    pub(crate) position: u64,
    pub(crate) attached: u32,
    pub(crate) attachment: Vec<u8>,
    /// The fields before the table, if there are any.
    pub(crate) head: Vec<u8>,
    pub(crate) layout: [u8; 3],
    pub(crate) buckets: u64,
    pub(crate) words: Vec<u64>,
    pub(crate) count: u64,
}

impl Forged {
    pub(crate) fn new() -> Self {
        let genuine = saved(&build(LAYOUTS[5], 0));
        let probe = u64::from_le_bytes(genuine[11..19].try_into().unwrap());
        Self {
            magic: genuine[..8].try_into().unwrap(),
            version: 3,
            kind: 1,
            probe,
            schema: b"u64".to_vec(),
            flag: 0,
            position: 0,
            attached: 0,
            attachment: Vec::new(),
            head: Vec::new(),
            layout: [1, 5, 14],
            buckets: 2,
            words: vec![0; 2],
            count: 0,
        }
    }

    /// A snapshot of a maplet with four value bits.
    pub(crate) fn of_maplet() -> Self {
        Self { kind: 4, head: vec![4], layout: [1, 5, 10], ..Self::new() }
    }

    /// A snapshot of a filter whose entries expire, with this clock.
    pub(crate) fn of_expiring(clock: &ForgedClock) -> Self {
        Self { kind: 5, head: clock.bytes(), ..Self::of_maplet() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut sum = crc32fast::Hasher::new();
        let mut bytes = Vec::new();
        let mut put = |part: &[&[u8]], seal: bool| {
            part.iter().for_each(|part| sum.update(part));
            bytes.extend(part.concat());
            if seal {
                bytes.extend(sum.clone().finalize().to_le_bytes());
            }
        };
        put(&[&self.magic, &self.version.to_le_bytes(), &[self.kind], &self.probe.to_le_bytes()], false);
        put(&[&[self.schema.len() as u8], &self.schema, &[self.flag], &self.position.to_le_bytes()], false);
        put(&[&self.attached.to_le_bytes()], true);
        put(&[&self.attachment], true);
        if !self.head.is_empty() {
            put(&[&self.head], true);
        }
        put(&[&self.layout, &self.buckets.to_le_bytes()], true);
        self.words.iter().for_each(|word| put(&[&word.to_le_bytes()], false));
        put(&[&self.count.to_le_bytes()], true);
        bytes
    }

    /// Why it is not loaded. Without loading, it is refused for the same reason, if that is not one of the caller's.
    pub(crate) fn refusal(&self) -> LoadError {
        let bytes = self.bytes();
        let refusal = match self.head.len() {
            0 => load::<Filter>(&bytes).err(),
            1 => load::<Maplet>(&bytes).err(),
            _ => load::<Expiring>(&bytes).err(),
        };
        let refusal = refusal.expect("it is wrong");
        let of_caller = matches!(
            refusal,
            LoadError::WrongKind { .. }
                | LoadError::OtherHasher
                | LoadError::OtherSchema { .. }
                | LoadError::MemoryLimit { .. }
        );
        let verified =
            SnapshotInfo::verify(&bytes[..]).map_or_else(|error| format!("{error:?}"), |info| format!("{info:?}"));
        assert!(of_caller || verified == format!("{refusal:?}"), "{verified}, but {refusal:?}");
        refusal
    }
}

/// The fields of the clock in a snapshot of a filter whose entries expire. Each may be wrong.
pub(crate) struct ForgedClock {
    pub(crate) expiry_bits: u8,
    pub(crate) longest: u32,
    pub(crate) resolution: (u64, u32),
    pub(crate) flags: u8,
    pub(crate) now: u64,
    pub(crate) place: u16,
    pub(crate) lag: u32,
    /// Only of a filter that forgets, whose flags say so.
    pub(crate) ahead: Option<u16>,
}

impl ForgedClock {
    /// A ring of sixteen ticks, and a clock that has reached no tick yet.
    pub(crate) fn unknown() -> Self {
        Self { expiry_bits: 4, longest: 15, resolution: (300, 0), flags: 0, now: 0, place: 0, lag: 0, ahead: None }
    }

    /// The same at a tick, which has the third place on the ring. Some entries that died by then are not swept yet.
    pub(crate) fn known() -> Self {
        Self { flags: 1, now: 28_500_000, place: 2, lag: 3, ..Self::unknown() }
    }

    /// The same of a filter that forgets, and has ended some ticks early.
    pub(crate) fn forgetful() -> Self {
        Self { flags: 3, ahead: Some(14), ..Self::known() }
    }

    fn bytes(&self) -> Vec<u8> {
        let (seconds, nanoseconds) = self.resolution;
        [
            &[self.expiry_bits][..],
            &self.longest.to_le_bytes(),
            &seconds.to_le_bytes(),
            &nanoseconds.to_le_bytes(),
            &[self.flags],
            &self.now.to_le_bytes(),
            &self.place.to_le_bytes(),
            &self.lag.to_le_bytes(),
            &self.ahead.map_or(vec![], |ahead| ahead.to_le_bytes().to_vec()),
        ]
        .concat()
    }
}
