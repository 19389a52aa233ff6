//! CONCURRENT: the state of a filter that grows, and its figures. `growth/mod.rs` has the reasoning.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::error::absorb::TableLayout;
use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::growth::level::{Level, memory_for, new_level};
use crate::growth::plan::Plan;
use crate::sync::fault::{self, Fault};
use crate::sync::readers::Registry;
use crate::sync::replaceable::{Held, Replaceable, Retired};
use crate::sync::{AtomicU64, Mutex, Ordering, Tally};
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::plan::TablePlan;
use crate::table::face::traits::AnyTable;
use crate::table::stripe::Stripe;
use crate::table::table::Common;

/// Values of [`Growth::pending`].
pub(super) const NOTHING: u64 = 0;
/// A table that was replaced is yet to be freed.
pub(super) const FREEING: u64 = 1;
/// A resize is under way.
pub(super) const RESIZING: u64 = 2;

/// Why the first table could not be built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    MemoryLimit { needed: usize, limit: usize },
    OutOfMemory { bytes: usize },
}

impl Refusal {
    pub(crate) fn to_build(self) -> BuildError {
        match self {
            Self::MemoryLimit { needed, limit } => BuildError::MemoryLimit { needed, limit },
            Self::OutOfMemory { bytes } => BuildError::OutOfMemory { bytes },
        }
    }
}

/// A concurrent multiset of items in one table, which is replaced by larger and smaller ones. Keys are passed as hashes,
/// which [`doubling`](crate::word::geometry::doubling) has made.
#[derive(Debug)]
pub(crate) struct Growth {
    pub(super) current: Replaceable<Level>,
    /// How often a resize has begun or ended. It is odd while there may be two tables.
    phase: AtomicU64,
    /// What inserts have to help with: `NOTHING`, `FREEING` or `RESIZING`.
    pub(super) pending: AtomicU64,
    pub(crate) plan: Plan,
    pub(crate) registry: Arc<Registry>,
    pub(super) common: Arc<Common>,
    /// Held while a table is made and announced, while it takes the place of the current one, and by those that keep
    /// others from doing so. On cache lines apart from what lookups read.
    pub(crate) resizing: CachePadded<Mutex<Resizing>>,
    /// How many inserts were refused.
    pub(super) refused: CachePadded<Tally>,
    /// How many inserts could have helped to free a table.
    pub(super) passed_by: CachePadded<Tally>,
}

/// What only the thread has that changes the tables.
#[derive(Debug, Default)]
pub(crate) struct Resizing {
    /// Tables that were replaced, and that readers may still have.
    pub(super) retired: Vec<Retired<Level>>,
    /// Those that no reader has any more, and how many of their buckets were given back.
    pub(super) leaving: Vec<(Level, usize)>,
}

/// The tables that there were when an operation looked for them.
pub(super) struct Tables<'a> {
    pub(super) growth: &'a Growth,
    phase: u64,
    pub(super) level: &'a Level,
    /// That to which the first one's buckets are being moved, if there is one.
    pub(super) next: Option<&'a Level>,
}

impl Tables<'_> {
    /// Whether no resize has begun or ended since then.
    pub(super) fn are_all(&self, ignored: Fault) -> bool {
        self.growth.is_still(self.phase) || fault::injected(ignored)
    }
}

/// Whether there may be two tables in this phase.
#[inline(always)]
pub(super) fn is_amid(phase: u64) -> bool {
    phase % 2 == 1
}

impl Growth {
    /// An empty table.
    pub(crate) fn new(plan: Plan) -> Result<Self, Refusal> {
        Self::at_level(plan, 0)
    }

    /// An empty table of this level.
    pub(super) fn at_level(plan: Plan, number: u32) -> Result<Self, Refusal> {
        Self::check_limit(&plan, number)?;
        let out_of_memory = Refusal::OutOfMemory { bytes: Self::memory_at(&plan, number) - plan.memory_of_caller };
        let common = Arc::new(Common::of_levels(plan.buckets(plan.doublings)).ok_or(out_of_memory)?);
        let registry = Arc::new(Registry::new());
        let level = new_level(&plan, number, &common, &registry, None).ok_or(out_of_memory)?;
        Ok(Self::of(plan, level, common, registry))
    }

    /// Whether a filter at this level is within the limit.
    pub(crate) fn check_limit(plan: &Plan, number: u32) -> Result<(), Refusal> {
        let (needed, limit) = (Self::memory_at(plan, number), plan.memory_limit);
        if needed > limit { Err(Refusal::MemoryLimit { needed, limit }) } else { Ok(()) }
    }

    /// What a filter at this level is by its settings.
    pub(crate) fn filter_plan(plan: &Plan, number: u32) -> FilterPlan {
        let table = TablePlan::new(plan.shape(number), plan.buckets(number), plan.pages);
        let layout = |level| TableLayout::of(plan.shape(level), plan.buckets(level));
        FilterPlan {
            memory_usage: Self::memory_at(plan, number),
            max_false_positive_rate: plan.shape(number).doubled_false_positive_rate(1.0),
            max_capacity: Some(plan.max_capacity()),
            max_memory_usage: Some(Self::memory_at(plan, plan.doublings)),
            first: layout(0),
            largest: layout(plan.doublings),
            ..FilterPlan::of_table(FilterKind::Growable, table, plan.memory_of_caller)
        }
    }

    /// In bytes, of a filter at this level, including the caller's own memory.
    pub(super) fn memory_at(plan: &Plan, number: u32) -> usize {
        Self::own_memory_of(plan).saturating_add(memory_for(plan.buckets(number)))
    }

