//! The one place where a layout chosen at run time meets tables compiled for each layout.
//!
//! An operation costs one indirect call, which the processor predicts; in return every constant of the layout is a
//! constant of the code.

use core::fmt::Debug;

use crate::batch::Hashes;
#[cfg(feature = "snapshot")]
use crate::error::LoadError;
use crate::error::{InsertBatchError, InsertError};
use crate::layout::{Plain, SHAPES, SemiSorted, Shape};
use crate::memory::Pages;
use crate::table::Table;

/// A `Table` of any layout. The keys come as hashes.
pub(crate) trait AnyTable: Debug + Send + Sync {
    fn contains(&self, hash: u64) -> bool;
    fn count(&self, hash: u64) -> usize;
    fn insert(&self, hash: u64) -> Result<(), InsertError>;
    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError>;
    fn remove(&self, hash: u64) -> bool;
    /// Calls `answers` with those to all hashes, in order and a block at a time.
    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError>;
    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    fn clear(&self);
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
    fn buckets(&self) -> usize;
    fn shape(&self) -> Shape;
    #[expect(dead_code, reason = "the filters of several tables that use it are under way")]
    /// The lower-numbered of the two buckets that may hold this hash's fingerprint: the same for all of its class.
    fn lower_bucket(&self, hash: u64) -> usize;
    /// In bytes.
    fn memory_usage(&self) -> usize;
    /// Hands on an image of the words, in order and a chunk at a time, and returns how many copies are in it: see
    /// `save.rs`.
    #[cfg(feature = "snapshot")]
    fn save(&self, chunk: &mut dyn FnMut(&[u64]) -> std::io::Result<()>) -> std::io::Result<u64>;
    /// Fills an empty table with words, which `next` provides in order and a chunk at a time, and returns how many copies
    /// are in them.
    #[cfg(feature = "snapshot")]
    fn load(&mut self, next: &mut dyn FnMut(&mut [u64]) -> Result<(), LoadError>) -> Result<u64, LoadError>;
}

/// Evaluates an expression in which `$table` is the type of the tables of that shape.
macro_rules! with_table_of {
    ($shape:expr, $table:ident => $result:expr) => {
        with_table_of!(
            $shape, $table => $result;
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
            Plain<2, 32>
        )
    };
    ($shape:expr, $table:ident => $result:expr; $($layout:ty),*) => {
        match $shape {
            $(<$layout as crate::layout::Layout>::SHAPE => {
                type $table = Table<$layout>;
                $result
            })*
            shape => unreachable!("{shape:?} is not one of {SHAPES:?}"),
        }
    };
}

/// An empty table, or `None` if there is no memory for it.
pub(crate) fn new(pages: Pages, shape: Shape, buckets: usize, capacity: usize) -> Option<Box<dyn AnyTable>> {
    with_table_of!(shape, Chosen => Some(Box::new(Chosen::on(pages, buckets, capacity)?)))
}

/// What [`AnyTable::memory_usage`] of a table will be.
#[cfg(feature = "snapshot")]
pub(crate) fn memory_usage(shape: Shape, buckets: usize) -> usize {
    with_table_of!(shape, Chosen => size_of::<Chosen>()) + crate::table::memory_for(buckets)
}
