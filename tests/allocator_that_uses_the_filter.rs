//! A global allocator that uses the filter: at each allocation and deallocation of an operation, it inserts, removes and
//! looks up keys in the same filter, begins saves, and changes the size or the clock. If the library allocated or freed
//! anything under one of its locks, one of these calls would wait for that lock forever.
//!
//! All of this is on one thread. (From several threads, a filter must not be changed in an allocator: `parking_lot`
//! allocates when a thread first waits for a lock.) It runs in a process of its own, which is ended if it hangs.

#![cfg(all(feature = "snapshot", not(miri)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{
    AbsorbError, ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, ExpiringCuckooFilter, GrowableCuckooFilter,
    RecentCuckooFilter, Save, Tick, WhenFull,
};

/// The system's allocator. While a thread has a hook, it calls that first.
struct Hooked;

thread_local! {
    static HOOK: Cell<Option<&'static dyn Fn()>> = const { Cell::new(None) };
    /// How often the hook was called.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    /// The saves that the hook has begun and not ended.
    static SAVES: RefCell<Vec<Save<'static>>> = const { RefCell::new(Vec::new()) };
}

fn call_hook() {
    // What the hook itself allocates is not hooked.
    if let Some(hook) = HOOK.take() {
        CALLS.set(CALLS.get() + 1);
        hook();
        HOOK.set(Some(hook));
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
#[allow(unsafe_code, reason = "an allocator cannot be written without it")]
unsafe impl GlobalAlloc for Hooked {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        call_hook();
        // SAFETY: the caller makes the same promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        call_hook();
        // SAFETY: the caller makes the same promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        call_hook();
        // SAFETY: the caller makes the same promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        call_hook();
        // SAFETY: the caller makes the same promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Hooked = Hooked;

/// One kind of filter.
trait Kind: Send + Sync + Sized + 'static {
    const NAME: &str;

    fn empty() -> Self;
    /// Whether the key went in.
    fn insert(&self, key: u64) -> bool;
    fn insert_if_absent(&self, key: u64) -> bool;
    fn remove(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn insert_all(&self, keys: &[u64]);
    fn remove_all(&self, keys: &[u64], removed: &mut Vec<bool>);
    fn begin(&self) -> Save<'_>;
    fn begin_owned(self: &Arc<Self>) -> Save<'static>;
    fn clear(&self);
    /// What else takes locks, in a way that leaves present keys where they are. `nth` differs from call to call.
    fn change(&self, nth: u64);
    /// Merges this filter into others, and reads its digest, as far as its kind can.
    fn merge(&self);
}

macro_rules! alike {
    () => {
        fn remove_all(&self, keys: &[u64], removed: &mut Vec<bool>) {
            self.remove_batch(keys, removed);
        }

        alike!(but for remove_all);
    };
    (but for remove_all) => {
        fn contains(&self, key: u64) -> bool {
            self.contains(&key)
        }

        fn begin(&self) -> Save<'_> {
            self.begin_save().expect("there is memory")
        }

        fn begin_owned(self: &Arc<Self>) -> Save<'static> {
            self.begin_save_owned().expect("there is memory")
        }

        fn clear(&self) {
            self.clear();
        }
    };
}

/// There is room. A filter that evicts may have evicted a tick, in which case it leaves out the entries that expire then.
fn is_merged(result: Result<u64, AbsorbError>) {
    assert!(matches!(result, Ok(_) | Err(AbsorbError::Evicted { .. })), "{result:?}");
}

macro_rules! merges {
    () => {
        fn merge(&self) {
            let other = self.empty_like().expect("there is memory");
            let digest = self.digest().expect("there is memory");
            is_merged(other.absorb(self));
            is_merged(other.unite(self));
            assert_ne!((other.digest().expect("there is memory"), other.len()), (digest, 0));
            is_merged(self.unite(self));
        }
    };
}

/// So small that it becomes full, and so large that a search for room has several chunks of a save before it.
const CAPACITY: usize = 9_000;

impl Kind for ConcurrentCuckooFilter<u64> {
    const NAME: &str = "ConcurrentCuckooFilter";

    alike!();
    merges!();

    fn empty() -> Self {
        Self::with_capacity(CAPACITY)
    }

    fn insert(&self, key: u64) -> bool {
        self.insert(&key).is_ok()
    }

    fn insert_if_absent(&self, key: u64) -> bool {
        self.insert_if_absent(&key) == Ok(true)
    }

    fn remove(&self, key: u64) -> bool {
        self.remove(&key)
    }

    fn insert_all(&self, keys: &[u64]) {
        let _ = self.insert_batch(keys);
    }

    fn change(&self, _: u64) {}
}

impl Kind for GrowableCuckooFilter<u64> {
    const NAME: &str = "GrowableCuckooFilter";

    alike!();
    merges!();

    fn empty() -> Self {
        Self::builder().capacity(100).max_capacity(CAPACITY).build().expect("it is possible")
    }

    fn insert(&self, key: u64) -> bool {
        self.insert(&key).is_ok()
    }

    fn insert_if_absent(&self, key: u64) -> bool {
        self.insert_if_absent(&key) == Ok(true)
    }

    fn remove(&self, key: u64) -> bool {
        self.remove(&key)
    }

    fn insert_all(&self, keys: &[u64]) {
        let _ = self.insert_batch(keys);
    }

    /// If the other operation is a request of more room, the filter does not become smaller than that.
    fn change(&self, nth: u64) {
        if nth.is_multiple_of(64) {
            self.shrink_to_fit();
        } else {
            let _ = self.reserve(64);
        }
    }
}

impl Kind for CuckooMaplet<u64> {
    const NAME: &str = "CuckooMaplet";

    alike!(but for remove_all);
    merges!();

    fn empty() -> Self {
        Self::builder().capacity(CAPACITY).value_bits(4).build().expect("it is possible")
    }

    fn insert(&self, key: u64) -> bool {
        self.insert(&key, 1).is_ok()
    }

    fn insert_if_absent(&self, key: u64) -> bool {
        self.insert_if_absent(&key, 1).is_ok_and(|found| found.is_empty())
    }

    fn remove(&self, key: u64) -> bool {
        self.remove(&key, 1)
    }

    fn insert_all(&self, keys: &[u64]) {
        let _ = self.insert_batch(keys.iter().map(|key| (key, 1)));
    }

    fn remove_all(&self, keys: &[u64], removed: &mut Vec<bool>) {
        self.remove_batch(keys.iter().map(|key| (key, 1)), removed);
    }

    fn change(&self, nth: u64) {
        let key = THERE + nth % 50;
        let is_replaced = self.replace(&key, 1, 2) == Ok(true);
        require(!is_replaced || self.replace(&key, 2, 1) == Ok(true), "a value cannot be replaced again");
    }
}

impl Kind for ExpiringCuckooFilter<u64> {
    const NAME: &str = "ExpiringCuckooFilter";

    alike!();
    merges!();

    /// It evicts.
    fn empty() -> Self {
        let builder = Self::builder().capacity(CAPACITY).lifetime_in_ticks(200).when_full(WhenFull::EvictSoonest);
        let filter = builder.build().expect("it is possible");
        filter.advance_to(Tick::new(5));
        filter
    }

    /// Some end soon.
    fn insert(&self, key: u64) -> bool {
        let end = self.now().expect("it is set").get() + if key < THERE { 2 + key % 5 } else { 200 };
        self.insert_until(&key, Tick::new(end)).is_ok()
    }

    fn insert_if_absent(&self, key: u64) -> bool {
        self.insert_if_absent(&key) == Ok(true)
    }

    fn remove(&self, key: u64) -> bool {
        self.remove(&key)
    }

    fn insert_all(&self, keys: &[u64]) {
        keys.iter().for_each(|&key| _ = Kind::insert(self, key));
    }

    fn change(&self, nth: u64) {
        let _ = self.insert_or_renew(&(THERE + nth % 50));
        if nth.is_multiple_of(100) {
            self.advance_to(Tick::new(self.now().expect("it is set").get() + 1));
        }
        let _ = self.expires_at(&THERE).map(|end| self.remove_expiring_at(&(THERE + 1_000_000), end));
    }
}

impl Kind for RecentCuckooFilter<u64> {
    const NAME: &str = "RecentCuckooFilter";

    alike!();

    fn empty() -> Self {
        Self::builder().last(CAPACITY).build().expect("it is possible")
    }

    fn insert(&self, key: u64) -> bool {
        self.insert(&key)
    }

    fn insert_if_absent(&self, key: u64) -> bool {
        self.insert(&key)
    }

    fn remove(&self, key: u64) -> bool {
        self.remove(&key)
    }

    fn insert_all(&self, keys: &[u64]) {
        self.insert_batch(keys, &mut Vec::new());
    }

    fn change(&self, nth: u64) {
        self.insert_or_renew(&(THERE + nth % 50));
    }

    /// Filters with other windows take over its keys, and it takes them over again.
    fn merge(&self) {
        let others =
            [self.empty_like(), self.empty_like_last(CAPACITY / 2)].map(|other| other.expect("there is memory"));
        for other in others {
            other.unite(self).expect("there is memory");
            assert!(!other.is_empty());
            self.unite(&other).expect("there is memory");
        }
        Kind::begin(self).digest().expect("there is memory");
    }
}

/// A key is in it while it owes something.
impl Kind for CuckooRateLimiter<u64> {
    const NAME: &str = "CuckooRateLimiter";

    fn empty() -> Self {
        let day = Duration::from_secs(86_400);
        Self::builder().allow(20, day).capacity(CAPACITY).build().expect("it is possible")
    }

    fn insert(&self, key: u64) -> bool {
        self.check(&key).is_ok()
    }

    fn insert_if_absent(&self, key: u64) -> bool {
        self.check_n(&key, 2).is_ok()
    }

    fn remove(&self, key: u64) -> bool {
        self.remove(&key)
    }

    fn contains(&self, key: u64) -> bool {
        self.peek(&key).remaining < 20
    }

    fn insert_all(&self, keys: &[u64]) {
        self.check_batch(keys, &mut Vec::new());
    }

    fn remove_all(&self, keys: &[u64], removed: &mut Vec<bool>) {
        removed.extend(keys.iter().map(|key| self.remove(key)));
    }

    fn begin(&self) -> Save<'_> {
        self.begin_save().expect("there is memory")
    }

    fn begin_owned(self: &Arc<Self>) -> Save<'static> {
        self.begin_save_owned().expect("there is memory")
    }

    fn clear(&self) {
        self.clear();
    }

    fn change(&self, nth: u64) {
        let quota = self.quota(40, Duration::from_secs(86_400), 10).expect("two ticks per request");
        let _ = self.check_with(&(THERE + nth % 50), &quota);
    }

    /// Debts cannot be merged. There is the digest of a save.
    fn merge(&self) {
        Kind::begin(self).digest().expect("there is memory");
    }
}

