//! A view answers what the loaded filter answers, and refuses what loading refuses.

use std::cell::Cell;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, Encoding, GrowableCuckooFilter, LoadError, Loader, SnapshotInfo, StableHashBuilder, Tick,
    Values, View, WhenFull,
};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::filters::{
    Expiring, Filter, Growable, Maplet, build, build_expiring, build_maplet, expiring_builder, load, saved,
    small_expiring, small_filters, small_maplets, state, value_of,
};
use crate::support::{LAYOUTS, Layout, MAPLET_LAYOUTS, MapletLayout};

/// The snapshot, at an address that is so many bytes after a multiple of 8.
fn at_address(snapshot: &[u8], offset: usize) -> (Vec<u8>, std::ops::Range<usize>) {
    let mut buffer = vec![0xa5; snapshot.len() + 16];
    let start = buffer.as_ptr().align_offset(8) + offset;
    let range = start..start + snapshot.len();
    buffer[range.clone()].copy_from_slice(snapshot);
    (buffer, range)
}

/// Checks that a view of the snapshot says of itself what the filter does, and then more of it.
macro_rules! same_answers {
    ($Filter:ty, $filter:expr, $snapshot:expr, $offset:expr, |$view:ident| $($more:tt)*) => {{
        let filter: &$Filter = $filter;
        let (buffer, range) = at_address($snapshot, $offset);
        let $view = View::<$Filter, _>::new(&buffer[range], state()).unwrap();
        $view.verify().unwrap();
        assert_eq!(($view.len(), $view.is_empty()), (filter.len(), filter.is_empty()));
        let rates = [$view.false_positive_rate(), filter.stats().false_positive_rate];
        assert!((rates[0] - rates[1]).abs() <= 1e-12 * rates[1], "{rates:?}");
        assert_eq!($view.info().plan.capacity, filter.capacity());
        $($more)*
    }};
}

/// The lengths of batches: fewer than a block, a block, and more, up to this many.
fn lengths(keys: u64) -> impl Iterator<Item = u64> {
    [0, 1, 31, 32, 33, 100].into_iter().filter(move |&len| len < keys).chain([keys])
}

/// Checks that a view has the answers of the filter for so many keys, single and in batches of several lengths.
macro_rules! contains_the_same {
    ($view:ident, $filter:ident, $keys:expr) => {{
        let found: Vec<bool> = (0..$keys).map(|key| $filter.contains(&key)).collect();
        for (key, &found) in (0..$keys).zip(&found) {
            assert_eq!($view.contains(&key), found, "{key} of {:?}", $filter);
        }
        for len in lengths($keys) {
            let mut batch = Vec::new();
            $view.contains_batch(&(0..len).collect::<Vec<_>>(), &mut batch);
            assert_eq!(batch, found[..len as usize], "{:?}", $filter);
        }
    }};
}

fn check_filter(layout: Layout, capacity: usize, share: f64, offset: usize) {
    let filter = build(layout, capacity);
    let keys = (filter.capacity() as f64 * share) as u64;
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    let snapshot = saved(&filter);
    let all = 2 * keys + 200;
    same_answers!(Filter, &filter, &snapshot, offset, |view| contains_the_same!(view, filter, all));
    load::<Filter>(&snapshot).unwrap();
}

fn check_maplet(layout: MapletLayout, capacity: usize, share: f64, offset: usize) {
    let maplet = build_maplet(layout, capacity);
    let pairs = (maplet.capacity() as f64 * share) as u64;
    // Some keys have several values, and some of those are the same. So it may be full before its capacity.
    (0..pairs).try_for_each(|pair| maplet.insert(&(pair / 2), value_of(pair % 3, layout.0))).unwrap_or_default();
    let snapshot = saved(&maplet);
    let all = pairs + 200;
    same_answers!(Maplet, &maplet, &snapshot, offset, |view| {
        contains_the_same!(view, maplet, all);
        let values: Vec<Values> = (0..all).map(|key| maplet.values(&key)).collect();
        assert!((0..all).zip(&values).all(|(key, &values)| view.values(&key) == values), "{maplet:?}");
        for len in lengths(all) {
            let mut batch = Vec::new();
            view.values_batch(&(0..len).collect::<Vec<_>>(), &mut batch);
            assert_eq!(batch, values[..len as usize], "{maplet:?}");
        }
    });
    load::<Maplet>(&snapshot).unwrap();
}

