//! How an [`ExpiringCuckooFilter`] is made.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::expiring::ExpiringCuckooFilter;
use crate::filter::settings::{Settings, settings_of_all};
use crate::hasher::default::DefaultHashBuilder;
use crate::table::clock::{Clock, ticks_for};
use crate::table::words;
use crate::word::ring::{MOST_RING_BITS, Ring};

/// Construction with the default hasher, which is keyed at random for each filter and each builder.
impl<T: ?Sized> ExpiringCuckooFilter<T> {
    /// A builder with the default hasher. A clone of it has the same hasher, and so have all filters that are built from either.
    ///
    /// For a type that names another hasher, such as `type F = ExpiringCuckooFilter<str, StableState>`, there is
    /// [`builder_with_hasher`](Self::builder_with_hasher).
    pub fn builder() -> ExpiringBuilder<T> {
        ExpiringBuilder::with_hasher(DefaultHashBuilder::new())
    }
}

/// Construction with any hasher.
impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// A builder with this hasher.
    ///
    /// Any hasher will do, even one as weak as the identity: the filter mixes the hashes once more. But without a secret key in
    /// it, whoever chooses the keys can choose them so that they collide.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    ///
    /// type Revoked = ExpiringCuckooFilter<str, RandomState>; // named once, used everywhere
    /// let revoked = Revoked::builder_with_hasher(RandomState::new()).capacity(1000).lifetime_in_ticks(60).build()?;
    /// revoked.advance_to(0);
    /// revoked.insert("token-17", 60)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder_with_hasher(hasher: S) -> ExpiringBuilder<T, S> {
        ExpiringBuilder::with_hasher(hasher)
    }
}

