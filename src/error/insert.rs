//! Why a key could not be added.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::error::kind::FilterKind;
use crate::error::message::messages;
use crate::word::human::{Time, s};
use crate::word::tick::Tick;

/// Why a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter) did not take a key. The filter is as it was before.
///
/// The message of each error (its `Display`) names what was given, the limit and what to do. The other types of filters have
/// errors of their own: [`GrowableInsertError`], [`ExpiringInsertError`] and [`MapletInsertError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// No free slot can be reached from the key's two buckets within the 2,048 buckets that an insert searches.
    ///
    /// **Up to [`capacity`](crate::ConcurrentCuckooFilter::capacity) distinct keys are always accepted, in any order, from any
    /// threads** (with a probability of less than 10⁻⁹ that it fails). Beyond that, which keys are accepted depends on the order. A
    /// program that has to insert its keys again, such as one that [replays a log](crate::guide::beyond_one_process#replaying-a-log),
    /// stops at the capacity. It does happen below that if many copies of some keys fill their buckets, which are other keys' buckets
    /// too, or if the hasher is broken.
    #[non_exhaustive]
    Full {
        /// How many keys the filter held.
        len: usize,
        /// Its capacity.
        capacity: usize,
    },
    /// The filter already holds as many copies of this key as the key's two buckets have slots. No other bucket may hold
    /// them.
    #[non_exhaustive]
    TooManyCopies {
        /// How many copies there are.
        copies: usize,
    },
}

/// Why a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) did not take a key. Its keys are the same as before. Its table
/// may have grown, by at most 128 buckets.
///
/// Up to [`max_capacity`](crate::GrowableCuckooFilter::max_capacity) distinct keys are always accepted, in any order, from any threads,
/// and never more. So what was accepted can be [inserted again](crate::guide::beyond_one_process#replaying-a-log).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrowableInsertError {
    /// The filter is full at its [largest size](crate::GrowableBuilder::max_capacity): it holds `max_capacity` keys, and never
    /// takes more. (If it holds fewer, other keys fill this key's buckets, as for [`Full`](Self::Full).)
    #[non_exhaustive]
    MaxCapacity {
        /// How many keys the filter held.
        len: usize,
        /// The filter's largest capacity.
        max_capacity: usize,
    },
    /// The filter is full, and growth would exceed its [memory limit](crate::GrowableBuilder::memory_limit): it holds `capacity`
    /// keys, and takes no more within the limit. (If it holds fewer, other keys fill this key's buckets, as for
    /// [`Full`](Self::Full).)
    #[non_exhaustive]
    MemoryLimit {
        /// How many keys the filter held.
        len: usize,
        /// How many it takes within the limit: its [`max_capacity`](crate::GrowableCuckooFilter::max_capacity).
        capacity: usize,
        /// How many bytes the filter would use with the next 32 buckets.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The filter is full, and the memory for more buckets could not be allocated. Each later insert that finds no room
    /// retries the allocation.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were requested: those of `n` buckets, where `n` is the largest power of two up to the present
        /// number.
        bytes: usize,
    },
    /// Other keys fill this key's buckets, and one insert splits at most 128 buckets. That practically does not happen
    /// to distinct keys. It does happen if most keys have as many copies as they may have (then to one insert in several
    /// thousand), or if an adversary who has the hasher's key chooses keys. The filter grows for them only while it is
    /// at least a quarter full.
    #[non_exhaustive]
    Full {
        /// How many keys the filter held.
        len: usize,
        /// Its capacity.
        capacity: usize,
    },
    /// The filter already holds as many copies of this key as it may: as many as half of the slots of the key's two
    /// buckets. There are more slots in the buckets of a [larger](crate::guide::growth#copies) table.
    #[non_exhaustive]
    TooManyCopies {
        /// How many copies there are.
        copies: usize,
        /// How many there may be at the present size.
        limit: usize,
    },
}

