//! CONCURRENT: the state of a growing table, its gates, and the reads and stores of a word by which all operations see
//! and change it. `growth/mod.rs` has the protocol and its argument.
//!
//! # Memory of an empty filter
//! A filter of the smallest size, on a 64-bit machine:
//!
//! | bytes | what |
//! |---|---|
//! | 280 | the value: this struct (232, of which the words take 64, the plan 80 and the layouts 34), the hasher (32) and the schema (16, with the feature `snapshot`) |
//! | 256 | the words of 32 buckets |
//! | 256 | the table of segments |
//! | 512 | 32 stripes |
//! | 2 | the gates of its group |
//! | 128 | the size, padded to cache lines of its own |
//! | 64 | what changes of the size, and saves, write |
//! | 128 | the counters: one shard, padded |
//! | 1,294 | from the first growth on: the words that are being moved, and all further gates |

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use crate::error::build::BuildError;
use crate::error::insert::GrowableInsertError;
use crate::error::kind::FilterKind;
use crate::growth::plan::{Plan, first_where};
use crate::machine::memory::{boxed, boxed_slice};
use crate::machine::words::{Sizes, Words};
use crate::plan::sizing::LoadLimit;
use crate::plan::table_plan::TablePlan;
use crate::search::path::Hop;
use crate::sync::sizes::{BUCKETS_PER_STRIPE, GATES_PER_GROUP, GROUP, LEAST_STRIPES, MAX_STRIPES, MOST_GATES};
use crate::sync::{self, AtomicU64, Mutex, MutexGuard, Ordering, Tally};
use crate::table::counters::Counters;
use crate::table::filter_plan::FilterPlan;
use crate::table::image::copy_on_write::{Changing, RunningSaves};
use crate::table::image::spare::Spare;
use crate::table::stripe::{self, AllLocked, Guard, Stripe};
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, Place, State, both, stripe_number};
use crate::word::layouts::{GrowingLayout, Layouts};

/// A concurrent multiset of classes, in a table that grows and shrinks by some buckets at a time. Keys are passed as
/// [`mixed`](crate::word::geometry::mixed) hashes.
#[derive(Debug)]
pub(crate) struct GrowingTable {
    pub(crate) plan: Plan,
    pub(super) layouts: Layouts,
    pub(super) words: Words,
    pub(super) stripes: Box<[Stripe]>,
    /// Those of the first groups. A bucket's word changes only while its gate is held.
    gates: Box<[Mutex<()>]>,
    /// In a box, like what is atomic in `table/table.rs`. (A single lookup takes a tenth less time for it.)
    size: Box<CachePadded<Size>>,
    resizing: Box<Resizing>,
}

/// What every operation reads. Its cache lines hardly change, because it is padded: only when the size does, and when a path
/// is longer than any before.
#[derive(Debug)]
struct Size {
    /// How often `state` has changed. A change writes the state, then this, then the words.
    epoch: AtomicU64,
    state: AtomicU64,
    /// Made for the first change of the size, before its state is *moving*.
    grown: OnceLock<Box<Grown>>,
    counters: Counters,
}

/// The gates of a group, locked.
type GroupGates<'a> = [MutexGuard<'a, ()>; GATES_PER_GROUP];

/// Which gate the bucket of this number has. Most changes concern one bucket, so a group has few gates: to split it takes all of
/// them. It has two, because the two buckets of a class, of which one has an even number and one an odd one, have different gates.
#[inline(always)]
fn gate_of(number: usize) -> usize {
    (number / GROUP * GATES_PER_GROUP + (number & (GATES_PER_GROUP - 1))) & (MOST_GATES - 1)
}

/// What a table needs as soon as it grows.
#[derive(Debug)]
pub(super) struct Grown {
    /// The whole words of the buckets that are being split or merged.
    moving: [AtomicU64; GROUP],
    /// The gates that the first groups do not have.
    gates: Box<[Mutex<()>]>,
}

