//! PURE: where a lookup reads buckets.

use crate::word::bucket::Bucket;
use crate::word::classes::{Classes, State};

/// A table of at most this many buckets stays in the L2 cache if it is hot. Out-of-order execution hides the latency of
/// that cache.
pub(crate) const NEAR: usize = (512 << 10) / size_of::<u64>();

/// The buckets of a table: of one that other threads change meanwhile, or in the bytes of a snapshot, which nobody changes.
pub(crate) trait BucketSource: Copy {
    /// The version of a stripe before a read.
    type Version: Copy;

    /// The version of the stripe of the classes whose pair has this bucket sum.
    fn version(self, bucket_sum: usize) -> Self::Version;

    /// 0 if the version is still the same: nothing was removed meanwhile.
    fn changes_since(self, version: Self::Version) -> u64;

    fn load(self, bucket: usize) -> Bucket;

    fn prefetch(self, bucket: usize);

    /// How many buckets there are.
    fn len(self) -> usize;

    /// Counts a lookup that is repeated, because its read was invalidated.
    fn retried(self);

    /// Whether it pays to prefetch buckets before a lookup. In a small table it does not: its buckets are in the cache.
    #[inline(always)]
    fn is_far(self) -> bool {
        self.len() > NEAR
    }
}

/// The buckets of a growing table, and its size: of one that other threads change and resize meanwhile, or in the bytes of a
/// snapshot.
pub(crate) trait GrowingSource: Copy {
    /// The version of a stripe before a read.
    type Version: Copy;

    fn classes(self) -> Classes;

    /// The epoch. It is read before the state.
    fn epoch(self) -> u64;

    fn state(self) -> State;

    /// Whether the state of this epoch is still that of the table.
    fn is_still(self, epoch: u64) -> bool;

    /// The number of the stripe of the classes with this base.
    fn stripe(self, base: u32) -> u32;

    /// The version of the stripe of this number.
    fn version(self, stripe: u32) -> Self::Version;

    /// 0 if the version is still the same: nothing was removed meanwhile.
    fn changes_since(self, version: Self::Version) -> u64;

    /// The buckets of these numbers, the first one first. `None` if one is not there any more.
    fn load_pair(self, numbers: [u32; 2]) -> Option<[Bucket; 2]>;

    /// Prefetches a bucket that there is or was.
    fn prefetch(self, number: u32);

    /// Whether there is a copy of the class of this hash, after an attempt that was invalidated, or while a bucket is being
    /// moved.
    fn contains_slow(self, hash: u64) -> bool;
}
