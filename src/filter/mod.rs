//! The public faces: one file for each type of filter, from keys to verdicts, and one for its builder.

pub(crate) mod concurrent;
pub(crate) mod concurrent_builder;
pub(crate) mod growable;
pub(crate) mod rotating;
pub(crate) mod stats;
