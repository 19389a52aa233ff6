//! Why a filter could not be built.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::error::kind::FilterKind;
use crate::error::message::messages;
use crate::error::quota::{OfBuilder, QuotaError};
use crate::word::human::{Rate, Time};
use crate::word::layout::Encoding;

/// Why a filter could not be built.
///
/// The message of each error (its `Display`) names what was asked for, the limit and what to do. The page
/// [`choosing_parameters`](crate::guide::choosing_parameters) explains the settings.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// No capacity was given.
    #[non_exhaustive]
    CapacityMissing {
        /// The type of the filter.
        filter: FilterKind,
    },
    /// The table for that many keys would be too large. A table has at most 2³² − 2 buckets, which take 32 GiB: 20
    /// billion keys at the default rate. The table of a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) has room
    /// for 10 billion at that rate. The table must also fit in the address space.
    #[non_exhaustive]
    CapacityTooLarge {
        /// The type of the filter.
        filter: FilterKind,
        /// The capacity asked for.
        capacity: usize,
        /// The largest possible capacity at this false-positive rate.
        largest: usize,
    },
    /// No number of value bits was given for a [`CuckooMaplet`](crate::CuckooMaplet).
    ValueBitsMissing,
    /// The number of value bits of a [`CuckooMaplet`](crate::CuckooMaplet) is not from 1 to 16.
    #[non_exhaustive]
    InvalidValueBits {
        /// The number asked for.
        value_bits: u32,
    },
    /// No lifetime was given for an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter).
    LifetimeMissing,
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is to grow to fewer keys than it has room for at first.
    #[non_exhaustive]
    MaxCapacityBelowCapacity {
        /// The capacity asked for.
        capacity: usize,
        /// The largest capacity asked for.
        max_capacity: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is expected to hold fewer keys than it has room for at
    /// first, or more than it has room for at its largest size.
    #[non_exhaustive]
    InvalidExpectedKeys {
        /// The first capacity.
        capacity: usize,
        /// The usual number of keys that was given.
        expected_keys: usize,
        /// The largest capacity asked for, if any.
        max_capacity: Option<usize>,
    },
    /// The load of a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) while it grows is not from 0.70 to 0.95.
    #[non_exhaustive]
    InvalidLoadWhileGrowing {
        /// The load asked for.
        load_while_growing: f64,
        /// The smallest possible one.
        least: f64,
        /// The largest possible one.
        most: f64,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) can't grow to the largest capacity that was asked for within
    /// its memory limit. (The default of that capacity is not a promise.)
    #[non_exhaustive]
    MemoryLimitBelowMaxCapacity {
        /// The largest capacity asked for.
        max_capacity: usize,
        /// The most bytes that the filter uses until it is that large.
        needed: usize,
        /// The limit.
        limit: usize,
    },
    /// The longest lifetime of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter), or its resolution, is 0, or the
    /// lifetime is shorter than the resolution.
    #[non_exhaustive]
    InvalidLifetime {
        /// The longest lifetime asked for.
        longest: Duration,
        /// The resolution asked for.
        resolution: Duration,
    },
    /// The resolution of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is 0, and its lifetime is in ticks.
    ZeroResolution,
    /// The longest lifetime of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is 0 ticks, or too many.
    #[non_exhaustive]
    InvalidTicks {
        /// The longest lifetime in ticks: after `lifetime`, the lifetime divided by the resolution, rounded up, plus 1.
        ticks: u64,
        /// The largest possible number.
        limit: u64,
    },
    /// No window was given for a [`RecentCuckooFilter`](crate::RecentCuckooFilter).
    WindowMissing,
    /// The duration of a [`RecentCuckooFilter`](crate::RecentCuckooFilter) is 0.
    ZeroDuration,
    /// The tolerance of a [`RecentCuckooFilter`](crate::RecentCuckooFilter) is 0 or less, or 1 or more, or too small.
    #[non_exhaustive]
    InvalidTolerance {
        /// The tolerance asked for.
        tolerance: f64,
        /// The smallest possible one.
        least: f64,
    },
    /// The table of a [`RecentCuckooFilter`](crate::RecentCuckooFilter) has too little room for this window: from
    /// [`empty_like_last`](crate::RecentCuckooFilter::empty_like_last).
    #[non_exhaustive]
    NoRoomForWindow {
        /// The number of keys asked for.
        keys: usize,
        /// How many keys there may be in the filter at a time with that window, those included that have expired and are not
        /// removed yet.
        needed: usize,
        /// For how many it has room.
        capacity: usize,
    },
    /// No limit was given for a [`CuckooRateLimiter`](crate::CuckooRateLimiter).
    LimitMissing,
    /// A [`CuckooRateLimiter`](crate::CuckooRateLimiter) cannot have the limit that was asked for.
    #[non_exhaustive]
    InvalidQuota {
        /// Why.
        error: QuotaError,
    },
    /// The false-positive rate is negative, or 1 or more, or not a number.
    #[non_exhaustive]
    InvalidRate {
        /// The rate asked for.
        rate: f64,
    },
    /// No bucket layout has so low a false-positive rate. The error names the lowest possible rate.
    #[non_exhaustive]
    RateTooLow {
        /// The type of the filter.
        filter: FilterKind,
        /// The encoding that was asked for, if any.
        encoding: Option<Encoding>,
        /// How many bits a value or an expiry has; 0 for a filter without either.
        value_bits: u32,
        /// The rate asked for.
        rate: f64,
        /// The lowest possible rate, in the encoding asked for if there was one.
        lowest: f64,
    },
    /// The memory for the filter could not be allocated.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes the filter asks for in all. If it is the first filter with semi-sorted buckets, it also
        /// needs the decode table of its layout, up to 256 KiB, which all filters of that layout share.
        bytes: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) would use more memory than its limit from the beginning.
    #[non_exhaustive]
    MemoryLimit {
        /// The first capacity: the one that was asked for, or the default.
        capacity: usize,
        /// The usual number of keys, if it was given.
        expected_keys: Option<usize>,
        /// How many bytes the empty filter uses.
        needed: usize,
        /// The limit.
        limit: usize,
    },
    /// The [schema](crate::ConcurrentBuilder::schema) is too long for a snapshot. Needs the feature `snapshot`.
    #[cfg(feature = "snapshot")]
    #[non_exhaustive]
    SchemaTooLong {
        /// How many bytes it has.
        len: usize,
        /// The limit.
        limit: usize,
    },
}

