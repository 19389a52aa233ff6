//! Forged snapshots with correct checksums, and how their refusal is checked.

use concurrent_cuckoo_filter::{LoadError, SnapshotInfo, SnapshotMismatch};

use crate::filters::{Expiring, Filter, Growable, Maplet, build, load, saved};
pub(crate) use crate::parts::Forged;
use crate::support::LAYOUTS;

/// Asserts that this is the error that is shown so, and that its message contains these words.
#[track_caller]
pub(crate) fn assert_names(error: &LoadError, shown: &str, words: &[&str]) {
    assert!(format!("{error:?}").starts_with(shown), "{error:?}, not {shown}");
    words.iter().for_each(|word| assert!(error.to_string().contains(word), "{word}: {error}"));
}

/// Asserts that it is refused by this error.
#[track_caller]
pub(crate) fn refused(forged: &Forged, shown: &str, words: &[&str]) {
    assert_names(&forged.refusal(), shown, words);
}

impl Forged {
    pub(crate) fn new() -> Self {
        Self { buckets: 2, words: vec![0; 2], ..Self::of(&saved(&build(LAYOUTS[5], 0))) }
    }

    /// A snapshot of a maplet with values of so many bits, in a layout for four.
    pub(crate) fn of_maplet(value_bits: u8) -> Self {
        Self { kind: 4, head: vec![value_bits], layout: [1, 5, 10], ..Self::new() }
    }

    /// A snapshot of a filter whose entries expire, with this clock.
    pub(crate) fn of_expiring(clock: &ForgedClock) -> Self {
        Self { kind: 5, head: clock.bytes(), ..Self::of_maplet(4) }
    }

    /// Loads it as the type that has such a head.
    pub(crate) fn load(&self) -> Result<(), LoadError> {
        let bytes = self.bytes();
        match self.head.len() {
            0 => load::<Filter>(&bytes).map(drop),
            1 => load::<Maplet>(&bytes).map(drop),
            27 => load::<Growable>(&bytes).map(drop),
            _ => load::<Expiring>(&bytes).map(drop),
        }
    }

    /// Why it is not loaded. Without loading, it is refused for the same reason, if that is not one of the caller's.
    #[track_caller]
    fn refusal(&self) -> LoadError {
        let refusal = self.load().expect_err("it is wrong");
        let of_caller = matches!(
            refusal,
            LoadError::Mismatch(
                SnapshotMismatch::Kind { .. } | SnapshotMismatch::Hasher | SnapshotMismatch::Schema { .. }
            ) | LoadError::MemoryLimit { .. }
        );
        let verified = SnapshotInfo::verify(&self.bytes()[..]);
        let verified = verified.map_or_else(|error| format!("{error:?}"), |info| format!("{info:?}"));
        assert!(of_caller || verified == format!("{refusal:?}"), "{verified}, but {refusal:?}");
        refusal
    }
}

/// The fields of the clock in a snapshot of a filter whose entries expire. Each may be wrong.
#[derive(Clone)]
pub(crate) struct ForgedClock {
    pub(crate) expiry_bits: u8,
    pub(crate) longest: u32,
    pub(crate) resolution: (u64, u32),
    pub(crate) flags: u8,
    pub(crate) now: u64,
    pub(crate) place: u16,
    pub(crate) lag: u32,
    /// Only of a filter that evicts, whose flags say so.
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

    /// The same of a filter that evicts, and has ended some ticks early.
    pub(crate) fn evicting() -> Self {
        Self { flags: 3, ahead: Some(14), ..Self::known() }
    }

    fn bytes(&self) -> Vec<u8> {
        let (seconds, nanoseconds) = self.resolution;
        let ahead = self.ahead.map(u16::to_le_bytes);
        [
            &[self.expiry_bits][..],
            &self.longest.to_le_bytes(),
            &seconds.to_le_bytes(),
            &nanoseconds.to_le_bytes(),
            &[self.flags],
            &self.now.to_le_bytes(),
            &self.place.to_le_bytes(),
            &self.lag.to_le_bytes(),
            ahead.as_ref().map_or(&[], |ahead| &ahead[..]),
        ]
        .concat()
    }
}
