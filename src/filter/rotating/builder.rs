//! How a [`RotatingCuckooFilter`] is made.

use core::fmt;
use core::marker::PhantomData;

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::filter::rotating::filter::RotatingCuckooFilter;
use crate::filter::shared::settings::{Settings, constructors, setting_of_encoding, settings_of_all};
use crate::hasher::default::DefaultHashBuilder;
use crate::table::face::traits::FilterTable;
use crate::table::table::memory_for;
use crate::tables::gates::Gates;
use crate::tables::generations::{Generations, MAX_GENERATIONS, MIN_GENERATIONS};
use crate::word::layout::Encoding;

/// The number of generations if none is asked for.
const DEFAULT_GENERATIONS: usize = 4;

constructors! {
    RotatingCuckooFilter by RotatingBuilder:
    /// Makes an empty filter of four generations with room for `capacity` keys in all, a quarter of them in each
    /// generation, at a false-positive rate of at most 0.1 %.
}

/// Builds a [`RotatingCuckooFilter`]. [`RotatingCuckooFilter::builder`] makes one.
///
/// ```
/// use concurrent_cuckoo_filter::RotatingCuckooFilter;
///
/// let filter = RotatingCuckooFilter::<str>::builder()
///     .generation_capacity(50_000) // keys in one period
///     .generations(5)
///     .false_positive_rate(1e-4) // of all of them together
///     .build()?;
/// assert!(filter.capacity() >= 5 * 50_000);
/// assert!(filter.max_false_positive_rate() <= 1e-4);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct RotatingBuilder<T: ?Sized, S = DefaultHashBuilder> {
    /// The rate is that of all generations together. `own` says what the capacity is of.
    settings: Settings,
    own: Own,
    hasher: S,
    key: PhantomData<fn(&T)>,
}

/// The settings that only this builder has.
#[derive(Clone, Debug)]
struct Own {
    generations: usize,
    /// Whether the capacity is that of one generation.
    capacity_is_of_one: bool,
    rotate_when_full: bool,
}

settings_of_all!(RotatingBuilder);
setting_of_encoding!(RotatingBuilder);

impl<T: ?Sized, S> RotatingBuilder<T, S> {
    fn with_hasher(hasher: S) -> Self {
        let own = Own { generations: DEFAULT_GENERATIONS, capacity_is_of_one: false, rotate_when_full: false };
        Self { settings: Settings::new(FilterKind::Rotating), own, hasher, key: PhantomData }
    }

    /// Sets how many distinct keys the filter must be able to hold in all its live generations together, if they come
    /// evenly: each generation has room for its share of them. This is required, unless
    /// [`generation_capacity`](Self::generation_capacity) is called; 0 is allowed. If both are called, the last call
    /// counts.
    ///
    /// If some periods are busier than others, prefer `generation_capacity`: a generation that is full refuses keys,
    /// even if the others are empty.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{BuildError, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// assert!(seen.generation_capacity() >= 250);
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn capacity(mut self, keys: usize) -> Self {
        (self.settings.capacity, self.own.capacity_is_of_one) = (Some(keys), false);
        self
    }

    /// Sets how many distinct keys *one generation* must be able to hold: those of one period, at its busiest. It
    /// takes the place of [`capacity`](Self::capacity); 0 is allowed. If both are called, the last call counts.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{BuildError, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().generation_capacity(1000).generations(4).build()?;
    /// assert!(seen.capacity() >= 4000);
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn generation_capacity(mut self, keys: usize) -> Self {
        (self.settings.capacity, self.own.capacity_is_of_one) = (Some(keys), true);
        self
    }

    /// Sets how many generations are live at a time, including the current one: from 2 to 255. It is 4 if not called.
    ///
    /// See [how long a key lives](RotatingCuckooFilter#how-long-a-key-lives).
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{BuildError, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(7).build()?;
    /// assert_eq!(seen.generations(), 7);
    ///
    /// let error = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(1).build().unwrap_err();
    /// assert!(matches!(error, BuildError::InvalidGenerations { .. }), "{error}");
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn generations(mut self, generations: usize) -> Self {
        self.own.generations = generations;
        self
    }

    /// Sets the largest acceptable false-positive rate of all live generations together: the share of lookups that
    /// may be answered `true`, among lookups of keys that are in no live generation. It is 0.001 (0.1 %) if not
    /// called.
    ///
    /// The rate holds with every slot taken. Each generation has a share of it, so a filter of four needs about two
    /// bits more for each key than one table would.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{BuildError, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).false_positive_rate(1e-4).build()?;
    /// assert!(seen.max_false_positive_rate() <= 1e-4);
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.settings.rate = rate;
        self
    }