/// Builds an [`ExpiringCuckooFilter`]; made by [`ExpiringCuckooFilter::builder`].
///
/// ```
/// use std::time::Duration;
/// use concurrent_cuckoo_filter::ExpiringCuckooFilter;
///
/// let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
/// let revoked = ExpiringCuckooFilter::<str>::builder()
///     .capacity(50_000)
///     .false_positive_rate(0.001)
///     .lifetime(hour, minute) // no entry lives longer than an hour, and each is gone a minute after its end
///     .build()?;
/// assert!(revoked.capacity() >= 50_000);
/// assert_eq!((revoked.longest_lifetime(), revoked.end_bits()), (61, 6));
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct ExpiringBuilder<T: ?Sized, S = DefaultHashBuilder> {
    settings: Settings,
    own: Own,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// What only this builder asks for.
#[derive(Clone, Debug, Default)]
struct Own {
    lifetime: Option<Lifetime>,
}

#[derive(Clone, Copy, Debug)]
enum Lifetime {
    Of { longest: Duration, resolution: Duration },
    InTicks(u64),
}

settings_of_all!(ExpiringBuilder);

impl<T: ?Sized, S> ExpiringBuilder<T, S> {
    fn with_hasher(hasher: S) -> Self {
        Self { settings: Settings::new(FilterKind::Expiring), own: Own::default(), hasher, key: PhantomData }
    }

    /// How many entries the filter must be able to hold at a time, those included that have just died. Required; 0 is allowed.
    ///
    /// Any number goes, with no rounding to powers of two: see [`ExpiringCuckooFilter::capacity`] for what it promises. For
    /// entries that come evenly and live equally long, take what comes in one lifetime and two ticks.
    pub fn capacity(mut self, entries: usize) -> Self {
        self.settings.capacity = Some(entries);
        self
    }

    /// The longest lifetime of an entry, and how exact ends are. This or [`lifetime_in_ticks`](Self::lifetime_in_ticks) is
    /// required.
    ///
    /// A *tick* is one resolution. The filter keeps ends in whole ticks, and the caller's clock counts them: with a resolution of
    /// one minute, `advance_to(unix_seconds / 60)`. A lifetime of `n` resolutions may touch `n + 1` ticks, so that is what the filter
    /// is built for.
    ///
    /// Each end takes up as many bits of its slot as it takes to tell that many ticks apart, and one more: a lifetime of up to 14
    /// resolutions takes 4 bits, of 62 takes 6, of 254 takes 8, of 65,534 takes 16. Each bit doubles the false-positive rate of a
    /// layout, or takes a larger one ([`false_positive_rate`](Self::false_positive_rate) has a table). So choose a resolution as
    /// coarse as is good enough: a fourteenth of the longest lifetime often is.
    pub fn lifetime(mut self, longest: Duration, resolution: Duration) -> Self {
        self.own.lifetime = Some(Lifetime::Of { longest, resolution });
        self
    }

    /// The longest lifetime in ticks of the caller's, from 1 to 65,535: an entry may expire at up to `now + longest`. For a clock
    /// that counts something else than time, such as blocks or epochs, or for a caller who does the arithmetic.
    ///
    /// The filter does not know how long a tick is then, so [`insert_for`](ExpiringCuckooFilter::insert_for) is an error.
    pub fn lifetime_in_ticks(mut self, longest: u64) -> Self {
        self.own.lifetime = Some(Lifetime::InTicks(longest));
        self
    }

    /// The largest acceptable false-positive rate: the share of lookups of absent keys that may be answered `true`. 0.001 (0.1 %)
    /// if not called.
    ///
    /// It holds with every slot taken by a live entry, so also beyond the capacity. The filter takes the cheapest bucket layout
    /// that has room for the ends and meets the rate, and its rate is often lower: see
    /// [`ExpiringCuckooFilter::max_false_positive_rate`].
    ///
    /// At capacity, by bits an entry, the rate with every slot taken:
    ///
    /// | longest lifetime | bits of an end | 11.0 bits an entry | 13.2 | 16.8 | 23.2 | 38.6 |
    /// |---|---|---|---|---|---|---|
    /// | 2 resolutions | 2 | 1.2 % | 0.25 % | 0.024 % | 0.0006 % | 4e-9 |
    /// | 14 | 4 | 5.1 % | 1.0 % | 0.098 % | 0.0023 % | 1.5e-8 |
    /// | 62 | 6 | – | 4.3 % | 0.39 % | 0.0092 % | 6e-8 |
    /// | 254 | 8 | – | – | 1.7 % | 0.037 % | 2.4e-7 |
    /// | 4,094 | 12 | – | – | – | 0.6 % | 3.8e-6 |
    /// | 65,534 | 16 | – | – | – | – | 0.0061 % |
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Builds the filter: the only step that allocates.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] and [`BuildError::LifetimeMissing`] if [`capacity`](Self::capacity) or
    ///   [`lifetime`](Self::lifetime) was not called;
    /// - [`BuildError::InvalidLifetime`] for a lifetime or a resolution of 0;
    /// - [`BuildError::InvalidTicks`] for a lifetime of no tick, or more than 65,535;
    /// - [`BuildError::InvalidRate`] for a rate that is not between 0 and 1, both excluded, or no number;
    /// - [`BuildError::RateTooLow`] for a rate that no layout can meet with ends of so many bits;
    /// - [`BuildError::CapacityTooLarge`] for a table that would not fit in the address space;
    /// - `BuildError::SchemaTooLong` for a schema of more than 255 bytes (feature `snapshot`);
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory. (As of a filter, two requests of a few hundred bytes
    ///   abort the process if they are refused.)
    pub fn build(mut self) -> Result<ExpiringCuckooFilter<T, S>, BuildError> {
        let capacity = self.settings.checked()?;
        let (ticks, resolution) = self.own.lifetime.ok_or(BuildError::LifetimeMissing)?.in_ticks()?;
        let most = Ring::new(MOST_RING_BITS).longest();
        let ring = Ring::for_lifetime(ticks).filter(|_| ticks > 0).ok_or(BuildError::InvalidTicks { ticks, most })?;
        self.settings.payload_bits = ring.bits();
        let plan = self.settings.plan(capacity, 1, 1)?;
        let table = plan.table_with_clock(Clock::new(ring, ticks, resolution));
        let bytes = words::memory_for(plan.buckets) + size_of::<Clock>();
        let table = table.ok_or(BuildError::OutOfMemory { bytes })?;
        Ok(ExpiringCuckooFilter::from_parts(table, self.hasher, self.settings.schema))
    }
}

impl Lifetime {
    /// The ticks, as many as there could ever be if they are too many, and how long one is.
    fn in_ticks(self) -> Result<(u64, Option<Duration>), BuildError> {
        match self {
            Self::InTicks(ticks) => Ok((ticks, None)),
            Self::Of { longest, resolution } if longest.is_zero() || resolution.is_zero() => {
                Err(BuildError::InvalidLifetime { longest, resolution })
            }
            Self::Of { longest, resolution } => Ok((ticks_for(longest, resolution), Some(resolution))),
        }
    }
}
