//! What keeps others from implementing a public trait, so that it can get further methods.

/// A supertrait that nobody outside can name.
#[allow(unreachable_pub, reason = "public traits have it as a supertrait")]
pub trait Sealed {}
