//! The schema: the name for what a filter's keys are, as snapshots declare it.

#[cfg(feature = "snapshot")]
use core::any::type_name;
#[cfg(feature = "snapshot")]
use std::borrow::Cow;

#[cfg(feature = "snapshot")]
use crate::error::build::BuildError;

/// The most bytes of a schema.
#[cfg(feature = "snapshot")]
pub(crate) const MAX_SCHEMA: usize = u8::MAX as usize;

/// The caller's name, or else the name of the key type. Without snapshots it takes no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots have one"))]
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
pub struct Schema(#[cfg(feature = "snapshot")] Option<Box<str>>);

#[cfg(feature = "snapshot")]
impl Schema {
    pub(crate) fn named(name: String) -> Self {
        Self(Some(name.into_boxed_str()))
    }

    /// Whether the name fits in a snapshot.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        match &self.0 {
            Some(name) if name.len() > MAX_SCHEMA => {
                Err(BuildError::SchemaTooLong { len: name.len(), limit: MAX_SCHEMA })
            }
            _ => Ok(()),
        }
    }

    /// The name, for keys of type `T`.
    pub(crate) fn name<T: ?Sized>(&self) -> Cow<'_, str> {
        match &self.0 {
            Some(name) => Cow::Borrowed(name),
            None => default_name(type_name::<T>()),
        }
    }
}

/// The type's name if it is short enough; otherwise its beginning, and a checksum of all of it.
#[cfg(feature = "snapshot")]
fn default_name(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_SCHEMA {
        return Cow::Borrowed(name);
    }
    let sum = format!("#{:08x}", crc32fast::hash(name.as_bytes()));
    let mut kept = MAX_SCHEMA - sum.len();
    while !name.is_char_boundary(kept) {
        kept -= 1;
    }
    Cow::Owned(format!("{}{sum}", &name[..kept]))
}

#[cfg(all(test, feature = "snapshot"))]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_told_apart_by_a_checksum() {
        let fits = "a".repeat(MAX_SCHEMA);
        assert_eq!(default_name(&fits), fits);
        // The name fills the room, but never ends within a character.
        for (beginning, len) in [("b", MAX_SCHEMA), ("é", MAX_SCHEMA - 1)] {
            let names = ["x", "y"].map(|end| format!("{}{beginning}{}{end}", "a".repeat(245), "c".repeat(9)));
            let [one, other] = names.each_ref().map(|name| default_name(name));
            assert_ne!(one, other);
            assert_eq!((one.len(), other.len()), (len, len), "{one} {other}");
            assert!(one.starts_with(&"a".repeat(245)), "{one}");
        }
    }
}
