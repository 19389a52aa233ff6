//! Names that callers look for in a [`RecentCuckooFilter`], and what to call instead. `filter/expiring/signposts.rs` says
//! how this works.

use crate::filter::recent::filter::RecentCuckooFilter;

#[diagnostic::on_unimplemented(
    message = "a `RecentCuckooFilter` has no `with_capacity`, because it needs a window",
    label = "call `builder().last(1000).build()`, or `builder().within(duration, 1000).build()`"
)]
pub trait WithCapacity: Sized {
    fn made() -> Self;
}

#[diagnostic::on_unimplemented(
    message = "`RecentCuckooFilter::insert` is `insert_if_absent` already: it returns whether the key is new",
    label = "call `insert`"
)]
pub trait InsertIfAbsent {
    fn added(&self) -> bool;
}

impl<T: ?Sized, S> RecentCuckooFilter<T, S> {
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
    pub fn insert_if_absent<Q: ?Sized>(&self, _: &Q) -> bool
    where
        Self: InsertIfAbsent,
    {
        self.added()
    }
}