/// From here on are keys that are present all the time, and that the hook renews or gives other values.
const THERE: u64 = 1 << 40;

/// From here on are keys that only the hook inserts, and removes again.
const OF_HOOK: u64 = 1 << 50;

/// The most saves that the hook has running at a time.
const MOST_SAVES: usize = 3;

/// An allocator must not unwind, so the hook ends the process if something is wrong.
fn require(is_right: bool, what: &str) {
    if !is_right {
        eprintln!("{what}");
        std::process::abort();
    }
}

/// What the hook does.
fn use_filter<F: Kind>(filter: &Arc<F>) {
    let nth = CALLS.get();
    let key = OF_HOOK + nth;
    let is_in = filter.insert(key);
    require(!is_in || filter.contains(key), "the hook's key is missing");
    // It removes only what it has inserted: otherwise another key might be lost.
    if filter.insert_if_absent(key + (1 << 45)) {
        filter.remove(key + (1 << 45));
    }
    if is_in {
        filter.remove(key);
    }
    if nth.is_multiple_of(16) {
        filter.change(nth / 16);
    }
    // Saves begin at any moment, also between an allocation and the lock for which it is. Each has all that it needs.
    SAVES.with_borrow_mut(|saves| {
        if nth.is_multiple_of(3) && saves.len() < MOST_SAVES {
            saves.push(filter.begin_owned());
        } else if nth % 17 == 1 && !saves.is_empty() {
            require(saves.remove(0).write_to(io::sink()).is_ok(), "a save is short of memory");
        }
    });
}