/// What changes of the size, and saves, write.
#[derive(Debug)]
pub(crate) struct Resizing {
    /// Held by a thread that changes the size, for a group at a time. No memory is asked for, and none goes back to the
    /// allocator, while it is held.
    pub(crate) lock: Mutex<()>,
    /// What calls that are running have requested. It is locked for some instructions, and no other lock is taken meanwhile.
    requests: Mutex<Requests>,
    /// The capacity of a table in this state.
    capacity: Tally,
    /// How many items the table takes at most (`limit.rs`).
    pub(crate) most: Tally,
    /// The number of buckets whose memory was not returned to the system.
    pub(super) touched: Tally,
    running_saves: RunningSaves,
}

/// The error of a table of this many buckets, which needs so many bytes.
fn beyond_memory_limit(plan: &Plan, buckets: usize, needed: usize) -> BuildError {
    let (capacity, limit) = (plan.capacity(State::of_buckets(buckets)), plan.memory_limit);
    BuildError::MemoryLimit { capacity, expected_keys: None, needed, limit }
}

/// The requests of more buckets that are running.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    calls: u32,
    /// The most groups of buckets that one of them has requested. A merge leaves as many.
    groups: u32,
}

/// A request of more buckets, until it is dropped: no merge takes them away meanwhile.
pub(super) struct Request<'a>(&'a GrowingTable);

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let mut requests = self.0.resizing().requests.lock();
        requests.calls -= 1;
        if requests.calls == 0 {
            requests.groups = 0;
        }
    }
}

/// The memory that a split takes, which a thread gets where it holds no lock: for what the first change of the size makes, for
/// words, and for what saves need.
#[derive(Debug, Default)]
pub(crate) struct SplitMemory {
    grown: Option<Box<Grown>>,
    segment: Option<Box<[AtomicU64]>>,
    pub(super) spare: Spare,
    /// How many bytes could not be allocated.
    failed: Option<usize>,
}

impl SplitMemory {
    /// Gets what the last try to split the table has lacked. The caller holds no lock.
    pub(crate) fn fill(&mut self, table: &GrowingTable) {
        if self.grown.is_none() && table.size().grown.get().is_none() {
            self.grown = table.allocate_grown();
            if self.grown.is_none() {
                self.failed = Some(GrowingTable::memory_to_grow(&table.plan));
            }
        } else {
            // Only after a split has found that it needs one: until it has tried, words may come from a range.
            match table.words.next_segment(GrowingTable::sizes(&table.plan), table.state().buckets() + GROUP) {
                Ok(segment) => self.segment = segment,
                Err(bytes) => self.failed = Some(bytes),
            }
        }
        table.running_saves().fill(&self.spare, WORDS_PER_SPLIT);
    }

    /// Gets the memory ready for a table that is to have so many buckets. The caller holds the lock `resizing`.
    pub(super) fn prepare(&mut self, table: &GrowingTable, buckets: usize) -> Result<(), SplitError> {
        let out_of_memory = |bytes| GrowableInsertError::OutOfMemory { bytes };
        let short = self.failed.take().map_or(SplitError::Short, |bytes| out_of_memory(bytes).into());
        let has_grown = table.size().grown.get().is_some();
        // Of the two, either both are kept or none.
        let is_ready = (has_grown || self.grown.is_some())
            && table
                .words
                .extend(GrowingTable::sizes(&table.plan), buckets, &mut self.segment)
                .map_err(out_of_memory)?;
        if !is_ready {
            return Err(short);
        }
        if !has_grown && let Some(grown) = self.grown.take() {
            table.prepare_to_grow(grown);
        }
        Ok(())
    }
}

/// How many words a split copies for each save: those of a group, and those that they become.
pub(super) const WORDS_PER_SPLIT: u64 = 2 * GROUP as u64;