messages! {
    BuildError:
    Self::CapacityMissing { filter } => "no capacity was given for the {filter}; call .capacity(keys) of its builder";
    Self::CapacityTooLarge { filter, capacity, largest } =>
        "a filter of type {filter} for {capacity} keys would be too large: at this false-positive rate the limit is {largest}; ask for \
         fewer keys, or split them over several filters by their hash";
    Self::ValueBitsMissing =>
        "no number of value bits was given for the CuckooMaplet; call .value_bits(bits) of its builder";
    Self::InvalidValueBits { value_bits } => "values of {value_bits} bits were asked for; ask for 1 to 16 bits";
    Self::LifetimeMissing =>
        "no lifetime was given for the ExpiringCuckooFilter; call .lifetime(longest) or .lifetime_in_ticks(longest) of its \
         builder";
    Self::MaxCapacityBelowCapacity { capacity, max_capacity } =>
        "the max_capacity of {max_capacity} is less than the capacity of {capacity}, which the filter has before it \
         grows; ask for a larger max_capacity or a smaller capacity";
    Self::InvalidExpectedKeys { capacity, expected_keys, .. } if expected_keys < capacity =>
        "the expected_keys of {expected_keys} are fewer than the capacity of {capacity}, which the filter has before it \
         grows; leave the capacity out, or ask for a smaller one";
    Self::InvalidExpectedKeys { expected_keys, max_capacity, .. } =>
        "the expected_keys of {expected_keys} are more than the max_capacity of {}; ask for a larger max_capacity, or \
         leave it out", max_capacity.unwrap_or(usize::MAX);
    Self::InvalidLoadWhileGrowing { load_while_growing, least, most } =>
        "the load_while_growing was {}; it must be from {} to {} (a lower one makes inserts faster, a higher one uses less \
         memory)", Rate::given(*load_while_growing), Rate::given(*least), Rate::given(*most);
    Self::MemoryLimitBelowMaxCapacity { max_capacity, needed, limit } =>
        "a filter that grows to its max_capacity of {max_capacity} takes up to {needed} bytes, more than its \
         memory_limit of {limit}; raise the limit, or ask for a smaller max_capacity";
    Self::InvalidLifetime { longest, resolution } if longest < resolution && !longest.is_zero() =>
        "the longest lifetime of {} is shorter than the resolution of {}; choose a finer resolution, or leave it out (it is \
         then a fourteenth of the longest lifetime)", Time(*longest), Time(*resolution);
    Self::InvalidLifetime { longest: Duration::ZERO, .. } =>
        "a longest lifetime of 0 was asked for; it must be more than 0";
    Self::InvalidLifetime { longest, .. } =>
        "a resolution of 0 was asked for; it must be more than 0, or leave it out (it is then a fourteenth of the longest \
         lifetime of {})", Time(*longest);
    Self::ZeroResolution =>
        "a resolution of 0 was asked for; it must be more than 0, or leave it out (the filter then takes ticks alone)";
    Self::InvalidTicks { ticks: 0, limit } => "a longest lifetime of 0 ticks was asked for; ask for 1 to {limit} ticks";
    Self::InvalidTicks { ticks, limit } =>
        "the longest lifetime would be {ticks} ticks, but the limit is {limit}; choose longer ticks by a coarser resolution \
         (a fourteenth of the longest lifetime is often fine enough), or a shorter lifetime";
    Self::WindowMissing =>
        "no window was given for the RecentCuckooFilter; call .last(keys) or .within(duration, capacity) of its builder";
    Self::ZeroDuration =>
        "a RecentCuckooFilter of the keys within 0 seconds was asked for; ask for a duration of more than 0";
    Self::InvalidTolerance { tolerance, least } =>
        "the tolerance was {}; it must be at least {} and less than 1 (0.08 is 8%)",
        Rate::given(*tolerance), Rate::at_least(*least);
    Self::NoRoomForWindow { keys, needed, capacity } =>
        "a window of the last {keys} keys needs room for {needed}, and this filter's table has room for {capacity}; ask for \
         fewer keys, build filters with .room_for({keys}) from the beginning, or build a larger one and insert into both until the \
         window of this one is over";
    Self::LimitMissing =>
        "no limit was given for the CuckooRateLimiter; call .allow(limit, period) of its builder";
    Self::InvalidQuota { error } => "{}", OfBuilder(*error);
    Self::InvalidRate { rate } =>
        "the false-positive rate was {}; it must be greater than 0 and less than 1 (0.001 is 0.1%, one in a thousand)",
        Rate::given(*rate);
    Self::RateTooLow { filter, encoding, value_bits, rate, lowest } =>
        "a false-positive rate of {} is too low: the type {filter}{} cannot go below {}; choose that rate or a higher one{}",
        Rate::given(*rate), With(*filter, *encoding, *value_bits), Rate::at_least(*lowest),
        for_lower_rates(*filter, *encoding, *value_bits);
    Self::OutOfMemory { bytes } =>
        "the {bytes} bytes of the filter could not be allocated; ask for a smaller capacity, or try again when there is more memory";
    Self::MemoryLimit { capacity, expected_keys, needed, limit } =>
        "the GrowableCuckooFilter would take up {needed} bytes with its first capacity of {capacity} keys{}, more than its \
         memory_limit of {limit}; {}raise the limit",
        if *capacity == FIRST_CAPACITY { " (the default)" } else { "" },
        for_less_memory(*capacity, *expected_keys);
    #[cfg(feature = "snapshot")]
    Self::SchemaTooLong { len, limit } =>
        "the schema has {len} bytes, but a snapshot has room for {limit}; choose a shorter one";
}

