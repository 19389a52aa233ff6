//! The processor's own instructions, and calls of the system. The other modules with `unsafe` code, `range.rs`,
//! `segments.rs` and `words.rs`, are about the memory of growing tables.
//!
//! None of it changes what a program computes. On other architectures, and under Miri, the hints are left out, the
//! comparison is arithmetic on words, and loops are compiled for what every processor of the target has.
//!
//! [`at`] and [`at_step`] are the two accesses without a bounds check.
#![allow(unsafe_code, reason = "intrinsics and system calls are unsafe to call; each has its SAFETY note")]

#[cfg(all(target_os = "linux", not(any(miri, ccf_model))))]
use crate::machine::pages::whole_pages;
#[cfg(not(ccf_model))]
use crate::sync::AtomicU64;

/// The size of the system's pages in bytes. It is a setting of the kernel: 4 KiB on x86-64, and 4, 16 or 64 KiB on others.
/// `None` if the system does not say, or is not asked.
pub(crate) fn page_size() -> Option<usize> {
    #[cfg(all(any(target_os = "linux", target_os = "macos"), not(any(miri, ccf_model))))]
    // SAFETY: this only returns a number.
    return usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok();
    #[cfg(not(all(any(target_os = "linux", target_os = "macos"), not(any(miri, ccf_model)))))]
    None
}

/// Asks the system to back this memory with huge pages (2 MiB on x86-64). A large table needs so few of them that the
/// TLB holds all.
///
/// Linux grants it if `/sys/kernel/mm/transparent_hugepage/enabled` says `madvise` or `always`, and if it has such
/// pages free. This is best effort: a failure changes only the speed.
#[cfg(target_os = "linux")]
pub(crate) fn ask_for_huge_pages<T>(memory: &mut [T]) {
    #[cfg(not(any(miri, ccf_model)))]
    if let Some(page) = page_size()
        && let Some(pages) = whole_pages(memory.as_ptr().addr(), size_of_val(memory), page)
    {
        let start = memory.as_mut_ptr().wrapping_byte_add(pages.start).cast();
        // SAFETY: the pages lie within `memory`, which is borrowed for this call, and they are whole ones, so the system
        // has nothing to round. This advice changes neither what they hold nor who may use them.
        let _ = unsafe { libc::madvise(start, pages.len(), libc::MADV_HUGEPAGE) };
    }
    #[cfg(any(miri, ccf_model))]
    let _ = memory;
}

/// Returns the whole pages of this list to the system, on Linux. Returns whether it did. Afterwards each element in
/// them is 0, or what it was. (A caller may not rely on either. A global allocator can give out memory that is mapped
/// from a file, and then it is what the file has.)
#[cfg(not(ccf_model))]
pub(crate) fn release(list: &[AtomicU64]) -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    if let Some(page) = page_size() {
        // SAFETY: the system reports this size.
        return unsafe { release_pages(list, page) };
    }
    let _ = list;
    false
}

/// [`release`] with pages of this size.
///
/// # Safety
/// `page` is the size of the system's pages, or a multiple of it. The system rejects a start within a page. But it
/// rounds a *length* up to whole pages, and the rest of the last one may belong to something else.
#[cfg(all(target_os = "linux", not(any(miri, ccf_model))))]
unsafe fn release_pages(list: &[AtomicU64], page: usize) -> bool {
    whole_pages(list.as_ptr().addr(), size_of_val(list), page).is_none_or(|pages| {
        let start = list.as_ptr().cast_mut().wrapping_byte_add(pages.start).cast();
        // SAFETY: the pages lie within `list`, and by the caller's promise they are whole ones of the system's, so it has
        // nothing to round. It replaces them by others; for a thread that uses an element meanwhile, that is a store. The
        // elements are atomics, so it may happen while the list is shared, and any value is a valid one.
        unsafe { libc::madvise(start, pages.len(), libc::MADV_DONTNEED) == 0 }
    })
}