/// Why a group was not split.
pub(crate) enum SplitError {
    /// It may not or cannot be.
    Failed(GrowableInsertError),
    /// The thread has too little memory for it. It is to get some ([`SplitMemory::fill`]), and to try again.
    Short,
}

impl From<GrowableInsertError> for SplitError {
    fn from(error: GrowableInsertError) -> Self {
        Self::Failed(error)
    }
}

impl GrowingTable {
    /// An empty table of the plan's first size.
    pub(crate) fn new(plan: Plan) -> Result<Self, BuildError> {
        Self::of_buckets(plan, plan.first)
    }

    /// An empty table of this many buckets.
    pub(crate) fn of_buckets(plan: Plan, buckets: usize) -> Result<Self, BuildError> {
        let plan = Self::limited(plan);
        if let Some((needed, _)) = Self::beyond_limit(&plan, buckets) {
            return Err(beyond_memory_limit(&plan, buckets, needed));
        }
        let bytes = Self::memory_at(&plan, buckets) - plan.memory_of_caller;
        let table = Self::try_new(plan, buckets).ok_or(BuildError::OutOfMemory { bytes })?;
        // It may take up more than was computed, if its words are in other memory than was expected.
        let needed = table.memory_usage();
        if needed > plan.memory_limit { Err(beyond_memory_limit(&plan, buckets, needed)) } else { Ok(table) }
    }

    fn try_new(plan: Plan, buckets: usize) -> Option<Self> {
        let state = State::of_buckets(buckets);
        let deepest = *State::of_buckets(plan.largest).depths().end();
        let layouts = Layouts::new(plan.classes, plan.encoding, plan.first.ilog2()..=deepest)?;
        let words = Words::new(Self::sizes(&plan), buckets).ok()?;
        let state = state.with_rows(layouts.rows(state.level(), state.split() > 0));
        let size = Size {
            epoch: AtomicU64::new(0),
            state: AtomicU64::new(state.0),
            grown: OnceLock::new(),
            counters: Counters::new(Self::counted_by(&plan))?,
        };
        let resizing = Resizing {
            lock: Mutex::new(()),
            requests: Mutex::new(Requests::default()),
            capacity: Tally::new(plan.capacity(state) as u64),
            most: Tally::new(plan.max_capacity() as u64),
            touched: Tally::new(buckets as u64),
            running_saves: RunningSaves::new(),
        };
        let table = Self {
            layouts,
            words,
            stripes: boxed_slice(Self::stripes_of(&plan), Stripe::new)?,
            gates: boxed_slice(Self::gates_of(&plan), || Mutex::new(()))?,
            size: boxed(CachePadded::new(size))?,
            resizing: boxed(resizing)?,
            plan,
        };
        if buckets > plan.first {
            table.prepare_to_grow(table.allocate_grown()?);
        }
        // The first insert checks how many items may come in.
        table.counters().close();
        Some(table)
    }

    pub(super) fn sizes(plan: &Plan) -> Sizes {
        Sizes { first: plan.first, largest: plan.largest, pages: plan.pages }
    }

    fn stripes_of(plan: &Plan) -> usize {
        // At most as many as in a table of fixed size with the largest number of buckets.
        let least = LEAST_STRIPES.min(plan.largest / BUCKETS_PER_STRIPE).max(1);
        (plan.first / 16).clamp(least, MAX_STRIPES).next_power_of_two().min(MAX_STRIPES)
    }

    fn gates_of(plan: &Plan) -> usize {
        (plan.first / GROUP * GATES_PER_GROUP).min(MOST_GATES)
    }

    /// The number of buckets by which the counters are sized. A table that begins small has few shards,
    /// because as many as there are processors would take 8 KB on a machine with many.
    fn counted_by(plan: &Plan) -> usize {
        plan.first.saturating_mul(16).min(plan.largest).min(1 << 15)
    }

