//! Histories of concurrent operations, checked for linearizability.
//!
//! A history is what two to four threads did to one tiny filter, nearly full, whose keys collide: when each operation
//! was called, when it answered, and what. It is *linearizable* if the operations can be put in an order in which each
//! comes before those called after its answer, and in which a specification, asked one by one, would have given the same
//! answers (Herlihy and Wing, *Linearizability*, 1990). The search for such an order is that of Wing and Gong (*Testing
//! and Verifying Concurrent Objects*, 1993) with Lowe's memory of what was tried, in the crate `todc-utils`.
//!
//! - `one_table`: the filter of one table is a multiset of classes;
//! - `values`: the table whose slots carry values is a multiset of pairs of a class and a value;
//! - `expiring`: the table whose entries expire is a multiset of pairs of a class and an end, with a clock;
//! - `growable`: the filter of several tables is a multiset of keys, some of which look alike in its oldest table;
//! - `rotating`: each key has a number of rotations to live;
//! - `room`: the buckets of the first two, and which inserts may be refused;
//! - `history`: what a history is, and how it is made and checked.
//!
//! A batch counts as so many operations, and a save as an operation at the moment of its beginning.
//!
//! `CCF_HISTORIES=1000 cargo test --release -p stepped-tests --test histories` checks a thousand times as many.

#[path = "../common/mod.rs"]
mod common;
mod expiring;
mod growable;
mod history;
mod one_table;
mod room;
mod rotating;
mod values;
