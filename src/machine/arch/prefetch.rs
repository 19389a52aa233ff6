//! Prefetching: hints that a cache line will be read soon.
#![allow(unsafe_code, reason = "the processor's hints are unsafe to call; each has its SAFETY note")]

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
