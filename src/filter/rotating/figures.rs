//! The figures of the filter that forgets whole periods: counts, sizes, rates.

use core::fmt;
use core::iter;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::filter::rotating::filter::RotatingCuckooFilter;
use crate::filter::shared::operations::properties;
use crate::filter::stats::Stats;
use crate::table::face::traits::AnyTable;
use crate::word::layout::rate_of_any;

properties!(RotatingCuckooFilter made by "with_capacity(1000)");

impl<T: ?Sized, S> RotatingCuckooFilter<T, S> {
    /// Returns how many keys are in the live generations. A key that was inserted again in a later generation counts
    /// once for each.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted. Cost: it adds up at most 64 counters for each generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.insert("a")?;
    /// seen.rotate();
    /// seen.insert("a")?; // in this generation too
    /// assert_eq!(seen.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Returns how many keys the filter is made for, in all live generations together: at least as many as were asked
    /// for.
    ///
    /// Each generation takes an equal share of them, [`generation_capacity`](Self::generation_capacity), and refuses
    /// keys beyond that, even if the others are empty.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// assert!(seen.capacity() >= 1000);
    /// assert_eq!(seen.capacity(), 4 * seen.generation_capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.generations() * self.generation_capacity()
    }

    /// Returns how many keys *one generation* is made for.
    ///
    /// That many distinct keys fit, as in a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter::capacity): the
    /// probability that an insert is refused before is below one in a billion for each generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().generation_capacity(1000).build()?;
    /// assert!(seen.generation_capacity() >= 1000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn generation_capacity(&self) -> usize {
        self.core.any_table().capacity()
    }

    /// Returns how many slots all live generations have together, each for one fingerprint. The filter can never hold
    /// more keys than that.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// assert!(seen.slots() >= seen.capacity());
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.generations() * self.core.any_table().slots()
    }

    /// Returns the memory that the filter takes up, in bytes, which never changes. It leaves out two things: the
    /// decode table of up to 256 KiB that all semi-sorted filters share, and the name of a schema that the caller has
    /// given, up to 255 bytes.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// let before = seen.memory_usage();
    /// seen.insert("a")?;
    /// seen.rotate();
    /// assert_eq!(seen.memory_usage(), before);
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// Returns the expected false-positive rate at the present load, from 0 to 1. It is the share of lookups that are
    /// answered `true`, among lookups of keys that are in no live generation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// seen.insert("a")?;
    /// assert!(seen.false_positive_rate() > 0.0);
    /// assert!(seen.false_positive_rate() <= seen.max_false_positive_rate());
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let table = self.core.any_table();
        let slots = table.slots() as f64;
        rate_of_any(self.core.lens().map(|len| table.false_positive_rate(len as f64 / slots)))
    }

    /// Returns the expected false-positive rate with every slot of every generation taken. It is at most the rate
    /// that the builder was asked for.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000); // asks for 0.1 %
    /// assert!(seen.max_false_positive_rate() <= 0.001);
    /// ```
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        let of_each = self.core.any_table().false_positive_rate(1.0);
        rate_of_any(iter::repeat_n(of_each, self.generations()))
    }

    /// Returns all figures at once, with counts of what has happened since the filter was made: see
    /// [`ConcurrentCuckooFilter::stats`](crate::ConcurrentCuckooFilter::stats).
    ///
    /// `capacity`, `slots` and `len` are those of all live generations together. `tables`, `memory_usage` and the
    /// counts of events include the spare table.
    ///
    /// Cost: it adds up at most 64 cache lines for each table. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// seen.insert("a")?;
    /// let stats = seen.stats();
    /// assert_eq!((stats.tables, stats.len, stats.capacity), (5, 1, seen.capacity()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let len = self.len();
        let rates = (self.false_positive_rate(), self.max_false_positive_rate());
        let of_all =
            Stats::of(self.core.tables().map(|table| table as &dyn AnyTable), self.memory_usage(), rates.0, rates.1);
        let clock = self.core.clock_counts();
        Stats {
            len,
            capacity: self.capacity(),
            slots: self.slots(),
            load_factor: len as f64 / self.slots() as f64,
            // If a rotation made room for what a generation had refused, the filter did not refuse it.
            inserts_refused: self.core.inserts_refused(),
            clock_steps_back: clock.steps_back,
            clock_jumps: clock.jumps,
            ..of_all
        }
    }
}

/// Shows statistics, but not the tables and not the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for RotatingCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingCuckooFilter")
            .field("generation", &self.generation())
            .field("generations", &self.generations())
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}