/// Why an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) did not take an entry. The filter is as it was before, except that
/// one that [evicts](crate::WhenFull) may have evicted entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpiringInsertError {
    /// The filter is full of live entries: no free slot can be reached from the key's two buckets within the 2,048 buckets
    /// that an insert searches. (A filter that [evicts](crate::ExpiringBuilder::when_full) makes room where it can.)
    ///
    /// Up to [`capacity`](crate::ExpiringCuckooFilter::capacity) distinct keys are always accepted, in any order, from any threads.
    /// A program that has to insert them again [stops there](crate::guide::beyond_one_process#replaying-a-log).
    #[non_exhaustive]
    Full {
        /// How many entries the filter held, expired ones included.
        len: usize,
        /// Its capacity.
        capacity: usize,
        /// Whether the filter [evicts](crate::WhenFull::EvictSoonest) entries, and none within reach expires before this
        /// one.
        evicts: bool,
    },
    /// The filter already holds as many live entries of this key as the key's two buckets have slots.
    #[non_exhaustive]
    TooManyCopies {
        /// How many copies there are.
        copies: usize,
    },
    /// The clock of the filter is not set: [`advance_to`](crate::ExpiringCuckooFilter::advance_to) was never called.
    ClockNotSet,
    /// The entry would live longer than the entries of this filter can, or the clock of the filter is behind the caller's.
    #[non_exhaustive]
    LifetimeTooLong {
        /// The tick at which the entry should expire.
        expires_at: Tick,
        /// The tick of the filter's clock.
        now: Tick,
        /// The longest lifetime, in ticks.
        longest: u64,
        /// How long a tick is, if the filter knows it.
        resolution: Option<Duration>,
    },
    /// The filter has [evicted](crate::WhenFull::EvictSoonest) the tick at which the entry should expire, to make room for
    /// entries that live longer.
    #[non_exhaustive]
    Evicted {
        /// The tick at which the entry should expire.
        expires_at: Tick,
        /// The last tick whose entries were evicted.
        up_to: Tick,
    },
    /// A time or a time to live was given, but the filter was built [by
    /// ticks](crate::ExpiringBuilder::lifetime_in_ticks), so it does not know how long a tick is.
    ResolutionUnknown,
}

/// Why a [`CuckooMaplet`](crate::CuckooMaplet) did not take a value. The maplet is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapletInsertError {
    /// The maplet is full: no free slot can be reached from the key's two buckets within the 2,048 buckets that an insert
    /// searches.
    ///
    /// Up to [`capacity`](crate::CuckooMaplet::capacity) distinct keys are always accepted, in any order, from any threads. A
    /// program that has to insert them again [stops there](crate::guide::beyond_one_process#replaying-a-log).
    #[non_exhaustive]
    Full {
        /// How many keys the filter held.
        len: usize,
        /// Its capacity.
        capacity: usize,
    },
    /// The maplet already holds as many values of this key as the key's two buckets have slots.
    #[non_exhaustive]
    TooManyCopies {
        /// How many copies there are.
        copies: usize,
    },
    /// The value has more bits than the [values](crate::MapletBuilder::value_bits) of this maplet.
    #[non_exhaustive]
    ValueTooLarge {
        /// The value.
        value: u16,
        /// How many bits a value may have.
        value_bits: u32,
    },
}

impl InsertError {
    /// [`Full`](Self::Full), for tests of your own: the error of a filter with `len` keys. `From` converts it to an
    /// error of another type, such as [`ExpiringInsertError::Full`].
    #[must_use]
    pub const fn full(len: usize, capacity: usize) -> Self {
        Self::Full { len, capacity }
    }

    /// The error where so many copies were added before that are not counted yet.
    #[cold]
    pub(crate) fn with_uncounted(mut self, added: usize) -> Self {
        if let Self::Full { len, .. } = &mut self {
            *len += added;
        }
        self
    }
}

/// The error of a filter that does not evict.
impl From<InsertError> for ExpiringInsertError {
    #[cold]
    fn from(error: InsertError) -> Self {
        Self::of(error, false)
    }
}

impl ExpiringInsertError {
    /// The error of a filter that evicts entries, or of one that does not.
    #[cold]
    pub(crate) fn of(error: InsertError, evicts: bool) -> Self {
        match error {
            InsertError::Full { len, capacity } => Self::Full { len, capacity, evicts },
            InsertError::TooManyCopies { copies } => Self::TooManyCopies { copies },
        }
    }
}

impl From<InsertError> for MapletInsertError {
    #[cold]
    fn from(error: InsertError) -> Self {
        match error {
            InsertError::Full { len, capacity } => Self::Full { len, capacity },
            InsertError::TooManyCopies { copies } => Self::TooManyCopies { copies },
        }
    }
}

impl From<InsertError> for GrowableInsertError {
    #[cold]
    fn from(error: InsertError) -> Self {
        match error {
            InsertError::Full { len, capacity } => Self::Full { len, capacity },
            InsertError::TooManyCopies { copies } => Self::TooManyCopies { copies, limit: copies },
        }
    }
}

