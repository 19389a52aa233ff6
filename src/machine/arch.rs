//! What takes the processor's own instructions, or a call of the system: the library's one module with `unsafe` code.
//!
//! None of it changes what a program computes. Elsewhere, and under Miri, the hints are left out, and the comparison is
//! made as in `word/bucket.rs`.
#![allow(unsafe_code, reason = "intrinsics and system calls are unsafe to call; each has its SAFETY note")]

/// Asks the system to back this memory with huge pages (2 MiB on x86-64), of which a large table needs so few that the
/// processor remembers where all of them are.
///
/// Linux grants it if `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise` or `always`, and if it has such pages
/// free. It is a wish: that it is refused makes no difference but in speed.
#[cfg(all(feature = "huge-pages", target_os = "linux"))]
pub(crate) fn ask_for_huge_pages<T>(memory: &mut [core::mem::MaybeUninit<T>]) {
    use rustix::mm::{Advice, madvise};

    // Whole pages, for others may hold something else too.
    let page = rustix::param::page_size();
    let bytes = size_of_val(memory);
    let skipped = memory.as_ptr().addr().wrapping_neg() % page;
    let len = bytes.saturating_sub(skipped) / page * page;
    if len > 0 {
        let start = memory.as_mut_ptr().cast::<core::ffi::c_void>().wrapping_byte_add(skipped);
        // SAFETY: the pages from `start` on lie within `memory`, which is borrowed for this call, and this advice changes
        // neither what they hold nor who may use them.
        let _ = unsafe { madvise(start, len, Advice::LinuxHugepage) };
    }
}

/// Asks for the cache line of `list[index]`, so that it is near when it is read; changes nothing, and waits for nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(list: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64 processor, and a prefetch has no effect that a program can observe,
        // whatever the address: so the index need not be checked either.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(list.as_ptr().wrapping_add(index).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (list, index);
}

/// Whether one of the lanes of 8, 16 or 32 bits in either word is `lane`; `None` for lanes of other widths.
///
/// In SSE2 that is half as many instructions as on 64-bit words, in `word/bucket.rs`: a sixth more lookups a second in a table
/// that fits in the L2 cache.
#[inline(always)]
pub(crate) fn any_lane_is(first: u64, second: u64, lane: u32, lane_bits: u32) -> Option<bool> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8,
            _mm_set1_epi16, _mm_set1_epi32,
        };
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe {
            let words = _mm_set_epi64x(second as i64, first as i64);
            let equal = match lane_bits {
                8 => _mm_cmpeq_epi8(words, _mm_set1_epi8(lane as i8)),
                16 => _mm_cmpeq_epi16(words, _mm_set1_epi16(lane as i16)),
                32 => _mm_cmpeq_epi32(words, _mm_set1_epi32(lane as i32)),
                _ => return None,
            };
            Some(_mm_movemask_epi8(equal) != 0)
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let _ = (first, second, lane, lane_bits);
        None
    }
}
