//! The kinds of filters: how each is loaded, saved and used.

// `view` uses a part of this.
#![allow(dead_code)]

use std::hash::BuildHasher;

use concurrent_cuckoo_filter::{
    AbsorbError, Advance, ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, ExpiringInsertError,
    FromSnapshot, GrowableCuckooFilter, Hashed, Loader, StableDefault, StableHashBuilder, StableHasher, Tick, Values,
    WhenFull,
};
use serde::Deserialize;
use serde::de::DeserializeSeed;

/// A hasher with the key of the tests, so that their snapshots can be seeds. All instances are the same.
#[derive(Clone)]
pub struct Fixed(StableHashBuilder);

impl Default for Fixed {
    fn default() -> Self {
        Self(StableHashBuilder::with_key(*b"a key for tests."))
    }
}

impl BuildHasher for Fixed {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        self.0.build_hasher()
    }
}

impl StableDefault for Fixed {}

pub type OneTable = ConcurrentCuckooFilter<u64, Fixed>;
pub type Growable = GrowableCuckooFilter<u64, Fixed>;
pub type Maplet = CuckooMaplet<u64, Fixed>;
pub type Expiring = ExpiringCuckooFilter<u64, Fixed>;

/// How a snapshot is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// With [`Loader::load`], which leaves the bytes after the snapshot.
    Stream,
    /// Through serde, from a format that has bytes: all at once.
    Bytes,
    /// Through serde, from a format that has only numbers: one by one.
    Numbers,
}

impl Way {
    /// The snapshot in the form that this way needs.
    pub fn encode(self, snapshot: &[u8]) -> Vec<u8> {
        match self {
            Self::Stream => snapshot.to_vec(),
            // Its length, and then the bytes.
            Self::Bytes => postcard::to_stdvec(snapshot).unwrap(),
            Self::Numbers => serde_json::to_vec(snapshot).unwrap(),
        }
    }

    /// Loads a filter of this schema and at most this many bytes. Returns it, and how many bytes are left. The
    /// error is its message.
    ///
    /// Without a limit, the type itself is deserialized, and expects the schema of `u64`.
    pub fn load<F: Kind>(self, encoded: &[u8], schema: &str, limit: Option<usize>) -> Result<(F, usize), String> {
        let loader = || Loader::<F, _>::new(Fixed::default(), limit.unwrap_or(usize::MAX)).schema(schema);
        match self {
            Self::Stream => {
                let mut rest = encoded;
                let loaded = loader().load(&mut rest).map_err(|error| error.to_string())?;
                Ok((loaded.filter, rest.len()))
            }
            Self::Bytes => match limit {
                Some(_) => loader().deserialize(&mut postcard::Deserializer::from_bytes(encoded)),
                None => postcard::from_bytes(encoded),
            }
            .map(|filter| (filter, 0))
            .map_err(|error| error.to_string()),
            Self::Numbers => match limit {
                Some(_) => loader().deserialize(&mut serde_json::Deserializer::from_slice(encoded)),
                None => serde_json::from_slice(encoded),
            }
            .map(|filter| (filter, 0))
            .map_err(|error| error.to_string()),
        }
    }
}

/// A kind of filter.
pub trait Kind: FromSnapshot<Fixed> + for<'de> Deserialize<'de> {
    /// The number of this kind in the format.
    const NUMBER: u8;

    fn memory_usage(&self) -> usize;

    /// A snapshot with this position and this attachment.
    fn snapshot(&self, position: Option<u64>, attachment: &[u8]) -> Vec<u8>;

    /// Calls everything on the filter once or twice, and checks the results as far as possible.
    fn use_it(&self);
}

macro_rules! kind {
    ($number:literal: $Filter:ty, $use_it:path) => {
        impl Kind for $Filter {
            const NUMBER: u8 = $number;

            fn memory_usage(&self) -> usize {
                self.stats().memory_usage
            }

            fn snapshot(&self, position: Option<u64>, attachment: &[u8]) -> Vec<u8> {
                let save = self.begin_save().unwrap().attachment(attachment);
                let save = if let Some(position) = position { save.position(position) } else { save };
                let mut snapshot = Vec::new();
                save.write_to(&mut snapshot).unwrap();
                snapshot
            }

            fn use_it(&self) {
                assert!(!format!("{self:?} {:?}", self.stats()).is_empty());
                $use_it(self);
                self.clear();
                assert!(self.is_empty());
            }
        }
    };
}

