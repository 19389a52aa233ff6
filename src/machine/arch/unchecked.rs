//! The two accesses without a bounds check.
#![allow(unsafe_code, reason = "the index is below the length by construction; each access has its SAFETY note")]

/// `list[index]`, without comparing the index with the length. Those comparisons would be a tenth of a lookup's
/// instructions.
///
/// Only for an index that is below the length *by construction*, whatever a caller of the library does and whatever
/// a snapshot holds. There are four:
///
/// | list | index | why it is below the length |
/// |---|---|---|
/// | a table's words (`table/table.rs`) | a bucket | `Buckets` returns numbers below its count for any hash, any fingerprint and any such number (tested in `word/geometry_tests.rs`); a table has as many words as that |
/// | shards of counters (`table/counters.rs`) | a thread's number, masked | the mask is the length less one, and the length is a power of two |
/// | a growing table's stripes (`growth/growing_table.rs`, `growth/lookup.rs`) | a number from a class's base, masked | the mask is the length less one, and the length is a power of two; a batch keeps the indices of a block, masked by the table that it asks, and 0 until then |
/// | a decode table (`word/bucket.rs`) | a word's rank | it is the top bits of the word, `rank_bits` of them (tested in `word/layout_tests.rs`), and the table has `1 << rank_bits` entries |
///
/// Builds with debug assertions check it, and so do all tests; `ci/asan` also runs them with AddressSanitizer.
#[inline(always)]
pub(crate) fn at<T>(list: &[T], index: usize) -> &T {
    debug_assert!(index < list.len(), "{index} of {}", list.len());
    // SAFETY: the index is one of those above.
    unsafe { list.get_unchecked(index) }
}

/// `list[offset / STEP]` without a comparison, for offsets that are multiples of `STEP`. If `STEP` is the size of an
/// element, the offset is the element's place in memory, which saves an instruction.
///
/// Only for a table's stripes (`table/table.rs`), by a masked bucket sum: their number is a power of two, and the mask is
/// their number less one, times `STEP`.
#[inline(always)]
pub(crate) fn at_step<const STEP: usize, T>(list: &[T], offset: usize) -> &T {
    debug_assert!(offset.is_multiple_of(STEP), "{offset} in steps of {STEP}");
    if STEP != size_of::<T>() {
        return at(list, offset / STEP);
    }
    debug_assert!(offset / STEP < list.len(), "{offset} in {} steps of {STEP}", list.len());
    // SAFETY: the offset is a multiple of an element's size, and the element there is below the length as for `at`:
    // the mask is that of the length less one, times `STEP`.
    unsafe { &*list.as_ptr().byte_add(offset) }
}