    /// Sets whether an insert that finds the current generation full rotates, and goes on in the new one. It rotates
    /// once for all inserts that find that generation full. It is off if not called.
    ///
    /// Then no insert is refused, and keys expire by their number. **The last `(g - 1) · c` inserts are remembered**,
    /// where `c` is the capacity of a generation. (The chance that this fails is one in a billion for each
    /// generation.) A rotation by the clock or by hand, if there are any besides, can make it fewer. And the filter
    /// never remembers more than it has [`slots`](RotatingCuckooFilter::slots).
    ///
    /// Inserts of a key that is in the current generation already do not count towards filling it. A key that comes
    /// again in a later generation takes up room in that one too. So `(g - 1) · c` distinct keys are remembered if
    /// only [`insert_if_absent`](RotatingCuckooFilter::insert_if_absent) adds them, and perhaps fewer if `insert`
    /// refreshes some.
    ///
    /// "Full" means that the table refuses a key, as [`InsertError::Full`](crate::InsertError::Full) says. For keys
    /// that are not chosen with the hasher's key in mind, that is some percent after its capacity. Anyone who knows
    /// that key can choose keys that collide. A generation then refuses some of them when it is nearly empty, so the
    /// filter rotates as fast as they like.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::RotatingCuckooFilter;
    ///
    /// let builder = RotatingCuckooFilter::<u64>::builder().generation_capacity(1000).generations(3);
    /// let recent = builder.rotate_when_full(true).build()?;
    /// for key in 0..100_000 {
    ///     recent.insert(&key)?;
    /// }
    /// assert!((98_000..100_000).all(|key| recent.contains(&key)));
    /// assert!(recent.len() <= recent.slots());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rotate_when_full(mut self, rotate_when_full: bool) -> Self {
        self.own.rotate_when_full = rotate_when_full;
        self
    }

    /// Builds the filter, with one table more than there are generations. This is the only step that allocates.
    ///
    /// # Errors
    /// - [`BuildError::CapacityMissing`] if neither [`capacity`](Self::capacity) nor
    ///   [`generation_capacity`](Self::generation_capacity) was called.
    /// - [`BuildError::InvalidGenerations`] for a number of generations that is not between 2 and 255.
    /// - [`BuildError::InvalidRate`] for a rate that is not a number between 0 and 1, both excluded.
    /// - [`BuildError::RateTooLow`] for a rate that this many generations cannot meet, in any layout or in the
    ///   encoding that was asked for.
    /// - [`BuildError::CapacityTooLarge`] for tables of 2³² buckets or more, or that together would not fit in the
    ///   address space.
    /// - `BuildError::SchemaTooLong` for a schema of more than 255 bytes (feature `snapshot`).
    /// - [`BuildError::OutOfMemory`] if the allocator refuses the memory, with the exceptions that
    ///   [`Builder::build`](crate::Builder::build) names, for each table.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{BuildError, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).build()?;
    /// assert!(seen.is_empty());
    ///
    /// let error = RotatingCuckooFilter::<str>::builder().build().unwrap_err();
    /// assert!(matches!(error, BuildError::CapacityMissing { .. }), "{error}");
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn build(self) -> Result<RotatingCuckooFilter<T, S>, BuildError> {
        let Self { settings, own: Own { generations, capacity_is_of_one, rotate_when_full }, hasher, .. } = self;
        if !(MIN_GENERATIONS..=MAX_GENERATIONS).contains(&generations) {
            return Err(BuildError::InvalidGenerations { generations });
        }
        let capacity = settings.checked()?;
        let of_one = if capacity_is_of_one { capacity } else { capacity.div_ceil(generations) };
        let tables = generations + 1;
        let plan = settings.plan(of_one, generations, tables)?;
        let built = Generations::new(plan, generations, rotate_when_full).ok_or_else(|| {
            let of_one = size_of::<Box<dyn FilterTable>>() + memory_for(plan.buckets);
            BuildError::OutOfMemory { bytes: tables * of_one + Gates::memory_for(plan.buckets) }
        })?;
        Ok(RotatingCuckooFilter::from_parts(built, hasher, settings.schema))
    }
}
