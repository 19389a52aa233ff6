//! What the library asks of the processor: prefetches, accesses without a bounds check, the comparison of a lookup,
//! and loops compiled for the widest vector unit. There is one file per vector unit. The build script sets
//! `ccf_avx512` if the compiler has AVX-512.
//!
//! None of it changes what a program computes. On architectures without a file here, and under Miri, the comparison is
//! arithmetic on words (`generic.rs`), and loops are compiled for what every processor of the target has.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(ccf_avx512)]
mod avx512;
mod comparison;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod generic;
mod prefetch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod sse2;
mod unchecked;
mod vector_unit;
mod vectorized;

pub(crate) use comparison::Comparison;
pub(crate) use prefetch::{prefetch, prefetch_line};
pub(crate) use unchecked::{at, at_step};
pub(crate) use vectorized::{VectorUnit, Vectorized};
