//! What can be compiled for each vector unit.

use crate::machine::arch::vector_unit::VectorUnit;

/// Work in loops over arrays, which the compiler turns into vector instructions.
pub(crate) trait Vectorized {
    /// This must be `#[inline(always)]`, and so must everything that it calls in those loops. Then it is compiled
    /// for the vector unit that does it.
    ///
    /// `unit` is that one, a constant: a part that others have too may be compiled once for each unit, and be called by
    /// [`VectorUnit::run`].
    fn run(self, unit: VectorUnit);
}
