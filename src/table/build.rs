//! Tables of a layout that is chosen at run time.

use crate::machine::memory::Pages;
use crate::table::any::{ExpiringTable, FilterTable, MapletTable};
use crate::table::clock::Clock;
use crate::table::words::{self, Table};
use crate::word::geometry::{Buckets, Nested, WideBuckets};
use crate::word::layout::{Layout, OfFilter, Plain, SHAPES, SemiSorted, Shape, WithPayload};

/// Expands to `$body` with `$layout` as the layout of this shape.
macro_rules! with_layout {
    ($shape:expr, $layout:ident => $body:expr) => {
        with_layout!($shape, $layout => $body;
            Plain<8, 8>,
            Plain<7, 9>,
            Plain<6, 10>,
            SemiSorted<6, 12>,
            Plain<5, 12>,
            SemiSorted<5, 14>,
            Plain<4, 16>,
            SemiSorted<4, 17>,
            Plain<3, 21>,
            SemiSorted<3, 22>,
            Plain<2, 32>)
    };
    ($shape:expr, $layout:ident => $body:expr; $($one:ty),*) => {
        match $shape {
            $(<$one as Layout>::SHAPE => {
                type $layout = $one;
                $body
            })*
            shape => unreachable!("{shape:?} is not one of {SHAPES:?}"),
        }
    };
}

/// The same for the layouts that can have a payload.
macro_rules! with_layout_for_payload {
    ($shape:expr, $layout:ident => $body:expr) => {
        with_layout!($shape.without_payload(), $layout => $body;
            SemiSorted<6, 12>,
            SemiSorted<5, 14>,
            SemiSorted<4, 17>,
            SemiSorted<3, 22>,
            Plain<2, 32>)
    };
}

/// An empty table, or `None` if there is no memory for it.
pub(crate) fn new(pages: Pages, shape: Shape, buckets: usize, capacity: usize) -> Option<Box<dyn FilterTable>> {
    with_layout!(shape, L => {
        let layout = L::try_new()?;
        if buckets <= Buckets::MOST {
            Some(Box::new(Table::with_geometry(pages, layout, Buckets::new(buckets), capacity)?))
        } else {
            Some(Box::new(Table::with_geometry(pages, layout, WideBuckets::new(buckets), capacity)?))
        }
    })
}

/// An empty table whose slots have a payload, or `None` if there is no memory for it.
pub(crate) fn with_payload(
    pages: Pages,
    shape: Shape,
    buckets: usize,
    capacity: usize,
) -> Option<Box<dyn MapletTable>> {
    with_layout_for_payload!(shape, L => {
        let layout = WithPayload::<L>::try_of(shape)?;
        if buckets <= Buckets::MOST {
            Some(Box::new(Table::with_geometry(pages, layout, Buckets::new(buckets), capacity)?))
        } else {
            Some(Box::new(Table::with_geometry(pages, layout, WideBuckets::new(buckets), capacity)?))
        }
    })
}

/// An empty table whose entries expire by this clock, or `None` if there is no memory for it.
pub(crate) fn with_clock(
    pages: Pages,
    shape: Shape,
    buckets: usize,
    capacity: usize,
    clock: Clock,
) -> Option<Box<dyn ExpiringTable>> {
    with_layout_for_payload!(shape, L => {
        let layout = WithPayload::<L>::try_of(shape)?;
        if buckets <= Buckets::MOST {
            Some(Box::new(Table::with_geometry(pages, layout, Buckets::new(buckets), capacity)?.with_clock(clock)?))
        } else {
            Some(Box::new(Table::with_geometry(pages, layout, WideBuckets::new(buckets), capacity)?.with_clock(clock)?))
        }
    })
}

/// An empty table with nested classes, or `None` if there is no memory for it.
pub(crate) fn nested(pages: Pages, shape: Shape, geometry: Nested, capacity: usize) -> Option<Box<dyn FilterTable>> {
    with_layout!(shape, L => Some(Box::new(Table::with_geometry(pages, L::try_new()?, geometry, capacity)?)))
}

/// The memory that such a table takes, in bytes.
pub(crate) fn nested_memory_for(shape: Shape, buckets: usize) -> usize {
    with_layout!(shape, L => size_of::<Table<L, Nested>>()) + words::memory_for(buckets)
}

/// What `AnyTable::memory_usage` of a table that is not one of several will be.
#[cfg(feature = "snapshot")]
pub(crate) fn memory_usage(shape: Shape, buckets: usize) -> usize {
    let own = if shape.payload_bits == 0 {
        with_layout!(shape, L => size_of::<Table<L>>())
    } else {
        with_layout_for_payload!(shape, L => size_of::<Table<WithPayload<L>>>())
    };
    own + words::memory_for(buckets)
}
