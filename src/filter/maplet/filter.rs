//! The maplet: a filter that also stores a few bits for each key.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::insert::{MapletInsertError, ValueTooLarge};
use crate::error::kind::FilterKind;
use crate::filter::by_hash::{ByHash, Hashed, by_hash};
use crate::filter::shared::figures::figures;
use crate::filter::shared::operations::{operation_on_a_key, operations_on_keys, properties};
use crate::filter::stats::Stats;
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::face::any_table::AnyTable;
use crate::table::face::filter_plan::FilterPlan;
use crate::table::face::traits::MapletTable;
use crate::word::values::Values;

/// A cuckoo filter that also stores a value of a few bits with each key, and that many threads share. It is an
/// approximate, concurrent multiset of pairs of a key of type `T` and a value.
///
/// It answers not only "is this key present?" but also "with which values?". The literature calls such a filter a
/// maplet; the paper calls this value association (section 6). Use it where a key may be in one of several places:
/// which run of an LSM tree, which segment file, shard or node holds it. One lookup here replaces one lookup in a
/// filter of each place.
///
/// [`values`](Self::values) returns a set. **The set always contains the values of a present key.** Values of other keys
/// appear at the [false-positive rate](crate::Stats::false_positive_rate), for absent keys and for present ones, but
/// none that was never inserted. So the store behind the maplet must be able to answer "not here". While keys move
/// between places, a store also needs an order of writes: see the page
/// [`several_places`](crate::guide::several_places).
///
/// Use it where a key has one value, or a few. All pairs of a key are in its two buckets: 8 with values of 4 bits at
/// the default rate, and 4 to 12 in other layouts, which is twice
/// [`slots_per_bucket`](crate::TableLayout::slots_per_bucket). Further ones fail. If each key has two values, 0.85 of
/// the capacity fits; with four, 0.4.
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
    pub(in crate::filter) core: Box<dyn MapletTable>,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(in crate::filter) schema: Schema,
    pub(in crate::filter) value_bits: u32,
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    CuckooMaplet, core::convert::identity:

    /// Adds the value to those of the key, even if the key has it already.
    ///
    /// The maplet is a multiset of pairs: a pair that is inserted twice must be removed twice.
    ///
    /// Cost: usually two cache lines read and one of them written, with one stripe locked for a few instructions.
    /// (A filter's [`insert`](crate::ConcurrentCuckooFilter::insert) takes no lock. This one does, so that all
    /// operations on a key have one order.) Where both buckets of the key are full, it costs as much as a filter's
    /// insert that relocates.
    ///
    /// # Errors
    /// [`MapletInsertError::ValueTooLarge`] if the value has too many bits; [`MapletInsertError::Full`] or
    /// [`MapletInsertError::TooManyCopies`] if there is no room. After an error nothing has changed.
    insert(value: u16) -> Result<(), MapletInsertError> = |maplet, hash| {
        maplet.check(value)?;
        maplet.core.insert_value(hash, value).map_err(MapletInsertError::from)
    };

    /// Adds the value unless the key has a value already. Returns the values that the key had: an empty set means
    /// that this value was added.
    ///
    /// It is one step: of many threads that race to add a value to a key without one, at most one gets the empty set. The
    /// others get the value that it added. (If a look-alike has a value, all get that one.)
    ///
    /// The maplet mistakes a key for another at the [false-positive rate](crate::Stats::false_positive_rate), and then adds
    /// nothing. So [`remove`](Self::remove) and [`replace`](Self::replace) only keys for which this returned an empty set,
    /// or accept that they [change another key's value](crate::guide::security#hazards-without-an-adversary).
    ///
    /// Cost: that of [`values`](Self::values) if the key has a value; otherwise that of an [`insert`](Self::insert)
    /// with one stripe locked.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let owners = CuckooMaplet::<str>::builder().capacity(100).value_bits(8).build()?;
    /// assert!(owners.insert_if_absent("job-1", 17)?.is_empty(), "node 17 has it now");
    /// assert!(owners.insert_if_absent("job-1", 99)?.contains(17), "so node 99 learns who has it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    insert_if_absent(value: u16) -> Result<Values, MapletInsertError> = |maplet, hash| {
        maplet.check(value)?;
        maplet.core.insert_value_if_absent(hash, value).map_err(MapletInsertError::from)
    };

    /// Returns the values of the key: a set of at most 12, on the stack.
    ///
    /// A value that the key has throughout the call is in the set, whatever other threads do. If the set is empty,
    /// the key is definitely absent. The call takes effect in one step: the set is what the key had at one moment.
    /// While [`replace`](Self::replace) changes a value, the set has either the old value or the new one.
    ///
    /// **The set is a point-in-time view.** If a value names a place, such as a segment, the key may have moved before
    /// you read that place. The page [`several_places`](crate::guide::several_places) shows how a get notices that.
    ///
    /// The call is lock-free: it takes no lock and waits for no thread. It retries, and counts that for
    /// [`stats`](Self::stats), only if another thread has just changed something in the same stripe.
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
    #[doc(alias = "get")]
    #[must_use]
    values() -> Values = |maplet, hash| maplet.core.values(hash);

    /// Returns whether the key is present, with any value: `false` is certain; `true` is wrong for a share of the absent keys,
    /// the [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// It behaves like [`ConcurrentCuckooFilter::contains`](crate::ConcurrentCuckooFilter::contains), at its cost, but
    /// inserts of other threads can also make it retry.
    #[must_use]
    contains() -> bool = |maplet, hash| maplet.core.contains(hash);

    /// Removes one copy of the value from the key. Returns `true` if the key had one.
    ///
    /// **Remove only pairs that were inserted**, once for each insert. A look-alike may have this value, and would
    /// then lose it. A value with too many bits can't have been inserted, so the answer is `false`.
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions.
    remove(value: u16) -> bool = |maplet, hash| {
        if maplet.check(value).is_err() {
            return maplet.core.counters().removal(false);
        }
        maplet.core.remove_value(hash, value)
    };

    /// Replaces one copy of `old` by `new`. Returns `true` if the key had one.
    ///
    /// It is one step: at every moment the key has one of the two values, never neither and never both. It needs no
    /// room. If the key has `new` already, it then has it twice.
    ///
    /// **Replace only pairs that were inserted**, as with [`remove`](Self::remove). An `old` with too many bits
    /// can't have been inserted, so the answer is `false`.
    ///
    /// Cost: that of a [`remove`](Self::remove).
    ///
    /// # Errors
    /// [`ValueTooLarge`] if `new` has too many bits. Nothing has changed then.
    replace(old: u16, new: u16) -> Result<bool, ValueTooLarge> = |maplet, hash| {
        maplet.check(new)?;
        Ok(maplet.check(old).is_ok() && maplet.core.replace_value(hash, old, new))
    };

    /// Returns how many copies of the value the key has. It is the exact number of copies that were inserted and neither
    /// removed nor replaced, plus those of look-alikes. It is 0 for a value with too many bits.
    ///
    /// Cost: two cache lines, with one stripe locked.
    #[must_use]
    count(value: u16) -> usize = |maplet, hash| {
        if maplet.check(value).is_ok() { maplet.core.count_value(hash, value) } else { 0 }
    };
}

