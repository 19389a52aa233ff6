//! The page `missing_keys`: each cause that it names makes a key go missing, in each type for which it says so, and is noticed as
//! it says. The tests have the names of the page's headings.
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

mod support;

use std::hash::BuildHasherDefault;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concurrent_cuckoo_filter::{
    Advance, ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, ExpiringCuckooFilter, GrowableCuckooFilter,
    LoadError, Loader, RecentCuckooFilter, SnapshotInfo, SnapshotMismatch, StableHashBuilder, Stats, Tick, WhenFull,
};
use support::{Identity, Raw, hashes};

type Hasher = BuildHasherDefault<Identity>;
type Fixed = ConcurrentCuckooFilter<Raw, Hasher>;
type Growable = GrowableCuckooFilter<Raw, Hasher>;
type Recent = RecentCuckooFilter<Raw, Hasher>;
type Expiring = ExpiringCuckooFilter<Raw, Hasher>;
type Maplet = CuckooMaplet<Raw, Hasher>;
type Limiter = CuckooRateLimiter<Raw, Hasher>;

const MINUTE: Duration = Duration::from_secs(60);
/// A rate at which look-alikes are soon found.
const RATE: f64 = 0.05;
const NOW: Tick = Tick::new(1000);

fn fixed() -> Fixed {
    Fixed::builder_with_hasher(Hasher::default()).capacity(100).false_positive_rate(RATE).build().unwrap()
}

fn growable() -> Growable {
    let builder = Growable::builder_with_hasher(Hasher::default()).capacity(100).max_capacity(100);
    builder.false_positive_rate(RATE).build().unwrap()
}

/// The last 10 keys.
fn recent() -> Recent {
    Recent::builder_with_hasher(Hasher::default()).last(10).false_positive_rate(RATE).build().unwrap()
}

/// Entries that live for up to three ticks.
fn expiring(when_full: WhenFull) -> Expiring {
    let builder = Expiring::builder_with_hasher(Hasher::default()).capacity(100).lifetime_in_ticks(3);
    let filter = builder.false_positive_rate(RATE).when_full(when_full).build().unwrap();
    filter.advance_to(NOW);
    filter
}

fn maplet() -> Maplet {
    let builder = Maplet::builder_with_hasher(Hasher::default()).capacity(100).value_bits(4);
    builder.false_positive_rate(RATE).build().unwrap()
}

/// A limit of one request per minute, two of them at once, by a clock that shows these seconds.
fn limiter(when_full: WhenFull) -> (Limiter, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&seconds);
    let builder = Limiter::builder_with_hasher(Hasher::default()).allow(1, MINUTE).burst(2).capacity(20);
    let builder = builder.clock(move || Duration::from_secs(shown.load(Ordering::Relaxed)));
    (builder.false_positive_rate(RATE).when_full(when_full).build().unwrap(), seconds)
}

fn key() -> Raw {
    hashes(0, 1).next().unwrap()
}

/// Keys that are not [`key`].
fn others() -> impl Iterator<Item = Raw> {
    hashes(1, 10_000_000)
}

/// Another key that the filter cannot distinguish from the one that it has.
fn look_alike(is_present: impl Fn(&Raw) -> bool) -> Raw {
    others().find(is_present).expect("some key looks alike")
}

/// Runs the body with filters of each type that has copies of keys, none of which is older than another.
macro_rules! in_each {
    ($($filter:ident = $new:expr),+; $body:block) => {$({
        let $filter = $new;
        $body
    })+};
}

/// The page's headings are the names of the tests.
#[test]
fn the_page_names_these_causes_and_no_others() {
    let page = include_str!("../src/guide/missing_keys.md");
    let source = include_str!("missing_keys.rs");
    let headings = page.lines().filter_map(|line| line.strip_prefix("# "));
    let names: Vec<_> = headings.map(|heading| heading.to_lowercase().replace(' ', "_")).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in &names {
        assert!(source.contains(&format!("fn {name}()")), "no test for: {name}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| [")).count();
    assert_eq!(rows, names.len(), "the table has a row for each heading");
}

