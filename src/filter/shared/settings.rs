//! The settings of all builders: stored once, checked once and, where the words are the same, documented once.

use crate::error::build::BuildError;
use crate::error::kind::FilterKind;
use crate::machine::memory::Pages;
use crate::plan::sizing::{self, RateHolds};
use crate::snapshot::schema::Schema;
use crate::table::face::plan::TablePlan;
use crate::word::layout::{Encoding, Shape};

/// The false-positive rate if none is asked for.
const DEFAULT_RATE: f64 = 0.001;

/// What the caller asks of a filter, whatever its type.
#[derive(Clone, Debug)]
pub(in crate::filter) struct Settings {
    pub(in crate::filter) filter: FilterKind,
    pub(in crate::filter) capacity: Option<usize>,
    pub(in crate::filter) rate: f64,
    pub(in crate::filter) encoding: Option<Encoding>,
    pub(in crate::filter) pages: Pages,
    pub(in crate::filter) schema: Schema,
}

impl Settings {
    pub(in crate::filter) fn new(filter: FilterKind) -> Self {
        let (pages, schema) = (Pages::Usual, Schema::default());
        Self { filter, capacity: None, rate: DEFAULT_RATE, encoding: None, pages, schema }
    }

    /// The capacity, if one was given and if every other setting is valid by itself.
    pub(in crate::filter) fn checked(&self) -> Result<usize, BuildError> {
        let capacity = self.capacity.ok_or(BuildError::CapacityMissing { filter: self.filter })?;
        self.check()?;
        Ok(capacity)
    }

    /// Whether each setting beside the capacity is valid by itself.
    pub(in crate::filter) fn check(&self) -> Result<(), BuildError> {
        // 0 is a rate that is too low, and that error names the lowest one.
        if !(0.0..1.0).contains(&self.rate) {
            return Err(BuildError::InvalidRate { rate: self.rate });
        }
        #[cfg(feature = "snapshot")]
        self.schema.check()?;
        Ok(())
    }

    /// The plan of a table with this capacity and this many payload bits (0 in a filter). If none exists, the error
    /// says why. If keys are inserted until every slot is taken, the rate must hold until then.
    pub(in crate::filter) fn plan(
        &self,
        capacity: usize,
        payload_bits: u32,
        until: RateHolds,
    ) -> Result<TablePlan, BuildError> {
        let &Self { filter, encoding, rate, .. } = self;
        match sizing::smallest_table(rate, until, encoding, payload_bits, capacity) {
            Ok((shape, buckets, limit)) => Ok(TablePlan::new(shape, buckets, limit, self.pages)),
            Err(None) => {
                let lowest = Shape::lowest_rate(encoding, payload_bits);
                Err(BuildError::RateTooLow { filter, encoding, value_bits: payload_bits, rate, lowest })
            }
            Err(Some(largest)) => Err(BuildError::CapacityTooLarge { filter, capacity, largest }),
        }
    }
}

/// The choice of the encoding.
macro_rules! setting_of_encoding {
    ($Builder:ident) => {
        impl<T: ?Sized, S> $Builder<T, S> {
            /// Restricts the choice of the layout to one encoding of the buckets.
            ///
            /// If not called, the builder takes the layout that needs the least memory and, of two that need the
            /// same, the plain one. Ask for [`Encoding::Plain`] if the table fits in the cache, and speed is worth
            /// the memory of the next layout.
            pub fn encoding(mut self, encoding: Encoding) -> Self {
                self.settings.encoding = Some(encoding);
                self
            }
        }
    };
}
pub(in crate::filter) use setting_of_encoding;