    /// The plan with the number of buckets at which its limit for the memory ends the growth.
    pub(crate) fn limited(plan: Plan) -> Plan {
        if plan.memory_limit == usize::MAX {
            return plan;
        }
        let groups = plan.first / GROUP..plan.largest / GROUP + 1;
        let too_many = first_where(groups, |groups| Self::beyond_limit(&plan, groups * GROUP).is_some());
        // A table whose first size is beyond the limit is not built.
        Plan { within_limit: ((too_many - 1) * GROUP).max(plan.first), ..plan }
    }

    /// The bytes of a new table of this many buckets, and the limit, if they are more than that.
    pub(crate) fn beyond_limit(plan: &Plan, buckets: usize) -> Option<(usize, usize)> {
        let (needed, limit) = (Self::memory_at(plan, buckets), plan.memory_limit);
        (needed > limit).then_some((needed, limit))
    }

    /// The bytes of this table when it has grown to this many buckets, and the limit, if they are more than that.
    pub(super) fn grown_beyond_limit(&self, buckets: usize) -> Option<(usize, usize)> {
        if self.plan.memory_limit == usize::MAX {
            // Most tables have no limit, and to compute the memory takes hundreds of instructions.
            return None;
        }
        let has_grown = buckets > self.plan.first || self.size().grown.get().is_some();
        let needed = Self::memory_of(&self.plan, self.held(buckets), has_grown);
        (needed > self.plan.memory_limit).then_some((needed, self.plan.memory_limit))
    }

    /// The bytes that the words take up, or will when there are this many buckets.
    fn held(&self, buckets: usize) -> usize {
        // Relaxed: a figure.
        let touched = self.resizing().touched.load(Ordering::Relaxed) as usize;
        self.words.held(Self::sizes(&self.plan), buckets.max(touched))
    }

    /// The bytes of a new table of this many buckets, including the caller's own memory.
    pub(crate) fn memory_at(plan: &Plan, buckets: usize) -> usize {
        Self::memory_of(plan, Words::held_by_new(Self::sizes(plan), buckets), buckets > plan.first)
    }

    /// The bytes of a table whose words take up this many, and that has split or merged buckets before (`moved`), or has
    /// not.
    fn memory_of(plan: &Plan, of_words: usize, moved: bool) -> usize {
        let own = Self::stripes_of(plan) * size_of::<Stripe>()
            + Self::gates_of(plan) * size_of::<Mutex<()>>()
            + Counters::memory_for(Self::counted_by(plan))
            + size_of::<CachePadded<Size>>()
            + size_of::<Resizing>()
            + Words::OWN_MEMORY
            + if moved { Self::memory_to_grow(plan) } else { 0 };
        plan.memory_of_caller.saturating_add(own).saturating_add(of_words)
    }

    #[inline(always)]
    fn size(&self) -> &Size {
        &self.size
    }

    #[inline(always)]
    pub(crate) fn counters(&self) -> &Counters {
        &self.size().counters
    }

    /// How many bytes a [`Grown`] takes.
    fn memory_to_grow(plan: &Plan) -> usize {
        size_of::<Grown>() + (MOST_GATES - Self::gates_of(plan)) * size_of::<Mutex<()>>()
    }

    /// Allocates a [`Grown`]. `None` if there is no memory for it.
    fn allocate_grown(&self) -> Option<Box<Grown>> {
        let gates = boxed_slice(MOST_GATES - self.gates.len(), || Mutex::new(()))?;
        boxed(Grown { moving: core::array::from_fn(|_| AtomicU64::new(0)), gates })
    }

    /// Keeps what [`allocate_grown`](Self::allocate_grown) has returned. The caller holds the lock `resizing`, or has
    /// the table alone. The table has none yet.
    fn prepare_to_grow(&self, grown: Box<Grown>) {
        self.size().grown.set(grown).expect("one thread at a time changes the size");
    }

    /// What [`allocate_grown`](Self::allocate_grown) has made. A thread that has read a state that is *moving*, or of
    /// more buckets than at first, sees that it is there.
    #[inline(always)]
    fn grown(&self) -> &Grown {
        self.size().grown.get().expect("made before the first change of the size")
    }

