//! PURE: what follows from a filter's settings: of a builder, a filter or a snapshot.

use core::fmt;
use core::time::Duration;

use crate::error::insert::of_ticks;
use crate::error::kind::FilterKind;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::plan::table_plan::TablePlan;
use crate::plan::window::Division;
use crate::table::core::Dimensions;
use crate::table::expiring::clock::{Clock, WhenFull};
use crate::word::classes::Classes;
use crate::word::human::{Rate, Time, s};
use crate::word::layout::Encoding;
use crate::word::quota::Quota;
use crate::word::table_layout::TableLayout;
use crate::word::window::Window;

/// The memory, capacity, layout and rate that follow from a filter's settings. A filter's `plan` returns its own, a
/// builder's `plan` that of the filter that it would build, and `SnapshotInfo` that of a snapshot.
///
/// Its `Display` is a line for a log: the type, capacity, memory, rate, layout and clock. To see whether a snapshot fits the
/// settings, use `Loader::expect_plan`, not `==`: the plan of a snapshot leaves out a part of the memory.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
///
/// let builder = ConcurrentCuckooFilter::<str>::builder().capacity(1_000_000_000);
/// let plan = builder.plan()?; // allocates nothing
/// assert!(plan.capacity >= 1_000_000_000 && plan.max_false_positive_rate <= 0.001);
/// assert!(plan.to_string().starts_with("ConcurrentCuckooFilter for 1000000"), "log it: {plan}");
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FilterPlan {
    /// The type of the filter.
    pub filter: FilterKind,
    /// How many distinct keys fit (pairs in a maplet, entries in an expiring filter): at least as many as were asked for.
    pub capacity: usize,
    /// How the table is laid out. For growable filters, that is the layout at the current size; in a builder's plan, at the
    /// initial size. Between two powers of two, some of its buckets have fingerprints of one bit less, and perhaps one slot
    /// more.
    pub layout: TableLayout,
    /// How many slots the table has, each for one key. It can never hold more. `capacity / slots` is the load factor at
    /// capacity.
    pub slots: usize,
    /// How many bytes the filter uses, as [`Stats::memory_usage`](crate::Stats::memory_usage) counts them. For growable
    /// filters, that is at the current size; in a builder's plan, at the initial size. The plan of a snapshot leaves
    /// out the value of the filter itself, whose size depends on the hasher: `size_of` returns it.
    pub memory_usage: usize,
    /// The false-positive rate with as many keys as the capacity: at most the one that was asked for. For growable filters it
    /// rises with the size, up to that one, or beyond it if there are more keys
    /// than [expected](crate::GrowableBuilder::expected_keys).
    pub max_false_positive_rate: f64,
    /// The capacity of a growable filter at the size where its growth ends: at its largest size, or before, at its [memory
    /// limit](crate::GrowableBuilder::memory_limit). From that number of keys on, its inserts fail. `None` for others.
    pub max_capacity: Option<usize>,
    /// How many bytes a growable filter uses at that size. `None` for others.
    pub max_memory_usage: Option<usize>,
    /// Up to how many keys the rate that was asked for holds in a growable filter, if the builder was given
    /// [`expected_keys`](crate::GrowableBuilder::expected_keys). `None` otherwise, and after loading, as a snapshot does not say.
    pub expected_keys: Option<usize>,
    /// How full a growable filter gets before it grows: see
    /// [`load_while_growing`](crate::GrowableBuilder::load_while_growing). `None` for others.
    pub load_while_growing: Option<f64>,
    /// The longest lifetime of an entry in ticks. `None` for non-expiring filters, like the next two fields.
    pub lifetime_in_ticks: Option<u64>,
    /// How long a tick is, if the builder was given a resolution.
    pub resolution: Option<Duration>,
    /// What an expiring filter or a rate limiter does when it is full.
    pub when_full: Option<WhenFull>,
    /// Which keys a filter of recent keys holds. `None` for others.
    pub window: Option<Window>,
    /// The limit of a rate limiter. `None` for others.
    pub limits: Option<Quota>,
    /// The longest lifetime of an entry in ticks of the filter's clock, whoever drives it.
    pub(crate) longest: Option<u64>,
    /// The smallest and the largest table that the filter can have.
    pub(crate) first: TableLayout,
    pub(crate) largest: TableLayout,
    /// The table with which a growable filter's growth ends: the largest, or a smaller one at the memory limit.
    pub(crate) last: TableLayout,
    /// The capacity with the largest table, whatever the memory limit is.
    pub(crate) largest_capacity: usize,
    /// For growable filters, what determines the layouts of their buckets.
    pub(crate) classes: Option<(Classes, Option<Encoding>)>,
}

