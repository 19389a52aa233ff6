//! Pure: a hasher whose output is the same everywhere, for snapshots that outlive a process.

use core::fmt;
use core::hash::{BuildHasher, Hasher};

use siphasher::sip::SipHasher13;

/// A keyed hasher that gives the same hashes in every process, on every machine and in every version: SipHash-1-3, over
/// little-endian bytes. Only with the feature `stable-hash`.
///
/// For [snapshots](crate::ConcurrentCuckooFilter#method.save) that survive a restart, an upgrade and a move. It takes 10 to
/// 20 ns for a short key, some 10 more than ahash.
///
/// What it is given to hash is decided by the key's `Hash`. For `str`, `String`, `[u8]`, integers and tuples of these, that
/// is the same on every machine, and has been so for as long as the standard library has existed, though it does not
/// promise it; [`load`](crate::ConcurrentCuckooFilter::load) notices if it ever changes. For slices of integers larger than
/// a byte it depends on the machine's byte order, and for other types on whoever wrote their `Hash`. Who wants to depend on
/// none of this hashes bytes of their own by [`hash_bytes`](Self::hash_bytes), for the operations on hashes.
///
/// The key should be secret and random if those who choose the filter's keys may want to harm: SipHash is made for that (see
/// the section *Hazards* of the crate's documentation). All who load a snapshot need the key with which it was saved.
///
/// ```
/// use std::hash::BuildHasher;
/// use concurrent_cuckoo_filter::StableState;
///
/// let state = StableState::with_key([7; 16]);
/// assert_eq!(state.hash_one("a key"), StableState::with_key([7; 16]).hash_one("a key"));
/// assert_ne!(state.hash_one("a key"), StableState::with_key([8; 16]).hash_one("a key"));
/// ```
#[derive(Clone)]
pub struct StableState {
    /// Fed with the key and nothing else.
    keyed: SipHasher13,
}

impl StableState {
    /// A hasher with this key.
    #[must_use]
    pub fn with_key(key: [u8; 16]) -> Self {
        Self { keyed: SipHasher13::new_with_key(&key) }
    }

    /// The SipHash-1-3 of these bytes and nothing else, as any other implementation of it computes it: for the operations
    /// on hashes, such as [`insert_hash`](crate::ConcurrentCuckooFilter::insert_hash).
    ///
    /// Not the hash of the same bytes as a key, which has their number in it too; so all operations on a filter must take
    /// either one or the other.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, StableState};
    ///
    /// let seen = ConcurrentCuckooFilter::<[u8], _>::with_capacity_and_hasher(1000, StableState::with_key([7; 16]));
    /// let hash = seen.hasher().hash_bytes(b"\x00\x01\x02");
    /// seen.insert_hash(hash)?;
    /// assert!(seen.contains_hash(hash));
    /// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
    /// ```
    #[must_use]
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        self.keyed.hash(bytes)
    }
}

impl BuildHasher for StableState {
    type Hasher = StableHasher;

    fn build_hasher(&self) -> StableHasher {
        StableHasher(self.keyed)
    }
}

/// Without the key, which is a secret.
impl fmt::Debug for StableState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableState").finish_non_exhaustive()
    }
}

/// The [`Hasher`] of a [`StableState`]. Integers count as their little-endian bytes, `usize` and `isize` as eight.
#[derive(Clone)]
pub struct StableHasher(SipHasher13);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u8(&mut self, i: u8) {
        self.write(&[i]);
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

    // The other signed ones are written as unsigned ones of the same size; this one has to be made eight bytes long first.
    fn write_isize(&mut self, i: isize) {
        self.write_u64(i as i64 as u64);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Without its state, from which the key could be computed.
impl fmt::Debug for StableHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StableHasher").finish_non_exhaustive()
    }
}
