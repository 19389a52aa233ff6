//! PURE: the hashers of keys that come with the crate.

pub(crate) mod default;
#[cfg(feature = "stable-hash")]
pub(crate) mod stable;