    /// The whole words of the buckets that are being split or merged.
    #[inline(always)]
    pub(super) fn moving(&self) -> &[AtomicU64; GROUP] {
        &self.grown().moving
    }

    /// The present state.
    #[inline(always)]
    pub(crate) fn state(&self) -> State {
        // Acquire: a thread that sees a size sees its segments and, if buckets are being moved, their words in
        // `moving`. And it sees the epoch of the change before.
        State(self.size().state.load(Ordering::Acquire))
    }

    /// The epoch. An operation without a lock reads it before the state.
    #[inline(always)]
    pub(super) fn epoch(&self) -> u64 {
        // Acquire: the state that is read next is not an older one.
        self.size().epoch.load(Ordering::Acquire)
    }

    /// Whether no change of the state has begun to move copies since this epoch.
    #[inline(always)]
    pub(super) fn is_still(&self, epoch: u64) -> bool {
        // SeqCst: it comes after the reads of words, in the one order (`growth/mod.rs`, *Across keys*).
        self.size().epoch.load(Ordering::SeqCst) == epoch
    }

    /// Changes the state. The caller holds the lock `resizing`.
    pub(super) fn change_state(&self, state: State) {
        let is_split = state.split() > 0 || state.is_moving();
        let state = state.with_rows(self.layouts.rows(state.level(), is_split));
        if !state.is_moving() {
            // Relaxed: a figure.
            self.resizing().capacity.store(self.plan.capacity(state) as u64, Ordering::Relaxed);
        }
        // Release, with `state`.
        self.size().state.store(state.0, Ordering::Release);
        // After the state: a thread that has read this epoch reads no older state. Before the words, in the one order: see
        // `growth/mod.rs`.
        self.size().epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// The stripe of the classes with this base.
    #[inline(always)]
    pub(super) fn stripe(&self, base: u32) -> &Stripe {
        crate::machine::arch::at(&self.stripes, stripe_number(base) & (self.stripes.len() - 1))
    }

    /// Locks the class's stripe.
    pub(crate) fn lock(&self, class: Class) -> Guard<'_> {
        self.stripe(class.base).lock(self.counters())
    }