impl FilterPlan {
    /// The plan of a filter of this table, whose value takes `of_value` bytes.
    pub(crate) fn of(filter: FilterKind, table: Dimensions, of_value: usize) -> Self {
        let Dimensions { shape, buckets, limit, .. } = table;
        Self::of_table(filter, TablePlan::new(shape, buckets, limit, Pages::Usual), of_value)
    }

    /// The plan of a filter of one table that is to be built, and whose value takes `of_value` bytes.
    pub(crate) fn of_table(filter: FilterKind, table: TablePlan, of_value: usize) -> Self {
        let TablePlan { shape, buckets, limit, .. } = table;
        let (layout, slots) = (TableLayout::of(shape, buckets), buckets * shape.slots as usize);
        let capacity = sizing::capacity_of(shape, buckets, limit);
        Self {
            filter,
            capacity,
            layout,
            memory_usage: table.memory_usage(filter).saturating_add(of_value),
            max_false_positive_rate: sizing::false_positive_rate(shape, buckets, capacity as f64 / slots as f64),
            max_capacity: None,
            max_memory_usage: None,
            expected_keys: None,
            load_while_growing: None,
            lifetime_in_ticks: None,
            resolution: None,
            when_full: None,
            window: None,
            limits: None,
            longest: None,
            first: layout,
            largest: layout,
            last: layout,
            largest_capacity: capacity,
            slots,
            classes: None,
        }
    }

    pub(crate) fn with_clock(self, clock: &Clock) -> Self {
        Self {
            lifetime_in_ticks: Some(clock.longest()),
            resolution: clock.resolution(),
            when_full: Some(clock.when_full()),
            ..self.with_any_clock(clock)
        }
    }

    /// The plan with a clock that the filter drives, for a window that is divided in this way.
    pub(crate) fn with_window(self, clock: &Clock, division: Division) -> Self {
        Self { window: Some(division.window()), ..self.with_any_clock(clock) }
    }

    /// The plan of a rate limiter with this limit.
    pub(crate) fn with_limits(self, clock: &Clock, limits: Quota) -> Self {
        Self { limits: Some(limits), when_full: Some(clock.when_full()), ..self.with_any_clock(clock) }
    }

    fn with_any_clock(self, clock: &Clock) -> Self {
        let memory_usage = self.memory_usage.saturating_add(clock.memory_usage());
        Self { memory_usage, longest: Some(clock.longest()), ..self }
    }

    /// Whether a filter with this plan, at whatever size, can be one with the other plan; or with that and another largest size,
    /// if the caller has given one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn has_settings_of(&self, other: &Self, has_other_largest: bool) -> bool {
        let settings = |plan: &Self| {
            let clock = (plan.lifetime_in_ticks, plan.resolution, plan.when_full, plan.window, plan.limits);
            let largest = (!has_other_largest).then_some(plan.largest);
            (plan.filter, plan.first, largest, plan.classes, plan.load_while_growing, clock)
        };
        settings(self) == settings(other)
    }

    /// What [`has_settings_of`](Self::has_settings_of) compares, as an error names it. The size of a growable filter and the
    /// memory are not part of it: those of a snapshot and of a builder may differ though the settings are the same.
    #[cfg(feature = "snapshot")]
    pub(crate) fn settings(&self) -> String {
        let Self { filter, capacity, layout, first, largest, .. } = self;
        let (Some(_), Some((classes, encoding))) = (self.max_capacity, self.classes) else {
            return format!("{filter} for {capacity} keys ({layout}){}", ClockOf(self));
        };
        let (bits, doublings, most) = (classes.base_bits(), classes.side_bits(), self.largest_capacity);
        let encoding = encoding.map_or(String::new(), |encoding| format!(", Encoding::{encoding:?}"));
        format!(
            "{filter} for up to {most} keys (from {first} to {largest}; {bits} bits after {doublings} doublings of one \
             bucket{encoding}){}",
            LoadOf(self)
        )
    }

    /// Returns the false-positive rate of the filter when it holds this many keys. For a filter of fixed size, it is
    /// the rate of a full table if there are more keys than [`slots`](Self::slots).
    ///
    /// In a growable filter with [`expected_keys`](crate::GrowableBuilder::expected_keys), the rate rises in proportion to the
    /// keys beyond those.
    #[must_use]
    pub fn false_positive_rate_with(&self, keys: usize) -> f64 {
        match self.classes {
            Some((classes, _)) => classes.false_positive_rate(keys as f64),
            None => {
                let TableLayout { buckets, .. } = self.layout;
                sizing::false_positive_rate(self.layout.shape(), buckets, (keys as f64 / self.slots as f64).min(1.0))
            }
        }
    }

    /// Returns how many bits of the table a slot uses. A key uses more, because some slots stay free:
    /// `8 · memory_usage / capacity`.
    #[must_use]
    pub fn bits_per_slot(&self) -> f64 {
        f64::from(u64::BITS) / self.layout.slots_per_bucket as f64
    }
}