/// The message of `Full`, with what makes room in a filter that is full.
fn full(filter: FilterKind, len: usize, capacity: usize, remedy: &str) -> String {
    let what = match filter {
        FilterKind::Maplet => "pairs",
        FilterKind::Expiring => "entries",
        _ => "keys",
    };
    if len < capacity {
        return format!(
            "the {filter} has no room for this key: others fill its buckets, although it holds only {len} {what} and \
             has a capacity of {capacity}; use insert_if_absent if keys are inserted repeatedly and never removed, or a \
             hasher that is keyed with a secret"
        );
    }
    let more = match len - capacity {
        0 => "as many as its capacity".to_owned(),
        more => format!("{more} more than its capacity of {capacity}"),
    };
    format!("the {filter} is full with {len} {what}, {more}; {remedy}")
}

const REMOVE: &str = "remove some keys, or build a larger one";
const REMOVE_OR_GROW: &str = "remove some keys, or build a larger one, or a GrowableCuckooFilter";
const EXPIRE: &str = "call advance_to if its clock is behind (expired entries make room), remove some keys, build a larger \
     one, or let it evict those that expire first (when_full)";
const EVICT: &str = "no entry within reach expires before this one, so none was evicted; build a larger one";

messages! {
    InsertError:
    Self::Full { len, capacity } => "{}", full(FilterKind::Concurrent, *len, *capacity, REMOVE_OR_GROW);
    Self::TooManyCopies { copies } =>
        "the ConcurrentCuckooFilter already holds {copies} copies of this key, all that the key's two buckets have \
         room for; use insert_if_absent if one copy is enough";
}

/// Why a growable filter that can grow no further has no room.
fn no_room(len: usize, capacity: usize) -> String {
    if len < capacity {
        return format!(
            "the GrowableCuckooFilter has no room for this key: other keys fill its buckets, although it holds only {len} keys \
             and has room for {capacity} distinct ones at its largest size"
        );
    }
    format!(
        "the GrowableCuckooFilter is full at its largest size: it holds {len} keys, and takes no more than {capacity}"
    )
}

messages! {
    GrowableInsertError:
    Self::MaxCapacity { len, max_capacity } =>
        "{}; remove some keys, or build or load the filter with a larger max_capacity", no_room(*len, *max_capacity);
    Self::MemoryLimit { len, capacity, needed, limit } =>
        "{}, and with more buckets it would take up {needed} bytes, more than its limit of {limit}; remove some keys, or build \
         or load the filter with a higher memory_limit", no_room(*len, *capacity);
    Self::OutOfMemory { bytes } =>
        "the GrowableCuckooFilter is full, and the {bytes} bytes for more buckets could not be allocated; remove some \
         keys, or try again when there is more memory";
    Self::Full { len, capacity } =>
        "the GrowableCuckooFilter has no room for this key: other keys fill its buckets; it holds {len} keys and has a \
         capacity of {capacity}, and one insert splits at most 128 buckets; reserve more room, use insert_if_absent if keys are \
         inserted repeatedly and never removed, or use a hasher that is keyed with a secret";
    Self::TooManyCopies { copies, limit } =>
        "the GrowableCuckooFilter already holds {copies} copies of this key; at its present size the limit is {limit}, \
         half of the slots of the key's two buckets; use insert_if_absent if one copy is enough, or reserve more room if \
         you need a few more copies";
}

messages! {
    ExpiringInsertError:
    Self::Full { len, capacity, evicts } =>
        "{}", full(FilterKind::Expiring, *len, *capacity, if *evicts { EVICT } else { EXPIRE });
    Self::TooManyCopies { copies } =>
        "the ExpiringCuckooFilter already holds {copies} live entries of this key, all that the key's two buckets \
         have room for; use insert_or_renew or insert_if_absent, or their forms that end in until, if one is enough";
    Self::ClockNotSet => "the clock of the ExpiringCuckooFilter is not set; call advance_to first";
    Self::LifetimeTooLong { expires_at, now, longest, resolution }
        if expires_at.get() - now.get() > longest.saturating_mul(2) =>
        "the clock of the ExpiringCuckooFilter shows tick {now}, which is {} ticks before tick {expires_at}, at which the \
         entry should expire, but its entries live for {longest} tick{}{} at most; if that clock was not moved on, call {} \
         first; if the expiry is right, build the filter for a longer lifetime",
        expires_at.get() - now.get(), s(*longest), Lasting("", *longest, *resolution),
        if resolution.is_some() { "advance_to(filter.tick_at(now))" } else { "advance_to" };
    Self::LifetimeTooLong { expires_at, now, longest, resolution } =>
        "an entry that expires at tick {expires_at} would live for {} ticks{}, because the clock of the \
         ExpiringCuckooFilter shows tick {now}; its entries live for {longest} tick{}{} at most; call advance_to first if \
         that clock is behind, or build the filter for a longer lifetime",
        expires_at.get() - now.get(), Lasting("at least ", expires_at.get() - now.get(), *resolution),
        s(*longest), Lasting("", *longest, *resolution);
    Self::Evicted { expires_at, up_to } =>
        "the ExpiringCuckooFilter has no room for an entry that expires at tick {expires_at}: to make room, it has \
         evicted all entries up to tick {up_to}; build a larger filter, or give the entry a later expiry";
    Self::ResolutionUnknown => "{RESOLUTION_UNKNOWN}";
}