/// A list of `len` zeros, or `None` if the allocation fails. For a large list it asks the system for pages, and the
/// system clears each when it is first touched. So this takes no time, whatever the length.
#[cfg(not(ccf_model))]
pub(crate) fn zeroed(len: usize) -> Option<Box<[AtomicU64]>> {
    use std::alloc::{Layout, alloc_zeroed};

    let layout = Layout::array::<AtomicU64>(len).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not 0.
    let memory = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    // SAFETY: the memory is from the global allocator, with the layout of `len` elements. Zeros are a valid `AtomicU64`
    // each, so all `len` elements are initialized.
    (!memory.is_null()).then(|| unsafe { Vec::from_raw_parts(memory, len, len) }.into_boxed_slice())
}

/// Prefetches the cache line of `list[index]`. It changes nothing, and does not wait. (Not on all architectures.)
#[inline(always)]
pub(crate) fn prefetch<T>(list: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of every x86-64 processor. A prefetch has no effect that a program can observe,
        // whatever the address is, so the index need not be checked either.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(list.as_ptr().wrapping_add(index).cast()) }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as on x86-64: a prefetch of any address has no effect that a program can observe.
    unsafe {
        let line = list.as_ptr().wrapping_add(index);
        core::arch::asm!("prfm pldl1keep, [{line}]", line = in(reg) line, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    let _ = (list, index);
}

#[inline(always)]
pub(crate) fn prefetch_line<T>(value: &T) {
    prefetch(core::slice::from_ref(value), 0);
}

/// `list[index]`, without comparing the index with the length. Those comparisons would be a tenth of a lookup's
/// instructions.
///
/// Only for an index that is below the length *by construction*, whatever a caller of the library does and whatever
/// a snapshot holds. There are three:
///
/// | list | index | why it is below the length |
/// |---|---|---|
/// | a table's words (`table/table.rs`) | a bucket | `Buckets` returns numbers below its count for any hash, any fingerprint and any such number (tested in `word/geometry_tests.rs`); a table has as many words as that |
/// | shards of counters (`table/counters.rs`) | a thread's number times the distance of two shards, masked | the mask is the length less one |
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
/// Only for a table's stripes (`table/table.rs`), by a masked sum: their number is a power of two, and the mask is
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

/// Work in loops over arrays, which the compiler turns into vector instructions.
pub(crate) trait Vectorized {
    /// This must be `#[inline(always)]`, and so must everything that it calls in those loops. Then it is compiled
    /// for the vector unit that does it.
    fn run(self);
}

/// The vector units that loops are compiled for. Architectures other than x86-64 have one: what each processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VectorUnit {
    /// The baseline of the target: SSE2 on x86-64, NEON on AArch64.
    Common,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// AVX-512 as processors have it since 2019 (Ice Lake, Zen 4). Earlier processors slow down when they use it.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx512,
}

impl VectorUnit {
    /// The widest that this processor has. The standard library detects it once.
    #[inline]
    pub(crate) fn widest() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                // Its presence marks the later processors.
                && is_x86_feature_detected!("avx512vbmi2");
            if avx2 && avx512 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Common
    }

    /// Does the work with this unit, or with the widest that there is if that is less. Not inlined: it has the work three
    /// times.
    #[inline(never)]
    pub(crate) fn run(self, work: impl Vectorized) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn by_avx2(work: impl Vectorized) {
                work.run();
            }

            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
            fn by_avx512(work: impl Vectorized) {
                work.run();
            }

            match self.min(Self::widest()) {
                // SAFETY: `widest` has found that the processor has all the features that the function is compiled
                // for.
                Self::Avx512 => return unsafe { by_avx512(work) },
                // SAFETY: as for AVX-512.
                Self::Avx2 => return unsafe { by_avx2(work) },
                Self::Common => (),
            }
        }
        work.run();
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) words: [u64; 2],
    /// What each lane is compared with: once, if it is the same in both words, and in all lanes of each.
    #[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code, reason = "only SSE2 needs it"))]
    pub(crate) low: u32,
    pub(crate) lows: [u64; 2],
    /// In a semi-sorted layout: the lists of both words, folded, how to unfold them (`word/semisort.rs`), and what the
    /// high parts are compared with.
    pub(crate) folded: [u32; 2],
    pub(crate) fold: u32,
    pub(crate) list: u64,
    pub(crate) highs: [u64; 2],
    /// The lowest and the highest bit of every lane.
    pub(crate) ones: u64,
    pub(crate) tops: u64,
}

