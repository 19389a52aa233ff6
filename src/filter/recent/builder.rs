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
use crate::machine::time::TimeSource;
use crate::plan::sizing::RateHolds;
use crate::plan::table_plan::TablePlan;
use crate::plan::window::Division;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::expiring::clock::Clock;
use crate::table::filter_plan::FilterPlan;
use crate::table::recent_table::{ClockProgress, RecentTable, clock_for};
use crate::table::table::memory_for;

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
        let (tolerance, time) = (DEFAULT_TOLERANCE, TimeSource::default());
        RecentBuilder { settings, asked: None, room: 0, tolerance, time, hasher, key: PhantomData }
    }
}

/// Builds a [`RecentCuckooFilter`]. [`RecentCuckooFilter::builder`] makes one. The page
/// [`choosing_parameters`](crate::guide::choosing_parameters) helps with the settings.
#[must_use = "a builder does nothing until `build` is called"]
pub struct RecentBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    asked: Option<WindowSetting>,
    /// For how many keys the table is to have room, if that is more than the window has.
    room: usize,
    tolerance: f64,
    time: TimeSource,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The window, as the caller has given it.
#[derive(Clone, Copy, Debug)]
enum WindowSetting {
    Last(usize),
    Within { duration: Duration, capacity: usize },
}

impl WindowSetting {
    /// How many keys were asked for.
    fn keys(self) -> usize {
        match self {
            Self::Last(keys) | Self::Within { capacity: keys, .. } => keys,
        }
    }

    /// The setting with no more keys than this.
    fn at_most(self, most: usize) -> Self {
        match self {
            Self::Last(keys) => Self::Last(keys.min(most)),
            Self::Within { duration, capacity } => Self::Within { duration, capacity: capacity.min(most) },
        }
    }
}

/// A long window has 13 ticks then, which an entry of four bits can tell apart.
const DEFAULT_TOLERANCE: f64 = 0.08;

/// The window. One of the two is required; of both, the later call counts.
impl<T: ?Sized, S> RecentBuilder<T, S> {
    /// Sets that the filter holds at least the last `keys` keys, and by default up to 8% more: a key is found until at least so
    /// many others have come after it, and may be found until `keys` and the [tolerance](Self::tolerance) have.
    ///
    /// New keys count, and with [`insert_or_renew`](RecentCuckooFilter::insert_or_renew) those that are renewed, as
    /// [described there](RecentCuckooFilter#the-last-n-keys). Repeated keys don't. Of 0 keys, it is as for one.
    ///
    /// The filter is built with room for these keys, those that it may hold in addition, and those that are being removed. By
    /// default the [capacity](RecentCuckooFilter::capacity) of a large filter is 15% more than `keys`. There is also room for
    /// what up to 16 threads that insert at the same time may hold beyond that, one key of each but the first in each group of
    /// keys. In a filter of a few keys, that is most of its room.
    pub fn last(mut self, keys: usize) -> Self {
        self.asked = Some(WindowSetting::Last(keys));
        self
    }

