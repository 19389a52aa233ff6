//! The figures of the types whose core is one table: counts, sizes, rates, the layout.

/// The methods, with what their documentation has in common. What is special to the type goes after each name.
macro_rules! figures {
    (
        $Type:ident as $Kind:ident, a $kind:literal of $items:literal;
        $(#[$len:meta])* len;
        $(#[$capacity:meta])* capacity;
        $(#[$plan:meta])* plan;
        $(#[$stats:meta])* stats $(with $clock:ident)?;
    ) => {
        /// Counts, sizes, rates and the layout.
        impl<T: ?Sized, S> $Type<T, S> {
            #[doc = concat!("Returns how many ", $items, " the ", $kind, " holds.")]
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

            #[doc = concat!("Returns the capacity in ", $items, ": at least what was asked for.")]
            ///
            #[doc = concat!("This many ", $items, " with distinct keys fit: the probability that an insert of one of them fails")]
            #[doc = concat!("is below one in a billion for each ", $kind, ".")]
            $(#[$capacity])*
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.core.capacity()
            }

            #[doc = concat!("Returns the ", $kind, "'s configuration: its layout, slots and memory, and its rate at capacity. It is")]
            /// what the builder's `plan` returned, and never changes. Its `Display` is a line for a log.
            $(#[$plan])*
            ///
            /// Cost: some arithmetic, about 200 ns. It reads nothing that changes, and allocates nothing.
            #[must_use]
            pub fn plan(&self) -> FilterPlan {
                FilterPlan::of(FilterKind::$Kind, self.core.facts(), size_of::<Self>())$(.with_clock(self.core.$clock()))?
            }

            #[doc = concat!("Returns all figures at once: sizes, the rate to expect, and counts of what has happened since the ", $kind, " was made:")]
            $(#[$stats])*
            #[must_use]
            pub fn stats(&self) -> Stats {
                let table: &dyn AnyTable = &*self.core;
                Stats::of(table, size_of::<Self>() + table.memory_usage())
                    $(.with_clock(self.core.$clock()))?
            }
        }
    };
}
pub(in crate::filter) use figures;