#[test]
fn its_insert_failed() {
    fn check<E: std::fmt::Debug>(
        insert: impl Fn(&Raw) -> Result<(), E>,
        contains: impl Fn(&Raw) -> bool,
        stats: impl Fn() -> Stats,
    ) {
        let failed: Vec<_> = others().take(500).filter(|key| insert(key).is_err()).collect();
        assert!(failed.iter().any(|key| !contains(key)), "none of {} is missing", failed.len());
        assert_eq!(stats().inserts_failed, failed.len() as u64);
    }
    let filter = fixed();
    check(|key| filter.insert(key), |key| filter.contains(key), || filter.stats());
    let filter = growable();
    check(|key| filter.insert(key), |key| filter.contains(key), || filter.stats());
    let filter = expiring(WhenFull::Refuse);
    check(|key| filter.insert(key), |key| filter.contains(key), || filter.stats());
    let filter = maplet();
    check(|key| filter.insert(key, 1), |key| filter.contains(key), || filter.stats());

    // A batch has added the keys before the index of its error.
    let filter = fixed();
    let keys: Vec<_> = others().take(500).collect();
    let index = filter.insert_batch(&keys).unwrap_err().index;
    assert!(keys[..index].iter().all(|key| filter.contains(key)));
    assert_eq!(filter.len(), index, "neither that key nor a later one");

    // A filter of recent keys has no such error.
    let filter = recent();
    let is_new = others().take(500).filter(|key| filter.insert(key)).all(|key| filter.contains(&key));
    assert!(is_new);
}

#[test]
fn a_key_was_removed_that_was_never_inserted() {
    macro_rules! check {
        ($new:expr, $filter:ident, $key:ident: $insert:expr, $contains:expr, $remove:expr) => {{
            let $filter = $new;
            let $key = &key();
            let _ = $insert;
            let other = look_alike(|$key| $contains);
            let $key = &other;
            assert!($remove, "it was never inserted, and yet it is removed");
            let $key = &key();
            assert!(!$contains);
            // Removals of other keys find nothing, and are counted.
            others().filter(|other| *other != key()).take(100).for_each(|other| {
                let $key = &other;
                assert!(!$remove);
            });
            assert_eq!($filter.stats().removals_not_found, 100);
        }};
    }
    check!(fixed(), filter, key: filter.insert(key), filter.contains(key), filter.remove(key));
    check!(growable(), filter, key: filter.insert(key), filter.contains(key), filter.remove(key));
    check!(recent(), filter, key: filter.insert(key), filter.contains(key), filter.remove(key));
    check!(expiring(WhenFull::Refuse), filter, key: filter.insert(key), filter.contains(key), filter.remove(key));
    check!(maplet(), filter, key: filter.insert(key, 1), filter.contains(key), filter.remove(key, 1));
    let limiter = limiter(WhenFull::Refuse).0;
    check!(limiter, limiter, key: limiter.check(key), limiter.peek(key).remaining == 1, limiter.remove(key));

    // A value that is replaced for a look-alike is replaced for the key.
    let places = maplet();
    places.insert(&key(), 1).unwrap();
    assert!(places.replace(&look_alike(|key| places.contains(key)), 1, 2).unwrap());
    assert!(!places.values(&key()).contains(1));
}

#[test]
fn it_shared_the_copy_of_another_key() {
    macro_rules! check {
        ($new:expr, $filter:ident, $key:ident: $insert_if_absent:expr, $contains:expr, $remove:expr) => {{
            let $filter = $new;
            let $key = &key();
            assert!($insert_if_absent);
            let other = look_alike(|$key| $contains);
            let $key = &other;
            assert!(!$insert_if_absent && $contains, "it is new, and gets no copy");
            let $key = &key();
            assert!($remove);
            let $key = &other;
            assert!(!$contains, "the one copy is gone");
        }};
    }
    check!(fixed(), filter, key: filter.insert_if_absent(key).unwrap(), filter.contains(key), filter.remove(key));
    check!(growable(), filter, key: filter.insert_if_absent(key).unwrap(), filter.contains(key), filter.remove(key));
    check!(recent(), filter, key: filter.insert(key), filter.contains(key), filter.remove(key));
    check!(recent(), filter, key: filter.insert_or_renew(key), filter.contains(key), filter.remove(key));
    let new = expiring(WhenFull::Refuse);
    check!(new, filter, key: filter.insert_if_absent(key).unwrap(), filter.contains(key), filter.remove(key));
    let new = expiring(WhenFull::Refuse);
    check!(new, filter, key: filter.insert_or_renew(key).unwrap(), filter.contains(key), filter.remove(key));
    let insert_if_absent = |maplet: &Maplet, key: &Raw| maplet.insert_if_absent(key, 1).unwrap().is_empty();
    check!(maplet(), filter, key: insert_if_absent(&filter, key), filter.contains(key), filter.remove(key, 1));
    let owes = |limiter: &Limiter, key: &Raw| limiter.peek(key).remaining < 2;
    let new = limiter(WhenFull::Refuse).0;
    check!(new, filter, key: !owes(&filter, key) && filter.check(key).is_ok(), owes(&filter, key), filter.remove(key));

    // With `insert`, each has its own.
    let filter = fixed();
    filter.insert(&key()).unwrap();
    let other = look_alike(|key| filter.contains(key));
    filter.insert(&other).unwrap();
    assert!(filter.remove(&key()) && filter.contains(&other));
}