/// Checks a view of an expiring filter at this tick and at many later ones, by a filter that is loaded and advanced.
fn check_ticks(snapshot: &[u8], all: u64, offset: usize) {
    let loaded = load::<Expiring>(snapshot).unwrap();
    let (longest, expiry_bits) = (loaded.plan().lifetime_in_ticks.unwrap(), loaded.plan().layout.payload_bits);
    same_answers!(Expiring, &loaded, snapshot, offset, |view| {
        let Some(now) = loaded.now().map(Tick::get) else {
            assert!((0..all).all(|key| !view.contains_at(&key, Tick::new(17))));
            let mut batch = Vec::new();
            view.contains_batch_at(&[1, 2], Tick::new(17), &mut batch);
            return assert_eq!(batch, [false; 2]);
        };
        let round = 1 << expiry_bits;
        let ticks =
            [0, 1, 2, longest / 2, longest - 1, longest, longest + 1, round - 1, round, round + 1, u64::MAX >> 17];
        let mut later: Vec<u64> = ticks.into_iter().map(|ticks| now.saturating_add(ticks)).chain([u64::MAX]).collect();
        later.sort_unstable();
        // Before the snapshot it is as at its moment.
        for tick in [0, now.saturating_sub(1)].into_iter().chain(later) {
            loaded.advance_to(Tick::new(tick));
            let found: Vec<bool> = (0..all).map(|key| loaded.contains(&key)).collect();
            for (key, &found) in (0..all).zip(&found) {
                assert_eq!(view.contains_at(&key, Tick::new(tick)), found, "{key} at {tick} of {loaded:?}");
            }
            for len in lengths(all) {
                let mut batch = Vec::new();
                view.contains_batch_at(&(0..len).collect::<Vec<_>>(), Tick::new(tick), &mut batch);
                assert_eq!(batch, found[..len as usize], "at {tick} of {loaded:?}");
            }
        }
    });
}

fn check_expiring(layout: MapletLayout, capacity: usize, share: f64, now: u64, offset: usize) {
    let filter = build_expiring(layout, capacity);
    filter.advance_to(Tick::new(now));
    let (entries, longest) = ((filter.capacity() as f64 * share) as u64, filter.plan().lifetime_in_ticks.unwrap());
    // Some keys have several entries, so it may be full before its capacity.
    for entry in 0..entries {
        let lifetime = 1 + u64::from(value_of(entry, layout.0)) % longest;
        _ = filter.insert_until(&(entry / 2 * 2), Tick::new(now + lifetime));
    }
    check_ticks(&saved(&filter), entries + 200, offset);
    // One whose dead entries are not swept yet, if it is large.
    filter.advance_to(Tick::new(now + longest / 2));
    check_ticks(&saved(&filter), entries + 200, offset);
}

