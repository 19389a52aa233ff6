//! Scenes that are too large for loom: four threads, paths of three hops, stale plans, and `clear`.
//! They run under thousands of schedules chosen at random. The roles and the end of each scene assert what must
//! hold.
//!
//! - `paths`: relocations over several hops, while other threads look and change;
//! - `growth`: a relocation beside a split;
//! - `values`: values that are moved and replaced while they are looked up;
//! - `scene`: what a scene is, and how it runs.
//!
//! As with loom's models, each scene has its controls: with a step of the protocol left out, it must fail with the
//! violation that it is about. `CCF_SCHEDULES=100 cargo test --release -p stepped-tests schedules::` runs 100 times
//! as many schedules.

mod growth;
mod paths;
mod scene;
mod values;
