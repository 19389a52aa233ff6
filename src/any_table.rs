//! The one place where a layout chosen at run time meets tables compiled for each layout.
//!
//! An operation costs one indirect call, which the processor predicts; in return every constant of the layout is a
//! constant of the code.

use core::fmt::Debug;

use crate::batch::Hashes;
use crate::counter::Counts;
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
    /// All that the table has counted since it was made, `len` included.
    fn counts(&self) -> Counts;
    fn record_negatives(&self, count: u64);
    fn record_false_positives(&self, count: u64);
    fn capacity(&self) -> usize;
    fn buckets(&self) -> usize;
    fn shape(&self) -> Shape;
    #[expect(dead_code, reason = "the filters of several tables that use it are under way")]
    /// The lower-numbered of the two buckets that may hold this hash's fingerprint: the same for all of its class.
    fn lower_bucket(&self, hash: u64) -> usize;
    /// In bytes.
    fn memory_usage(&self) -> usize;
}

/// An empty table, or `None` if there is no memory for it.
pub(crate) fn new(pages: Pages, shape: Shape, buckets: usize, capacity: usize) -> Option<Box<dyn AnyTable>> {
    macro_rules! one_of {
        ($($layout:ty),*) => {
            match shape {
                $(<$layout as crate::layout::Layout>::SHAPE => Some(Box::new(Table::<$layout>::on(pages, buckets, capacity)?)),)*
                _ => unreachable!("{shape:?} is not one of {SHAPES:?}"),
            }
        };
    }
    one_of!(
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
}
