//! The comparison as arithmetic on words, for processors without a file of their own. `word/bucket.rs` explains it.

use crate::machine::arch::comparison::Comparison;

impl Comparison {
    #[inline(always)]
    pub(crate) fn is_any_lane_equal<const LISTS: bool, const LANE_BITS: u8, const SAME: bool>(self) -> bool {
        let [in_first, in_second] = self.equal_lanes::<LISTS>();
        in_first | in_second != 0
    }

    #[inline(always)]
    pub(crate) fn equal_lanes<const LISTS: bool>(self) -> [u64; 2] {
        core::array::from_fn(|nth| {
            let mut differences = self.words[nth] ^ self.lows[nth];
            if LISTS {
                let folded = u64::from(self.folded[nth]);
                differences |= ((folded | folded << self.fold) ^ self.highs[nth]) & self.list;
            }
            differences.wrapping_sub(self.ones) & !differences & self.tops
        })
    }
}
