//! The figures of the maplet: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::filter::maplet::filter::ConcurrentCuckooMaplet;
use crate::filter::shared::operations::{layout_of_table, properties};
use crate::filter::stats::Stats;
use crate::table::face::traits::AnyTable;
use crate::word::layout::Encoding;

properties!(ConcurrentCuckooMaplet made by "builder().capacity(1000).value_bits(4).build()?");

layout_of_table!(ConcurrentCuckooMaplet with fingerprints of "7 to 31" in "2 to 6");

impl<T: ?Sized, S> ConcurrentCuckooMaplet<T, S> {
    /// How many bits a value has: values are below `2^value_bits`.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(100).value_bits(3).build()?;
    /// assert_eq!(shards.value_bits(), 3); // values from 0 to 7
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }

    /// How many pairs of a key and a value are in the maplet, each counted as often as it was inserted.
    ///
    /// The number is exact while no other thread changes the maplet. While others do, each change that overlaps the
    /// call may or may not be counted.
    ///
    /// Cost: it adds up at most 64 counters.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(100).value_bits(3).build()?;
    /// shards.insert_batch([(&17, 5), (&17, 6), (&18, 5)])?;
    /// assert_eq!(shards.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many pairs the maplet is made for: at least as many as were asked for.
    ///
    /// That many pairs with distinct keys fit. The probability that an insert is refused before that is below one
    /// in a billion for each maplet. All values of a key are in its two buckets. So a key can have as many values
    /// as these buckets have slots, 4 to 12 depending on the layout. Keys with several values each fill their
    /// buckets sooner.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(3).build()?;
    /// assert!(shards.capacity() >= 1000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// How many slots the maplet has, each for one pair.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(3).build()?;
    /// assert!(shards.slots() >= shards.capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// The memory that the maplet takes up, in bytes. It leaves out two things: the decode table of up to 256 KiB
    /// that all semi-sorted filters and maplets share, and the name of a schema that the caller has given, up to
    /// 255 bytes.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(3).build()?;
    /// assert!(shards.memory_usage() >= 8 * shards.slots() / shards.slots_per_bucket());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load: the share of lookups of absent keys that find a value,
    /// from 0 to 1.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(3).build()?;
    /// assert_eq!(shards.false_positive_rate(), 0.0, "it is empty");
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(self.load_factor())
    }

    /// The expected false-positive rate with every slot taken. It is at most what the builder was asked for.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let builder = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(3);
    /// assert!(builder.false_positive_rate(0.01).build()?.max_false_positive_rate() <= 0.01);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(1.0)
    }

    /// All figures at once, with counts of what has happened since the maplet was made: relocations, refusals,
    /// retries, contention. `len` counts pairs.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let shards = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(3).build()?;
    /// shards.insert(&17, 5)?;
    /// let stats = shards.stats();
    /// assert_eq!((stats.len, stats.inserts_refused), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let table: &dyn AnyTable = &*self.core;
        Stats::of([table], self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate())
    }
}

/// Shows statistics, never the table, and never the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ConcurrentCuckooMaplet<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrentCuckooMaplet")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("load_factor", &self.load_factor())
            .field("value_bits", &self.value_bits())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("encoding", &self.encoding())
            .field("slots_per_bucket", &self.slots_per_bucket())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}
