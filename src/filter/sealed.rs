//! Keeps other crates from implementing a public trait, so that later versions can add methods to it.

/// A supertrait that no other crate can name.
#[allow(unreachable_pub, reason = "public traits have it as a supertrait")]
pub trait Sealed {}