    /// Locks the stripe of the classes with this base, or uses the locks of `all`, to change at most so many words. The
    /// caller holds no other lock.
    #[inline(always)]
    pub(crate) fn lock_to_change<'a>(&'a self, base: u32, words: u64, all: Option<&'a AllLocked<'_>>) -> Changing<'a> {
        match all {
            Some(all) => Changing::with_all(self.running_saves(), self.stripe(base), all),
            None => self.running_saves().lock_to_change(words, || self.stripe(base).lock(self.counters())),
        }
    }

    /// Calls `work` with the locks of all stripes. It changes no words that are to be copied for saves.
    pub(super) fn under_all_locks<R>(&self, work: impl FnOnce(&AllLocked<'_>) -> R) -> R {
        stripe::under_all_locks(&self.stripes, self.counters(), None, work)
    }

    /// The same for `work` that changes words, with the thread's spare memory.
    pub(super) fn under_all_locks_with<R>(&self, spare: &Spare, work: impl FnOnce(&AllLocked<'_>) -> R) -> R {
        stripe::under_all_locks(&self.stripes, self.counters(), Some(spare), work)
    }

    /// Requests that the table keep so many buckets, which it is about to get.
    pub(super) fn request(&self, buckets: usize) -> Request<'_> {
        let mut requests = self.resizing().requests.lock();
        requests.calls += 1;
        requests.groups = requests.groups.max((buckets / GROUP) as u32);
        Request(self)
    }

    /// The fewest buckets that the table may have by now.
    pub(super) fn least_buckets(&self) -> usize {
        self.plan.first.max(self.resizing().requests.lock().groups as usize * GROUP)
    }

    /// Locks the gate of a bucket that there is or was.
    #[inline(always)]
    pub(super) fn gate(&self, number: usize) -> MutexGuard<'_, ()> {
        self.nth_gate(gate_of(number))
    }

    /// Locks a gate that there is.
    #[inline(always)]
    pub(super) fn nth_gate(&self, nth: usize) -> MutexGuard<'_, ()> {
        let gate = match self.gates.get(nth) {
            Some(gate) => gate,
            None => &self.grown().gates[nth - self.gates.len()],
        };
        sync::lock(gate, || self.counters().lock_waited())
    }

    /// All gates, in order. The caller holds the lock `resizing`, so that there are no more of them meanwhile.
    pub(super) fn all_gates(&self) -> [Option<MutexGuard<'_, ()>>; MOST_GATES] {
        let gates = self.gates();
        core::array::from_fn(|nth| (nth < gates).then(|| self.nth_gate(nth)))
    }

    /// How many gates there are.
    pub(super) fn gates(&self) -> usize {
        if self.size().grown.get().is_some() { MOST_GATES } else { self.gates.len() }
    }

    /// The gate of this side, and where its copies are while that is held.
    #[inline(always)]
    pub(super) fn enter(&self, side: u32) -> (MutexGuard<'_, ()>, Place) {
        loop {
            let state = self.state();
            let place = state.place(side);
            if let Some(gate) = self.enter_in(state, place.number) {
                return (gate, place);
            }
        }
    }

    /// The gate of a bucket of this state: so what is there stays there while the gate is held. `None` if the state is
    /// another one by then, or if the bucket was being moved.
    #[inline(always)]
    pub(super) fn enter_in(&self, state: State, number: usize) -> Option<MutexGuard<'_, ()>> {
        let gate = self.gate(number);
        if self.is_in_place(state, [number]) {
            return Some(gate);
        }
        drop(gate);
        self.recover_in_passing();
        None
    }

    /// The gates of both buckets of a class, and where it is while these are held. One of the buckets has an even number and
    /// the other one an odd one, so the gates are two. The caller has placed the class in some state, for a first try.
    #[inline(always)]
    pub(super) fn enter_both(&self, mut placed: Placed) -> ([MutexGuard<'_, ()>; 2], Placed) {
        loop {
            let [even, odd] = both(placed.numbers, gate_of);
            // In the order in which all threads take them.
            let gates = [self.nth_gate(even.min(odd)), self.nth_gate(even.max(odd))];
            if self.is_in_place(placed.state, placed.numbers) {
                return (gates, placed);
            }
            drop(gates);
            self.recover_in_passing();
            let [number, _] = placed.numbers;
            let class = self.plan.classes.of_stored(number, placed.state.depth(number), placed.stored[0]);
            placed = self.placed(class, self.state());
        }
    }

    /// Whether the table is in this state, and none of these buckets is being moved. The caller holds their gates.
    #[inline(always)]
    fn is_in_place<const N: usize>(&self, state: State, numbers: [usize; N]) -> bool {
        self.state() == state && !state.moves_any(numbers)
    }

    /// Recovers, if a thread has died while it was moving buckets. The caller holds no gate.
    #[cold]
    #[inline(never)]
    fn recover_in_passing(&self) {
        // A live thread that moves buckets has this lock, so then the try fails. It is only a try, because another
        // thread that has the lock may wait for a stripe that the caller holds. Such a thread has recovered before it
        // waits.
        if self.state().is_moving()
            && let Some(_resizing) = sync::try_lock(&self.resizing().lock)
        {
            self.recover();
        }
    }

    /// Undoes the split or merge of a thread that died: `moving` has all copies. The caller holds the lock `resizing`.
    pub(super) fn recover(&self) {
        let state = self.state();
        if !state.is_moving() {
            return;
        }
        let first = state.split() as usize;
        let _gates = self.gates_of_group(first, state.level());
        // No save has begun since: it would have waited for these gates, or have recovered. So the saves that are running
        // have these words, which were copied for the saves before the state was *moving*.
        for nth in 0..GROUP {
            self.store(first + nth, load(&self.moving()[nth]));
        }
        self.change_state(State::of_buckets(state.buckets()));
    }

    /// The gates of the group of buckets from here on, and of those that they become at this level, in order.
    pub(super) fn gates_of_group(&self, first: usize, level: u32) -> (GroupGates<'_>, Option<GroupGates<'_>>) {
        let new = first + (1 << level);
        // From some level on, both groups have the same gates.
        let is_whole_only = gate_of(new) == gate_of(first);
        let whole = self.gates_from(first);
        (whole, (!is_whole_only).then(|| self.gates_from(new)))
    }

    /// The gates of the group of buckets from here on, in order.
    fn gates_from(&self, first: usize) -> GroupGates<'_> {
        core::array::from_fn(|nth| self.gate(first + nth))
    }

    /// The word of a bucket that exists.
    #[inline(always)]
    pub(super) fn word(&self, number: usize) -> &AtomicU64 {
        self.words.get(number as u32).expect("the state says that this bucket is there")
    }

    /// What a bucket holds.
    #[inline(always)]
    pub(super) fn load(&self, number: usize) -> Bucket {
        load(self.word(number))
    }

    /// What a bucket holds, in a table that may have shrunk since the caller read its state. A missing bucket counts as
    /// full.
    #[inline(always)]
    pub(super) fn load_if_there(&self, number: usize) -> Bucket {
        self.words.get(number as u32).map_or(Bucket(u64::MAX), load)
    }

    /// Changes a bucket's word, and returns the old one. The caller holds its gate.
    #[inline(always)]
    pub(super) fn store(&self, number: usize, bucket: Bucket) -> Bucket {
        store(self.word(number), bucket)
    }

    /// The contents of one side of a class in this state, and the depth at which they are stored. Valid if the epoch is
    /// the same afterwards.
    #[inline(always)]
    pub(super) fn contents(&self, state: State, side: u32) -> (Bucket, u32) {
        let Place { number, depth } = state.place(side);
        (self.load_in(state, number), depth)
    }

    /// What the bucket of this number holds in a state that the table has or had. If the table has shrunk since, a bucket may
    /// be missing. It counts as empty.
    #[inline(always)]
    pub(super) fn load_in(&self, state: State, number: usize) -> Bucket {
        match state.moving_at(number as u32) {
            Some(at) => load(&self.moving()[at]),
            None => self.words.get(number as u32).map_or(Bucket::default(), load),
        }
    }

    /// Where a class is in a state that the table has or had.
    #[inline(always)]
    pub(crate) fn placed(&self, class: Class, state: State) -> Placed {
        let places = both(class.sides, |side| state.place(side));
        Placed {
            state,
            numbers: both(places, |place| place.number),
            layouts: both(places, |place| Layouts::in_row(state.rows().of(place.depth != state.level()))),
            stored: self.plan.classes.stored_at(class, state, places),
        }
    }

    /// Where the class is that a hop moves, in the state in which its search has found it.
    #[inline(always)]
    pub(super) fn placed_by(&self, Hop { entry, from, to }: Hop, state: State) -> Placed {
        let in_other = self.plan.classes.stored_in_other(state, [from, to], entry.0);
        let is_even = from.is_multiple_of(2);
        let numbers = if is_even { [from, to] } else { [to, from] };
        Placed {
            state,
            numbers,
            layouts: both(numbers, |number| Layouts::in_row(state.rows().of(state.is_split(number as u32)))),
            stored: if is_even { [entry.0, in_other] } else { [in_other, entry.0] },
        }
    }

    /// The layout of buckets of this depth.
    #[inline(always)]
    pub(super) fn layout(&self, depth: u32) -> &'static GrowingLayout {
        self.layouts.at(depth)
    }

    pub(crate) fn running_saves(&self) -> &RunningSaves {
        &self.resizing().running_saves
    }

    /// Copies the bucket's word for the saves that are running. The caller holds its gate, and a lock with which it has
    /// spare memory: `None` if no save was running when it took that.
    #[inline(always)]
    pub(super) fn copy_for_saves(&self, number: usize, spare: Option<&Spare>) {
        if let Some(spare) = spare {
            self.running_saves().copy_for_saves(number, &|| self.load(number), spare);
        }
    }

    /// The plan of a filter of this many buckets.
    pub(crate) fn filter_plan(plan: &Plan, buckets: usize) -> FilterPlan {
        let state = State::of_buckets(buckets);
        let table = TablePlan::new(plan.shape(state), buckets, LoadLimit::NONE, plan.pages);
        FilterPlan {
            capacity: plan.capacity(state),
            memory_usage: Self::memory_at(plan, buckets),
            max_false_positive_rate: plan.rate(plan.capacity(state) as f64),
            max_capacity: Some(plan.max_capacity()),
            max_memory_usage: Some(Self::memory_at(plan, plan.last())),
            expected_keys: plan.expected,
            load_while_growing: Some(plan.load_while_growing),
            first: plan.layout(plan.first),
            largest: plan.layout(plan.largest),
            last: plan.layout(plan.last()),
            largest_capacity: plan.full_capacity(State::of_buckets(plan.largest)),
            slots: plan.slots(state),
            classes: Some((plan.classes, plan.encoding)),
            ..FilterPlan::of_table(FilterKind::Growable, table, plan.memory_of_caller)
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.counters().len()
    }

    /// The plan of the filter at its present size.
    pub(crate) fn plan(&self) -> FilterPlan {
        FilterPlan { max_capacity: Some(self.most()), ..Self::filter_plan(&self.plan, self.state().buckets()) }
    }

    /// The capacity at the present size.
    pub(crate) fn capacity(&self) -> usize {
        self.resizing().capacity.load(Ordering::Relaxed) as usize
    }

    /// The bytes of the table, including the caller's own memory.
    pub(crate) fn memory_usage(&self) -> usize {
        Self::memory_of(&self.plan, self.held(0), self.size().grown.get().is_some())
    }

    /// How many items the table takes at most.
    pub(crate) fn most(&self) -> usize {
        // Relaxed: a figure.
        self.resizing().most.load(Ordering::Relaxed) as usize
    }

    pub(crate) fn resizing(&self) -> &Resizing {
        &self.resizing
    }
}

