//! What can be compiled for each vector unit, and which units there are.

/// A vector unit that this processor has: a value is made only after the unit was detected, which is once per batch, or by
/// code that runs on it. (`vector_unit.rs` has its functions.)
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorUnit(pub(super) InstructionSet);

/// The instruction sets that loops are compiled for, each that of a vector unit. Architectures other than x86-64 have one:
/// what each processor has.
#[derive(Clone, Copy, Debug)]
pub(super) enum InstructionSet {
    /// The baseline of the target: SSE2 on x86-64, NEON on AArch64.
    Common,
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Avx2,
    /// Only if the compiler has it, too.
    #[cfg(ccf_avx512)]
    Avx512,
}

/// Work in loops over arrays, which the compiler turns into vector instructions.
pub(crate) trait Vectorized {
    /// This must be `#[inline(always)]`, and so must everything that it calls in those loops. Then it is compiled
    /// for the vector unit that does it.
    ///
    /// `unit` is that one, a constant: a part that others have too may be compiled once for each unit, and be called by
    /// `VectorUnit::run`.
    fn run(self, unit: VectorUnit);
}
