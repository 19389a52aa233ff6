//! Some tests of the library again, without any of its features.

extern crate plain as concurrent_cuckoo_filter;

#[path = "../../api.rs"]
mod api;
#[path = "../../batch.rs"]
mod batch;
#[path = "../../growable.rs"]
mod growable;
