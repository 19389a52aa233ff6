//! Scenes too large for loom: four threads, paths of three hops, full tables, plans gone stale, `clear` among them;
//! under thousands of schedules chosen at random. What must hold is asserted in the roles and at the end.
//!
//! - `paths`: relocations over several hops, while others look and change;
//! - `full_tables`: inserts into the last slots;
//! - `copies`: keys of which copies are added, removed and moved by several threads;
//! - `saves`: a save among them;
//! - `saves_of_several`: a save of a filter of several tables, while a key changes from one to the other;
//! - `values`: values that come and go while they are looked up;
//! - `scene`: what a scene is, and how it is played.
//!
//! As with loom's models, each scene has its controls: with a step of the protocol left out it must fail, by the
//! violation that it is about. `CCF_SCHEDULES=100 cargo test --release -p stepped-tests --test schedules` runs a hundred
//! times as many.

#[path = "../common/mod.rs"]
mod common;
mod copies;
mod full_tables;
mod paths;
mod saves;
mod saves_of_several;
mod scene;
mod values;
