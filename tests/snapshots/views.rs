//! A view answers what the loaded filter answers, and refuses what loading refuses.

use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, Encoding, ExpiringCuckooFilter, FromSnapshot, LoadError, Loader, SnapshotDamage,
    SnapshotInfo, SnapshotMismatch, StableHashBuilder, Tick, Values, View, Viewed, WhenFull,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::agreed::agreed;
use crate::filters::state;
use crate::kinds::{self, Expiring, Growable, Hasher, Maplet, NOW, Table, in_each_layout};
use crate::support::{self, Filter, MAPLET_LAYOUTS, Raw, build, hashes, scattered};

/// A filter and its views. Those without a clock answer at any tick as at their moment.
trait Views: Table + FromSnapshot<Hasher> + Viewed<Hasher = Hasher, Key = Raw> {
    fn look(view: &View<Self, &[u8]>, key: &Raw, tick: u64) -> bool;
    fn look_all(view: &View<Self, &[u8]>, keys: &[Raw], tick: u64, found: &mut Vec<bool>);

    /// Ticks at which a view may answer something else than at the others. The filter is advanced to them.
    fn ticks(&self) -> Vec<u64> {
        vec![0]
    }
    fn advance(&self, _tick: u64) {}

    /// The values of these keys, in a view singly and in batches. None if there are no values.
    fn values_of(&self, _keys: &[Raw]) -> Vec<Values> {
        Vec::new()
    }
    fn values_found(_view: &View<Self, &[u8]>, _keys: &[Raw]) -> Vec<Values> {
        Vec::new()
    }
}

macro_rules! views {
    ($Filter:ty: $($more:item)*) => {
        impl Views for $Filter {
            fn look(view: &View<Self, &[u8]>, key: &Raw, _: u64) -> bool {
                view.contains(key)
            }

            fn look_all(view: &View<Self, &[u8]>, keys: &[Raw], _: u64, found: &mut Vec<bool>) {
                view.contains_batch(keys, found);
            }

            $($more)*
        }
    };
}

views!(Filter:);
views!(Growable:);
views! { Maplet:
    fn values_of(&self, keys: &[Raw]) -> Vec<Values> {
        keys.iter().map(|key| self.values(key)).collect()
    }

    fn values_found(view: &View<Self, &[u8]>, keys: &[Raw]) -> Vec<Values> {
        let values: Vec<Values> = keys.iter().map(|key| view.values(key)).collect();
        assert!(keys.iter().zip(&values).all(|(key, values)| view.contains(key) != values.is_empty()));
        for len in lengths(keys) {
            let mut batch = Vec::new();
            view.values_batch(&keys[..len], &mut batch);
            assert_eq!(batch, values[..len], "{view:?}");
        }
        values
    }
}

impl Views for Expiring {
    fn look(view: &View<Self, &[u8]>, key: &Raw, tick: u64) -> bool {
        view.contains_at(key, Tick::new(tick))
    }

    fn look_all(view: &View<Self, &[u8]>, keys: &[Raw], tick: u64, found: &mut Vec<bool>) {
        view.contains_at_batch(keys, Tick::new(tick), found);
    }

    /// Also before the snapshot, where it is as at its moment.
    fn ticks(&self) -> Vec<u64> {
        let now = self.now().map_or(17, Tick::get);
        let (longest, round) = (self.plan().lifetime_in_ticks.unwrap(), 1 << self.plan().layout.payload_bits);
        let ahead =
            [0, 1, 2, longest / 2, longest - 1, longest, longest + 1, round - 1, round, round + 1, u64::MAX >> 17];
        let mut ticks: Vec<_> = ahead.into_iter().map(|ahead| now.saturating_add(ahead)).collect();
        ticks.extend([0, now - 1, u64::MAX]);
        ticks.sort_unstable();
        ticks
    }

    /// One that was never advanced would begin its clock.
    fn advance(&self, tick: u64) {
        _ = self.now().map(|_| self.advance_to(Tick::new(tick)));
    }
}

/// The lengths of batches: fewer than a block, a block, and more, up to all.
fn lengths(keys: &[Raw]) -> impl Iterator<Item = usize> {
    [0, 1, 31, 32, 33, 100].into_iter().filter(|&len| len < keys.len()).chain([keys.len()])
}

/// What a view finds, singly and in batches.
fn found<F: Views>(view: &View<F, &[u8]>, keys: &[Raw], tick: u64) -> Vec<bool> {
    let found: Vec<bool> = keys.iter().map(|key| F::look(view, key, tick)).collect();
    for len in lengths(keys) {
        let mut batch = Vec::new();
        F::look_all(view, &keys[..len], tick, &mut batch);
        assert_eq!(batch, found[..len], "{view:?} at {tick}");
    }
    found
}

