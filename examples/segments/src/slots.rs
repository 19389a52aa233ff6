//! What the store asks of a maplet.

use std::fmt;
use std::io;
use std::path::Path;

use concurrent_cuckoo_filter::InsertError;

/// A set of pairs of a key and a slot. A lookup shows every slot of the key, and perhaps others.
///
/// All methods may be called at the same time. Each takes effect on one key in one step.
pub trait SlotMap: fmt::Debug + Send + Sync {
    /// Calls `visit` with each slot of the key, as of one moment of the call, and perhaps with other slots as well.
    fn slots(&self, key: &[u8], visit: &mut dyn FnMut(u16));

    /// Adds a pair for each key.
    ///
    /// # Errors
    /// If one is refused. Then none was added.
    fn insert_all(&self, keys: &[&[u8]], slot: u16) -> Result<(), InsertError>;

    /// Replaces one pair of the key and `old` by one of the key and `new`: at each moment one of the two is there.
    /// Returns `false` if there is no such pair. The pair must have been inserted: a pair that looks like it may be
    /// another key's.
    fn replace(&self, key: &[u8], old: u16, new: u16) -> bool;

    /// Removes one pair. Returns `false` if there is none. The pair must have been inserted.
    fn remove(&self, key: &[u8], slot: u16) -> bool;

    /// How many pairs there are.
    fn pairs(&self) -> usize;

    /// How many pairs it was built for.
    fn capacity(&self) -> usize;

    /// Bytes in memory.
    fn memory_usage(&self) -> usize;

    /// Saves it, in one durable step, with a position and an attachment.
    ///
    /// # Errors
    /// If the file can't be written.
    fn save(&self, path: &Path, position: u64, attachment: Vec<u8>) -> io::Result<()>;
}

/// A map that was loaded.
pub(crate) struct LoadedMap {
    pub(crate) map: Box<dyn SlotMap>,
    pub(crate) position: u64,
    pub(crate) attachment: Vec<u8>,
}
