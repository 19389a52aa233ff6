//! Copies of filters in use.

use std::io;

use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::maplet::filter::ConcurrentCuckooMaplet;
use crate::growth::table::GrowingTable;
use crate::machine::memory::Pages;
use crate::table::face::plan::TablePlan;
use crate::table::face::traits::{AnyTable, ExpiringTable, FilterTable, MapletTable};
use crate::table::image::absorb::Image;
use crate::table::image::images::{Imaged, TableImage};

/// A core that can be copied.
trait Copied: Imaged + Sized {
    /// An empty core that can hold what is in this image of this core. `None` if there is no memory for it.
    fn empty_for(&self, image: &TableImage<'_>) -> Option<Self>;

    fn copied(&self) -> io::Result<Self> {
        let images = self.begin_save()?;
        let [image] = &*images.tables else { unreachable!("a filter has one table in an image") };
        let copy = self.empty_for(image).ok_or_else(|| {
            io::Error::new(io::ErrorKind::OutOfMemory, "the memory for a copy of the filter was refused")
        })?;
        let mut start = 0;
        image.read(&mut |words| {
            copy.fill_from(start, words);
            start += words.len();
            Ok(())
        })?;
        Ok(copy)
    }
}

/// The plan of a table like this one.
fn plan_of(table: &dyn AnyTable) -> TablePlan {
    TablePlan::new(table.shape(), table.buckets(), Pages::DEFAULT)
}

impl Copied for Box<dyn FilterTable> {
    fn empty_for(&self, image: &TableImage<'_>) -> Option<Self> {
        plan_of(image.table()).table()
    }
}

impl Copied for Box<dyn MapletTable> {
    fn empty_for(&self, image: &TableImage<'_>) -> Option<Self> {
        plan_of(image.table()).table_with_payload()
    }
}

impl Copied for Box<dyn ExpiringTable> {
    fn empty_for(&self, image: &TableImage<'_>) -> Option<Self> {
        let reading = image.reading().expect("the table has a clock");
        plan_of(image.table()).table_with_clock(self.clock().another_at(reading))
    }
}

impl Copied for GrowingTable {
    fn empty_for(&self, image: &TableImage<'_>) -> Option<Self> {
        GrowingTable::of_buckets(self.plan, image.buckets()).ok()
    }
}

macro_rules! cloning {
    ($Filter:ident made by $build:literal, with $insert:literal: $(#[$own:meta])* errors: $(#[$errors:meta])*) => {
        /// Copies.
        impl<T: ?Sized, S: Clone> $Filter<T, S> {
            /// Makes a copy: a filter of its own with the same content, settings, hasher and schema. Its counts of
            /// [`stats`](Self::stats) begin at 0.
            ///
            /// The copy is of one moment at the beginning of the call. Other threads may go on meanwhile; what the
            /// copy has of their changes is as for [`digest`](Self::digest): all that was in at that moment, and
            /// nothing that was inserted after it. (An insert that overlaps the moment may be in it or not, and so may
            /// what a `clear` removes during the call.)
            $(#[$own])*
            ///
            /// Cost: the memory of a second filter, and one pass over the table. It begins with all stripes locked for
            /// some microseconds. Meanwhile each change takes one more lock, and sets the word that it changes aside
            /// once, in 16 to 64 bytes.
            ///
            /// # Errors
            /// [`OutOfMemory`](io::ErrorKind::OutOfMemory) if memory is refused. This filter is as it was.
            $(#[$errors])*
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            #[doc = concat!("let filter = ", stringify!($Filter), "::<str>::", $build, ";")]
            #[doc = $insert]
            /// let copy = filter.try_clone()?;
            /// filter.clear();
            /// assert!(copy.contains("a") && !filter.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn try_clone(&self) -> io::Result<Self> {
                Ok(Self::from_parts(self.core.copied()?, self.hasher.clone(), self.schema.clone()))
            }
        }
    };
}

cloning! {
    ConcurrentCuckooFilter made by "with_capacity(1000)", with "filter.insert(\"a\")?;":
    errors:
}

cloning! {
    ConcurrentCuckooMaplet made by "builder().capacity(1000).value_bits(4).build()?", with "filter.insert(\"a\", 7)?;":
    errors:
}

cloning! {
    ExpiringCuckooFilter made by "builder().capacity(1000).lifetime_in_ticks(14).build()?", with "filter.advance_to(10);\nfilter.insert_until(\"a\", 20)?;":
    /// The clock of the copy shows the tick of that moment, and goes on by itself: advance both.
    errors:
}

cloning! {
    GrowableCuckooFilter made by "with_capacity(1000)", with "filter.insert(\"a\")?;":
    /// The copy has the size that the filter has at that moment.
    errors:
}
