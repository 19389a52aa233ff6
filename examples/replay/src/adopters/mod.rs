//! Adapters for projects that refuse what comes twice, each for the interface that it has today.
//!
//! `README.md` says what would change, and where it would not pay. `cargo bench -p replay --bench adopters` compares each
//! with what its project has.

pub mod agave;
pub mod hoprnet;
pub mod shadowsocks;
pub mod vector;
