//! PURE: the hashers of keys that come with the crate.

#[cfg(feature = "stable-hash")]
pub(crate) mod stable;
