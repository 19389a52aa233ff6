//! The comparison in registers of 128 bits, with SSE2, which every x86-64 processor has. `word/bucket.rs` explains the
//! arithmetic.
#![allow(unsafe_code, reason = "intrinsics are unsafe to call; each block has its SAFETY note")]

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_cvtsi32_si128,
    _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_set1_epi16,
    _mm_set1_epi32, _mm_set1_epi64x, _mm_setzero_si128, _mm_sll_epi64, _mm_sub_epi64, _mm_unpackhi_epi64,
    _mm_unpacklo_epi64, _mm_xor_si128,
};

use crate::machine::arch::comparison::Comparison;

impl Comparison {
    /// Whether a lane of either word is equal. `LISTS` says whether the layout is semi-sorted. `LANE_BITS` is how wide
    /// the lanes are, or 0; the processor itself compares lanes of 8, 16 or 32 bits. `SAME` says whether both words are
    /// compared with the same.
    #[inline(always)]
    pub(crate) fn is_any_lane_equal<const LISTS: bool, const LANE_BITS: u8, const SAME: bool>(self) -> bool {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe {
            let words = pair(self.words);
            let equal = match (LISTS, LANE_BITS, SAME) {
                (false, 8, true) => _mm_cmpeq_epi8(words, _mm_set1_epi8(self.low as i8)),
                (false, 16, true) => _mm_cmpeq_epi16(words, _mm_set1_epi16(self.low as i16)),
                (false, 32, true) => _mm_cmpeq_epi32(words, _mm_set1_epi32(self.low as i32)),
                (false, 8, false) => _mm_cmpeq_epi8(words, pair(self.lows)),
                (false, 16, false) => _mm_cmpeq_epi16(words, pair(self.lows)),
                (false, 32, false) => _mm_cmpeq_epi32(words, pair(self.lows)),
                _ => {
                    let none = _mm_cmpeq_epi32(self.equal_lanes_of_both::<LISTS>(), _mm_setzero_si128());
                    return _mm_movemask_epi8(none) != 0xffff;
                }
            };
            _mm_movemask_epi8(equal) != 0
        }
    }

    /// The top bit of the lowest lane of each word that is equal, perhaps with top bits above it; 0 if none is.
    #[inline(always)]
    pub(crate) fn equal_lanes<const LISTS: bool>(self) -> [u64; 2] {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe {
            let lanes = self.equal_lanes_of_both::<LISTS>();
            let high = _mm_unpackhi_epi64(lanes, lanes);
            [_mm_cvtsi128_si64(lanes) as u64, _mm_cvtsi128_si64(high) as u64]
        }
    }

    #[inline(always)]
    fn equal_lanes_of_both<const LISTS: bool>(self) -> __m128i {
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe {
            // In integers: a word takes one instruction less to compare than to fill a register with the pattern.
            let mut differences = pair([self.words[0] ^ self.lows[0], self.words[1] ^ self.lows[1]]);
            if LISTS {
                let [first, second] = self.folded;
                let folded = _mm_unpacklo_epi64(_mm_cvtsi32_si128(first as i32), _mm_cvtsi32_si128(second as i32));
                let lists = _mm_or_si128(folded, _mm_sll_epi64(folded, _mm_cvtsi32_si128(self.fold as i32)));
                let of_lists = _mm_and_si128(_mm_xor_si128(lists, pair(self.highs)), both(self.list));
                differences = _mm_or_si128(differences, of_lists);
            }
            let zero = _mm_andnot_si128(differences, _mm_sub_epi64(differences, both(self.ones)));
            _mm_and_si128(zero, both(self.tops))
        }
    }
}

#[inline(always)]
fn pair([first, second]: [u64; 2]) -> __m128i {
    // SAFETY: SSE2 is part of every x86-64 processor.
    unsafe { _mm_unpacklo_epi64(_mm_cvtsi64_si128(first as i64), _mm_cvtsi64_si128(second as i64)) }
}

#[inline(always)]
fn both(word: u64) -> __m128i {
    // SAFETY: SSE2 is part of every x86-64 processor.
    unsafe { _mm_set1_epi64x(word as i64) }
}