    /// In bytes, of a filter that grows to this level: while it does, there is the table before, too.
    pub(crate) fn memory_to_grow(plan: &Plan, number: u32) -> usize {
        let before = if number == 0 { 0 } else { memory_for(plan.buckets(number - 1)) };
        Self::memory_at(plan, number).saturating_add(before)
    }

    fn of(plan: Plan, level: Arc<Level>, common: Arc<Common>, registry: Arc<Registry>) -> Self {
        common.make_newest(level.serial());
        Self {
            current: Replaceable::new(Some(level)),
            phase: AtomicU64::new(0),
            pending: AtomicU64::new(NOTHING),
            plan,
            registry,
            common,
            resizing: CachePadded::new(Mutex::new(Resizing::default())),
            refused: CachePadded::new(Tally::new(0)),
            passed_by: CachePadded::new(Tally::new(0)),
        }
    }

    /// The current table, for the length of an operation.
    #[inline(always)]
    pub(super) fn current(&self) -> Held<'_, Level> {
        self.current.hold(&self.registry).expect("there is always a table")
    }

    /// What an operation reads before it looks for its tables.
    #[inline(always)]
    pub(super) fn phase(&self) -> u64 {
        // Acquire: whoever sees that a resize has begun or ended sees its tables. SeqCst: see `growth/mod.rs`.
        self.phase.load(Ordering::SeqCst)
    }

    /// Whether no resize has begun or ended since this phase.
    #[inline(always)]
    pub(super) fn is_still(&self, phase: u64) -> bool {
        // Relaxed: whoever sees, before this, a copy leave its table sees that the resize has begun.
        self.phase.load(Ordering::Relaxed) == phase
    }

    /// A resize has begun, or ended. The caller has the lock for that.
    pub(super) fn begin_phase(&self) {
        // Release: its tables come before. SeqCst: see `growth/mod.rs`.
        self.phase.fetch_add(1, Ordering::SeqCst);
    }

    /// Calls `of` with the tables that there are.
    #[inline(always)]
    pub(super) fn with_tables<R>(&self, of: impl FnOnce(&Tables<'_>) -> R) -> R {
        loop {
            let phase = self.phase();
            let level = self.current();
            let next = if is_amid(phase) { level.next.hold(&self.registry) } else { None };
            // Else it may be that of a later resize, of which others do not know yet: nothing may be moved there.
            if next.is_none() || self.is_still(phase) || fault::injected(Fault::SplitsTooEarly) {
                return of(&Tables { growth: self, phase, level: &level, next: next.as_deref() });
            }
        }
    }

    /// The stripe of the class, at all levels.
    #[inline(always)]
    pub(super) fn stripe(&self, hash: u64) -> &Stripe {
        self.common.stripe(self.plan.geometry.sum_of(hash))
    }

    /// The current table, for longer.
    pub(crate) fn current_level(&self) -> Arc<Level> {
        self.current.get(&self.registry).expect("there is always a table")
    }

    pub(crate) fn len(&self) -> usize {
        self.common.counters.len()
    }

    /// What `of` returns of the table that is made for the most items.
    fn of_largest<R>(&self, of: impl Fn(&Level) -> R) -> R {
        let level = self.current();
        match level.next.hold(&self.registry) {
            Some(next) if next.number() > level.number() => of(&next),
            _ => of(&level),
        }
    }

    /// The statistics that `of` makes of that table.
    pub(crate) fn stats<R>(&self, of: impl Fn(&dyn AnyTable) -> R) -> R {
        self.of_largest(|level| of(&**level))
    }

    /// How many items the table is made for.
    pub(crate) fn capacity(&self) -> usize {
        self.of_largest(Level::made_for)
    }

    pub(crate) fn max_capacity(&self) -> usize {
        self.plan.max_capacity()
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.of_largest(|level| level.slots())
    }

    /// How many tables there are: one, or two while it is being replaced.
    pub(crate) fn tables(&self) -> usize {
        1 + usize::from(self.current().next.is_some())
    }

    /// In bytes, including the caller's own memory.
    pub(crate) fn memory_usage(&self) -> usize {
        let level = self.current();
        let next = level.next.hold(&self.registry);
        self.own_memory() + level.memory() + next.map_or(0, |next| next.memory())
    }

    /// The memory beside the tables.
    pub(super) fn own_memory(&self) -> usize {
        Self::own_memory_of(&self.plan)
    }

    fn own_memory_of(plan: &Plan) -> usize {
        let counts = 2 * 2 * size_of::<usize>();
        let common = Common::memory_for_levels(plan.buckets(plan.doublings)) + size_of::<Common>();
        plan.memory_of_caller + common + size_of::<Registry>() + counts
    }

    /// How many inserts the filter has refused. Refusals by a single table do not count.
    pub(crate) fn inserts_refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn record_negatives(&self, count: u64) {
        self.common.counters.record_negatives(count);
    }

    pub(crate) fn record_false_positives(&self, count: u64) {
        self.common.counters.record_false_positives(count);
    }

    /// The probability that an absent key is taken for one that is in, at the present load.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        let len = self.len() as f64;
        self.of_largest(|level| level.shape().doubled_false_positive_rate(len / level.slots() as f64))
    }

    /// The same with every slot taken.
    pub(crate) fn max_false_positive_rate(&self) -> f64 {
        self.of_largest(|level| level.shape().doubled_false_positive_rate(1.0))
    }
}
