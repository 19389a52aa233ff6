//! PURE: the words of a table in the bytes of a snapshot.

use crate::lookup::batch::Hashes;
use crate::lookup::source::BucketSource;
use crate::machine::arch::prefetch;
use crate::word::bucket::Bucket;

/// The words of a table, each as its eight bytes. They may begin at any address.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Clone, Copy, Debug)]
pub struct SnapshotWords<'a>(&'a [[u8; size_of::<u64>()]]);

impl<'a> SnapshotWords<'a> {
    /// The words that begin at this place of a snapshot. What follows them in the snapshot counts as words too.
    #[inline(always)]
    pub(super) fn from(snapshot: &'a [u8], start: usize) -> Self {
        Self(snapshot.get(start..).unwrap_or_default().as_chunks().0)
    }

    /// The word with this number. 0 if there is none, because the bytes have become fewer.
    #[inline(always)]
    pub(super) fn get(self, number: usize) -> u64 {
        self.0.get(number).map_or(0, |&bytes| u64::from_le_bytes(bytes))
    }
}

/// There are no versions, because nothing changes.
impl BucketSource for SnapshotWords<'_> {
    type Version = ();

    #[inline(always)]
    fn version(self, _: usize) {}

    #[inline(always)]
    fn changes_since(self, (): ()) -> u64 {
        0
    }

    #[inline(always)]
    fn load(self, bucket: usize) -> Bucket {
        Bucket(self.get(bucket))
    }

    #[inline(always)]
    fn prefetch(self, bucket: usize) {
        prefetch(self.0, bucket);
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.0.len()
    }

    fn retried(self) {}
}

/// The table of a view, without its words: it knows where a key would be, and how to compare.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
pub trait ViewTable: Send + Sync {
    fn contains(&self, words: SnapshotWords<'_>, hash: u64) -> bool;

    fn contains_batch(&self, words: SnapshotWords<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
}
