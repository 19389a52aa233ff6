//! How a [`RecentCuckooFilter`] is built.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::recent::filter::RecentCuckooFilter;
use crate::filter::shared::parts::Parts;
use crate::filter::shared::settings::Settings;
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::memory::Pages;
use crate::plan::sizing::RateHolds;
use crate::plan::window::Division;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::expiring::clock::Clock;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::plan::TablePlan;
use crate::table::face::recent::{Past, RecentTable, clock_for};
use crate::table::table::memory_for;
use crate::word::ring::Ring;

/// Construction with the default hasher, which is keyed at random for each filter and each builder.
///
/// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust infers
/// the default hasher only if these functions exist for no other one, as for `HashMap::new`.)
impl<T: ?Sized> RecentCuckooFilter<T> {
    /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
    /// filters that are built from either.
    pub fn builder() -> RecentBuilder<T> {
        Self::builder_with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> RecentCuckooFilter<T, S> {
    /// Returns a builder with this hasher.
    ///
    /// Any hasher works, even one as weak as the identity, because the filter mixes the hashes once more. But without a
    /// secret key in the hasher, [anyone who chooses the keys](crate::guide::security#a-known-hasher-key) can choose
    /// them so that they collide.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use concurrent_cuckoo_filter::RecentCuckooFilter;
    ///
    /// type Seen = RecentCuckooFilter<str, RandomState>; // one name for every use
    /// let seen: Seen = Seen::builder_with_hasher(RandomState::new()).last(1000).build()?;
    /// assert!(seen.insert("message-1"));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> RecentBuilder<T, S> {
        let settings = Settings::new(FilterKind::Recent);
        RecentBuilder { settings, asked: None, tolerance: DEFAULT_TOLERANCE, hasher, key: PhantomData }
    }
}

/// Builds a [`RecentCuckooFilter`]. [`RecentCuckooFilter::builder`] makes one. The page
/// [`choosing_parameters`](crate::guide::choosing_parameters) helps with the settings.
#[must_use = "a builder does nothing until `build` is called"]
pub struct RecentBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    asked: Option<Asked>,
    tolerance: f64,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The window, as the caller has given it.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Last(usize),
    Within { duration: Duration, capacity: usize },
}

/// With four bits per entry, a window has 13 ticks.
const DEFAULT_TOLERANCE: f64 = 0.08;

/// The bits of an entry's payload that a filter may have. Each more makes twice as many ticks, and twice as many sweeps.
const PAYLOAD_BITS: core::ops::RangeInclusive<u32> = 4..=8;

/// The window. One of the two is required; of both, the later call counts.
impl<T: ?Sized, S> RecentBuilder<T, S> {
    /// Sets that the filter holds the last `keys` keys: a key is found until at least so many others have come after it.
    ///
    /// New keys count, and with [`insert_or_renew`](RecentCuckooFilter::insert_or_renew) those that are renewed, as
    /// [described there](RecentCuckooFilter#the-last-n-keys). Repeated keys don't. Of 0 keys, it is as for one.
    ///
    /// The filter is built with room for these keys, those that it may hold [in addition](Self::tolerance), and those that
    /// are being removed: a seventh more slots than `keys` by default.
    pub fn last(mut self, keys: usize) -> Self {
        self.asked = Some(Asked::Last(keys));
        self
    }

    /// Sets that the filter holds the keys of the last `duration`, with room for `capacity` keys in that time: a key is
    /// found for at least so long.
    ///
    /// If more keys come, the filter evicts those that would expire first, and says so in its
    /// [statistics](crate::RecentStats). None is evicted as long as no more than
    /// [`RecentCuckooFilter::capacity`] new keys come within [`at_most`](crate::Window::Time::at_most), however unevenly:
    /// that is a sixth more keys in a thirteenth more time. If keys come in bursts, ask for more.
    ///
    /// Durations below 13 ms are divided into whole milliseconds. The filter reads the time by itself, from a [clock that
    /// nobody sets](RecentCuckooFilter#the-keys-of-the-last-minute).
    pub fn within(mut self, duration: Duration, capacity: usize) -> Self {
        self.asked = Some(Asked::Within { duration, capacity });
        self
    }
}