/// A builder: how it is made, the settings that all have, and the plan. `$made` completes the builder of an example.
macro_rules! builder {
    (
        $(#[$builder:meta])* $Builder:ident of $Filter:ident as $Kind:ident with $Own:ty, $made:literal;
        $(#[$capacity:meta])* capacity($items:ident);
        $(#[$rate:meta])* false_positive_rate;
        $(#[$plan:meta])* plan;
    ) => {
        $(#[$builder])*
        #[must_use = "a builder does nothing until `build` is called"]
        pub struct $Builder<T: ?Sized, S = DefaultHashBuilder> {
            settings: Settings,
            own: $Own,
            hasher: S,
            key: PhantomData<fn(&T)>,
        }

        /// Construction with the default hasher, which is keyed at random for each filter and each builder.
        ///
        /// A type that names another hasher has the functions that end in `_with_hasher` instead. (Rust does not infer a
        /// hasher that is not named, so these functions cannot make any.)
        impl<T: ?Sized, S> $Filter<T, S> {
            /// Returns a builder with the default hasher. A clone of the builder has the same hasher, and so do all
            /// filters that are built from either.
            pub fn builder() -> $Builder<T, S>
            where
                DefaultHashBuilder: Is<S>,
            {
                $Builder::with_hasher(DefaultHashBuilder::new().itself())
            }
        }

        /// Construction with any hasher.
        impl<T: ?Sized, S> $Filter<T, S> {
            /// Returns a builder with this hasher.
            ///
            /// Any hasher works, even one as weak as the identity, because the filter mixes the hashes once more. But
            /// without a secret key in the hasher, [anyone who chooses the
            /// keys](crate::guide::security#a-known-hasher-key) can choose them so that they collide.
            ///
            /// ```
            /// use std::hash::RandomState;
            #[doc = concat!("use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            ///
            #[doc = concat!("type Filter = ", stringify!($Filter), "<str, RandomState>; // one name for every use")]
            #[doc = concat!("let builder = Filter::builder_with_hasher(RandomState::new()).capacity(1000)", $made, ";")]
            /// let (plan, filter): (_, Filter) = (builder.plan()?, builder.build()?);
            /// assert_eq!(plan.capacity, filter.capacity());
            /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
            /// ```
            pub fn builder_with_hasher(hasher: S) -> $Builder<T, S> {
                $Builder::with_hasher(hasher)
            }
        }

        impl<T: ?Sized, S> $Builder<T, S> {
            fn with_hasher(hasher: S) -> Self {
                let settings = Settings::new(FilterKind::$Kind);
                Self { settings, own: Default::default(), hasher, key: PhantomData }
            }
        }

        impl<T: ?Sized, S> $Builder<T, S> {
            $(#[$capacity])*
            pub fn capacity(mut self, $items: usize) -> Self {
                self.settings.capacity = Some($items);
                self
            }

            $(#[$rate])*
            pub fn false_positive_rate(mut self, rate: f64) -> Self {
                self.settings.rate = rate;
                self
            }

            /// Sets whether to ask the system for huge pages for each table of 4 MiB or more. It is off if not called.
            ///
            /// With pages of 2 MiB, a lookup in a large table finds the address translations of its two pages in the TLB. In
            /// a table of 192 MB, that makes lookups 5 to 7 % faster, single ones and batches (`cargo bench --bench lookups
            /// -- --only=batches`).
            ///
            /// This is best effort. Linux grants huge pages if `/sys/kernel/mm/transparent_hugepage/enabled` is
            /// `madvise` or `always`, and if it has such pages free. On other systems the filter does not ask. Huge pages
            /// use no more memory, but a machine that is short of free ones may take longer to build the filter. A filter
            /// that is loaded, or made by `empty_like`, uses regular pages.
            pub fn huge_pages(mut self, wanted: bool) -> Self {
                use crate::machine::memory::Pages;

                self.settings.pages = if wanted { Pages::Huge } else { Pages::Usual };
                self
            }

            /// Sets the schema of this filter's snapshots: a short name for what the keys are, up to 255 bytes. Each
            /// snapshot contains it, and `load` compares it. It is the name of the key type if not called.
            ///
            /// **Another schema is an error.** Without this check, a filter of other keys would answer "definitely
            /// absent" to everything.
            ///
            /// The default is [`core::any::type_name`] of the key type (of a longer name, its beginning and a checksum). It
            /// changes if the type is renamed or moved to another module, it differs between `String` and `str`, though they
            /// hash alike, and the compiler does not promise to keep it. So for snapshots that are kept, give a name of your
            /// own, with a version in it, so you can bump it when the key's meaning changes while its type keeps its name.
            ///
            /// Needs the feature `snapshot`.
            #[cfg(feature = "snapshot")]
            pub fn schema(mut self, schema: impl Into<String>) -> Self {
                self.settings.schema = crate::snapshot::schema::Schema::named(schema.into());
                self
            }

            /// Sets the hasher of the keys. It replaces the one that the builder has.
            ///
            /// If an adversary may choose keys, the hasher needs a secret key: see the page
            /// [`security`](crate::guide::security).
            pub fn hasher<S2>(self, hasher: S2) -> $Builder<T, S2> {
                let Self { settings, own, .. } = self;
                $Builder { settings, own, hasher, key: PhantomData }
            }
        }

        /// What would be built.
        impl<T: ?Sized, S> $Builder<T, S> {
            /// Returns the configuration that [`build`](Self::build) would build: memory, capacity, layout and rate. It
            /// allocates no table, so it shows whether settings are valid, and what they would cost.
            $(#[$plan])*
            ///
            /// # Errors
            /// Those of [`build`](Self::build), except `OutOfMemory`.
            pub fn plan(&self) -> Result<FilterPlan, BuildError> {
                self.filter_plan()
            }
        }

        /// A builder with the hasher's default.
        impl<T: ?Sized, S: Default> Default for $Builder<T, S> {
            fn default() -> Self {
                Self::with_hasher(S::default())
            }
        }

        impl<T: ?Sized, S: Clone> Clone for $Builder<T, S> {
            fn clone(&self) -> Self {
                let (settings, own) = (self.settings.clone(), self.own.clone());
                Self { settings, own, hasher: self.hasher.clone(), key: PhantomData }
            }
        }

        /// Leaves out the hasher, whose key is a secret.
        impl<T: ?Sized, S> fmt::Debug for $Builder<T, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Builder))
                    .field("capacity", &self.settings.capacity)
                    .field("false_positive_rate", &self.settings.rate)
                    .field("encoding", &self.settings.encoding)
                    .field("others", &self.own)
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(in crate::filter) use builder;

/// The constructors of the types without values and expiries.
macro_rules! constructors {
    ($Filter:ident: $(#[$capacity:meta])*) => {
        /// Construction with all other settings as they are by default.
        impl<T: ?Sized, S> $Filter<T, S> {
            $(#[$capacity])*
            ///
            /// [`builder`](Self::builder) has the other settings, and returns an error where this function panics.
            ///
            /// # Panics
            /// Panics if the capacity is beyond the limit of the type, or if the allocation fails.
            #[must_use]
            #[track_caller]
            pub fn with_capacity(capacity: usize) -> Self
            where
                DefaultHashBuilder: Is<S>,
            {
                Self::with_capacity_and_hasher(capacity, DefaultHashBuilder::new().itself())
            }

            /// [`with_capacity`](Self::with_capacity), with keys hashed by `hasher`:
            /// [`builder_with_hasher`](Self::builder_with_hasher) says which hashers are good.
            ///
            /// # Panics
            /// Panics if the capacity is beyond the limit of the type, or if the allocation fails.
            #[must_use]
            #[track_caller]
            pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
                match Self::builder_with_hasher(hasher).capacity(capacity).build() {
                    Ok(filter) => filter,
                    Err(error) => panic!("with_capacity({capacity}): {error}"),
                }
            }
        }
    };
}
pub(in crate::filter) use constructors;
