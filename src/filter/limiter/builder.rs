//! How a [`CuckooRateLimiter`] is built.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::limiter::filter::CuckooRateLimiter;
use crate::filter::shared::parts::Parts;
use crate::filter::shared::settings::Settings;
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::memory::Pages;
use crate::machine::time::TimeSource;
use crate::plan::limits::{self, LimitSettings};
use crate::plan::sizing::RateHolds;
use crate::plan::table_plan::TablePlan;
#[cfg(feature = "snapshot")]
use crate::snapshot::schema::Schema;
use crate::table::expiring::clock::{Clock, WhenFull};
use crate::table::filter_plan::FilterPlan;
use crate::table::limiter_table::{LimiterTable, clock_for};
use crate::table::recent_table::ClockProgress;
use crate::table::table::memory_for;
use crate::word::quota::Quota;

/// Construction with the default hasher, which is keyed at random for each limiter and each builder.
///
/// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust infers
/// the default hasher only if these functions exist for no other one, as for `HashMap::new`.)
impl<T: ?Sized> CuckooRateLimiter<T> {
    /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
    /// limiters that are built from either.
    pub fn builder() -> LimiterBuilder<T> {
        Self::builder_with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> CuckooRateLimiter<T, S> {
    /// Returns a builder with this hasher.
    ///
    /// Any hasher works, even one as weak as the identity, because the limiter mixes the hashes once more. But without a
    /// secret key in the hasher, [anyone who chooses the keys](crate::guide::security#a-known-hasher-key) can choose
    /// them so that they collide: an attacker can then use up another client's limit.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::CuckooRateLimiter;
    ///
    /// type Limiter = CuckooRateLimiter<str, RandomState>; // one name for every use
    /// let second = Duration::from_secs(1);
    /// let limiter: Limiter = Limiter::builder_with_hasher(RandomState::new()).allow(5, second).capacity(1000).build()?;
    /// assert!(limiter.check("client-1").is_ok());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> LimiterBuilder<T, S> {
        let settings = Settings::new(FilterKind::Limiter);
        let limits = Limits { allowed: None, burst: None, ticks: None, when_full: WhenFull::EvictSoonest };
        LimiterBuilder { settings, limits, time: TimeSource::default(), hasher, key: PhantomData }
    }
}

/// Builds a [`CuckooRateLimiter`]. [`CuckooRateLimiter::builder`] makes one. The page
/// [`rate_limits`](crate::guide::rate_limits) helps with the settings.
#[must_use = "a builder does nothing until `build` is called"]
pub struct LimiterBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    limits: Limits,
    time: TimeSource,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The limit, as the caller has given it.
#[derive(Clone, Copy, Debug)]
struct Limits {
    allowed: Option<(u32, Duration)>,
    burst: Option<u32>,
    ticks: Option<u32>,
    when_full: WhenFull,
}

/// The limit and the capacity. [`allow`](Self::allow) and [`capacity`](Self::capacity) are required.
impl<T: ?Sized, S> LimiterBuilder<T, S> {
    /// Sets that each key is allowed `limit` requests per `period`, so one in each `period / limit`. That is at least 10 µs.
    ///
    /// A key that has made no requests for a while may make [`burst`](Self::burst) of them at once. So within one period it
    /// may make up to `limit + burst`: [`Quota::most_in`](crate::Quota::most_in) says how many exactly.
    pub fn allow(mut self, limit: u32, period: Duration) -> Self {
        self.limits.allowed = Some((limit, period));
        self
    }

    /// Sets how many requests a key that owes nothing may make at once. The default is the limit, as if each period's
    /// requests might come at its beginning. The most is 57,344, or 14,336 with four ticks per request. So a larger limit, such
    /// as 100,000 per day, needs a burst of its own.
    ///
    /// The end of a debt uses as many bits of its slot as tell the ticks of a burst apart. In a large limiter with the default
    /// rate, and with four ticks per request:
    ///
    /// | burst | bits per end | bits per key |
    /// |---|---|---|
    /// | 1 | 3 | 16.8 |
    /// | up to 3 | 4 | 16.8 |
    /// | up to 112 | 5 to 9 | 23.2 |
    /// | up to 14,336 | 10 to 16 | 38.6 |
    pub fn burst(mut self, requests: u32) -> Self {
        self.limits.burst = Some(requests);
        self
    }

