//! What a lookup compares: all lanes of the two words of a pair of buckets, at once. How a processor does it is in a file
//! for each vector unit.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison {
    pub(crate) words: [u64; 2],
    /// What each lane is compared with. In `low` once, which means something only if it is the same for both words; in
    /// `lows` for each word, repeated in all lanes.
    #[cfg_attr(not(all(target_arch = "x86_64", not(miri))), allow(dead_code, reason = "only SSE2 needs it"))]
    pub(crate) low: u32,
    pub(crate) lows: [u64; 2],
    /// In a semi-sorted layout: the lists of both words, folded, how to unfold them (`word/semisort.rs`), and what the
    /// high parts are compared with.
    pub(crate) folded: [u32; 2],
    pub(crate) fold: u32,
    pub(crate) list: u64,
    pub(crate) highs: [u64; 2],
    /// The lowest and the highest bit of every lane.
    pub(crate) ones: u64,
    pub(crate) tops: u64,
}