/// Checks that the view of a snapshot has the answers of the loaded filter, if the snapshot begins so many bytes after a
/// multiple of 8. Returns the loaded filter.
fn answers_as_loaded<F: Views>(filter: &F, keys: &[Raw], offset: usize) -> F {
    let snapshot = filter.saved();
    let mut buffer = vec![0xa5; snapshot.len() + 16];
    let start = buffer.as_ptr().align_offset(8) + offset;
    let range = start..start + snapshot.len();
    buffer[range.clone()].copy_from_slice(&snapshot);
    let view = View::<F, &[u8]>::new(&buffer[range], Hasher::default()).unwrap();
    view.verify().unwrap();
    let loaded = agreed(&snapshot, Hasher::default(), F::load_within(&snapshot, 1 << 30)).unwrap();
    assert_eq!((view.len(), view.is_empty()), (loaded.len(), loaded.len() == 0));
    let rates = [view.false_positive_rate(), loaded.stats().false_positive_rate];
    assert!((rates[0] - rates[1]).abs() <= 1e-12 * rates[1], "{rates:?}");
    assert_eq!(view.info().plan.capacity, loaded.capacity());
    assert_eq!(F::values_found(&view, keys), loaded.values_of(keys), "{loaded:?}");
    for tick in loaded.ticks() {
        loaded.advance(tick);
        assert!(found(&view, keys, tick) == loaded.contains_all(keys), "at {tick} of {loaded:?}");
    }
    F::loaded(&snapshot)
}

fn is_viewed<F: Views>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    for (offset, (capacity, share)) in
        [(0, 1.0), (7, 0.6), (300, 0.0), (1000, 0.3), (3000, 0.99)].into_iter().enumerate()
    {
        let filter = new(capacity);
        let entries = (filter.capacity().max(capacity) as f64 * share) as u64;
        // Some keys have several entries, so it may be full before its capacity.
        (0..entries).for_each(|nth| _ = filter.insert(&(scattered(nth - nth % 8 / 7), number(nth))));
        let keys: Vec<Raw> = hashes(0, entries as usize + 200).collect();
        answers_as_loaded(&filter, &keys, offset);
    }
}

/// In every layout, at several sizes and addresses.
#[test]
fn a_view_answers_as_the_filter() {
    in_each_layout!(is_viewed);
}

/// A filter grows a little and is saved, over and over, and shrinks in the same way. So there is a snapshot between any two
/// doublings, and where buckets of two layouts are side by side.
#[test]
fn a_view_answers_as_a_filter_that_grows() {
    const MOST: u64 = if cfg!(miri) { 300 } else { 6_000 };
    let encodings = [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)];
    for (rate, encoding) in [0.3, 0.03, 0.002, 1e-3, 1e-6].into_iter().zip(encodings.into_iter().cycle()) {
        let builder = Growable::builder_with_hasher(Hasher::default()).capacity(100).max_capacity(1_000_000);
        let builder = encoding.map_or(builder.clone(), |encoding| builder.encoding(encoding));
        let filter = builder.false_positive_rate(rate).build().unwrap();
        let check = |present: u64| {
            let keys: Vec<Raw> = hashes(0, present as usize + 200).collect();
            let loaded = answers_as_loaded(&filter, &keys, present as usize % 8);
            let figures = |filter: &Growable| {
                let plan = filter.plan();
                (filter.len(), plan.capacity, plan.max_capacity, plan.layout, filter.digest().unwrap())
            };
            assert_eq!(figures(&loaded), figures(&filter));
            // It goes on from there.
            hashes(1 << 30, 200).for_each(|key| loaded.insert(&key).unwrap());
            assert!(keys[..present as usize].iter().all(|key| loaded.remove(key)) && loaded.len() == 200, "{filter:?}");
        };
        let mut sizes = Vec::new();
        for nth in 0..MOST {
            filter.insert(&scattered(nth)).unwrap();
            if nth % 197 == 0 {
                check(nth + 1);
                sizes.push(filter.capacity());
            }
        }
        for nth in (1..MOST).rev() {
            assert!(filter.remove(&scattered(nth)));
            if nth % 197 == 0 {
                filter.shrink_to_fit();
                check(nth);
            }
        }
        sizes.dedup();
        assert!(cfg!(miri) || sizes.len() > 20, "{sizes:?}");
    }
}

#[test]
fn a_view_of_a_large_table_prefetches_and_answers_as_the_filter() {
    let keys: Vec<Raw> = hashes(0, 400_000).collect();
    let (filter, maplet) = (build(400_000, Encoding::SemiSorted, 0.001), kinds::maplet(400_000, MAPLET_LAYOUTS[4]));
    filter.insert_batch(&keys[..280_000]).unwrap();
    maplet.insert_batch(keys[..280_000].iter().map(|key| (key, key.0 as u16 % 16))).unwrap();
    let growable = kinds::growable(1000, 0.001);
    growable.insert_batch(&keys[..280_000]).unwrap();
    answers_as_loaded(&filter, &keys, 3);
    answers_as_loaded(&maplet, &keys, 0);
    answers_as_loaded(&growable, &keys, 3);
}