/// The time that so many ticks certainly last from now on, in parentheses: the present one may be nearly over.
struct Lasting(&'static str, u64, Option<Duration>);

impl fmt::Display for Lasting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(at_least, ticks, Some(resolution)) if ticks > 1 => {
                write!(f, " ({at_least}{})", Time(of_ticks(ticks - 1, resolution)))
            }
            _ => Ok(()),
        }
    }
}

/// How long so many ticks last.
pub(crate) fn of_ticks(ticks: u64, resolution: Duration) -> Duration {
    let nanoseconds = resolution.as_nanos().saturating_mul(ticks.into());
    let seconds = u64::try_from(nanoseconds / 1_000_000_000);
    seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

pub(crate) const RESOLUTION_UNKNOWN: &str = "\
    a time or a duration was given or asked for, but the ExpiringCuckooFilter was built with lifetime_in_ticks and \
    does not know how long a tick is; use ticks (Tick::new, expires_at), or build the filter with a resolution";

messages! {
    MapletInsertError:
    Self::Full { len, capacity } => "{}", full(FilterKind::Maplet, *len, *capacity, REMOVE);
    Self::TooManyCopies { copies } =>
        "the CuckooMaplet already holds {copies} values of this key, all that the key's two buckets have room for (those \
         of look-alikes count too); remove some of them";
    Self::ValueTooLarge { value, value_bits } => "{}", ValueTooLarge { value: *value, value_bits: *value_bits };
}

impl Error for InsertError {}
impl Error for GrowableInsertError {}
impl Error for ExpiringInsertError {}
impl Error for MapletInsertError {}

/// The error for a value that has more bits than the values of a [`CuckooMaplet`](crate::CuckooMaplet). Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueTooLarge {
    /// The value.
    pub value: u16,
    /// How many bits a value may have.
    pub value_bits: u32,
}

messages! {
    ValueTooLarge:
    Self { value, value_bits } =>
        "the value {value} is too large: values of {value_bits} bits are at most {}; number them from 0, or build the \
         CuckooMaplet with more value_bits",
        (1u32 << value_bits) - 1;
}

impl Error for ValueTooLarge {}

impl From<ValueTooLarge> for MapletInsertError {
    fn from(ValueTooLarge { value, value_bits }: ValueTooLarge) -> Self {
        Self::ValueTooLarge { value, value_bits }
    }
}

/// Where a batch of inserts ended early, and why. Its message (the `Display`) has that of the operation on one key, with what
/// to do about it.
///
/// The keys before the one that failed were inserted as they would have been one by one: keys that need no insert were
/// skipped. The failed key and those after it were not inserted. To go on, insert the keys from `index` on when the cause is
/// removed, or leave this one out and insert those from `index + 1` on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsertBatchError<E = InsertError> {
    /// The index of the key that failed in the batch: the number of keys before it.
    pub index: usize,
    /// Why its insert failed.
    pub error: E,
}

impl<E> InsertBatchError<E> {
    pub(crate) fn new(index: usize, error: E) -> Self {
        Self { index, error }
    }

    /// The error of a filter that has further reasons.
    pub(crate) fn map<F: From<E>>(self) -> InsertBatchError<F> {
        InsertBatchError { index: self.index, error: self.error.into() }
    }
}

impl<E: fmt::Display> fmt::Display for InsertBatchError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, error } = self;
        write!(
            f,
            "the batch ended at its key {index} (counted from 0), and all keys before it were processed: {error}; then \
             continue with that key, or leave it out and continue with the next one"
        )
    }
}

