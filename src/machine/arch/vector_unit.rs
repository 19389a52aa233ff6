//! Which vector unit a loop is compiled for and runs on.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    allow(unsafe_code, reason = "a call of what is compiled for more than the target has; each has its SAFETY note")
)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::machine::arch::avx2;
#[cfg(ccf_avx512)]
use crate::machine::arch::avx512;
use crate::machine::arch::vectorized::Vectorized;

/// The vector units that loops are compiled for. Architectures other than x86-64 have one: what each processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum VectorUnit {
    /// The baseline of the target: SSE2 on x86-64, NEON on AArch64.
    Common,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// Only if the compiler has it, too.
    #[cfg(ccf_avx512)]
    Avx512,
}

impl VectorUnit {
    /// The widest that this processor has.
    #[inline]
    pub(crate) fn widest() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if avx2::is_available() {
            #[cfg(ccf_avx512)]
            if avx512::is_available_too() {
                return Self::Avx512;
            }
            return Self::Avx2;
        }
        Self::Common
    }

    /// Does the work with this unit, or with the widest that there is if that is less. Not inlined: it has the work three
    /// times.
    #[inline(never)]
    pub(crate) fn run(self, work: impl Vectorized) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        match self.min(Self::widest()) {
            // SAFETY: `widest` has found that AVX2 is available, and AVX-512 too.
            #[cfg(ccf_avx512)]
            Self::Avx512 => return unsafe { avx512::run(work) },
            // SAFETY: `widest` has found that AVX2 is available.
            Self::Avx2 => return unsafe { avx2::run(work) },
            Self::Common => (),
        }
        work.run();
    }
}