/// The first capacity of a growable filter if none is given, or the largest if that is less.
pub(crate) const FIRST_CAPACITY: usize = 1000;

/// What can be changed so that a growable filter begins with less memory.
fn for_less_memory(capacity: usize, expected_keys: Option<usize>) -> &'static str {
    match (capacity, expected_keys) {
        (0, _) => "",
        (_, Some(_)) => "ask for a smaller capacity, or ",
        (_, None) => "ask for a smaller capacity, say how many keys you expect (expected_keys), or ",
    }
}

/// What of a filter's settings determines its lowest rate.
struct With(FilterKind, Option<Encoding>, u32);

impl fmt::Display for With {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(filter, encoding, bits) = *self;
        match (filter, encoding) {
            (FilterKind::Maplet, _) => write!(f, " with {bits}-bit values"),
            (FilterKind::Expiring | FilterKind::Recent | FilterKind::Limiter, _) => {
                write!(f, " with {bits}-bit expiries")
            }
            (_, Some(encoding)) => write!(f, " with Encoding::{encoding:?}"),
            (_, None) => Ok(()),
        }
    }
}

/// What else makes lower rates possible.
fn for_lower_rates(filter: FilterKind, encoding: Option<Encoding>, bits: u32) -> &'static str {
    match filter {
        FilterKind::Maplet if bits > 1 => ", or fewer value bits",
        FilterKind::Expiring if bits > 1 => ", or fewer ticks, by a coarser resolution",
        FilterKind::Recent if bits > 4 => ", or a larger tolerance",
        FilterKind::Limiter if bits > 3 => ", or a smaller burst, or fewer ticks per request if it has several",
        FilterKind::Concurrent if encoding == Some(Encoding::SemiSorted) => {
            ", or don't restrict the encoding: plain buckets reach lower rates"
        }
        // That of a growable filter is the same in any encoding.
        _ => "",
    }
}

