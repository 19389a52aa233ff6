//! Pure: which tables a filter that grows will have, and what rates they have together.
//!
//! # Rates
//! Each table may use up [`SHARE`] of what is left of the requested rate, and no more than leaves enough for all
//! later tables. It has the cheapest layout whose rate, with every slot taken, is at most that. So the sum over any
//! number of tables stays below the requested rate. So does the probability that one of the tables mistakes a key.

use std::sync::OnceLock;

use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::table::face::by_layout;
use crate::table::face::plan::pages_for;
use crate::table::face::traits::FilterTable;
use crate::word::geometry::Nested;
use crate::word::layout::{Encoding, Shape};

/// The most tables. The address space ends first: with this many, a filter whose first table has two buckets takes 4
/// PiB.
pub(crate) const MAX_TABLES: usize = 48;

/// How many tables have their places in the filter itself. Few filters have more tables, and a small one need not pay
/// for their places.
pub(super) const FIRST: usize = 4;

/// The place of a table (`tables/places.rs`).
pub(super) type Place = OnceLock<Box<dyn FilterTable>>;

/// How many bytes the places take that are made together with the table of this number.
pub(super) fn memory_of_places(number: usize) -> usize {
    if number == FIRST { (MAX_TABLES - FIRST) * size_of::<Place>() } else { 0 }
}

/// The share of what is left of the rate that the next table may use up.
///
/// A larger share makes the first tables cheaper and the later ones dearer. With this one, the first table of a
/// filter for 0.1 % has the layout that a filter of one table has for that rate.
const SHARE: f64 = 0.625;

/// The layouts of the tables, in order.
pub(crate) fn shapes(rate: f64, encoding: Option<Encoding>) -> impl Iterator<Item = Shape> {
    let mut left = rate;
    (0..MAX_TABLES).map_while(move |number| {
        let for_later = lowest_rate_of(MAX_TABLES - 1 - number, encoding);
        let shape = Shape::cheapest_nested((left * SHARE).min(left - for_later), encoding)?;
        left -= shape.nested_false_positive_rate(1.0);
        Some(shape)
    })
}

/// The lowest rate at which there are layouts for all tables.
pub(crate) fn lowest_rate(encoding: Option<Encoding>) -> f64 {
    lowest_rate_of(MAX_TABLES, encoding)
}

/// The lowest rate at which there are layouts for this many tables.
fn lowest_rate_of(tables: usize, encoding: Option<Encoding>) -> f64 {
    let lowest = Shape::lowest_nested_rate(encoding);
    // Rounded up, because what is left is the result of as many subtractions.
    let last = if tables == 0 { 0.0 } else { 1.0 / SHARE };
    lowest * (tables.saturating_sub(1) as f64 + last) * (1.0 + tables as f64 * 1e-9)
}

/// What is decided about the tables of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How many buckets table 0 has: an even number.
    pub(crate) buckets: usize,
    /// The rate below which all tables together stay: at least [`lowest_rate`].
    pub(crate) rate: f64,
    /// The requested encoding of all tables, if any.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) pages: Pages,
    /// The limit for the memory, in bytes, including the caller's own memory.
    pub(crate) memory_limit: usize,
    /// The caller's own memory, in bytes.
    pub(crate) memory_of_caller: usize,
}

/// One table of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) number: usize,
    pub(super) shape: Shape,
    pub(super) buckets: usize,
    pub(super) geometry: Nested,
}

impl Plan {
    /// All tables that fit in the address space, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = Next> {
        let mut shapes = shapes(self.rate, self.encoding).peekable();
        let coarsest = shapes.peek().map_or(0, |shape| shape.fingerprint_bits);
        shapes.enumerate().map_while(move |(number, shape)| {
            let buckets = self.buckets.checked_mul(1 << number).filter(|&buckets| buckets <= sizing::LARGEST)?;
            Some(Next { number, shape, buckets, geometry: Nested::new(self.buckets, coarsest, number as u32) })
        })
    }

    /// The table of that number, if it fits in the address space.
    pub(super) fn table(&self, number: usize) -> Option<Next> {
        self.all().nth(number)
    }

    pub(super) fn build(&self, Next { shape, buckets, geometry, .. }: Next) -> Option<Box<dyn FilterTable>> {
        let pages = pages_for(buckets, self.pages);
        let table = by_layout::nested(pages, shape, geometry)?;
        if cfg!(ccf_model = "loom") {
            // loom assumes that a `SeqCst` load may always read the initial value of an atomic. It treats the value
            // of a `SeqCst` exchange correctly.
            table.clear();
        }
        Some(table)
    }
}

impl Next {
    /// How many items it is made for.
    pub(super) fn capacity(&self) -> usize {
        sizing::capacity_of(self.shape, self.buckets)
    }

    /// In bytes.
    pub(super) fn memory(&self) -> usize {
        by_layout::nested_memory_for(self.shape, self.buckets) + memory_of_places(self.number)
    }
}