/// The result of the work, with the hook.
fn hooked<F: Kind, R>(filter: &Arc<F>, work: impl FnOnce() -> R) -> R {
    let other = Arc::clone(filter);
    let hook: &'static dyn Fn() = Box::leak(Box::new(move || use_filter(&other)));
    /// Takes the hook away, also if the work has failed.
    struct Unhook;

    impl Drop for Unhook {
        fn drop(&mut self) {
            HOOK.set(None);
        }
    }

    HOOK.set(Some(hook));
    let _unhook = Unhook;
    work()
}

/// Inserts until some keys were refused. Returns those that went in.
fn fill<F: Kind>(filter: &F) -> Vec<u64> {
    let mut refused = 0;
    let mut insert = |key| {
        let is_in = filter.insert(key);
        refused += u64::from(!is_in);
        Some(is_in).filter(|_| refused < 10)
    };
    (0..13_000).map_while(|key| insert(key).map(|is_in| is_in.then_some(key))).flatten().collect()
}

type Operation<F> = (&'static str, fn(&Arc<F>));

fn operations<F: Kind>() -> Vec<Operation<F>> {
    vec![
        ("the beginning and end of a save", |filter| drop(filter.begin())),
        ("several saves", |filter| {
            let saves = [filter.begin(), filter.begin(), filter.begin()];
            saves.into_iter().for_each(|save| save.write_to(io::sink()).expect("no save is short of memory"));
        }),
        ("a save that is read", |filter| {
            let mut reader = filter.begin().into_reader().expect("there is memory");
            io::copy(&mut reader, &mut io::sink()).expect("no save is short of memory");
        }),
        ("changes during a save", |filter| {
            let save = filter.begin();
            for key in 0..500 {
                let is_in = filter.insert(key);
                filter.insert_if_absent(key + 1000);
                assert!(!is_in || filter.contains(key) && filter.remove(key), "{key}");
                if key.is_multiple_of(16) {
                    filter.change(key / 16);
                }
            }
            save.write_to(io::sink()).expect("no save is short of memory");
        }),
        ("batches during a save", |filter| {
            let (save, keys, mut removed) = (filter.begin(), (0..500).collect::<Vec<_>>(), Vec::new());
            filter.insert_all(&keys);
            filter.remove_all(&keys, &mut removed);
            save.write_to(io::sink()).expect("no save is short of memory");
        }),
        // Inserts relocate, are refused, evict or displace; a filter that grows has grown.
        ("a filter that becomes full, and empty again, during a save", |filter| {
            let save = filter.begin();
            let inserted = fill(&**filter);
            assert!(inserted.len() > CAPACITY / 2, "{} of 13,000", inserted.len());
            inserted.into_iter().for_each(|key| _ = filter.remove(key));
            save.write_to(io::sink()).expect("no save is short of memory");
        }),
        ("the same without a save of its own", |filter| {
            let inserted = fill(&**filter);
            inserted.into_iter().for_each(|key| _ = filter.remove(key));
        }),
        ("digests and merges", |filter| filter.merge()),
        ("another filter", |filter| {
            let other = F::empty();
            (0..500).for_each(|key| _ = other.insert(key));
            drop(other.begin());
            drop(other);
            assert!(filter.contains(THERE));
        }),
    ]
}

/// Does all operations, each with a new filter, of which the list of saves is empty.
fn does_all<F: Kind>(further: &[Operation<F>]) {
    for &(name, work) in operations().iter().chain(further) {
        println!("{}: {name}", F::NAME);
        let filter = Arc::new(F::empty());
        (THERE..THERE + 100).for_each(|key| assert!(filter.insert(key)));
        let before = CALLS.get();
        hooked(&filter, || work(&filter));
        assert!(CALLS.get() > before, "{name}: nothing was allocated");
        SAVES.take().into_iter().for_each(|save| save.write_to(io::sink()).expect("no save is short of memory"));
        let is_there = |&key: &u64| filter.contains(key);
        // One that evicts, or forgets, may have no older key.
        let forgets =
            F::NAME.starts_with("Expiring") || F::NAME.starts_with("Recent") || F::NAME.starts_with("CuckooRate");
        assert!(forgets || (THERE..THERE + 100).all(|key| is_there(&key)), "{}, {name}: a key is lost", F::NAME);
        // It works as before.
        filter.clear();
        assert!((0..100).all(|key| filter.insert(key)) && (0..100).all(|key| filter.contains(key)));
    }
}

#[test]
#[ignore = "runs in the process that the other test starts"]
fn each_operation_with_the_hook() {
    does_all::<ConcurrentCuckooFilter<u64>>(&[("clear", |filter| {
        let save = filter.begin();
        (0..100).for_each(|key| _ = Kind::insert(&**filter, key));
        filter.clear();
        (THERE..THERE + 100).for_each(|key| assert!(Kind::insert(&**filter, key)));
        drop(save);
    })]);
    does_all::<GrowableCuckooFilter<u64>>(&[
        ("reserve", |filter| {
            filter.reserve(4000).expect("it is possible");
            drop(filter.begin());
        }),
        // The hook shrinks the filter meanwhile, as far as that allows.
        ("reserve during a save", |filter| {
            let save = filter.begin();
            filter.reserve(4000).expect("it is possible");
            save.write_to(io::sink()).expect("no save is short of memory");
        }),
        ("shrink_to during a save", |filter| {
            (0..5000).for_each(|key| assert!(Kind::insert(&**filter, key)));
            let save = filter.begin();
            (500..5000).for_each(|key| assert!(Kind::remove(&**filter, key)));
            filter.shrink_to_fit();
            assert!((0..500).all(|key| Kind::contains(&**filter, key)));
            save.write_to(io::sink()).expect("no save is short of memory");
        }),
    ]);
    does_all::<CuckooMaplet<u64>>(&[]);
    does_all::<ExpiringCuckooFilter<u64>>(&[("a sweep during a save", |filter| {
        (0..8000).for_each(|key| _ = Kind::insert(&**filter, key));
        let save = filter.begin();
        let now = filter.now().expect("it is set").get();
        (now..now + 400).for_each(|tick| _ = filter.advance_to(Tick::new(tick)));
        filter.restart_clock(Tick::new(now));
        assert!(filter.live_len() <= 100, "only keys that the hook renews: {filter:?}");
        save.write_to(io::sink()).expect("no save is short of memory");
    })]);
    does_all::<RecentCuckooFilter<u64>>(&[("many groups during a save", |filter| {
        let save = filter.begin();
        (0..40_000).for_each(|key| _ = filter.insert(&key));
        save.write_to(io::sink()).expect("no save is short of memory");
    })]);
    does_all::<CuckooRateLimiter<u64>>(&[("requests during a save", |limiter| {
        let save = limiter.begin();
        (0..40_000).for_each(|key| _ = limiter.check(&(key % 15_000)));
        save.write_to(io::sink()).expect("no save is short of memory");
    })]);
    println!("all done");
}

/// Long enough for any machine. Without a deadlock it takes seconds.
const AT_MOST: Duration = Duration::from_secs(600);

#[test]
fn no_operation_allocates_or_frees_under_a_lock() {
    let folder = std::env::temp_dir().join(format!("ccf-hooked-{}", std::process::id()));
    let output = std::fs::File::create(&folder).expect("there is a folder for such files");
    let mut child = Command::new(std::env::current_exe().expect("it is a file"))
        .args(["--exact", "each_operation_with_the_hook", "--ignored", "--nocapture"])
        .stdout(Stdio::from(output.try_clone().expect("it is open")))
        .stderr(Stdio::from(output))
        .spawn()
        .expect("it can run");
    let start = Instant::now();
    let ended = loop {
        match child.try_wait().expect("it is a child") {
            None if start.elapsed() < AT_MOST => thread::sleep(Duration::from_millis(10)),
            ended => break ended,
        }
    };
    if ended.is_none() {
        child.kill().expect("it is a child");
        child.wait().expect("it is a child");
    }
    let output = std::fs::read_to_string(&folder).expect("it was written");
    std::fs::remove_file(&folder).expect("it was written");
    assert!(ended.is_some(), "it hangs in the last of these:\n{output}");
    assert!(ended.is_some_and(|status| status.success()) && output.contains("all done"), "{output}");
}