kind! { 1: OneTable, use_one_table }
kind! { 6: Growable, use_growable }
kind! { 4: Maplet, use_maplet }
kind! { 5: Expiring, use_expiring }

/// The number of the kind that the mode chooses.
pub fn kind_of(mode: u8) -> u8 {
    match (mode >> 3) % 5 {
        1 => Growable::NUMBER,
        3 => Maplet::NUMBER,
        2 | 4 => Expiring::NUMBER,
        _ => OneTable::NUMBER,
    }
}

/// This many hashes, spread over all buckets.
pub fn hashes(count: u64) -> impl Iterator<Item = Hashed> {
    (0..count).map(|number| Hashed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Adds copies of a few hashes and removes them again, for filters that count their copies.
macro_rules! add_and_remove {
    ($filter:ident) => {
        let len = $filter.len();
        for hash in hashes(20) {
            let count = $filter.by_hash().count(hash);
            assert_eq!($filter.by_hash().contains(hash), count > 0);
            if $filter.by_hash().insert(hash).is_ok() {
                assert_eq!(($filter.by_hash().count(hash), $filter.len()), (count + 1, len + 1));
                assert!($filter.by_hash().remove(hash));
            }
            assert_eq!($filter.by_hash().count(hash), count);
            if $filter.by_hash().insert_if_absent(hash) == Ok(true) {
                assert!(count == 0 && $filter.by_hash().remove(hash));
            }
        }
        assert_eq!($filter.len(), len);
    };
}

/// Merges the filter, which holds this many live copies, with empty ones: the sum and the union. Then it unites with its
/// own copy, which changes nothing.
macro_rules! merge {
    ($Filter:ty, $filter:ident, $live:expr) => {
        let digest = $filter.digest().unwrap();
        for merge in [<$Filter>::absorb, <$Filter>::unite] {
            let copy = $filter.empty_like().unwrap();
            match merge(&copy, $filter) {
                Ok(copies) => assert!(copies <= $live && copies == copy.len() as u64),
                // Inserts cannot make a table as full, or have as many copies of a key, as forged ones.
                Err(error) => assert!(
                    matches!(
                        error,
                        AbsorbError::OverCapacity { .. }
                            | AbsorbError::Full { .. }
                            | AbsorbError::TooManyCopies { .. }
                            | AbsorbError::MaxCapacity { .. }
                            | AbsorbError::MemoryLimit { .. }
                    ),
                    "{error}"
                ),
            }
            if copy.len() as u64 == $live {
                assert_eq!(copy.digest().unwrap(), digest, "it holds something else");
            }
            assert_eq!($filter.unite(&copy), Ok(0), "it has all of that");
        }
        assert_eq!($filter.digest().unwrap(), digest, "it has changed");
    };
}

fn use_one_table(filter: &OneTable) {
    add_and_remove!(filter);
    merge!(OneTable, filter, filter.len() as u64);
}

fn use_growable(filter: &Growable) {
    add_and_remove!(filter);
    merge!(Growable, filter, filter.len() as u64);
    // Inserts until the filter grows, if growth is near.
    let (len, capacity) = (filter.len(), filter.capacity());
    let mut added = Vec::new();
    for hash in hashes(400).skip(20) {
        if filter.capacity() > capacity || filter.by_hash().insert(hash).is_err() {
            break;
        }
        added.push(hash);
    }
    filter.shrink_to_fit();
    let digest = filter.digest().unwrap();
    assert!(
        added.iter().all(|&hash| filter.by_hash().contains(hash)) && filter.len() == len + added.len(),
        "a lost key"
    );
    let wanted = filter.capacity().saturating_sub(len) + 1;
    assert!(filter.reserve(wanted).is_err() || filter.capacity() >= len + wanted);
    assert_eq!(filter.digest().unwrap(), digest, "another multiset");
    assert!(added.iter().all(|&hash| filter.by_hash().remove(hash)) && filter.len() == len);
}

fn use_maplet(maplet: &Maplet) {
    let most = u16::MAX >> (16 - maplet.plan().layout.payload_bits);
    let len = maplet.len();
    for (number, hash) in (0..).zip(hashes(20)) {
        let value = number & most;
        let other = value ^ 1;
        let before = maplet.by_hash().values(hash);
        let counts = || [value, other].map(|value| maplet.by_hash().count(hash, value));
        let counts_before @ [of_value, of_other] = counts();
        assert_eq!(maplet.by_hash().contains(hash), !before.is_empty());
        assert_eq!([value, other].map(|value| before.contains(value)), counts_before.map(|count| count > 0));
        assert!(before.iter().all(|value| value <= most && maplet.by_hash().count(hash, value) > 0));
        if maplet.by_hash().insert(hash, value).is_ok() {
            assert_eq!((counts(), maplet.len()), ([of_value + 1, of_other], len + 1));
            let values = maplet.by_hash().values(hash);
            assert!(values.contains(value) && before.iter().all(|value| values.contains(value)));
            assert_eq!(maplet.by_hash().replace(hash, value, other), Ok(true));
            assert_eq!(counts(), [of_value, of_other + 1]);
            assert!(maplet.by_hash().values(hash).contains(other));
            assert!(maplet.by_hash().remove(hash, other));
        }
        match maplet.by_hash().insert_if_absent(hash, value) {
            Ok(values) if before.is_empty() => assert!(values.is_empty() && maplet.by_hash().remove(hash, value)),
            Ok(values) => assert_eq!(values, before),
            Err(_) => assert!(before.is_empty()),
        }
        if let Some(too_large) = most.checked_add(1) {
            assert!(maplet.by_hash().insert(hash, too_large).is_err() && !maplet.by_hash().remove(hash, too_large));
        }
        assert_eq!((maplet.by_hash().values(hash), counts()), (before, counts_before));
    }
    assert_eq!(maplet.len(), len);
    merge!(Maplet, maplet, maplet.len() as u64);

    let mut found: Vec<Values> = Vec::new();
    maplet.by_hash().values_batch(hashes(40), &mut found);
    assert!(found.iter().copied().eq(hashes(40).map(|hash| maplet.by_hash().values(hash))));
}

fn use_expiring(filter: &Expiring) {
    let live = filter.live_len();
    assert!(live <= filter.len());
    let found: Vec<bool> = hashes(40).map(|hash| filter.by_hash().contains(hash)).collect();
    let as_before = || {
        let mut now = Vec::new();
        filter.by_hash().contains_batch(hashes(40), &mut now);
        assert!(now == found && hashes(40).zip(&found).all(|(hash, &found)| filter.by_hash().contains(hash) == found));
        assert_eq!(filter.live_len(), live, "nothing was to expire, or to come back to life");
    };
    match filter.now() {
        Some(now) => {
            assert_eq!(filter.advance_to(now), Advance::Current);
            if let Some(before) = now.get().checked_sub(1) {
                assert_eq!(filter.advance_to(Tick::new(before)), Advance::Behind { by: 1 });
            }
            // One call sweeps a table as small as this.
            assert_eq!((filter.len(), filter.stats().expiry.unwrap().oldest_unswept), (live, None));
        }
        None => {
            assert!(filter.is_empty(), "nothing can have an end yet");
            assert_eq!(filter.by_hash().insert_until(Hashed(1), Tick::new(8)), Err(ExpiringInsertError::ClockNotSet));
            assert_eq!(filter.advance_to(Tick::new(7)), Advance::Origin);
        }
    }
    as_before();
    merge!(Expiring, filter, live as u64);
    // Now ends, and the ticks that were evicted, are beyond the largest tick.
    filter.restart_clock(Tick::new(u64::MAX - 1));
    as_before();
    merge!(Expiring, filter, live as u64);
    let now = 1000;
    filter.restart_clock(Tick::new(now));
    as_before();
    if filter.plan().when_full == Some(WhenFull::Refuse) {
        use_until_it_is_full(filter, live, now);
    }
    come_and_go(filter);
}

/// What no insert into a full filter disturbs: it fails.
fn use_until_it_is_full(filter: &Expiring, live: usize, now: u64) {
    let longest = filter.plan().lifetime_in_ticks.unwrap();
    for (number, hash) in (0..).zip(hashes(20)) {
        let was_in = filter.by_hash().contains(hash);
        let end = now + 1 + number % longest;
        if filter.by_hash().insert_until(hash, Tick::new(end)).is_ok() {
            assert!(filter.by_hash().contains(hash) && filter.live_len() == live + 1);
            assert!(filter.by_hash().remove_expiring_at(hash, Tick::new(end)));
        }
        assert_eq!((filter.by_hash().contains(hash), filter.live_len()), (was_in, live));
        match filter.by_hash().insert_if_absent_until(hash, Tick::new(end)) {
            Ok(added) => {
                assert!(added != was_in && (!added || filter.by_hash().remove_expiring_at(hash, Tick::new(end))))
            }
            Err(_) => assert!(!was_in),
        }
        assert_eq!(filter.by_hash().insert_until(hash, Tick::new(now)), Ok(false), "it is dead already");
        let too_long = filter.by_hash().insert_until(hash, Tick::new(now + longest + 1));
        assert!(
            matches!(too_long, Err(ExpiringInsertError::LifetimeTooLong { now, .. }) if now.get() == 1000),
            "{too_long:?}"
        );
    }

    // Entries live exactly until their tick. After one round of the ring no entry is left, wherever it came from.
    let kept =
        hashes(20).filter(|&hash| filter.by_hash().insert_or_renew_until(hash, Tick::new(now + longest)).is_ok());
    let kept: Vec<Hashed> = kept.collect();
    filter.advance_to(Tick::new(now + longest - 1));
    assert!(kept.iter().all(|&hash| filter.by_hash().contains(hash)), "it has expired too soon");
    // Of keys that no entry hides, also none of the snapshot.
    let new = hashes(40).find(|&hash| {
        !filter.by_hash().contains(hash) && filter.by_hash().insert_until(hash, Tick::new(now + longest)).is_ok()
    });
    assert!(new.is_none_or(|hash| filter.by_hash().contains(hash)), "a new one was missed");
    filter.advance_to(Tick::new(now + longest));
    assert!(new.is_none_or(|hash| !filter.by_hash().contains(hash)), "it does not expire");
    filter.advance_to(Tick::new(now + (1 << filter.plan().layout.payload_bits)));
    assert!(filter.is_empty() && filter.live_len() == 0 && hashes(40).all(|hash| !filter.by_hash().contains(hash)));
}

/// Entries are added, renewed, removed and evicted, and expire, for more than a round of the ring. Each is counted once,
/// those of the snapshot too.
fn come_and_go(filter: &Expiring) {
    let (plan, expiry) = (filter.plan(), || filter.stats().expiry.unwrap());
    let (longest, round) = (plan.lifetime_in_ticks.unwrap(), 1 << plan.layout.payload_bits);
    let gone = || expiry().expired + expiry().evicted;
    let (mut now, mut there) = (filter.now().unwrap().get(), filter.len() as u64 + gone());
    for (number, hash) in (0..).zip(hashes(160)) {
        let end = Tick::new(now + 1 + number * 31 % longest);
        let added = match number % 4 {
            0 | 1 => filter.by_hash().insert_until(hash, end),
            2 => filter.by_hash().insert_if_absent_until(hash, end),
            _ => filter.by_hash().insert_or_renew_until(hash, end),
        };
        match added {
            Ok(added) => there += u64::from(added),
            Err(error) => assert!(
                matches!(
                    error,
                    ExpiringInsertError::Full { .. }
                        | ExpiringInsertError::TooManyCopies { .. }
                        | ExpiringInsertError::Evicted { .. }
                ),
                "{error}"
            ),
        }
        if number % 5 == 0 {
            there -= u64::from(filter.by_hash().remove(hash));
        }
        if number % 16 == 15 {
            now += 1 + number / 16 % 3 * (longest / 2);
            filter.advance_to(Tick::new(now));
        }
        assert_eq!(filter.len() as u64 + gone(), there, "an entry was counted twice, or not at all");
        assert!(filter.live_len() <= filter.len());
    }
    // The first call skips the round, the second one sweeps what is left.
    now += round;
    (0..2).for_each(|_| _ = filter.advance_to(Tick::new(now)));
    assert!(filter.is_empty() && gone() == there && expiry().oldest_unswept.is_none());
}
