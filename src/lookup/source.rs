//! PURE: where a lookup reads buckets.

use crate::word::bucket::Bucket;

/// A table of at most this many buckets stays in the L2 cache if it is hot. Out-of-order execution hides the latency of
/// that cache.
const NEAR: usize = (512 << 10) / size_of::<u64>();

/// The buckets of a table: of one that other threads change meanwhile, or in the bytes of a snapshot, which nobody changes.
pub(crate) trait Source: Copy {
    /// The version of a stripe before a read.
    type Version: Copy;

    /// The version of the stripe of the classes whose pair has this sum.
    fn version(self, sum: usize) -> Self::Version;

    /// 0 if the version is still the same: nothing was taken out meanwhile.
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