/// Comparisons of all lanes of two words at once, in registers of 128 bits. `word/bucket.rs` explains the arithmetic.
#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Comparison {
    /// Whether a lane of either word is equal. `LISTS` says whether the layout is semi-sorted. `LANE_BITS` is how wide
    /// the lanes are, or 0; the processor itself compares lanes of 8, 16 or 32 bits. `SAME` says whether both words are
    /// compared with the same.
    #[inline(always)]
    pub(crate) fn is_any_lane_equal<const LISTS: bool, const LANE_BITS: u8, const SAME: bool>(self) -> bool {
        use core::arch::x86_64::{
            _mm_cmpeq_epi8, _mm_cmpeq_epi16, _mm_cmpeq_epi32, _mm_movemask_epi8, _mm_set1_epi8, _mm_set1_epi16,
            _mm_set1_epi32, _mm_setzero_si128,
        };
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
        use core::arch::x86_64::{_mm_cvtsi128_si64, _mm_unpackhi_epi64};
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe {
            let lanes = self.equal_lanes_of_both::<LISTS>();
            [lanes, _mm_unpackhi_epi64(lanes, lanes)].map(|lanes| _mm_cvtsi128_si64(lanes) as u64)
        }
    }

    #[inline(always)]
    fn equal_lanes_of_both<const LISTS: bool>(self) -> core::arch::x86_64::__m128i {
        use core::arch::x86_64::{
            _mm_and_si128, _mm_andnot_si128, _mm_cvtsi32_si128, _mm_or_si128, _mm_sll_epi64, _mm_sub_epi64,
            _mm_unpacklo_epi64, _mm_xor_si128,
        };
        // SAFETY: SSE2 is part of every x86-64 processor.
        unsafe {
            // In integers: a word takes one instruction less to compare than to fill a register with the pattern.
            let mut differences = pair([self.words[0] ^ self.lows[0], self.words[1] ^ self.lows[1]]);
            if LISTS {
                let [first, second] = self.folded.map(|list| _mm_cvtsi32_si128(list as i32));
                let folded = _mm_unpacklo_epi64(first, second);
                let lists = _mm_or_si128(folded, _mm_sll_epi64(folded, _mm_cvtsi32_si128(self.fold as i32)));
                let of_lists = _mm_and_si128(_mm_xor_si128(lists, pair(self.highs)), both(self.list));
                differences = _mm_or_si128(differences, of_lists);
            }
            let zero = _mm_andnot_si128(differences, _mm_sub_epi64(differences, both(self.ones)));
            _mm_and_si128(zero, both(self.tops))
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn pair([first, second]: [u64; 2]) -> core::arch::x86_64::__m128i {
    use core::arch::x86_64::{_mm_cvtsi64_si128, _mm_unpacklo_epi64};
    // SAFETY: SSE2 is part of every x86-64 processor.
    unsafe { _mm_unpacklo_epi64(_mm_cvtsi64_si128(first as i64), _mm_cvtsi64_si128(second as i64)) }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn both(word: u64) -> core::arch::x86_64::__m128i {
    // SAFETY: SSE2 is part of every x86-64 processor.
    unsafe { core::arch::x86_64::_mm_set1_epi64x(word as i64) }
}

/// The comparison in integers, for other processors.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
impl Comparison {
    #[inline(always)]
    pub(crate) fn is_any_lane_equal<const LISTS: bool, const LANE_BITS: u8, const SAME: bool>(self) -> bool {
        let [in_first, in_second] = self.equal_lanes::<LISTS>();
        in_first | in_second != 0
    }

    #[inline(always)]
    pub(crate) fn equal_lanes<const LISTS: bool>(self) -> [u64; 2] {
        core::array::from_fn(|nth| {
            let mut differences = self.words[nth] ^ self.lows[nth];
            if LISTS {
                let folded = u64::from(self.folded[nth]);
                differences |= ((folded | folded << self.fold) ^ self.highs[nth]) & self.list;
            }
            differences.wrapping_sub(self.ones) & !differences & self.tops
        })
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, ccf_model))))]
#[path = "arch_tests.rs"]
mod tests;
