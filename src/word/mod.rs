//! PURE: how a key's hash becomes a fingerprint and two buckets, and what the 64 bits of a bucket mean. No atomics,
//! no locks, no input or output. (The decode tables are built once for the whole process.)

pub(crate) mod bucket;
pub(crate) mod by_row;
#[cfg(feature = "snapshot")]
pub(crate) mod check;
pub(crate) mod classes;
pub(crate) mod digest;
pub(crate) mod geometry;
pub(crate) mod halves;
pub(crate) mod human;
pub(crate) mod layout;
pub(crate) mod layouts;
pub(crate) mod payloads;
pub(crate) mod quota;
pub(crate) mod ring;
pub(crate) mod semisort;
pub(crate) mod table_layout;
pub(crate) mod tick;
pub(crate) mod values;
pub(crate) mod window;
