//! A key-value store of immutable sorted segments: "which segment has the key?"
//!
//! A put goes into a sorted map in memory, the *memtable*. A *flush* writes the memtable to a new *segment*, which
//! never changes. A *compaction* merges neighboring segments into one. A get asks the memtable, then the segments
//! from the newest to the oldest, and takes the first entry that it finds. It should not look into every segment. The
//! store finds the right ones in one of two ways ([`Strategy`]): it asks one maplet for all segments, or one filter
//! for each.
//!
//! Everything is in memory, so that only the steps remain that a maplet needs. Read in this order:
//!
//! 1. `store.rs`: a get, which notices that the segments have changed;
//! 2. [`maintenance`]: flush and compaction, the order of their steps, and why no get misses a key meanwhile;
//! 3. `list.rs`, `segment.rs`: what a get looks at.
//!
//! ```
//! use segments::{Options, Store, Strategy};
//!
//! let store = Store::new(Options::new(Strategy::Maplet))?;
//! store.put(b"apple", b"red");
//! store.flush()?;
//! store.put(b"apple", b"green");
//! assert_eq!(store.get(b"apple").as_deref(), Some(&b"green"[..]));
//! store.delete(b"apple");
//! assert_eq!(store.get(b"apple"), None);
//! # Ok::<(), segments::Error>(())
//! ```

mod list;
pub mod maintenance;
mod segment;
mod store;
#[cfg(test)]
mod tests;

pub use segment::Bytes;
pub use store::{Error, Event, Options, Store, Strategy};
