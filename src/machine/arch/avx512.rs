//! Loops compiled for AVX-512, in registers of 512 bits.
//!
//! It is AVX-512 as processors have it since 2019 (Ice Lake, Zen 4). Earlier processors slow down when they use it.

use crate::machine::arch::vectorized::{InstructionSet, VectorUnit, Vectorized};

/// Whether this processor, which has what AVX2 loops need (`avx2.rs`), also has the further features that [`run`] is
/// compiled for, and is one of the later processors.
#[inline(always)]
pub(super) fn is_available_too() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        // Its presence marks the later processors.
        && is_x86_feature_detected!("avx512vbmi2")
}

/// Does the work with AVX-512. Unsafe to call for a caller that is compiled for less: it must know that
/// AVX2 is available, and [`is_available_too`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn run(work: impl Vectorized) {
    work.run(VectorUnit(InstructionSet::Avx512));
}
