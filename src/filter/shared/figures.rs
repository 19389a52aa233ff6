//! The figures of the types whose core is one table: counts, sizes, rates, the layout.

/// The methods, with what their documentation has in common. What is special to the type goes after each name.
macro_rules! figures {
    (
        $Type:ident made by $made:literal, a $kind:literal of $items:literal $(, with $extra:ident)*;
        $(#[$len:meta])* len;
        $(#[$capacity:meta])* capacity;
        $(#[$memory_usage:meta])* memory_usage;
        $(#[$false_positive_rate:meta])* false_positive_rate;
        $(#[$stats:meta])* stats $(with $clock:ident)?;
        fingerprints of $bits:literal in $slots:literal;
    ) => {
        /// Counts, sizes, rates and the layout.
        impl<T: ?Sized, S> $Type<T, S> {
            #[doc = concat!("Returns how many ", $items, " are in the ", $kind, ".")]
            $(#[$len])*
            ///
            #[doc = concat!("The number is exact while no other thread changes the ", $kind, ". While others do, each")]
            /// change that overlaps the call may or may not be counted.
            ///
            /// Cost: it adds up at most 64 counters. There are several so that inserts on different threads need not
            /// share one.
            #[must_use]
            pub fn len(&self) -> usize {
                self.core.len()
            }

            #[doc = concat!("Returns how many ", $items, " the ", $kind, " is made for: at least as many as were asked for.")]
            ///
            /// That many with distinct keys fit. The probability that one of them is refused is below one in a billion
            #[doc = concat!("for each ", $kind, ".")]
            $(#[$capacity])*
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Type), ";")]
            #[doc = concat!("let ", $kind, " = ", stringify!($Type), "::<str>::", $made, ";")]
            #[doc = concat!("assert!(", $kind, ".capacity() >= 1000);")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.core.capacity()
            }

            #[doc = concat!("Returns how many slots the ", $kind, " has, each for one of the ", $items, ". It can never hold more.")]
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Type), ";")]
            #[doc = concat!("let ", $kind, " = ", stringify!($Type), "::<str>::", $made, ";")]
            #[doc = concat!("assert!(", $kind, ".slots() >= ", $kind, ".capacity());")]
            #[doc = concat!("assert_eq!(", $kind, ".slots() % ", $kind, ".slots_per_bucket(), 0);")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn slots(&self) -> usize {
                self.core.slots()
            }

            #[doc = concat!("Returns the memory that the ", $kind, " takes up, in bytes. It leaves out two things: the decode")]
            /// table of up to 256 KiB that all semi-sorted filters and maplets share, and the name of a schema that the
            /// caller has given, up to 255 bytes.
            $(#[$memory_usage])*
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Type), ";")]
            #[doc = concat!("let ", $kind, " = ", stringify!($Type), "::<str>::", $made, ";")]
            #[doc = concat!("let buckets = ", $kind, ".slots() / ", $kind, ".slots_per_bucket();")]
            #[doc = concat!("assert!(", $kind, ".memory_usage() >= 8 * buckets);")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn memory_usage(&self) -> usize {
                size_of::<Self>() + self.core.memory_usage()
            }

            /// Returns the expected false-positive rate at the present load: the share of lookups of absent keys that
            /// find something, from 0 to 1.
            $(#[$false_positive_rate])*
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Type), ";")]
            #[doc = concat!("let ", $kind, " = ", stringify!($Type), "::<str>::", $made, ";")]
            #[doc = concat!("assert_eq!(", $kind, ".false_positive_rate(), 0.0, \"it is empty\");")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn false_positive_rate(&self) -> f64 {
                self.core.false_positive_rate(self.load_factor())
            }

            /// Returns the expected false-positive rate with as many keys as the [`capacity`](Self::capacity). It is at
            /// most the rate that the builder was asked for. With more keys, it rises in proportion.
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Type), ";")]
            #[doc = concat!("let ", $kind, " = ", stringify!($Type), "::<str>::", $made, "; // asks for 0.1 %")]
            #[doc = concat!("assert!(", $kind, ".max_false_positive_rate() <= 0.001);")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn max_false_positive_rate(&self) -> f64 {
                self.core.max_rate()
            }

            #[doc = concat!("Returns all figures at once, with counts of what has happened since the ", $kind, " was made:")]
            $(#[$stats])*
            #[must_use]
            pub fn stats(&self) -> Stats {
                let table: &dyn AnyTable = &*self.core;
                Stats::of(table, self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate())
                    $(.with_clock(self.core.$clock()))?
            }

            /// Returns the encoding: how a bucket stores its fingerprints.
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Type), ";")]
            #[doc = concat!("fn layout(", $kind, ": &", stringify!($Type), "<str>) -> String {")]
            #[doc = concat!("    let (slots, bits) = (", $kind, ".slots_per_bucket(), ", $kind, ".fingerprint_bits());")]
            #[doc = concat!("    format!(\"{:?}: {slots} slots with a fingerprint of {bits} bits each\", ", $kind, ".encoding())")]
            /// }
            /// ```
            #[must_use]
            pub fn encoding(&self) -> Encoding {
                self.core.shape().encoding
            }

            #[doc = concat!("Returns how many bits a fingerprint has, from ", $bits, ".")]
            #[must_use]
            pub fn fingerprint_bits(&self) -> u32 {
                self.core.shape().fingerprint_bits
            }

            #[doc = concat!("Returns how many slots a bucket has, from ", $slots, ". A bucket takes up 64 bits.")]
            #[must_use]
            pub fn slots_per_bucket(&self) -> usize {
                self.core.shape().slots as usize
            }
        }

        /// Shows statistics, but not the table and not the hasher, whose key is a secret.
        impl<T: ?Sized, S> fmt::Debug for $Type<T, S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($Type))
                    .field("len", &self.len())
                    .field("capacity", &self.capacity())
                    .field("load_factor", &self.load_factor())
                    $(.field(stringify!($extra), &self.$extra()))*
                    .field("false_positive_rate", &self.false_positive_rate())
                    .field("encoding", &self.encoding())
                    .field("slots_per_bucket", &self.slots_per_bucket())
                    .field("fingerprint_bits", &self.fingerprint_bits())
                    .field("memory_usage", &self.memory_usage())
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(in crate::filter) use figures;
