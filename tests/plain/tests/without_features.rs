//! Some tests of the library again, without any of its features.

#![expect(clippy::duplicate_mod, reason = "each of these files is also a test of its own, with its own `support`")]

extern crate plain as concurrent_cuckoo_filter;

#[path = "../../api.rs"]
mod api;
#[path = "../../batch.rs"]
mod batch;
#[path = "../../growable.rs"]
mod growable;
