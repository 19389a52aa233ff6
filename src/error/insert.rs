//! Why a key could not be added.

use core::error::Error;
use core::fmt;

use crate::error::kind::FilterKind;

/// Why a key could not be added. The filter is as it was before.
///
/// The message of each error (its `Display`) names what was given, the limit and what to do.
///
/// ```
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};
///
/// let filter = ConcurrentCuckooFilter::<str>::with_capacity(100);
/// let error = (0..100).find_map(|_| filter.insert("the same key").err()).expect("two buckets have 4 to 16 slots");
/// assert!(matches!(error, InsertError::TooManyCopies { .. }), "{error}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// No free slot can be reached from the key's two buckets within the 2,048 buckets that an insert looks at.
    ///
    /// - In a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), an
    ///   [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) or a
    ///   [`ConcurrentCuckooMaplet`](crate::ConcurrentCuckooMaplet): it is full (of live entries, if they expire).
    ///   Remove keys, or build a larger filter. Below its [`capacity`](crate::ConcurrentCuckooFilter::capacity) this
    ///   practically does not happen to distinct keys (see there for the probability). It does happen if many copies
    ///   of some keys fill their buckets, which are other keys' buckets too, or if the hasher is broken.
    ///   An `ExpiringCuckooFilter` that [forgets](crate::ExpiringBuilder::when_full) makes room where it can.
    /// - In a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter): other keys fill this key's buckets although
    ///   the filter has fewer keys than its capacity. They are many copies of some keys, or keys chosen by
    ///   an adversary who has the hasher's key. The filter does not grow for that.
    #[non_exhaustive]
    Full {
        /// The type of the filter.
        filter: FilterKind,
        /// How many keys it held.
        len: usize,
        /// Its capacity.
        capacity: usize,
    },
    /// The value has more bits than the values of this [`ConcurrentCuckooMaplet`](crate::ConcurrentCuckooMaplet).
    ///
    /// Build the maplet with more [value bits](crate::MapletBuilder::value_bits), or number what the values stand
    /// for from 0.
    #[non_exhaustive]
    ValueTooLarge {
        /// The value.
        value: u16,
        /// How many bits a value may have.
        value_bits: u32,
    },
    /// The clock of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is not set, so no end means anything
    /// to it.
    ///
    /// Call [`advance_to`](crate::ExpiringCuckooFilter::advance_to) first.
    ClockNotSet,
    /// The entry would live longer than the entries of this [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter)
    /// can.
    ///
    /// Build the filter for a longer [`lifetime`](crate::ExpiringBuilder::lifetime), or with a coarser resolution.
    /// If the clock of the filter is behind the caller's, call
    /// [`advance_to`](crate::ExpiringCuckooFilter::advance_to) first.
    #[non_exhaustive]
    LifetimeTooLong {
        /// The tick at which the entry should expire.
        expires_at: u64,
        /// The tick of the filter's clock.
        now: u64,
        /// The longest lifetime, in ticks.
        longest: u64,
    },
    /// The [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) has [forgotten](crate::WhenFull::ForgetOldest) the tick
    /// at which the entry should expire, to make room for entries that live longer.
    ///
    /// Build a larger filter, or give the entry a longer life.
    #[non_exhaustive]
    Forgotten {
        /// The tick at which the entry should expire.
        expires_at: u64,
        /// The last tick that was forgotten.
        up_to: u64,
    },
    /// A [`Duration`](core::time::Duration) was given or asked for, but the
    /// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) was built [by
    /// ticks](crate::ExpiringBuilder::lifetime_in_ticks), so it does not know how long a tick is.
    ///
    /// Use ticks ([`insert_until`](crate::ExpiringCuckooFilter::insert_until),
    /// [`expires_at`](crate::ExpiringCuckooFilter::expires_at)), or build the filter with a
    /// [`lifetime`](crate::ExpiringBuilder::lifetime).
    ResolutionUnknown,
    /// The filter already holds as many copies of this key as the key's two buckets have slots.
    ///
    /// No other bucket may hold them. Use [`insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent) if
    /// one copy is enough. (A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) has fewer slots in a bucket while it
    /// is small.)
    #[non_exhaustive]
    TooManyCopies {
        /// The type of the filter.
        filter: FilterKind,
        /// How many copies there are.
        copies: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full at its largest size.
    ///
    /// Remove keys, or build a filter with a larger [`max_capacity`](crate::GrowableBuilder::max_capacity).
    #[non_exhaustive]
    MaxCapacity {
        /// How many keys the filter held.
        len: usize,
        /// How many keys the filter can be made for.
        max_capacity: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full, and growing would take more memory than its
    /// limit allows.
    ///
    /// Remove keys, or build a filter with a higher [limit](crate::GrowableBuilder::memory_limit).
    #[non_exhaustive]
    MemoryLimit {
        /// How many keys the filter held.
        len: usize,
        /// How many bytes the filter would take up with the next 32 buckets.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full, and the memory for more buckets was
    /// refused.
    ///
    /// Each later insert that finds no room requests this memory again.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were requested: room for as many buckets as there are at the last power of two.
        bytes: usize,
    },
}

impl InsertError {
    /// [`Full`](Self::Full), for tests of your own: the error of a filter of this type with `len` keys. The page
    /// [`faq`](crate::guide::faq#how-do-i-test-code-that-uses-a-filter) has an example.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{FilterKind, InsertError};
    ///
    /// let error = InsertError::full(FilterKind::Expiring, 1000, 1000);
    /// assert!(matches!(error, InsertError::Full { len: 1000, .. }), "{error}");
    /// ```
    #[must_use]
    pub const fn full(filter: FilterKind, len: usize, capacity: usize) -> Self {
        Self::Full { filter, len, capacity }
    }

    /// [`TooManyCopies`](Self::TooManyCopies), as a table reports it: it does not know to which filter it belongs.
    pub(crate) fn too_many(copies: usize) -> Self {
        Self::TooManyCopies { filter: FilterKind::Concurrent, copies }
    }

    /// Turns the error of a table into that of the filter to which the table belongs.
    #[cold]
    pub(crate) fn of(mut self, kind: FilterKind) -> Self {
        if let Self::Full { filter, .. } | Self::TooManyCopies { filter, .. } = &mut self {
            *filter = kind;
        }
        self
    }
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full {
                filter: filter @ (FilterKind::Concurrent | FilterKind::Maplet | FilterKind::Expiring),
                len,
                capacity,
            } if len < capacity => {
                write!(
                    f,
                    "the {filter} has no room for this key: other keys fill its buckets, although it holds only \
                     {len} keys and is made for {capacity}; use insert_if_absent if keys are inserted repeatedly and \
                     never removed, or a hasher that is keyed with a secret"
                )
            }
            Self::Full {
                filter: filter @ (FilterKind::Concurrent | FilterKind::Maplet | FilterKind::Expiring),
                len,
                capacity,
            } => {
                write!(
                    f,
                    "the {filter} is full: it holds {len} keys and is made for {capacity}; remove some keys, or build \
                     a larger one"
                )?;
                if *filter == FilterKind::Concurrent { write!(f, ", or a GrowableCuckooFilter") } else { Ok(()) }
            }
            Self::ValueTooLarge { value, value_bits } => {
                ValueTooLarge { value: *value, value_bits: *value_bits }.fmt(f)
            }
            Self::ClockNotSet => {
                write!(f, "the clock of the ExpiringCuckooFilter is not set; call advance_to before the first insert")
            }
            Self::LifetimeTooLong { expires_at, now, longest } => write!(
                f,
                "an entry that expires at tick {expires_at} would live for {} ticks, because the clock of the \
                 ExpiringCuckooFilter shows {now}; its entries live for {longest} ticks at most; call advance_to \
                 first if that clock is behind, or build the filter for a longer lifetime or with a coarser \
                 resolution",
                expires_at - now
            ),
            Self::Forgotten { expires_at, up_to } => write!(
                f,
                "the ExpiringCuckooFilter has no room for an entry that expires at tick {expires_at}: to make room, it \
                 has forgotten all entries up to tick {up_to}; build a larger one, or give the entry a longer life"
            ),
            Self::ResolutionUnknown => write!(
                f,
                "a duration was given or asked for, but the ExpiringCuckooFilter was built with lifetime_in_ticks \
                 and does not know how long a tick is; use ticks (insert_until, expires_at), or build the filter with \
                 lifetime"
            ),
            Self::TooManyCopies { filter: FilterKind::Expiring, copies } => write!(
                f,
                "the ExpiringCuckooFilter already holds {copies} live entries of this key, all that the key's two \
                 buckets have room for; use keep_until or insert_if_absent if one is enough"
            ),
            Self::TooManyCopies { filter: FilterKind::Maplet, copies } => write!(
                f,
                "the ConcurrentCuckooMaplet already holds {copies} values of this key, all that the key's two \
                 buckets have room for; remove some of them"
            ),
            Self::Full { filter: FilterKind::Growable, len, capacity } => write!(
                f,
                "the GrowableCuckooFilter has no room for this key: other keys fill its buckets, although it holds only \
                 {len} keys and is made for {capacity}; use insert_if_absent if keys are inserted repeatedly and never \
                 removed, or a hasher that is keyed with a secret"
            ),
            Self::TooManyCopies { filter: FilterKind::Growable, copies } => write!(
                f,
                "the GrowableCuckooFilter already holds {copies} copies of this key, all that the key's two \
                 buckets have room for at the present size; use insert_if_absent if one copy is enough"
            ),
            Self::MaxCapacity { len, max_capacity } => write!(
                f,
                "the GrowableCuckooFilter is full at its largest size: it holds {len} keys and is made for \
                 {max_capacity}; remove some keys, or build a filter with a larger max_capacity"
            ),
            Self::TooManyCopies { filter, copies } => write!(
                f,
                "the {filter} already holds {copies} copies of this key, all that the key's two buckets have room \
                 for; use insert_if_absent if one copy is enough"
            ),
            Self::MemoryLimit { len, needed, limit } => write!(
                f,
                "the GrowableCuckooFilter is full with {len} keys, and with more buckets it would take up {needed} \
                 bytes, more than its limit of {limit}; remove some keys, or build a filter with a higher \
                 memory_limit"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "the GrowableCuckooFilter is full, and the memory for more buckets, {bytes} bytes, was refused; \
                 remove some keys, or try again when there is more memory"
            ),
        }
    }
}

