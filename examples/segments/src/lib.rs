//! A key-value store of immutable sorted segments: "which segment holds the key?"
//!
//! A put goes to a log and into memory. Now and then a *flush* writes the memory to a new *segment*, a sorted file
//! that is never changed again. A *compaction* merges some segments into one. A get asks the memory first, then the
//! segments from the newest to the oldest, and takes the first entry that it finds. It should not look into every
//! segment, so the store must know which segments may have the key. There are three ways ([`Strategy`]):
//!
//! - **one maplet** for all segments, which stores the segment's *slot*, a small number, with each key;
//! - **a filter for each segment**, asked one after the other;
//! - **the engine's own filters**: the segments are files of [`lsm_tree`], which puts a Bloom filter into each.
//!
//! The modules:
//!
//! - [`maintenance`]: flush and compaction, the order of their steps, and why no get misses a key meanwhile;
//! - [`recovery`]: what a killed process leaves behind, and how the next process handles it;
//! - [`slots`]: what the store asks of a maplet; [`segment`]: what it asks of the engine.
//!
//! ```
//! use segments::{Options, Store, Strategy};
//!
//! let directory = tempfile::tempdir()?;
//! let store = Store::open(directory.path(), Options::new(Strategy::Maplet))?;
//! store.put(b"apple", b"red")?;
//! store.flush()?;
//! store.put(b"apple", b"green")?;
//! assert_eq!(store.get(b"apple")?.as_deref(), Some(&b"green"[..]));
//! store.delete(b"apple")?;
//! assert_eq!(store.get(b"apple")?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entry;
mod error;
mod fault;
mod list;
mod log;
pub mod maintenance;
mod manifest;
mod maplet;
mod memtable;
mod merge;
mod moves;
mod opened;
mod options;
pub mod recovery;
pub mod segment;
pub mod slots;
mod store;
#[cfg(test)]
mod tests;

pub use error::Error;
pub use opened::{Opened, Origin};
pub use options::{Options, Strategy};
pub use store::{Looks, SegmentInfo, Store};
