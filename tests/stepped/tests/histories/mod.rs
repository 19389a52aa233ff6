//! Histories of concurrent operations, checked for linearizability.
//!
//! A history is what two to four threads did to one tiny filter, which is nearly full and whose keys collide. It
//! has each operation, with the times at which it was called and answered, and the answer. A history is
//! *linearizable* if its operations can be put in an order that meets two conditions (Herlihy and Wing,
//! *Linearizability*, 1990). Each operation comes before those called after its answer. And a specification that is
//! asked one operation at a time, in this order, gives the same answers. The search for such an order is that of
//! Wing and Gong (*Testing and Verifying Concurrent Objects*, 1993), with Lowe's memory of what was tried. The
//! crate `todc-utils` implements it.
//!
//! - `specification`: what a filter of any kind must answer;
//! - `room`: the buckets of worlds of one table, and which inserts may fail;
//! - `history`: what a history is, and how it is made and checked;
//! - `one_table`, `values`, `expiring`, `growable`: the worlds of each kind of filter, and the faults that they notice.
//!
//! Each key of a batch counts as an operation. A save counts as an operation at the moment at which it begins.
//!
//! `CCF_HISTORIES=1000 cargo test --release -p stepped-tests histories::` checks 1,000 times as many
//! histories.

mod expiring;
mod growable;
mod history;
mod one_table;
mod room;
mod specification;
mod values;