#[test]
fn a_view_of_dead_entries_of_one_that_evicts_and_of_one_without_a_tick_answers_as_the_filter() {
    let keys: Vec<Raw> = hashes(0, 40_000).collect();
    let filter = kinds::expiring(40_000, MAPLET_LAYOUTS[2]);
    answers_as_loaded(&filter.another(), &keys[..200], 1);
    (0..).zip(&keys).for_each(|(nth, key)| _ = filter.insert_until(key, Tick::new(NOW + 1 + nth % 15)).unwrap());
    filter.advance_to(Tick::new(NOW + 1));
    assert!(filter.len() > filter.live_len(), "some are dead and not swept");
    answers_as_loaded(&filter, &keys, 1);

    let never = ExpiringCuckooFilter::<Raw>::builder().capacity(60).lifetime_in_ticks(9).hasher(Hasher::default());
    answers_as_loaded(&never.clone().build().unwrap(), &keys[..200], 0);
    let filter = never.when_full(WhenFull::EvictSoonest).build().unwrap();
    for (nth, key) in (0..).zip(&keys[..400]) {
        filter.advance_to(Tick::new(nth / 40));
        _ = filter.insert_until(key, Tick::new(nth / 40 + 1 + nth % 9));
    }
    assert!(filter.stats().expiry.unwrap().evicted > 0, "it runs ahead of the caller's clock");
    answers_as_loaded(&filter, &keys[..500], 5);
}

/// Threads, whatever owns the bytes, and the caller's own settings.
#[test]
fn a_view_owns_or_borrows_its_bytes_and_is_shared() {
    use crate::filters::{Filter, Maplet, builder};

    fn check<F: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    check::<View<ConcurrentCuckooFilter<Rc<str>>, &'static [u8; 100]>>();
    check::<(View<Growable, Arc<[u8]>>, View<Maplet, Vec<u8>>, View<Expiring, Box<[u8]>>)>();

    let filter = builder().capacity(500).build().unwrap();
    filter.insert(&7).unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    let shared: View<Filter, Arc<[u8]>> = View::new(bytes.clone().into(), state()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(shared.contains(&7) && shared.by_hash().contains(shared.hash_one(&7))));
        }
    });
    assert_eq!((shared.info().len, shared.info().bytes), (Some(1), bytes.len() as u64));
    assert_eq!(shared.into_bytes()[..], bytes);

    let loader = || Loader::<Filter, _>::new(state(), 0);
    let other = builder().capacity(5000).plan().unwrap();
    assert!(matches!(
        loader().expect_plan(other).view(&bytes),
        Err(LoadError::Mismatch(SnapshotMismatch::Settings { .. }))
    ));
    assert!(matches!(loader().schema("other").view(&bytes), Err(LoadError::Mismatch(SnapshotMismatch::Schema { .. }))));
    assert!(matches!(View::<Maplet, _>::new(&bytes, state()), Err(LoadError::Mismatch(SnapshotMismatch::Kind { .. }))));
    let other = StableHashBuilder::with_key(*b"some other key..");
    assert!(matches!(View::<Filter, _>::new(&bytes, other), Err(LoadError::Mismatch(SnapshotMismatch::Hasher))));
    bytes.push(0);
    assert!(matches!(
        View::<Filter, _>::new(&bytes, state()),
        Err(LoadError::Damaged(SnapshotDamage::TrailingBytes { .. }))
    ));
}

fn may_have_any_words<F: Views>(new: impl Fn(usize) -> F, _: impl Fn(u64) -> u64) {
    let keys: Vec<Raw> = hashes(0, 300).collect();
    for seed in 0..20 {
        let mut bytes = new(20 + 60 * seed as usize).saved();
        let (buckets, end) = (SnapshotInfo::read(&bytes[..]).unwrap().plan.layout.buckets, bytes.len() - 12);
        let random = SmallRng::seed_from_u64(seed).random_iter::<u8>();
        bytes[end - 8 * buckets..end].iter_mut().zip(random).for_each(|(byte, random)| *byte = random);
        let view = View::<F, &[u8]>::new(&bytes, Hasher::default()).unwrap();
        assert!(view.verify().is_err());
        found(&view, &keys, NOW + seed);
        F::values_found(&view, &keys);
    }
}

/// Nothing that the words hold makes a lookup panic, and neither do bytes that become fewer.
#[test]
fn words_that_no_filter_writes_only_give_wrong_answers() {
    in_each_layout!(may_have_any_words);
}

#[test]
fn bytes_that_become_fewer_make_nothing_panic() {
    struct Shrinks(Vec<u8>, Rc<Cell<usize>>);

    impl AsRef<[u8]> for Shrinks {
        fn as_ref(&self) -> &[u8] {
            &self.0[..self.1.get()]
        }
    }

    let snapshot = build(300, Encoding::SemiSorted, 0.001).saved();
    let left = Rc::new(Cell::new(snapshot.len()));
    let view = View::<Filter, _>::new(Shrinks(snapshot, Rc::clone(&left)), Hasher::default()).unwrap();
    let (keys, mut found): (Vec<Raw>, _) = (hashes(0, 20).collect(), Vec::new());
    while left.get() > 0 {
        left.set(left.get() - 1);
        keys.iter().for_each(|key| _ = view.contains(key));
        view.contains_batch(&keys, &mut found);
        assert!(
            matches!(view.verify(), Err(LoadError::Damaged(SnapshotDamage::Truncated { .. }))),
            "{} bytes left",
            left.get()
        );
    }
}
