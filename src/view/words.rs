//! PURE: the words of a table in the bytes of a snapshot.

use crate::machine::arch::prefetch;
use crate::plan::batch::Hashes;
use crate::word::bucket::Bucket;

/// A table of at most this many buckets stays in the L2 cache if it is hot.
const NEAR: usize = (512 << 10) / size_of::<u64>();

/// The words of a table, each as its eight bytes. They may begin at any address.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Clone, Copy, Debug)]
pub struct Words<'a>(&'a [[u8; size_of::<u64>()]]);

impl<'a> Words<'a> {
    /// The words that begin at this place of a snapshot. What follows them in the snapshot counts as words too.
    #[inline(always)]
    pub(super) fn from(snapshot: &'a [u8], start: usize) -> Self {
        Self(snapshot.get(start..).unwrap_or_default().as_chunks().0)
    }

    /// The bucket with this number. Empty if there is none, because the bytes have become fewer.
    #[inline(always)]
    pub(super) fn get(self, bucket: usize) -> Bucket {
        Bucket(self.0.get(bucket).map_or(0, |&bytes| u64::from_le_bytes(bytes)))
    }

    /// Whether it pays to prefetch them.
    #[inline(always)]
    pub(super) fn are_far(self) -> bool {
        self.0.len() > NEAR
    }

    #[inline(always)]
    pub(super) fn prefetch(self, bucket: usize) {
        prefetch(self.0, bucket);
    }
}

/// The table of a view, without its words: it knows where a key would be, and how to compare.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
pub trait ViewTable: Send + Sync {
    fn contains(&self, words: Words<'_>, hash: u64) -> bool;

    fn contains_batch(&self, words: Words<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
}
