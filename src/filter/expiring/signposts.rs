//! Names that callers look for in an [`ExpiringCuckooFilter`], and what to call instead.
//!
//! None of these functions can be called, because nothing implements the trait in its bound. They exist for the trait's
//! message, which rustc shows. Without them it says something unrelated: that the filter is not an iterator (which would
//! have a `count`), or that there is a `capacity`.

use crate::filter::expiring::filter::ExpiringCuckooFilter;

#[diagnostic::on_unimplemented(
    message = "an `ExpiringCuckooFilter` has no `with_capacity`, because it also needs a lifetime",
    label = "call `builder().capacity(1000).lifetime(longest).build()`"
)]
pub trait WithCapacity: Sized {
    fn made() -> Self;
}

#[diagnostic::on_unimplemented(
    message = "an `ExpiringCuckooFilter` has no `count` of a key's entries",
    label = "call `contains` or `expires_at`; `len` and `live_len` count the entries of all keys"
)]
pub trait Count {
    fn counted(&self) -> usize;
}

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
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
    pub fn count<Q: ?Sized>(&self, _: &Q) -> usize
    where
        Self: Count,
    {
        self.counted()
    }
}