/// Shows the public fields.
impl fmt::Debug for FilterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterPlan")
            .field("filter", &self.filter)
            .field("capacity", &self.capacity)
            .field("layout", &self.layout)
            .field("slots", &self.slots)
            .field("memory_usage", &self.memory_usage)
            .field("max_false_positive_rate", &self.max_false_positive_rate)
            .field("max_capacity", &self.max_capacity)
            .field("max_memory_usage", &self.max_memory_usage)
            .field("expected_keys", &self.expected_keys)
            .field("load_while_growing", &self.load_while_growing)
            .field("lifetime_in_ticks", &self.lifetime_in_ticks)
            .field("resolution", &self.resolution)
            .field("when_full", &self.when_full)
            .field("window", &self.window)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// For example "ConcurrentCuckooFilter for 1007 keys in 2224 bytes, false-positive rate 0.00056 (220 buckets of 5 slots with 14
/// bits, semi-sorted)". For growable filters, capacity and memory are followed by those at the size where growth ends. The rate is
/// the one with the expected keys, or at the present capacity if no number was given, followed by the one where growth ends. The
/// load while it grows comes last. A rate has two digits.
impl fmt::Display for FilterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filter, capacity, layout, first, last, memory_usage, .. } = self;
        let rate = |keys| Rate::rounded(self.false_positive_rate_with(keys));
        match (self.max_capacity, self.max_memory_usage) {
            (Some(most), Some(most_memory)) => {
                let (usual, keys) = match self.expected_keys {
                    Some(expected) => (expected, format!("the {expected} keys expected")),
                    None => (*capacity, format!("{capacity} keys")),
                };
                write!(
                    f,
                    "{filter} for {capacity} keys in {memory_usage} bytes, and up to {most} keys in {most_memory} bytes, with \
                     a false-positive rate of {} with {keys}, and {} with {most} (from {first} to {last}){}",
                    rate(usual),
                    rate(most),
                    LoadOf(self)
                )
            }
            _ => write!(
                f,
                "{filter} for {capacity} keys in {memory_usage} bytes, false-positive rate {} ({layout}){}",
                rate(*capacity),
                ClockOf(self)
            ),
        }
    }
}

/// How full the filter of a plan gets before it grows, if it can grow.
struct LoadOf<'a>(&'a FilterPlan);

impl fmt::Display for LoadOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.load_while_growing {
            Some(load) => write!(f, ", load {load} while it grows"),
            None => Ok(()),
        }
    }
}

/// The settings of a plan's clock, if it has one.
struct ClockOf<'a>(&'a FilterPlan);

impl fmt::Display for ClockOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(window) = self.0.window {
            return write!(f, ", {window}");
        }
        if let Some(limits) = self.0.limits {
            let refuses = self.0.when_full == Some(WhenFull::Refuse);
            return write!(f, ", {limits}{}", if refuses { ", WhenFull::Refuse" } else { "" });
        }
        let (Some(longest), Some(when_full)) = (self.0.lifetime_in_ticks, self.0.when_full) else { return Ok(()) };
        match self.0.resolution {
            // As long as an entry certainly lives: the present tick may be nearly over.
            Some(resolution) if longest > 1 => {
                let (lifetime, resolution) = (Time(of_ticks(longest - 1, resolution)), Time(resolution));
                write!(f, ", lifetime {lifetime} ({longest} ticks of {resolution})")?;
            }
            Some(resolution) => write!(f, ", lifetime {longest} tick of {}", Time(resolution))?,
            None => write!(f, ", lifetime {longest} tick{}", s(longest))?,
        }
        write!(f, ", WhenFull::{when_full:?}")
    }
}
