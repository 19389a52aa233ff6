//! The hasher that a filter uses by default.

use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};

use crate::machine::drawn::RandomNumbers;

/// The hasher that a filter uses by default: fast, and keyed at random.
///
/// [`new`](Self::new) and [`Default`] draw new random keys each time. So two of these are not the same hasher, but
/// clones are. After a `fork`, parent and child draw different keys; a filter that was made before has the same keys in
/// both.
///
/// It is `ahash`. Any version of this crate may use another function, so **don't store its hashes**. Don't choose
/// it for snapshots that outlive the process: use `StableHashBuilder` for those (needs the feature `stable-hash`).
/// `ahash` is keyed, but it is not a cryptographic function: the page [`security`](crate::guide::security) says when
/// that matters.
#[derive(Clone)]
pub struct DefaultHashBuilder(ahash::RandomState);

impl DefaultHashBuilder {
    /// A hasher with new random keys.
    #[must_use]
    pub fn new() -> Self {
        // SipHash under a secret key is indistinguishable from random numbers. This spares a dependency that does not
        // compile for `wasm32-unknown-unknown`.
        let drawn = RandomNumbers::new();
        let key = |number: u64| drawn.number(number);
        Self(ahash::RandomState::with_seeds(key(0), key(1), key(2), key(3)))
    }
}

impl Default for DefaultHashBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher(self.0.build_hasher())
    }

    #[inline]
    fn hash_one<T: Hash>(&self, key: T) -> u64 {
        self.0.hash_one(key)
    }
}

/// Shows nothing of the keys, which are secret.
impl fmt::Debug for DefaultHashBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHashBuilder").finish_non_exhaustive()
    }
}

/// The [`Hasher`] of a [`DefaultHashBuilder`].
#[derive(Clone)]
pub struct DefaultHasher(ahash::AHasher);

macro_rules! handed_on {
    ($($write:ident($integer:ty)),*) => {$(
        #[inline]
        fn $write(&mut self, value: $integer) {
            self.0.$write(value);
        }
    )*};
}

impl Hasher for DefaultHasher {
    handed_on!(write_u8(u8), write_u16(u16), write_u32(u32), write_u64(u64), write_u128(u128), write_usize(usize));

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Shows nothing of its state, from which the keys could be computed.
impl fmt::Debug for DefaultHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_hash_alike_and_others_do_not() {
        let one = DefaultHashBuilder::new();
        let other = DefaultHashBuilder::default();
        let hashes =
            |state: &DefaultHashBuilder| [state.hash_one("a key"), state.hash_one(7u64), state.hash_one((1u8, -2i64))];
        assert_eq!(hashes(&one), hashes(&one.clone()));
        assert!(hashes(&one).iter().zip(hashes(&other)).all(|(one, other)| *one != other));
        // `hash_one` and the hasher agree, as `BuildHasher` asks.
        #[allow(clippy::manual_hash_one, reason = "it is what `hash_one` is compared with")]
        let by_hasher = {
            let mut hasher = one.build_hasher();
            "a key".hash(&mut hasher);
            hasher.finish()
        };
        assert_eq!(by_hasher, one.hash_one("a key"));
    }

    #[test]
    fn the_keys_are_not_shown() {
        let state = DefaultHashBuilder::new();
        assert_eq!(format!("{state:?}, {:?}", state.build_hasher()), "DefaultHashBuilder { .. }, DefaultHasher { .. }");
    }
}