fn check_growable(builder_of: (f64, Option<Encoding>), first: usize, keys: u64, shrunk: u64, offset: usize) {
    let (rate, encoding) = builder_of;
    let builder = GrowableCuckooFilter::<u64>::builder().capacity(first).max_capacity(1_000_000);
    let builder = if let Some(encoding) = encoding { builder.encoding(encoding) } else { builder };
    let filter: Growable = builder.false_positive_rate(rate).hasher(state()).build().unwrap();
    for left in [keys, shrunk.min(keys)] {
        (filter.len() as u64..left).for_each(|key| filter.insert(&key).unwrap());
        (left..filter.len() as u64).for_each(|key| assert!(filter.remove(&key)));
        filter.shrink_to_fit();
        let mut snapshot = Vec::new();
        filter.save(&mut snapshot).unwrap();
        let all = 2 * left + 200;
        same_answers!(Growable, &filter, &snapshot, offset, |view| contains_the_same!(view, filter, all));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In every layout, at every size and address.
    #[test]
    fn a_view_answers_as_the_filter(
        layout in prop::sample::select(&LAYOUTS[..]), of_maplet in prop::sample::select(&MAPLET_LAYOUTS[..]),
        capacity in prop_oneof![0..20usize, 0..3000usize], share in 0.0..=1.0f64, now in prop_oneof![0..9u64, 1..1u64 << 40],
        offset in 0..8usize,
    ) {
        check_filter(layout, capacity, share, offset);
        check_maplet(of_maplet, capacity, share, offset);
        check_expiring(of_maplet, capacity, share, now, offset);
    }

    /// As it grows and shrinks, most often in the middle of a doubling.
    #[test]
    fn a_view_answers_as_a_filter_that_grows(
        rate in prop_oneof![Just(0.3), Just(0.03), Just(0.002), Just(1e-3), Just(1e-4), Just(1e-6)],
        encoding in prop::sample::select(&[None, Some(Encoding::Plain), Some(Encoding::SemiSorted)][..]),
        first in 0..2000usize, keys in 0..9000u64, shrunk in 0..3000u64, offset in 0..8usize,
    ) {
        check_growable((rate, encoding), first, keys, shrunk, offset);
    }
}

#[test]
fn a_view_of_a_large_table_prefetches_and_answers_as_the_filter() {
    for layout in [LAYOUTS[5], LAYOUTS[6]] {
        check_filter(layout, 400_000, 0.7, 3);
    }
    check_maplet(MAPLET_LAYOUTS[4], 400_000, 0.7, 0);
    check_growable((0.001, None), 1000, 400_000, 250_000, 3);
}

#[test]
fn a_view_of_a_filter_that_forgets_or_was_never_advanced_answers_as_the_filter() {
    check_ticks(&saved(&build_expiring(MAPLET_LAYOUTS[2], 100)), 300, 1);
    let builder = expiring_builder().capacity(60).lifetime_in_ticks(9).when_full(WhenFull::EvictOldest);
    let filter = builder.build().unwrap();
    for key in 0..400 {
        filter.advance_to(Tick::new(key / 40));
        _ = filter.insert_until(&key, Tick::new(key / 40 + 1 + key % 9));
    }
    assert!(filter.stats().expiry.unwrap().evicted > 0, "it runs ahead of the caller's clock");
    check_ticks(&saved(&filter), 500, 5);
}

/// Threads, whatever owns the bytes, and the caller's own settings.
#[test]
fn a_view_owns_or_borrows_its_bytes_and_is_shared() {
    fn check<F: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    check::<View<ConcurrentCuckooFilter<Rc<str>>, &'static [u8; 100]>>();
    check::<(View<Growable, Arc<[u8]>>, View<Maplet, Vec<u8>>, View<Expiring, Box<[u8]>>)>();

    let filter = build(LAYOUTS[5], 500);
    filter.insert(&7).unwrap();
    let mut bytes = Vec::new();
    filter.begin_save().unwrap().position(17).attachment("eu-west").write_to(&mut bytes).unwrap();
    let shared: View<Filter, Arc<[u8]>> = View::new(bytes.clone().into(), state()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(shared.contains(&7) && shared.by_hash().contains(shared.hash_one(&7))));
        }
    });
    let info = shared.info();
    assert_eq!((info.position, &info.attachment[..], &*info.schema), (Some(17), &b"eu-west"[..], "u64"));
    assert_eq!((info.len, info.bytes), (Some(1), bytes.len() as u64));
    assert_eq!(shared.into_bytes()[..], bytes);

    let loader = || Loader::<Filter, _>::new(state(), 0);
    let other = crate::filters::builder().capacity(5000).plan().unwrap();
    assert!(matches!(loader().expect(other).view(&bytes), Err(LoadError::OtherSettings { .. })));
    assert!(matches!(loader().schema("other").view(&bytes), Err(LoadError::OtherSchema { .. })));
    assert!(matches!(View::<Maplet, _>::new(&bytes, state()), Err(LoadError::WrongKind { .. })));
    let other = StableHashBuilder::with_key(*b"some other key..");
    assert!(matches!(View::<Filter, _>::new(&bytes, other), Err(LoadError::OtherHasher)));
    bytes.push(0);
    assert!(matches!(View::<Filter, _>::new(&bytes, state()), Err(LoadError::TrailingBytes { .. })));
}

