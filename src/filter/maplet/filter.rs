//! The maplet, a filter that also stores a few bits for each key: its type, and its figures.

use core::fmt;
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::ValueTooLarge;
use crate::error::kind::FilterKind;
use crate::filter::by_hash::ByHash;
use crate::filter::shared::parts::Parts;
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::table::by_shape::MapletTable;
use crate::table::core::Core as _;
use crate::table::filter_plan::FilterPlan;

/// A cuckoo filter that also stores a value of a few bits with each key, and that many threads share. It is an
/// approximate, concurrent multiset of pairs of a key of type `T` and a value.
///
/// It answers not only "is this key present?" but also "with which values?". The literature calls such a filter a
/// maplet; the paper calls this value association (section 6). Use it where a key may be in one of several places:
/// which run of an LSM tree, which segment file, shard or node holds it. One lookup here replaces one lookup in a
/// filter of each place.
///
/// [`values`](Self::values) returns a set. **The set always contains the values of a present key.** Values of other
/// keys appear at the [false-positive rate](crate::Stats::false_positive_rate), for absent keys and for present ones,
/// but never a value that was not inserted. So the store behind the maplet must be able to answer "not here". While
/// keys move between places, a store also needs an order of writes: see the page
/// [`several_places`](crate::guide::several_places).
///
/// Use it where a key has one value, or a few. All pairs of a key are in its two buckets: 8 with values of 4 bits at
/// the default rate, and 4 to 12 in other layouts, which is twice
/// [`slots_per_bucket`](crate::TableLayout::slots_per_bucket). An insert beyond that fails. If each key has two values,
/// 0.85 of the capacity fits; with four, 0.4.
///
/// Keys are hashed and not kept, as in a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter). Its notes on
/// consistency, hashers and hazards hold here too.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooMaplet;
///
/// let segments = CuckooMaplet::<str>::builder().capacity(100_000).value_bits(4).build()?;
/// segments.insert("apple", 3)?; // segment 3 has it
/// assert!(segments.values("apple").contains(3));
/// assert!(segments.replace("apple", 3, 7)?); // after a compaction, 7 has it
/// assert!(segments.values("apple").contains(7));
/// assert!(segments.insert("pear", 16).is_err(), "values of 4 bits are at most 15");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A maplet does not grow. Build it for the most pairs that it will hold, or rebuild it.
pub struct CuckooMaplet<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) parts: Parts<MapletTable, S>,
    value_bits: u32,
    /// The maplet takes keys by reference and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized, S> CuckooMaplet<T, S> {
    pub(in crate::filter) fn from_parts(parts: Parts<MapletTable, S>) -> Self {
        let value_bits = parts.core.dimensions().shape.payload_bits;
        Self { parts, value_bits, key: PhantomData }
    }

    /// Checks that the value has few enough bits.
    #[inline(always)]
    pub(in crate::filter) fn check(&self, value: u16) -> Result<(), ValueTooLarge> {
        let value_bits = self.value_bits;
        if u32::from(value) >> value_bits == 0 { Ok(()) } else { Err(ValueTooLarge { value, value_bits }) }
    }

    /// Removes all pairs that are present when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. A call of [`values`](Self::values)
    /// that overlaps it may find a set of values that the key never had together, but never a value that the key did not
    /// have.
    pub fn clear(&self) {
        self.parts.core.clear();
    }
}

/// Operations by hash.
impl<T: ?Sized, S> CuckooMaplet<T, S> {
    /// Returns the maplet with operations on hashes instead of keys.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }
}

/// Facts about the maplet as a whole.
impl<T: ?Sized, S> CuckooMaplet<T, S> {
    /// Returns how many pairs the maplet holds. A pair is a key and a value. A pair that was inserted several times
    /// counts several times.
    ///
    /// The number is exact while no other thread changes the maplet. While others do, each change that overlaps the
    /// call may or may not be counted.
    ///
    /// Cost: it adds up at most 64 counters. There are several so that inserts on different threads need not share one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.core.len()
    }

    /// Returns the capacity in pairs: at least what was asked for.
    ///
    /// This many pairs with distinct keys fit: the probability that an insert of one of them fails is below one in a
    /// billion for each maplet.
    ///
    /// All values of a key are in its two buckets. So a key can have as many values as these buckets have slots, 4 to
    /// 12 depending on the layout. Keys with several values each fill their buckets sooner.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parts.core.capacity()
    }

    /// Returns the maplet's configuration: its layout, slots and memory, and its rate at capacity. It is what the
    /// builder's `plan` returned, and never changes. Its `Display` is a line for a log.
    ///
    /// The bits of a value are the [payload](crate::TableLayout::payload_bits) of its layout.
    ///
    /// Cost: some arithmetic, about 200 ns. It reads nothing that changes, and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        FilterPlan::of(FilterKind::Maplet, self.parts.core.dimensions(), size_of::<Self>())
    }

    /// Returns all figures at once: sizes, the expected false-positive rate, and counts of what has happened since the
    /// maplet was made: relocations, failed inserts, retries and contention.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.parts.core, size_of::<Self>())
    }

    /// Returns whether the maplet holds no pairs. This is as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that `count` positive answers turned out to be wrong, for example because the store behind the maplet
    /// did not have the keys. From this and [`record_negatives`](Self::record_negatives), the maplet computes
    /// [`Stats::observed_false_positive_rate`].
    ///
    /// Cost: one addition to the thread's own counter. No other thread waits for it.
    pub fn record_false_positives(&self, count: u64) {
        self.parts.core.counters().record_false_positives(count);
    }

    /// Records that `count` lookups were answered with no value. The maplet does not count them by itself, because a
    /// lookup that need not retry writes nothing.
    ///
    /// Cost: one addition to the thread's own counter. If that is too much for each lookup, add up the answers and
    /// record the sum at intervals. [`Stats`] has an example.
    pub fn record_negatives(&self, count: u64) {
        self.parts.core.counters().record_negatives(count);
    }

    /// Returns the hasher, for example to hash keys with it before they come to the maplet.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.parts.hasher
    }
}

/// Shows statistics, but not the table and not the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for CuckooMaplet<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooMaplet").field("len", &self.len()).field("plan", &self.plan()).finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for CuckooMaplet<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for CuckooMaplet<T, S> {}
