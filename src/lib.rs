//! A cuckoo filter that many threads share.
mod any_table;
mod bucket;
mod builder;
mod counter;
mod error;
mod fault;
mod filter;
mod hash;
mod layout;
#[cfg(ccf_loom)]
pub mod model;
mod path;
mod semisort;
mod sizing;
mod stripe;
mod sync;
mod table;

pub use builder::Builder;
pub use error::{BuildError, InsertError};
pub use filter::ConcurrentCuckooFilter;
pub use layout::Encoding;