    /// Sets how many keys may owe something at one time. If more do, [some are evicted](Self::when_full).
    ///
    /// A key that makes one request owes it for `period / limit`. So, of clients that each come now and then, count those that
    /// come within that time; of clients that come all the time, count all. A key that has repaid its debt counts for a
    /// while until it is removed, but gives its room to a new one.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.settings.capacity = Some(keys);
        self
    }
}

/// How exact the limit is, and what happens when the limiter is full.
impl<T: ?Sized, S> LimiterBuilder<T, S> {
    /// Sets the largest acceptable false-positive rate: the share of keys that owe nothing and may share the debt of [a key
    /// that looks alike](CuckooRateLimiter#keys-that-look-alike). The default is 0.001 (0.1%).
    ///
    /// It holds with every slot taken. The builder chooses the layout with the least memory. The rate of each, by the bits per
    /// slot:
    ///
    /// | bits per end | 11.0 bits per slot | 13.2 | 16.8 | 23.2 | 38.6 |
    /// |---|---|---|---|---|---|
    /// | 4 | 5.1% | 1.0% | 0.098% | 0.0023% | 1.5e-8 |
    /// | 7 | – | 9.3% | 0.80% | 0.018% | 1.2e-7 |
    /// | 9 | – | – | 3.5% | 0.074% | 4.8e-7 |
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Sets how many ticks a request costs. The default is 4, or fewer if the burst is too large or the ticks would be
    /// shorter than 10 µs.
    ///
    /// The limiter counts time in ticks of `period / limit / ticks`. With one tick per request, a key may make one request
    /// more than by an exact clock. The more ticks, the less often it does. [Other quotas](CuckooRateLimiter::quota) of the
    /// same limiter have a whole number of these ticks per request: so a limiter that has quotas which are ten times as
    /// fast as its own needs ten times as many.
    ///
    /// More ticks need more bits per end, if the [burst](Self::burst) has no room for them.
    pub fn ticks_per_request(mut self, ticks: u32) -> Self {
        self.limits.ticks = Some(ticks);
        self
    }

    /// Sets what happens to a request of a new key when the limiter is full. The default is
    /// [`EvictSoonest`](WhenFull::EvictSoonest): another key is forgotten, which has its whole burst again. Of those in the
    /// new key's two buckets, it is the one that would be repaid first.
    ///
    /// With [`Refuse`](WhenFull::Refuse), the limiter fails closed: the request of a new key is rejected, with
    /// [`LimitReason::Full`](crate::LimitReason::Full), and no debt is forgotten. Then a flood of new keys locks
    /// out clients that are not in debt yet. Choose it where a key that is over its limit is worse than a client that is not
    /// served, such as for attempts to log in.
    pub fn when_full(mut self, when_full: WhenFull) -> Self {
        self.limits.when_full = when_full;
        self
    }
}

/// The clock.
impl<T: ?Sized, S> LimiterBuilder<T, S> {
    /// Sets the function from which the limiter takes the time, in place of the system's clock.
    ///
    /// The time counts from the first call on, which `build` makes: what it returns then is now. So it may start
    /// anywhere. If it goes back, the limiter's time stands still until it has caught up. It is called for each operation,
    /// and no lock of the limiter is held then. It counts up to 584 years from there, or 7·10¹³ ticks
    /// if these are less (22 years with the shortest ticks). After that, the time stands still: no debt is repaid, and
    /// [`retry_after`](crate::Limited::retry_after) of a key at its limit is 0.
    ///
    /// **Without it, the limiter reads the system's clock**, for the first time in the first operation on it. Where the system
    /// has none, as on `wasm32-unknown-unknown`, that operation panics.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::CuckooRateLimiter;
    ///
    /// let second = Arc::new(AtomicU64::new(0));
    /// let clock = Arc::clone(&second);
    /// let limiter = CuckooRateLimiter::<str>::builder()
    ///     .allow(1, Duration::from_secs(10))
    ///     .capacity(1000)
    ///     .clock(move || Duration::from_secs(clock.load(Ordering::Relaxed)))
    ///     .build()?;
    /// assert!(limiter.check("a").is_ok());
    /// second.store(9, Ordering::Relaxed);
    /// assert_eq!(limiter.check("a").unwrap_err().retry_after(), Duration::from_secs(1));
    /// second.store(10, Ordering::Relaxed);
    /// assert!(limiter.check("a").is_ok());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.time = TimeSource::of_caller(clock);
        self
    }
}

