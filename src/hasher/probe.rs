//! PURE: checks by one hash whether two hashers are the same.

use core::hash::BuildHasher;

/// The key whose hash identifies a hasher. It has text, numbers and bytes, so that a change in how any of these is
/// fed to a hasher is noticed too.
const PROBE: (&str, u64, u32, &[u8]) =
    ("concurrent-cuckoo-filter", 0x0123_4567_89ab_cdef, 0x89ab_cdef, &[0, 1, 0xfe, 0xff]);

pub(crate) fn probe(hasher: &impl BuildHasher) -> u64 {
    hasher.hash_one(PROBE)
}