impl Error for BuildError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message names what the caller can change, and nothing that makes no difference.
    #[test]
    fn the_advice_for_a_rate_that_is_too_low_suits_the_filter() {
        let text = |filter, encoding, value_bits| {
            BuildError::RateTooLow { filter, encoding, value_bits, rate: 1e-12, lowest: 2e-9 }.to_string()
        };
        let maplet = |value_bits| text(FilterKind::Maplet, None, value_bits);
        let semi_sorted = text(FilterKind::Concurrent, Some(Encoding::SemiSorted), 0);
        let expiring = text(FilterKind::Expiring, None, 4);
        let has = |text: &str, words: &[&str]| {
            let advice = text.rsplit_once("choose that rate").unwrap().1;
            for word in ["value", "encoding", "resolution"] {
                assert_eq!(advice.contains(word), words.contains(&word), "{word}: {text}");
            }
        };
        has(&text(FilterKind::Concurrent, None, 0), &[]);
        has(&text(FilterKind::Growable, Some(Encoding::Plain), 0), &[]);
        has(&text(FilterKind::Growable, Some(Encoding::SemiSorted), 0), &[]);
        has(&text(FilterKind::Expiring, None, 1), &[]);
        has(&semi_sorted, &["encoding"]);
        has(&maplet(8), &["value"]);
        has(&expiring, &["resolution"]);
        assert!(semi_sorted.contains("with Encoding::SemiSorted ") && semi_sorted.contains("plain buckets"));
        assert!(maplet(8).contains("with 8-bit values ") && maplet(8).contains("fewer value bits"));
        assert!(expiring.contains("a false-positive rate of 1e-12 is too low") && expiring.contains("below 2e-9;"));
        let zero = BuildError::RateTooLow {
            filter: FilterKind::Concurrent,
            encoding: None,
            value_bits: 0,
            rate: 0.0,
            lowest: 2e-9,
        };
        assert!(zero.to_string().starts_with("a false-positive rate of 0 is too low"), "{zero}");
        assert!(maplet(1).contains("with 1-bit values ") && !maplet(1).contains("fewer"), "one is the least");
        assert!(expiring.contains("with 4-bit expiries ") && expiring.contains("a coarser resolution"));
    }

    /// Advice that can be followed: a filter that was given no capacity can't be given a smaller one than 0.
    #[test]
    fn the_advice_for_a_memory_limit_suits_the_settings() {
        let text = |capacity, expected_keys| {
            BuildError::MemoryLimit { capacity, expected_keys, needed: 5000, limit: 1000 }.to_string()
        };
        for (capacity, expected_keys, advice) in [
            (
                FIRST_CAPACITY,
                None,
                "ask for a smaller capacity, say how many keys you expect (expected_keys), or raise",
            ),
            (500, Some(800), "; ask for a smaller capacity, or raise the limit"),
            (0, None, "; raise the limit"),
            (0, Some(10), "; raise the limit"),
        ] {
            let text = text(capacity, expected_keys);
            assert!(text.contains(advice) && text.contains("5000 bytes"), "{text}");
            assert_eq!(text.contains("(the default)"), capacity == FIRST_CAPACITY, "{text}");
        }
    }
}
