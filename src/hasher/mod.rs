//! PURE: the hashers of keys that come with the crate.

pub(crate) mod default;
pub(crate) mod probe;
#[cfg(feature = "stable-hash")]
pub(crate) mod stable;