#[test]
fn it_was_removed_more_often_than_it_was_inserted() {
    in_each!(filter = fixed(), filter = growable(); {
        (0..2).for_each(|_| filter.insert(&key()).unwrap());
        assert!(filter.remove(&key()) && filter.contains(&key()), "inserted twice, removed once");
        assert!(filter.remove(&key()) && !filter.contains(&key()));
        assert!(filter.insert_if_absent(&key()).unwrap() && !filter.insert_if_absent(&key()).unwrap());
        assert!(filter.remove(&key()) && !filter.contains(&key()), "one copy, however often it came");
        assert!(!filter.remove(&key()) && filter.stats().removals_not_found == 1);
    });
    let filter = expiring(WhenFull::Refuse);
    filter.insert(&key()).unwrap();
    assert!(!filter.insert_if_absent(&key()).unwrap());
    assert!(filter.remove(&key()) && !filter.contains(&key()) && !filter.remove(&key()));
    let filter = maplet();
    filter.insert(&key(), 1).unwrap();
    assert!(filter.remove(&key(), 1) && !filter.contains(&key()) && !filter.remove(&key(), 1));
    let filter = recent();
    assert!(filter.insert(&key()) && !filter.insert(&key()));
    assert!(filter.remove(&key()) && !filter.contains(&key()) && !filter.remove(&key()));
}

#[test]
fn it_has_expired() {
    let filter = expiring(WhenFull::Refuse);
    assert_eq!(filter.insert_until(&key(), Tick::new(1002)), Ok(true));
    assert_eq!(filter.expires_at(&key()), Some(Tick::new(1002)));
    filter.advance_to(Tick::new(1001));
    assert!(filter.contains(&key()));
    filter.advance_to(Tick::new(1002));
    assert!(!filter.contains(&key()) && filter.expires_at(&key()).is_none());
    assert_eq!(filter.insert_until(&key(), Tick::new(1002)), Ok(false), "it adds nothing");
    assert!(!filter.contains(&key()));

    // Repeated keys do not count, and new ones do.
    let filter = recent();
    assert!(filter.insert(&key()));
    (0..1000).for_each(|_| assert!(!filter.insert(&key())));
    assert!(filter.contains(&key()));
    let mut counted = others().filter(|other| filter.insert(other));
    assert!(counted.by_ref().take(9).all(|_| filter.contains(&key())), "it is among the last ten");
    assert!(counted.take(1000).any(|_| !filter.contains(&key())));
    assert_eq!(filter.stats().recent.unwrap().evicted, 0);

    // A shorter window takes over only the keys that are within it.
    let filter = recent();
    filter.insert(&key());
    assert_eq!(others().filter(|other| filter.insert(other)).take(8).count(), 8);
    let shorter = filter.empty_like_last(2).unwrap();
    shorter.unite(&filter).unwrap();
    assert!(filter.contains(&key()) && !shorter.contains(&key()) && !shorter.is_empty());

    let (limiter, seconds) = limiter(WhenFull::Refuse);
    limiter.check(&key()).unwrap();
    assert_eq!((limiter.peek(&key()).remaining, limiter.peek(&key()).full_after), (1, MINUTE));
    seconds.store(60, Ordering::Relaxed);
    assert_eq!((limiter.peek(&key()).remaining, limiter.peek(&key()).full_after), (2, Duration::ZERO));
}

