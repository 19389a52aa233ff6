//! Which vector unit a loop is compiled for and runs on.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    allow(unsafe_code, reason = "a call of what is compiled for more than the target has; each has its SAFETY note")
)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::machine::arch::avx2;
#[cfg(ccf_avx512)]
use crate::machine::arch::avx512;
use crate::machine::arch::vectorized::{InstructionSet, VectorUnit, Vectorized};

impl VectorUnit {
    /// The widest that this processor has.
    #[inline]
    pub(crate) fn widest() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if avx2::is_available() {
            #[cfg(ccf_avx512)]
            if avx512::is_available_too() {
                return Self(InstructionSet::Avx512);
            }
            return Self(InstructionSet::Avx2);
        }
        Self(InstructionSet::Common)
    }

    /// All that this processor has.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![Self(InstructionSet::Common)];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if avx2::is_available() {
            all.push(Self(InstructionSet::Avx2));
            #[cfg(ccf_avx512)]
            if avx512::is_available_too() {
                all.push(Self(InstructionSet::Avx512));
            }
        }
        all
    }

    /// Does the work with this unit.
    #[inline(always)]
    pub(crate) fn run(self, work: impl Vectorized) {
        match self.0 {
            // SAFETY: a value with this unit exists only where AVX2 was found to be available, and AVX-512 too.
            #[cfg(ccf_avx512)]
            InstructionSet::Avx512 => unsafe { avx512::run(work) },
            // SAFETY: a value with this unit exists only where AVX2 was found to be available.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            InstructionSet::Avx2 => unsafe { avx2::run(work) },
            InstructionSet::Common => common(work),
        }
    }
}

/// Not inlined, like the code for the other units: a caller that is compiled for one of them needs no other.
#[inline(never)]
fn common(work: impl Vectorized) {
    work.run(VectorUnit(InstructionSet::Common));
}