/// The settings that all builders have.
impl<T: ?Sized, S> RecentBuilder<T, S> {
    /// Sets the largest acceptable false-positive rate: the share of new keys that may be taken for seen ones. The
    /// default is 0.001 (0.1%).
    ///
    /// Often a new key that is taken for a seen one is lost, such as a message. Then choose a lower rate. It holds with
    /// every slot taken. The builder chooses the layout with the least memory: for each key of the window, a large filter uses
    /// 19.4 bits at 0.1%, 26.8 at 0.0023%, and 44.6 below. The rate of each layout, by the bits per slot that its capacity
    /// uses:
    ///
    /// | [tolerance](Self::tolerance) | bits per expiry | 11.0 bits per slot | 13.2 | 16.8 | 23.2 | 38.6 |
    /// |---|---|---|---|---|---|---|
    /// | 8% | 4 | 5.1% | 1.0% | 0.098% | 0.0023% | 1.5e-8 |
    /// | 2% | 6 | – | 4.3% | 0.39% | 0.0092% | 6e-8 |
    /// | 0.4% | 8 | – | – | 1.7% | 0.037% | 2.4e-7 |
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Sets by which share of the window the filter may hold a key for longer than asked for. The default is 0.08 (8%), and
    /// the least is 0.004.
    ///
    /// Keys expire in groups: the window has 13 of them, or more if the tolerance needs that, up to 253. The more groups there
    /// are, the more bits each slot needs ([`false_positive_rate`](Self::false_positive_rate) has a table). And each time that
    /// a group expires, inserts pass over the whole table to remove it. [`RecentCuckooFilter::window`] says what the filter
    /// holds.
    pub fn tolerance(mut self, share: f64) -> Self {
        self.tolerance = share;
        self
    }

    /// Sets whether to ask the system for huge pages for each table of 4 MiB or more. It is off by default.
    ///
    /// With pages of 2 MiB, a lookup in a large table finds the address translations of its two pages in the TLB. In a
    /// table of 192 MB, that makes lookups 5 to 7% faster, single ones and batches (`cargo bench --bench lookups --
    /// --only=batches`).
    ///
    /// This is best effort. Linux grants huge pages if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or
    /// `always`, and if it has such pages free. On other systems the filter does not ask. Huge pages use no more
    /// memory, but a machine that is short of free ones may take longer to build the filter. A filter that is loaded uses
    /// regular pages.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.settings.pages = if wanted { Pages::Huge } else { Pages::Usual };
        self
    }

    /// Sets the schema of this filter's snapshots: a short name for what the keys are, up to 255 bytes. Each snapshot
    /// contains it, and `load` compares it. The default is the name of the key type.
    ///
    /// **Another schema is an error.** Without this check, a filter of other keys would answer "new" to everything.
    ///
    /// The default is [`core::any::type_name`] of the key type (of a longer name, its beginning and a checksum). It
    /// changes if the type is renamed or moved to another module, it differs between `String` and `str`, though they
    /// hash alike, and the compiler does not promise to keep it. So for snapshots that are kept, choose a name
    /// yourself, with a version in it, so you can bump it when the key's meaning changes while its type keeps its name.
    ///
    /// Needs the feature `snapshot`.
    #[cfg(feature = "snapshot")]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.settings.schema = Schema::named(schema.into());
        self
    }

    /// Sets the hasher of the keys. It replaces the one that the builder has.
    ///
    /// If an adversary may choose keys, the hasher needs a secret key: see the page
    /// [`security`](crate::guide::security).
    pub fn hasher<S2>(self, hasher: S2) -> RecentBuilder<T, S2> {
        let Self { settings, asked, tolerance, .. } = self;
        RecentBuilder { settings, asked, tolerance, hasher, key: PhantomData }
    }
}

