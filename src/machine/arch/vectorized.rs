//! What can be compiled for each vector unit.

/// Work in loops over arrays, which the compiler turns into vector instructions.
pub(crate) trait Vectorized {
    /// This must be `#[inline(always)]`, and so must everything that it calls in those loops. Then it is compiled
    /// for the vector unit that does it.
    fn run(self);
}
