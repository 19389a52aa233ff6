//! PURE: a hasher whose output is the same everywhere, for snapshots that outlive a process.

use core::fmt;
use core::hash::{BuildHasher, Hasher};

use siphasher::sip::SipHasher13;

/// A keyed hasher that gives the same hashes in every process, on every machine and in every version: SipHash-1-3,
/// over little-endian bytes. Needs the feature `stable-hash`.
///
/// Use it for [snapshots](crate::ConcurrentCuckooFilter#method.save) that must survive a restart, an upgrade or a
/// move. It takes 10 to 20 ns for a short key, about 10 more than ahash.
///
/// The key's `Hash` decides which bytes it hashes. For `str`, `String`, `[u8]`, integers and tuples of these, the bytes
/// are the same on every machine. They have been so for as long as the standard library has existed, although it does
/// not promise it; [`load`](crate::ConcurrentCuckooFilter::load) notices if they ever change. For slices of integers
/// larger than a byte, the bytes depend on the machine's byte order. For other types, they depend on the author of
/// their `Hash`. To depend on none of this, hash bytes of your own by [`hash_bytes`](Self::hash_bytes), for
/// `by_hash()`.
///
/// The hasher's key should be secret and random if those who choose the filter's keys may want to do harm. SipHash is
/// designed to resist them: see the page [`security`](crate::guide::security). Everyone who loads a snapshot needs the
/// key with which it was saved.
#[derive(Clone)]
pub struct StableHashBuilder {
    /// A SipHash that was fed the key and nothing else.
    keyed: SipHasher13,
}

impl StableHashBuilder {
    /// Returns a hasher with this key. Make one with 16 random bytes, for example by `head -c 16 /dev/urandom > key`,
    /// keep it as secret as a password, and read it with `<[u8; 16]>::try_from(&*fs::read("key")?)?`.
    #[must_use]
    pub fn with_key(key: [u8; 16]) -> Self {
        Self { keyed: SipHasher13::new_with_key(&key) }
    }

    /// Returns the SipHash-1-3 of these bytes and nothing else, as any other implementation computes it. It is for
    /// [`by_hash`](crate::ConcurrentCuckooFilter::by_hash).
    ///
    /// It differs from the hash of the same bytes as a key, because that hash also includes their number. So all
    /// operations on a filter must use one of the two.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Hashed, StableHashBuilder};
    ///
    /// let hasher = StableHashBuilder::with_key([7; 16]);
    /// let seen = ConcurrentCuckooFilter::<[u8], _>::with_capacity_and_hasher(1000, hasher);
    /// let hash = Hashed(seen.hasher().hash_bytes(b"\x00\x01\x02"));
    /// seen.by_hash().insert(hash)?;
    /// assert!(seen.by_hash().contains(hash));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        self.keyed.hash(bytes)
    }
}

impl BuildHasher for StableHashBuilder {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        StableHasher(self.keyed)
    }
}

/// Shows nothing of the key, which is a secret.
impl fmt::Debug for StableHashBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableHashBuilder").finish_non_exhaustive()
    }
}

/// The [`Hasher`] of a [`StableHashBuilder`]. Integers count as their little-endian bytes, `usize` and `isize` as eight
/// bytes. Needs the feature `stable-hash`.
#[derive(Clone)]
pub struct StableHasher(SipHasher13);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u16(&mut self, i: u16) {
        self.write(&i.to_le_bytes());
    }

    fn write_u32(&mut self, i: u32) {
        self.write(&i.to_le_bytes());
    }

    fn write_u64(&mut self, i: u64) {
        self.write(&i.to_le_bytes());
    }

    fn write_u128(&mut self, i: u128) {
        self.write(&i.to_le_bytes());
    }

    fn write_usize(&mut self, i: usize) {
        self.write_u64(i as u64);
    }

    // Other signed integers are written as unsigned ones of the same size. This one must first be extended to eight
    // bytes.
    fn write_isize(&mut self, i: isize) {
        self.write_u64(i as i64 as u64);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Shows nothing of its state, from which the key could be computed.
impl fmt::Debug for StableHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected hashes are SipHash-1-3 with the key 00 01 … 0f, from a separate program, which gives the
    /// reference's answers for SipHash-2-4.
    #[test]
    fn hashes_are_those_of_another_implementation() {
        let state = StableHashBuilder::with_key(core::array::from_fn(|i| i as u8));
        assert_eq!(state.hash_bytes(&[]), 0xabac_0158_050f_c4dc);
        assert_eq!(state.hash_bytes(&[0, 1, 254]), 0xa78d_f708_f1ce_825b);
        // As std encodes them: text ends with ff, and a slice begins with its length.
        assert_eq!(state.hash_one("a key"), 0x62a7_97af_b90e_f23b);
        assert_eq!(state.hash_one(&[0u8, 1, 254][..]), 0xf209_85a5_a746_b4cd);
        assert_eq!(state.hash_one(("a", 7u32)), 0x2111_97aa_b20a_1f26);
        assert_eq!(state.hash_one(7u8), 0xe8f9_2ff6_38a4_7677);
        assert_eq!(state.hash_one(-2i16), 0xbcea_42b3_14fa_202c);
        assert_eq!(state.hash_one(0x89ab_cdef_u32), 0x557f_2005_3c28_d325);
        assert_eq!(state.hash_one(0x0123_4567_89ab_cdef_u64), 0x0782_a12a_072f_7a64);
        assert_eq!(state.hash_one(0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128), 0x06ed_0348_70d1_1ef4);
        // Eight bytes on every machine.
        assert_eq!(state.hash_one(5usize), 0x4ed8_8d03_83a9_5d2d);
        assert_eq!(state.hash_one(-5isize), 0xcb08_f2da_58bd_bd06);
    }

    #[test]
    fn the_key_is_not_shown() {
        let state = StableHashBuilder::with_key([0x5a; 16]);
        assert_eq!(format!("{state:?}, {:?}", state.build_hasher()), "StableHashBuilder { .. }, StableHasher { .. }");
    }
}
