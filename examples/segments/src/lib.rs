//! A key-value store of immutable sorted segments: "which segment has the key?"
//!
//! A put goes into a sorted map, the *memtable*. A *flush* writes the memtable to a new *segment*, which never changes.
//! A *compaction* merges neighboring segments. A get takes the newest entry of its key. To find the segment with it, the
//! store asks one maplet. Everything is in memory, so that only the steps remain that a maplet needs. [`maintenance`]
//! has the order of these steps, and why no get misses a key.
//!
//! ```
//! use segments::Store;
//!
//! let store = Store::new(100_000)?;
//! store.put(b"apple", b"red");
//! store.flush()?;
//! assert_eq!(store.get(b"apple").as_deref(), Some(&b"red"[..]));
//! store.delete(b"apple");
//! assert_eq!(store.get(b"apple"), None);
//! # Ok::<(), segments::Error>(())
//! ```

pub mod maintenance;
mod store;
#[cfg(test)]
mod tests;

pub use store::{Bytes, Error, Store};