    /// Sets that the filter holds the keys of the last `duration`, with room for `capacity` keys in that time: a key is
    /// found for at least so long.
    ///
    /// If more keys come, the filter evicts those that would expire first, and says so in its
    /// [statistics](crate::RecentStats). None is evicted as long as no more than
    /// [`RecentCuckooFilter::capacity`] new keys come within [`at_most`](crate::Window::Time::at_most), however unevenly: by
    /// default, that is 15% more keys in 8% more time. If keys come in bursts, ask for more.
    ///
    /// The filter reads the time by itself, from a [clock that nobody sets](RecentCuckooFilter#the-keys-of-the-last-minute) or
    /// [that you give it](Self::clock). A duration of more than 584 years is as one of 584 years.
    pub fn within(mut self, duration: Duration, capacity: usize) -> Self {
        self.asked = Some(WindowSetting::Within { duration, capacity });
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

    /// Sets by which share of the window the filter may hold a key for longer than asked for: a key leaves at the latest when
    /// `1 + share` times as many keys have come, or so much time has passed. The default is 0.08 (8%), and the least is 0.004.
    ///
    /// Keys expire in groups, and the window is divided into as few as the tolerance allows: 13 in a long window by default,
    /// 61 at 2%, and never more than 253. A window of 13 keys is exact, since each key is a group. Of more keys, the number
    /// may not divide evenly, so that a window of up to a few thousand has more groups: `last(100)` has 25 by default.
    /// [`RecentCuckooFilter::window`] and the [plan](Self::plan) say what the filter holds.
    ///
    /// From 0.008 on, every number of keys can be divided so. Below that, some cannot: at 0.004, most numbers below a million.
    /// Then the window is the one that is the least longer, by less than 0.8%: `last(100_001)` with 0.004 holds up to 100,429
    /// keys, 0.43% more. A time can always be divided, but into parts of at least a millisecond: a key of a short window may be
    /// held for longer than the share says, by less than 2 ms.
    ///
    /// The more groups, the more bits of each slot say when its key expires. At most rates the slots have these bits to spare,
    /// and since less is held in addition, the filter gets *smaller*: at a rate of one in a million, a million keys take 44.9
    /// bits each at 8%, 41.6 at 4% and 40.2 at 2%. Where the bits are missing, it gets larger
    /// ([`false_positive_rate`](Self::false_positive_rate) has a table): at the default rate 19.5, 25.0 and 24.2. The price
    /// is time. Each time that a group expires, inserts pass over the whole table to remove it. An insert takes 1.3 to 1.5
    /// times as many instructions at 4% as at 8%, and 1.7 to 2.2 times as many at 2% (with 10,000 to a million keys).
    pub fn tolerance(mut self, share: f64) -> Self {
        self.tolerance = share;
        self
    }

    /// Sets that the table has room for a window of so many keys, if that is more than the window has. It is for a program that
    /// may need a longer window later: see [`empty_like_last`](RecentCuckooFilter::empty_like_last). The window of this filter
    /// stays the one that was asked for.
    ///
    /// The filter takes the memory for it from the beginning. (A filter of a [time](Self::within) has the larger one of this number
    /// and of its `capacity`.)
    pub fn room_for(mut self, keys: usize) -> Self {
        self.room = keys;
        self
    }

    /// Sets the clock of a filter of a [time](Self::within), in place of the system's: the filter takes the time from this
    /// function. It makes no difference to a filter of the last keys.
    ///
    /// What it returns when the filter is built is the beginning, so it may start anywhere. It is called for each operation, and
    /// holds no lock of the filter then. [`RecentCuckooFilter::with_clock`] has an example, and says what happens if it goes
    /// back.
    ///
    /// **Without it, the filter reads the system's clock**, for the first time in the first operation on it. Where the system
    /// has none, as on `wasm32-unknown-unknown`, that operation panics. There, set a clock, also when you
    /// [load](RecentCuckooFilter#what-a-snapshot-keeps) a filter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::RecentCuckooFilter;
    ///
    /// # fn milliseconds_since_start() -> u64 { 17 }
    /// let minute = Duration::from_secs(60);
    /// let seen = RecentCuckooFilter::<str>::builder()
    ///     .within(minute, 1000)
    ///     .clock(|| Duration::from_millis(milliseconds_since_start()))
    ///     .build()?;
    /// assert!(seen.insert("a") && !seen.insert("a"));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.time = TimeSource::of_caller(clock);
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
        let Self { settings, asked, room, tolerance, time, .. } = self;
        RecentBuilder { settings, asked, room, tolerance, time, hasher, key: PhantomData }
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
        let core = RecentTable::new(plan, clock, division, 0, self.time).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(RecentCuckooFilter::from_parts(Parts { core, hasher: self.hasher, schema: self.settings.schema }))
    }

    fn table_plan(&self) -> Result<(TablePlan, Clock, Division), BuildError> {
        self.settings.check()?;
        let (tolerance, least) = (self.tolerance, Division::least_share());
        if !(least..1.0).contains(&tolerance) {
            return Err(BuildError::InvalidTolerance { tolerance, least });
        }
        let (asked, room) = (self.asked.ok_or(BuildError::WindowMissing)?, self.room);
        let capacity = asked.keys().max(room);
        let mut most = capacity;
        // A window of fewer keys may be divided in another way, and need more room than the longer one let expect.
        loop {
            match self.plan_for(asked.at_most(most), room.min(most)) {
                Err(BuildError::CapacityTooLarge { largest, .. }) => most = largest,
                Ok(_) if most < capacity => {
                    return Err(BuildError::CapacityTooLarge { filter: FilterKind::Recent, capacity, largest: most });
                }
                result => return result,
            }
        }
    }

    /// The plan for this window, with room for one of so many keys. If the table would be too large, the error names the most
    /// keys that may be possible.
    fn plan_for(&self, asked: WindowSetting, room: usize) -> Result<(TablePlan, Clock, Division), BuildError> {
        let (tolerance, keys) = (self.tolerance, asked.keys());
        let (division, ring) = match asked {
            WindowSetting::Last(keys) => Division::of_keys(keys as u64, tolerance),
            WindowSetting::Within { duration, .. } if duration.is_zero() => return Err(BuildError::ZeroDuration),
            WindowSetting::Within { duration, .. } => Division::of_time(duration, tolerance),
        };
        let with_room = division.with_room_for(ring, room);
        // The filter is soon full of keys, expired ones included, and stays so.
        let entries = division.entries_for(keys).max(with_room.entries_for(room));
        let plan = self.settings.plan(entries, ring.bits(), RateHolds::Always).map_err(|error| match error {
            BuildError::CapacityTooLarge { filter, capacity, largest: entries } => {
                let too_many = [(division, keys), (with_room, room)].into_iter();
                let too_many = too_many.filter(|(division, keys)| division.entries_for(*keys) > entries);
                let largest = too_many.map(|(division, _)| division.keys_for(entries)).min().unwrap_or(0);
                BuildError::CapacityTooLarge { filter, capacity, largest }
            }
            error => error,
        })?;
        let bytes = size_of::<Clock>();
        let clock = clock_for(division, ring, ClockProgress::default()).ok_or(BuildError::OutOfMemory { bytes })?;
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
        let Self { settings, asked, room, tolerance, time, hasher, .. } = self;
        Self {
            settings: settings.clone(),
            asked: *asked,
            room: *room,
            tolerance: *tolerance,
            time: time.clone(),
            hasher: hasher.clone(),
            key: PhantomData,
        }
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
