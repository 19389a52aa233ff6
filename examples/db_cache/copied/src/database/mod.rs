#[path = "../../../src/cache.rs"]
pub mod cache;
#[path = "../../../src/redb_store.rs"]
pub mod redb_store;