impl Error for InsertError {}

/// The error for a value that has more bits than the values of a
/// [`ConcurrentCuckooMaplet`](crate::ConcurrentCuckooMaplet). Nothing has changed.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
///
/// let shards = ConcurrentCuckooMaplet::<str>::builder().capacity(100).value_bits(3).build()?;
/// shards.insert("user-17", 5)?;
/// let error = shards.replace("user-17", 5, 8).unwrap_err();
/// assert_eq!((error.value, error.value_bits), (8, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueTooLarge {
    /// The value.
    pub value: u16,
    /// How many bits a value may have.
    pub value_bits: u32,
}

impl ValueTooLarge {
    pub(crate) fn new(value: u16, value_bits: u32) -> Self {
        Self { value, value_bits }
    }
}

impl fmt::Display for ValueTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self { value, value_bits } = self;
        write!(
            f,
            "the value {value} is too large: values of {value_bits} bits are at most {}; number them from 0, or \
             build the ConcurrentCuckooMaplet with more value_bits",
            (1u32 << value_bits) - 1
        )
    }
}

impl Error for ValueTooLarge {}

impl From<ValueTooLarge> for InsertError {
    fn from(ValueTooLarge { value, value_bits }: ValueTooLarge) -> Self {
        Self::ValueTooLarge { value, value_bits }
    }
}