/// The settings that all builders have.
impl<T: ?Sized, S> LimiterBuilder<T, S> {
    /// Sets whether to ask the system for huge pages for each table of 4 MiB or more. It is off by default.
    /// [`RecentBuilder::huge_pages`](crate::RecentBuilder::huge_pages) says what that gains, and where.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.settings.pages = if wanted { Pages::Huge } else { Pages::Usual };
        self
    }

    /// Sets the schema of this limiter's snapshots: a short name for what the keys are, up to 255 bytes. Each snapshot
    /// contains it, and `load` compares it. The default is the name of the key type.
    ///
    /// **Another schema is an error.** Without this check, a limiter of other keys would know none of the debts.
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
    pub fn hasher<S2>(self, hasher: S2) -> LimiterBuilder<T, S2> {
        let Self { settings, limits, time, .. } = self;
        LimiterBuilder { settings, limits, time, hasher, key: PhantomData }
    }
}

/// What would be built.
impl<T: ?Sized, S> LimiterBuilder<T, S> {
    /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout, rate and limits. It
    /// allocates no table, so it shows whether settings are valid, and what they would cost.
    ///
    /// ```
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::CuckooRateLimiter;
    ///
    /// let minute = Duration::from_secs(60);
    /// let builder = CuckooRateLimiter::<str>::builder().allow(100, minute).burst(20).capacity(1_000_000);
    /// let plan = builder.plan()?;
    /// assert!(plan.to_string().ends_with("1 request per 600 ms and 20 at once, in ticks of 150 ms"), "log it: {plan}");
    /// assert_eq!(plan.limits.unwrap().most_in(minute), 120);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`build`](Self::build), except `OutOfMemory`.
    pub fn plan(&self) -> Result<FilterPlan, BuildError> {
        let (table, clock, limits) = self.table_plan()?;
        let of_value = size_of::<CuckooRateLimiter<T, S>>();
        Ok(FilterPlan::of_table(FilterKind::Limiter, table, of_value).with_limits(&clock, limits))
    }
}

/// Construction.
impl<T: ?Sized, S> LimiterBuilder<T, S> {
    /// Builds the limiter. This is the only step that allocates.
    ///
    /// # Errors
    /// A [`BuildError`] if the limit or the capacity is missing, if a setting is invalid or cannot be met, or if the allocation
    /// fails. (Some failed allocations [abort the process](crate::ConcurrentBuilder::build).)
    pub fn build(self) -> Result<CuckooRateLimiter<T, S>, BuildError> {
        let (plan, clock, limits) = self.table_plan()?;
        let bytes = memory_for(plan.buckets) + clock.memory_usage();
        let core = LimiterTable::new(plan, clock, limits, 0, self.time).ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(CuckooRateLimiter::from_parts(Parts { core, hasher: self.hasher, schema: self.settings.schema }))
    }

    fn table_plan(&self) -> Result<(TablePlan, Clock, Quota), BuildError> {
        let Limits { allowed, burst, ticks, when_full } = self.limits;
        let (limit, period) = allowed.ok_or(BuildError::LimitMissing)?;
        let capacity = self.settings.checked()?;
        let settings = LimitSettings { limit, period, burst: burst.unwrap_or(limit) };
        let (ring, quota) = limits::divide(settings, ticks).map_err(|error| BuildError::InvalidQuota { error })?;
        // In a flood, the table is full, and stays so.
        let plan = self.settings.plan(capacity, ring.bits(), RateHolds::Always)?;
        Ok((plan, clock_for(ring, when_full, ClockProgress::default()), quota))
    }
}

/// A builder with the hasher's default.
impl<T: ?Sized, S: Default> Default for LimiterBuilder<T, S> {
    fn default() -> Self {
        CuckooRateLimiter::builder_with_hasher(S::default())
    }
}

impl<T: ?Sized, S: Clone> Clone for LimiterBuilder<T, S> {
    fn clone(&self) -> Self {
        let &Self { ref settings, limits, ref time, ref hasher, .. } = self;
        let (settings, time, hasher) = (settings.clone(), time.clone(), hasher.clone());
        Self { settings, limits, time, hasher, key: PhantomData }
    }
}

/// Leaves out the hasher, whose key is a secret, and the clock.
impl<T: ?Sized, S> fmt::Debug for LimiterBuilder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterBuilder")
            .field("limits", &self.limits)
            .field("capacity", &self.settings.capacity)
            .field("false_positive_rate", &self.settings.rate)
            .finish_non_exhaustive()
    }
}