/// Any words, from a generator.
fn with_random_words(snapshot: &[u8], seed: u64) -> Vec<u8> {
    let buckets = SnapshotInfo::read(snapshot).unwrap().plan.layout.buckets;
    let mut bytes = snapshot.to_vec();
    let end = bytes.len() - 12;
    let random = SmallRng::seed_from_u64(seed).random_iter::<u8>();
    bytes[end - 8 * buckets..end].iter_mut().zip(random).for_each(|(byte, random)| *byte = random);
    bytes
}

/// Nothing that the words hold makes a lookup panic, and neither do bytes that become fewer.
#[test]
fn words_that_no_filter_writes_only_give_wrong_answers() {
    let keys: Vec<u64> = (0..300).collect();
    for seed in 0..20 {
        for filter in small_filters() {
            let bytes = with_random_words(&saved(&filter), seed);
            let (view, mut found) = (View::<Filter, _>::new(&bytes, state()).unwrap(), Vec::new());
            view.contains_batch(&keys, &mut found);
            assert!(keys.iter().map(|key| view.contains(key)).eq(found));
            assert!(view.verify().is_err());
        }
        for maplet in small_maplets() {
            let bytes = with_random_words(&saved(&maplet), seed);
            let (view, mut found) = (View::<Maplet, _>::new(&bytes, state()).unwrap(), Vec::new());
            view.values_batch(&keys, &mut found);
            assert!(keys.iter().map(|key| view.values(key)).eq(found));
            assert!(keys.iter().all(|key| view.contains(key) != view.values(key).is_empty()));
        }
        for filter in small_expiring() {
            let bytes = with_random_words(&saved(&filter), seed);
            let (view, mut found) = (View::<Expiring, _>::new(&bytes, state()).unwrap(), Vec::new());
            let tick = Tick::new(view.info().now.unwrap().get() + seed);
            view.contains_batch_at(&keys, tick, &mut found);
            assert!(keys.iter().map(|key| view.contains_at(key, tick)).eq(found));
        }
        for encoding in [Encoding::Plain, Encoding::SemiSorted] {
            let builder = GrowableCuckooFilter::<u64>::builder().capacity(300 + 40 * seed as usize).encoding(encoding);
            let filter: Growable = builder.hasher(state()).build().unwrap();
            let mut bytes = Vec::new();
            filter.save(&mut bytes).unwrap();
            let bytes = with_random_words(&bytes, seed);
            let (view, mut found) = (View::<Growable, _>::new(&bytes, state()).unwrap(), Vec::new());
            view.contains_batch(&keys, &mut found);
            assert!(keys.iter().map(|key| view.contains(key)).eq(found));
        }
    }
}

#[test]
fn bytes_that_become_fewer_make_nothing_panic() {
    struct Shrinks(Vec<u8>, Rc<Cell<usize>>);

    impl AsRef<[u8]> for Shrinks {
        fn as_ref(&self) -> &[u8] {
            &self.0[..self.1.get()]
        }
    }

    let snapshot = saved(&build(LAYOUTS[5], 300));
    let left = Rc::new(Cell::new(snapshot.len()));
    let view = View::<Filter, _>::new(Shrinks(snapshot, Rc::clone(&left)), state()).unwrap();
    let mut found = Vec::new();
    while left.get() > 0 {
        left.set(left.get() - 1);
        (0..20).for_each(|key| _ = view.contains(&key));
        view.contains_batch(&[1, 2, 3], &mut found);
        assert!(matches!(view.verify(), Err(LoadError::Truncated { .. })), "{} bytes left", left.get());
    }
}