/// Where the two sides of a class are in a state of the table, and what their slots store of it. (While a group is being
/// moved, its sides are in `moving` instead.)
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(super) state: State,
    /// The numbers of the buckets: an even one and an odd one.
    pub(super) numbers: [usize; 2],
    pub(super) layouts: [&'static GrowingLayout; 2],
    pub(super) stored: [u32; 2],
}

/// What the word holds.
#[inline(always)]
pub(super) fn load(word: &AtomicU64) -> Bucket {
    // Acquire: a thread that sees a copy gone sees the bump that announced it, one that sees a copy sees what its inserter
    // saw, and one that sees what a change of the size has stored sees its epoch. SeqCst: see `growth/mod.rs`.
    Bucket(word.load(Ordering::SeqCst))
}

/// Changes a bucket's word, and returns the old one. The caller holds its gate.
#[inline(always)]
pub(super) fn store(word: &AtomicU64, bucket: Bucket) -> Bucket {
    // Release: a thread that sees this copy sees what its inserter saw, and one that sees a copy gone sees the bump
    // before it. SeqCst: see `growth/mod.rs`, *Across keys*. An exchange, because loom has no strong `SeqCst` store.
    Bucket(word.swap(bucket.0, Ordering::SeqCst))
}

#[cfg(test)]
#[path = "growing_table_tests.rs"]
mod tests;