#[test]
fn the_clock_has_jumped() {
    let filter = expiring(WhenFull::Refuse);
    filter.insert(&key()).unwrap();
    assert_eq!(filter.advance_to(Tick::new(1_000_000)), Advance::Forward { ticks: 999_000 });
    assert_eq!(filter.stats().expiry.unwrap().clock_jumps, 1);
    assert_eq!(filter.advance_to(NOW), Advance::Behind { by: 999_000 });
    assert!(!filter.contains(&key()), "it does not come back");

    let seconds = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&seconds);
    let builder = Recent::builder_with_hasher(Hasher::default()).within(MINUTE, 100);
    let filter = builder.clock(move || Duration::from_secs(shown.load(Ordering::Relaxed))).build().unwrap();
    assert!(filter.insert(&key()) && filter.contains(&key()));
    seconds.store(1_000_000, Ordering::Relaxed);
    assert!(!filter.contains(&key()));
    seconds.store(0, Ordering::Relaxed);
    assert!(!filter.contains(&key()), "it does not come back");

    let (limiter, seconds) = limiter(WhenFull::Refuse);
    assert!((0..2).all(|_| limiter.check(&key()).is_ok()) && limiter.check(&key()).is_err());
    seconds.store(1_000_000, Ordering::Relaxed);
    assert!(limiter.check(&key()).is_ok());
}

#[test]
fn it_was_evicted() {
    let seconds = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&seconds);
    let builder = Recent::builder_with_hasher(Hasher::default()).within(MINUTE, 10);
    let filter = builder.clock(move || Duration::from_secs(shown.load(Ordering::Relaxed))).build().unwrap();
    assert!(filter.insert(&key()));
    seconds.store(30, Ordering::Relaxed);
    assert!(others().take(1000).any(|other| {
        filter.insert(&other);
        !filter.contains(&key())
    }));
    let stats = filter.stats().recent.unwrap();
    assert!(stats.evicted > 0 && stats.evicted_early_by > 0.0, "{stats:?}");

    let filter = expiring(WhenFull::EvictSoonest);
    assert_eq!(filter.insert_until(&key(), Tick::new(1001)), Ok(true));
    assert!(others().take(1000).any(|other| {
        _ = filter.insert_until(&other, Tick::new(1003));
        !filter.contains(&key())
    }));
    assert!(filter.stats().expiry.unwrap().evicted_early_by > 0);
    // It evicts nothing if it was not told to.
    let filter = expiring(WhenFull::Refuse);
    assert_eq!(filter.insert_until(&key(), Tick::new(1001)), Ok(true));
    others().take(1000).for_each(|other| _ = filter.insert_until(&other, Tick::new(1003)));
    assert!(filter.contains(&key()) && filter.stats().inserts_failed > 0);

    let clients_evicted = |when_full| {
        let (limiter, _) = limiter(when_full);
        limiter.check(&key()).unwrap();
        others().take(1000).for_each(|other| _ = limiter.check(&other));
        (limiter.peek(&key()).remaining == 2, limiter.stats().limiter.unwrap().evicted > 0)
    };
    assert!(clients_evicted(WhenFull::EvictSoonest).1);
    assert_eq!(clients_evicted(WhenFull::Refuse), (false, false));
}

#[test]
fn the_filter_was_cleared() {
    macro_rules! check {
        ($new:expr, $filter:ident: $insert:expr, $contains:expr) => {{
            let $filter = $new;
            let _ = $insert;
            assert!($contains && $filter.len() == 1);
            $filter.clear();
            assert!(!$contains && $filter.len() == 0);
        }};
    }
    check!(fixed(), filter: filter.insert(&key()), filter.contains(&key()));
    check!(growable(), filter: filter.insert(&key()), filter.contains(&key()));
    check!(recent(), filter: filter.insert(&key()), filter.contains(&key()));
    check!(expiring(WhenFull::Refuse), filter: filter.insert(&key()), filter.contains(&key()));
    check!(maplet(), filter: filter.insert(&key(), 1), filter.contains(&key()));
    check!(limiter(WhenFull::Refuse).0, filter: filter.check(&key()), filter.peek(&key()).remaining == 1);
}

#[test]
fn the_snapshot_is_older_than_the_key() {
    macro_rules! check {
        ($Filter:ident, $new:expr, $filter:ident, $key:ident: $insert:expr, $contains:expr) => {{
            let $filter = $new;
            let mut keys = others();
            let (before, after) = (keys.next().unwrap(), keys.next().unwrap());
            let $key = &before;
            let _ = $insert;
            let save = $filter.begin_save().unwrap().position(1);
            let $key = &after;
            let _ = $insert;
            let mut bytes = Vec::new();
            save.write_to(&mut bytes).unwrap();
            let loaded = Loader::<$Filter, _>::new(Hasher::default(), 1 << 20).load(&bytes[..]).unwrap();
            assert_eq!(loaded.position, Some(1), "the log goes on to 2");
            let $filter = loaded.filter;
            assert!(!$contains);
            let $key = &before;
            assert!($contains);
        }};
    }
    check!(Fixed, fixed(), filter, key: filter.insert(key), filter.contains(key));
    check!(Growable, growable(), filter, key: filter.insert(key), filter.contains(key));
    check!(Recent, recent(), filter, key: filter.insert(key), filter.contains(key));
    check!(Expiring, expiring(WhenFull::Refuse), filter, key: filter.insert(key), filter.contains(key));
    check!(Maplet, maplet(), filter, key: filter.insert(key, 1), filter.contains(key));
    let new = limiter(WhenFull::Refuse).0;
    check!(Limiter, new, filter, key: filter.check(key), filter.peek(key).remaining == 1);
}