/// Why a batch of inserts ended early, and where.
///
/// The keys before the refused one were inserted as they would have been one by one, so those that need none were passed
/// over. The refused key and those after it were not. To go on, make room and insert the keys from `index` on, or leave this
/// one out and insert those from `index + 1` on.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
///
/// let shards = ConcurrentCuckooMaplet::<str>::builder().capacity(100).value_bits(3).build()?;
/// let pairs = [("a", 1), ("b", 99), ("c", 3)];
/// let error = shards.insert_batch(pairs).unwrap_err();
/// assert_eq!(error.index, 1);
/// shards.insert_batch(pairs[error.index + 1..].iter().copied())?;
/// assert!(shards.contains("a") && shards.contains("c"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsertBatchError {
    /// The index of the refused key in the batch. So many keys came before it.
    pub index: usize,
    /// Why it was refused.
    pub error: InsertError,
}

impl InsertBatchError {
    /// The error of a batch whose key with this index was refused, for tests of your own.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{FilterKind, InsertBatchError, InsertError};
    ///
    /// let error = InsertBatchError::new(7, InsertError::full(FilterKind::Concurrent, 100, 100));
    /// assert_eq!(error.index, 7);
    /// ```
    #[must_use]
    pub const fn new(index: usize, error: InsertError) -> Self {
        Self { index, error }
    }

