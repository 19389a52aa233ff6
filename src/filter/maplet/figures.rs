//! The figures of the maplet: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::figures::figures;
use crate::filter::shared::operations::properties;
use crate::filter::stats::Stats;
use crate::table::face::traits::AnyTable;
use crate::word::layout::Encoding;

properties!(CuckooMaplet made by "builder().capacity(1000).value_bits(4).build()?");

figures! {
    CuckooMaplet made by "builder().capacity(1000).value_bits(4).build()?", a "maplet" of "pairs",
    with value_bits;
    /// A pair is a key and a value, and counts as often as it was inserted.
    len;
    ///
    /// All values of a key are in its two buckets. So a key can have as many values as these buckets have slots, 4 to
    /// 12 depending on the layout. Keys with several values each fill their buckets sooner.
    capacity;
    memory_usage;
    false_positive_rate;
    /// relocations, refusals, retries, contention.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let shards = CuckooMaplet::<u64>::builder().capacity(1000).value_bits(3).build()?;
    /// shards.insert(&17, 5)?;
    /// let stats = shards.stats();
    /// assert_eq!((stats.len, stats.inserts_refused), (1, 0), "`len` counts pairs");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    stats;
    fingerprints of "7 to 31" in "2 to 6";
}

impl<T: ?Sized, S> CuckooMaplet<T, S> {
    /// Returns how many bits a value has: values are below `2^value_bits`.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let shards = CuckooMaplet::<u64>::builder().capacity(100).value_bits(3).build()?;
    /// assert_eq!(shards.value_bits(), 3); // values from 0 to 7
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }
}