#[test]
fn the_filter_started_empty() {
    let missing = std::env::temp_dir().join("ccf-missing-keys").join("no such file");
    let error = Fixed::load_from_path(&missing, Hasher::default(), 1 << 20).unwrap_err();
    assert!(matches!(error.error, LoadError::NotFound(_)), "{error}");
    // The mistake: to go on.
    let filter = Fixed::load_from_path(&missing, Hasher::default(), 1 << 20).unwrap_or_else(|_| fixed());
    assert!(!filter.contains(&key()) && filter.is_empty());
}

#[test]
fn the_snapshot_was_forged() {
    let filter = fixed();
    filter.insert(&key()).unwrap();
    let (mut written, mut forged) = (Vec::new(), Vec::new());
    filter.begin_save().unwrap().position(17).write_to(&mut written).unwrap();
    // Anyone can write a valid snapshot, or take an older one.
    fixed().begin_save().unwrap().position(16).write_to(&mut forged).unwrap();
    assert!(Fixed::load(&written[..], Hasher::default(), 1 << 20).unwrap().contains(&key()));
    assert!(!Fixed::load(&forged[..], Hasher::default(), 1 << 20).unwrap().contains(&key()));
    let position = |bytes: &[u8]| SnapshotInfo::verify(bytes).unwrap().position;
    assert_eq!((position(&written), position(&forged)), (Some(17), Some(16)));
}

#[test]
fn it_was_inserted_into_another_filter() {
    let old = Arc::new(fixed());
    let of_writer = Arc::clone(&old);
    let copy = old.empty_like().unwrap();
    copy.absorb(&old).unwrap(); // and all lookups go to the copy from now on
    of_writer.insert(&key()).unwrap();
    assert!(old.contains(&key()) && !copy.contains(&key()));
    assert_eq!((old.len(), copy.len()), (1, 0));
}

#[test]
fn it_was_hashed_in_another_way() {
    type Names = ConcurrentCuckooFilter<str, StableHashBuilder>;
    let [one, other] = [[1; 16], [2; 16]].map(StableHashBuilder::with_key);
    let names = Names::with_capacity_and_hasher(100, one.clone());
    names.insert("alice").unwrap();
    let mut bytes = Vec::new();
    names.save(&mut bytes).unwrap();
    let error = Names::load(&bytes[..], other.clone(), 1 << 20).unwrap_err();
    assert!(matches!(error, LoadError::Mismatch(SnapshotMismatch::Hasher)), "{error}");

    let others = Names::with_capacity_and_hasher(100, other);
    assert!(names.by_hash().contains(names.hash_one("alice")));
    assert!(!names.by_hash().contains(others.hash_one("alice")), "a hash from another hasher");
    let of_bytes = concurrent_cuckoo_filter::Hashed(one.hash_bytes(b"alice"));
    assert!(!names.by_hash().contains(of_bytes), "bytes are hashed without the end of a `str`");
    assert_eq!(names.len(), 1);
}

#[test]
fn it_was_written_in_another_way() {
    let names = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(100, support::seeded(1));
    names.insert("alice").unwrap();
    assert!(names.contains("alice") && !names.contains("Alice") && !names.contains("alice/"));
}

/// What the page says loses no key: an insert that fails, and a key whose hash panics. (Other tests show this of the rest.)
#[test]
fn nothing_else_loses_a_key() {
    struct Panics;
    impl std::hash::Hash for Panics {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {
            panic!("no hash");
        }
    }
    impl std::borrow::Borrow<Panics> for Raw {
        fn borrow(&self) -> &Panics {
            &Panics
        }
    }
    let filter = fixed();
    let inserted: Vec<_> = others().take(500).filter(|key| filter.insert(key).is_ok()).collect();
    assert!(inserted.len() < 500);
    let hook = AssertUnwindSafe(|| filter.remove::<Panics>(&Panics));
    assert!(catch_unwind(hook).is_err());
    assert!(inserted.iter().all(|key| filter.contains(key)));
}