/// The message has that of the key's error, so the source is what that one is due to.
impl<E: Error + 'static> Error for InsertBatchError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Why a [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) could not
/// [reserve](crate::GrowableCuckooFilter::reserve) room. The filter has not grown. Only after
/// [`OutOfMemory`](Self::OutOfMemory), it may have grown to a part of what was asked for, and is usable at that size.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The filter would use more memory than its limit allows.
    #[non_exhaustive]
    MemoryLimit {
        /// How many further keys were asked for.
        additional: usize,
        /// How many bytes the filter would use.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The memory could not be allocated.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were asked for.
        bytes: usize,
    },
}

messages! {
    ReserveError:
    Self::CapacityTooLarge { additional, largest } =>
        "room for {additional} further keys goes beyond the largest size of this GrowableCuckooFilter, which has room \
         for {largest} keys; reserve less, or build a filter with a larger max_capacity";
    Self::MemoryLimit { additional, needed, limit } =>
        "with room for {additional} further keys the GrowableCuckooFilter would take up {needed} bytes, more than its \
         limit of {limit}; reserve less, or build a filter with a higher memory_limit";
    Self::OutOfMemory { bytes } =>
        "the {bytes} bytes for more buckets of the GrowableCuckooFilter could not be allocated; reserve less, or try \
         again when there is more memory";
}

impl Error for ReserveError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter below its capacity has no room only for keys that collide. More capacity would not help.
    #[test]
    fn the_advice_for_a_full_filter_depends_on_how_full_it_is() {
        let text = |len| InsertError::full(len, 100).to_string();
        assert!(text(99).contains("only 99 keys") && text(99).contains("insert_if_absent"), "{}", text(99));
        assert!(text(100).contains("full with 100 keys, as many as its capacity; remove some keys"), "{}", text(100));
        assert!(text(136).contains("full with 136 keys, 36 more than its capacity of 100; remove"), "{}", text(136));
        // Where there is a type that grows, it is named.
        assert!(text(100).ends_with(", or a GrowableCuckooFilter"), "{}", text(100));
        let full = InsertError::full(100, 100);
        let others = [MapletInsertError::from(full.clone()).to_string(), ExpiringInsertError::from(full).to_string()];
        assert!(others.iter().all(|text| !text.contains("Growable")), "{others:?}");
    }

    /// Whether entries were evicted decides what helps.
    #[test]
    fn the_advice_for_a_full_expiring_filter_depends_on_whether_it_evicts() {
        let text = |evicts| ExpiringInsertError::Full { len: 183, capacity: 101, evicts }.to_string();
        assert!(text(false).contains("call advance_to") && text(false).contains("when_full"), "{}", text(false));
        assert!(text(true).contains("expires before this one"), "{}", text(true));
        assert!(!text(true).contains("advance_to") && !text(true).contains("when_full"), "{}", text(true));
    }

    /// Ticks are named as they were given, and the time that they certainly last.
    #[test]
    fn a_lifetime_that_is_too_long_is_named_as_it_was_given() {
        let text = |ticks: u64, resolution: Option<Duration>| {
            let (expires_at, now) = (Tick::new(1000 + ticks), Tick::new(1000));
            ExpiringInsertError::LifetimeTooLong { expires_at, now, longest: 61, resolution }.to_string()
        };
        let minute = Some(Duration::from_secs(60));
        assert!(text(121, None).contains("for 121 ticks, because") && text(121, None).contains("for 61 ticks at most"));
        assert!(text(121, minute).contains("for 121 ticks (at least 2 h), because"), "{}", text(121, minute));
        assert!(text(121, minute).contains("for 61 ticks (1 h) at most"), "{}", text(121, minute));
        // So far ahead that the clock is probably wrong.
        let far = text(1_000_000, minute);
        assert!(far.contains("shows tick 1000, which is 1000000 ticks before tick 1001000"), "{far}");
        assert!(far.contains("advance_to(filter.tick_at(now))") && !text(1_000_000, None).contains("tick_at"), "{far}");
        let longest = ExpiringInsertError::LifetimeTooLong {
            expires_at: Tick::new(u64::MAX),
            now: Tick::new(0),
            longest: u64::MAX - 1,
            resolution: Some(Duration::MAX),
        };
        assert!(longest.to_string().contains("days"), "{longest}");
    }

    #[test]
    fn a_failed_batch_says_how_far_it_came_and_why() {
        let error = InsertBatchError::new(7, InsertError::full(100, 100));
        let text = error.to_string();
        assert!(text.contains("its key 7 ") && text.contains("continue with that key"), "{text}");
        assert!(text.contains("is full with 100 keys") && error.source().is_none(), "{text}");
    }
}