impl<T: ?Sized, S> CuckooMaplet<T, S> {
    /// Whether the value has few enough bits.
    #[inline(always)]
    pub(in crate::filter) fn check(&self, value: u16) -> Result<(), ValueTooLarge> {
        let value_bits = self.value_bits;
        if u32::from(value) >> value_bits == 0 { Ok(()) } else { Err(ValueTooLarge { value, value_bits }) }
    }

    pub(in crate::filter) fn from_parts(core: Box<dyn MapletTable>, hasher: S, schema: Schema) -> Self {
        let value_bits = core.shape().payload_bits;
        Self { core, hasher, schema, value_bits, key: PhantomData }
    }

    /// Removes all pairs that are in the maplet when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. A call of [`values`](Self::values)
    /// that overlaps it may find a set of values that the key never had together, but never a value that the key did not
    /// have.
    pub fn clear(&self) {
        self.core.clear();
    }
}

properties!(CuckooMaplet);

figures! {
    CuckooMaplet as Maplet, a "maplet" of "pairs";
    /// A pair is a key and a value, and counts as often as it was inserted.
    len;
    ///
    /// All values of a key are in its two buckets. So a key can have as many values as these buckets have slots, 4 to
    /// 12 depending on the layout. Keys with several values each fill their buckets sooner.
    capacity;
    ///
    /// The bits of a value are the [payload](crate::TableLayout::payload_bits) of its layout.
    plan;
    /// relocations, failed inserts, retries, contention.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    stats;
}
