//! What only the processor's own instructions can do, or do well: the library's one module with `unsafe` code.
//!
//! Each function has a portable twin, which is what other processors and Miri run.
#![allow(unsafe_code, reason = "the intrinsics are unsafe to call; each call has its SAFETY note")]

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
/// In SSE2 that is half as many instructions as in `bucket.rs`, where it is done on 64-bit words: two lookups of three
/// have the words in the cache, and a third more of them a second.
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
