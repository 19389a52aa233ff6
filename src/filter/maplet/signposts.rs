//! Names that callers look for in a [`CuckooMaplet`], and what to call instead.
//!
//! None of these functions can be called, because nothing implements the trait in its bound. They exist for the trait's
//! message, which rustc shows. Without them it suggests a name that is only similar: `digest` for `get`.

use crate::filter::maplet::filter::CuckooMaplet;
use crate::word::values::Values;

#[diagnostic::on_unimplemented(
    message = "a `CuckooMaplet` has no `with_capacity`, because it also needs the number of value bits",
    label = "call `builder().capacity(1000).value_bits(4).build()`"
)]
pub trait WithCapacity: Sized {
    fn made() -> Self;
}

#[diagnostic::on_unimplemented(
    message = "a `CuckooMaplet` has no `get`, because a key can have several values",
    label = "call `values`, which returns the set of them"
)]
pub trait Get {
    fn got(&self) -> Values;
}

impl<T: ?Sized, S> CuckooMaplet<T, S> {
    #[doc(hidden)]
    #[must_use]
    pub fn with_capacity(_: usize) -> Self
    where
        Self: WithCapacity,
    {
        Self::made()
    }

    #[doc(hidden)]
    #[must_use]
    pub fn get<Q: ?Sized>(&self, _: &Q) -> Values
    where
        Self: Get,
    {
        self.got()
    }
}
