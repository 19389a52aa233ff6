//! From what the user asks for to a filter: validation and choice of the layout.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::filter::concurrent::ConcurrentCuckooFilter;
use crate::machine::memory::Pages;
use crate::table::plan::{Plan, buckets_for, checked};
use crate::table::words;
use crate::word::layout::{Encoding, Shape};

/// The false-positive rate of a filter for which none is asked.
const DEFAULT_RATE: f64 = 0.001;

/// Builds a [`ConcurrentCuckooFilter`]; made by [`ConcurrentCuckooFilter::builder`].
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
///
/// let filter = ConcurrentCuckooFilter::<str>::builder()
///     .capacity(50_000)
///     .false_positive_rate(1e-4)
///     .build()?;
/// assert!(filter.capacity() >= 50_000);
/// assert!(filter.max_false_positive_rate() <= 1e-4);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder<T: ?Sized, S = ahash::RandomState> {
    pub(crate) capacity: Option<usize>,
    pub(crate) rate: f64,
    encoding: Option<Encoding>,
    pub(crate) pages: Pages,
    pub(crate) hasher: S,
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized> Builder<T> {
    pub(crate) fn new() -> Self {
        let hasher = ahash::RandomState::new();
        Self { capacity: None, rate: DEFAULT_RATE, encoding: None, pages: Pages::DEFAULT, hasher, key: PhantomData }
    }
}

impl<T: ?Sized, S> Builder<T, S> {
    /// How many items the filter must be able to hold. Required; 0 is allowed.
    ///
    /// Any number goes, with no rounding to powers of two: see [`ConcurrentCuckooFilter::capacity`] for what it
    /// promises.
    pub fn capacity(mut self, items: usize) -> Self {
        self.capacity = Some(items);
        self
    }

    /// The largest acceptable false-positive rate: the share of lookups of absent keys that may be answered `true`.
    /// 0.001 (0.1 %) if not called.
    ///
    /// It holds with every slot taken, so also beyond the capacity. The filter takes the cheapest bucket layout that
    /// meets it, whose rate is often lower: see [`ConcurrentCuckooFilter::max_false_positive_rate`].
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Restricts the choice of the layout to one encoding of the buckets.
    ///
    /// If not called, the layout that needs the least memory is taken, and of two that need the same, the plain one.
    /// Ask for [`Encoding::Plain`] where the table fits in the cache, most lookups are hits, and speed is worth a bit
    /// or two for each item.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// Whether to ask the system for huge pages for a table of 4 MiB or more: yes, if not called.
    ///
    /// In a large table, each lookup touches two pages that the processor has long forgotten the place of; with pages of
    /// 2 MiB it need not look that up. With 192 MB that makes single lookups some 4 % faster and batches a quarter
    /// (`cargo bench --bench limit --features huge-pages`).
    ///
    /// The system may say no, and nothing is lost then. On Linux, it says yes if
    /// `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`, and where it has such pages free; on other
    /// systems nothing is asked. All of a table is in memory in any case, so there is no memory to lose; but a machine that
    /// is short of free huge pages may take longer to build the filter.
    ///
    /// Only with the feature `huge-pages`.
    #[cfg(feature = "huge-pages")]
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.pages = if wanted { Pages::Huge } else { Pages::Usual };
        self
    }

    /// The hasher of the keys, in place of [`ahash::RandomState`] with random keys of its own.
    ///
    /// It must be keyed with a secret if those who choose the keys may want to harm: see the section *Hazards* of the
    /// crate's documentation.
    pub fn hasher<S2>(self, hasher: S2) -> Builder<T, S2> {
        let Self { capacity, rate, encoding, pages, .. } = self;
        Builder { capacity, rate, encoding, pages, hasher, key: PhantomData }
    }

    /// Builds the filter: the only step that allocates.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] if [`capacity`](Self::capacity) was not called;
    /// - [`BuildError::InvalidRate`] for a rate that is not between 0 and 1, both excluded, or no number;
    /// - [`BuildError::RateTooLow`] for a rate that no layout, or none of the encoding asked for, can meet;
    /// - [`BuildError::CapacityTooLarge`] for a table that would not fit in the address space;
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory. Stable Rust does not let all requests fail:
    ///   two of a few hundred bytes abort the process, the box around the table and, once in a process, what the
    ///   standard library takes to count the processors.
    pub fn build(self) -> Result<ConcurrentCuckooFilter<T, S>, BuildError> {
        let plan = self.plan(1, 1)?;
        let table = plan.table().ok_or_else(|| BuildError::OutOfMemory { bytes: words::memory_for(plan.buckets) })?;
        Ok(ConcurrentCuckooFilter::from_parts(table, self.hasher))
    }

    /// The plan of each of so many equal tables, of the capacity asked for, where a lookup looks into so many of them and
    /// is to be wrong no more often than asked for; or why there can't be any.
    pub(crate) fn plan(&self, looked_into: usize, tables: usize) -> Result<Plan, BuildError> {
        let (rate, looked_into) = (self.rate, looked_into as f64);
        let capacity = checked(self.capacity, rate)?;
        // Of so many answers, each wrong with a `looked_into`th of the rate, one is wrong with at most the rate.
        let shape = Shape::cheapest(rate / looked_into, self.encoding).ok_or_else(|| {
            let of_one = Shape::lowest_rate(self.encoding);
            let mut lowest = of_one * looked_into;
            while lowest / looked_into < of_one {
                lowest = lowest.next_up();
            }
            BuildError::RateTooLow { rate, lowest }
        })?;
        Ok(Plan::new(shape, buckets_for(shape, capacity, tables)?, self.pages))
    }
}

impl<T: ?Sized, S> fmt::Debug for Builder<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the hasher: its key is a secret.
        f.debug_struct("Builder")
            .field("capacity", &self.capacity)
            .field("false_positive_rate", &self.rate)
            .field("encoding", &self.encoding)
            .finish_non_exhaustive()
    }
}