/// What would be built.
impl<T: ?Sized, S> RecentBuilder<T, S> {
    /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout, rate and window. It
    /// allocates no table, so it shows whether settings are valid, and what they would cost.
    ///
    /// # Errors
    /// Those of [`build`](Self::build), except `OutOfMemory`.
    pub fn plan(&self) -> Result<FilterPlan, BuildError> {
        let (table, clock, division) = self.table_plan()?;
        let of_value = size_of::<RecentCuckooFilter<T, S>>();
        Ok(FilterPlan::of_table(FilterKind::Recent, table, of_value).with_window(&clock, division))
    }
}

/// Construction.
impl<T: ?Sized, S> RecentBuilder<T, S> {
    /// Builds the filter. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the window is missing, if a setting is invalid or cannot be met, or if the allocation fails.
    /// (Some failed allocations [abort the process](crate::ConcurrentBuilder::build).)
    pub fn build(self) -> Result<RecentCuckooFilter<T, S>, BuildError> {
        let (plan, clock, division) = self.table_plan()?;
        let bytes = memory_for(plan.buckets) + clock.memory_usage();
        let core = RecentTable::new(plan, clock, division, 0).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(RecentCuckooFilter::from_parts(Parts { core, hasher: self.hasher, schema: self.settings.schema }))
    }

    fn table_plan(&self) -> Result<(TablePlan, Clock, Division), BuildError> {
        self.settings.check()?;
        let asked = self.asked.ok_or(BuildError::WindowMissing)?;
        let ticks = |ring| (Division::most_lifetime(ring) - 1) as f64;
        let rings = || PAYLOAD_BITS.map(Ring::new);
        let least = rings().map(|ring| 1.0 / ticks(ring)).fold(1.0, f64::min);
        let tolerance = Some(self.tolerance).filter(|share| *share > 0.0 && *share < 1.0);
        let ring = tolerance.and_then(|share| rings().find(|&ring| 1.0 / ticks(ring) <= share));
        let ring = ring.ok_or(BuildError::InvalidTolerance { tolerance: self.tolerance, least })?;
        let (division, keys) = match asked {
            Asked::Last(keys) => (Division::of_keys(keys as u64, ring), keys),
            Asked::Within { duration, .. } if duration.is_zero() => return Err(BuildError::ZeroDuration),
            Asked::Within { duration, capacity } => (Division::of_time(duration, ring), capacity),
        };
        // The filter is soon full of keys, expired ones included, and stays so.
        let plan = self.settings.plan(division.entries_for(keys), ring.bits(), RateHolds::Always);
        let plan = plan.map_err(|error| match error {
            // In the caller's terms: a table has two ticks more than the window.
            BuildError::CapacityTooLarge { filter, largest, .. } => {
                let share = (division.lifetime - 1) as f64 / (division.lifetime + 1) as f64;
                BuildError::CapacityTooLarge { filter, capacity: keys, largest: (largest as f64 * share) as usize }
            }
            error => error,
        })?;
        let bytes = size_of::<Clock>();
        let clock = clock_for(division, ring, Past::default()).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok((plan, clock, division))
    }
}

/// A builder with the hasher's default.
impl<T: ?Sized, S: Default> Default for RecentBuilder<T, S> {
    fn default() -> Self {
        RecentCuckooFilter::builder_with_hasher(S::default())
    }
}

impl<T: ?Sized, S: Clone> Clone for RecentBuilder<T, S> {
    fn clone(&self) -> Self {
        let &Self { ref settings, asked, tolerance, ref hasher, .. } = self;
        Self { settings: settings.clone(), asked, tolerance, hasher: hasher.clone(), key: PhantomData }
    }
}

/// Leaves out the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for RecentBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentBuilder")
            .field("window", &self.asked)
            .field("tolerance", &self.tolerance)
            .field("false_positive_rate", &self.settings.rate)
            .finish_non_exhaustive()
    }
}
