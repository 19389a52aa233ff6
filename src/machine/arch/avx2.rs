//! Loops compiled for AVX2, in registers of 256 bits.

use crate::machine::arch::vectorized::{InstructionSet, VectorUnit, Vectorized};

/// Whether this processor has all the features that [`run`] is compiled for. The standard library detects them once.
#[inline(always)]
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Does the work with AVX2. Unsafe to call for a caller that is compiled for less: it must know that
/// [`is_available`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run(work: impl Vectorized) {
    work.run(VectorUnit(InstructionSet::Avx2));
}