    /// Turns the error of a table into that of the filter to which the table belongs.
    #[cold]
    pub(crate) fn of(self, kind: FilterKind) -> Self {
        Self::new(self.index, self.error.of(kind))
    }
}

impl fmt::Display for InsertBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of the batch was refused, after {} that were taken: {}", self.index, self.error)
    }
}

/// It has no source: the message contains the reason, so printing the whole chain would show it twice.
impl Error for InsertBatchError {}

/// Why a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) could not
/// [reserve](crate::GrowableCuckooFilter::reserve) room. The filter is as it was before,
/// unless the memory was refused after a part of the growth.
///
/// ```
/// use concurrent_cuckoo_filter::{GrowableCuckooFilter, ReserveError};
///
/// let filter = GrowableCuckooFilter::<str>::with_capacity(100);
/// let error = filter.reserve(usize::MAX).unwrap_err();
/// assert!(matches!(error, ReserveError::CapacityTooLarge { .. }), "{error}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// There would be more keys than the filter's [largest size](crate::GrowableCuckooFilter::max_capacity) takes.
    #[non_exhaustive]
    CapacityTooLarge {
        /// How many further keys were asked for.
        additional: usize,
        /// The largest capacity that the filter can ever have.
        largest: usize,
    },
    /// The filter would take up more memory than its limit allows.
    #[non_exhaustive]
    MemoryLimit {
        /// How many further keys were asked for.
        additional: usize,
        /// How many bytes the filter would take up.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The memory was refused.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CapacityTooLarge { additional, largest } => write!(
                f,
                "room for {additional} further keys goes beyond the largest size of this GrowableCuckooFilter, which \
                 has room for {largest} keys; reserve less, or build a filter with a larger max_capacity"
            ),
            Self::MemoryLimit { additional, needed, limit } => write!(
                f,
                "with room for {additional} further keys the GrowableCuckooFilter would take up {needed} bytes, more \
                 than its limit of {limit}; reserve less, or build a filter with a higher memory_limit"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "the memory for more buckets of the GrowableCuckooFilter, {bytes} bytes, was refused; reserve \
                 less, or try again when there is more memory"
            ),
        }
    }
}

impl Error for ReserveError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter below its capacity has no room only for keys that collide. More capacity would not help.
    #[test]
    fn the_advice_for_a_full_filter_depends_on_how_full_it_is() {
        let text = |len| InsertError::full(FilterKind::Concurrent, len, 100).to_string();
        assert!(text(99).contains("only 99 keys") && text(99).contains("insert_if_absent"), "{}", text(99));
        assert!(text(100).contains("holds 100 keys") && text(100).contains("build a larger one"), "{}", text(100));
        // Where there is a type that grows, it is named.
        assert!(text(100).ends_with(", or a GrowableCuckooFilter"), "{}", text(100));
        for other in [FilterKind::Maplet, FilterKind::Expiring] {
            assert!(!InsertError::full(other, 100, 100).to_string().contains("Growable"), "{other}");
        }
    }

    #[test]
    fn a_refused_batch_tells_how_far_it_came_and_why() {
        let error = InsertBatchError::new(7, InsertError::full(FilterKind::Concurrent, 100, 100)).to_string();
        assert!(error.contains("after 7 that were taken") && error.contains("is full"), "{error}");
    }
}
