//! PURE: the semi-sorting code of the paper (section 5.2), which stores the top bits of a bucket's fingerprints in
//! fewer bits.
//!
//! The order of the fingerprints in a bucket has no meaning, so it need not be stored. A bucket of `b` slots keeps
//! its fingerprints sorted by their top four bits: their *high parts*. A sorted list of `b` high parts is a multiset
//! of 16 values, and there are only `C(15 + b, b)` of those. The list is stored as its *rank* among them: 14 bits
//! instead of 20 for five slots. With seven or eight slots a high part has three bits, because the ranks of four
//! would take a decode table of a megabyte or two.
//!
//! The rank is that of the combinatorial number system: with the high parts `h_0 <= h_1 <= …`, the values `h_j + j`
//! strictly increase, and `rank = Σ C(h_j + j, j + 1)`. So an empty bucket, all zeros, has rank 0.
//!
//! A *list* is a word with each high part at the low end of its slot's lane, beside the low part in the bucket. So
//! what moves a low part moves its high part, and one comparison of lanes compares both.
//!
//! The decode table has each list in 32 bits, *folded*: the high parts that are further up are moved down into gaps
//! between the others. [`unfold`] moves them back.

use std::sync::OnceLock;

use crate::machine::memory::boxed_slice;

/// The most slots of a semi-sorted bucket.
pub(crate) const MAX_SLOTS: u32 = 8;

/// The most bits of a lane in one: with three slots.
const MAX_LANE_BITS: u32 = 18;

/// The most slots of one whose high parts have four bits.
const MAX_SLOTS_OF_FOUR: u32 = 6;

/// How many bits of a fingerprint are its high part, in a bucket of `slots` slots.
pub(crate) const fn high_bits(slots: u32) -> u32 {
    if slots <= MAX_SLOTS_OF_FOUR { 4 } else { 3 }
}

/// `BINOMIAL[j][n]` is `C(n + j, j + 1)`: what the high part `n` in slot `j` adds to the rank.
const BINOMIAL: [[u32; 16]; MAX_SLOTS as usize] = {
    let mut table = [[0; 16]; MAX_SLOTS as usize];
    let mut n = 0;
    while n < 16 {
        table[0][n] = n as u32;
        n += 1;
    }
    // C(n + j, j + 1) = C(n - 1 + j, j + 1) + C(n - 1 + j, j): Pascal's rule, with 0 for n = 0.
    let mut j = 1;
    while j < MAX_SLOTS as usize {
        let mut n = 1;
        while n < 16 {
            table[j][n] = table[j][n - 1] + table[j - 1][n];
            n += 1;
        }
        j += 1;
    }
    table
};

/// `pairs(bits)[i][p]` is what the high parts in slots `2i` and `2i + 1` add to the rank, where `p` is the first of
/// them and, above it, the second. That takes half as many loads as [`BINOMIAL`].
const fn pairs<const PAIRS: usize, const VALUES: usize>(bits: u32) -> [[u16; VALUES]; PAIRS] {
    let mut table = [[0; VALUES]; PAIRS];
    let mut i = 0;
    while i < PAIRS {
        let mut pair = 0;
        while pair < VALUES {
            let (first, second) = (pair & ((1 << bits) - 1), pair >> bits);
            table[i][pair] = (BINOMIAL[2 * i][first] + BINOMIAL[2 * i + 1][second]) as u16;
            pair += 1;
        }
        i += 1;
    }
    table
}

static PAIRS_OF_FOUR_BITS: [[u16; 256]; 3] = pairs(4);
static PAIRS_OF_THREE_BITS: [[u16; 64]; 4] = pairs(3);

/// The rank of a list, in a bucket of `slots` slots with lanes of `lane_bits` bits.
#[inline(always)]
pub(crate) fn rank(list: u64, slots: u32, lane_bits: u32) -> u32 {
    if slots > MAX_SLOTS_OF_FOUR {
        return rank_of_three_bits(list, lane_bits);
    }
    rank_by(&PAIRS_OF_FOUR_BITS, list, 4, lane_bits)
}

/// Cold, because it would be in the way of the layouts that most filters have.
#[cold]
#[inline(never)]
fn rank_of_three_bits(list: u64, lane_bits: u32) -> u32 {
    rank_by(&PAIRS_OF_THREE_BITS, list, 3, lane_bits)
}

#[inline(always)]
fn rank_by<const VALUES: usize>(table: &[[u16; VALUES]], list: u64, high_bits: u32, lane_bits: u32) -> u32 {
    // Each pair's two high parts side by side, at the low end of the first one's lane.
    let mut pairs = list | list >> (lane_bits - high_bits);
    let mut rank = 0;
    for of_pair in table {
        rank += u32::from(of_pair[pairs as usize % VALUES]);
        pairs >>= 2 * lane_bits;
    }
    rank
}

/// How many bits hold every rank in a bucket of `slots` slots.
pub(crate) const fn rank_bits(slots: u32) -> u32 {
    // The largest rank is that of the highest value in all slots.
    let (mut largest, mut j) = (0, 0);
    while j < slots {
        largest += BINOMIAL[j as usize][(1 << high_bits(slots)) - 1];
        j += 1;
    }
    u32::BITS - largest.leading_zeros()
}

/// The lowest bit of each of `slots` lanes of `lane_bits` bits.
pub(crate) const fn ones(slots: u32, lane_bits: u32) -> u64 {
    let (mut ones, mut slot) = (0, 0);
    while slot < slots {
        ones |= 1 << (slot * lane_bits);
        slot += 1;
    }
    ones
}

/// The bits of a list, in a bucket of `slots` slots with lanes of `lane_bits` bits.
const fn list_mask(slots: u32, lane_bits: u32) -> u64 {
    ones(slots, lane_bits) * ((1 << high_bits(slots)) - 1)
}

/// How far down the high parts move that have no room in the low 32 bits: the least distance at which all of them
/// fall into gaps, and at which [`unfold`] moves nothing else to where a high part is.
pub(crate) const fn fold(slots: u32, lane_bits: u32) -> u32 {
    let (list, low) = (list_mask(slots, lane_bits), parts_below_32(slots, lane_bits));
    let mut by = 1;
    loop {
        let moved = (list & !low) >> by;
        let falls_into_gaps = moved <= u32::MAX as u64 && moved & list == 0 && moved << by == list & !low;
        if falls_into_gaps && (low << by) & list == 0 {
            return by;
        }
        by += 1;
    }
}

/// The bits of a list's high parts that are wholly in the low 32 bits.
const fn parts_below_32(slots: u32, lane_bits: u32) -> u64 {
    let (mut parts, mut slot) = (0, 0);
    while slot < slots {
        let at = slot * lane_bits;
        if at + high_bits(slots) <= u32::BITS {
            parts |= ((1 << high_bits(slots)) - 1) << at;
        }
        slot += 1;
    }
    parts
}

/// The list that was folded. `by` is [`fold`], and `mask` has the bits of every high part.
#[inline(always)]
pub(crate) fn unfold(folded: u32, by: u32, mask: u64) -> u64 {
    let folded = u64::from(folded);
    (folded | folded << by) & mask
}

/// The table that decodes a rank to its list: entry `r` is the list of rank `r`, folded. It has
/// `1 << rank_bits(slots)` entries.
///
/// It is computed when the first table with such buckets is built, and all filters share it (4, 16, 64 and 256 KiB for
/// three to six slots; 16 and 32 KiB for seven and eight). `None` if the allocation fails.
pub(crate) fn unrank_table(slots: u32, lane_bits: u32) -> Option<&'static [u32]> {
    type OfWidths = [OnceLock<Box<[u32]>>; MAX_LANE_BITS as usize + 1];
    static TABLES: [OfWidths; MAX_SLOTS as usize + 1] =
        [const { [const { OnceLock::new() }; MAX_LANE_BITS as usize + 1] }; MAX_SLOTS as usize + 1];
    let shared = &TABLES[slots as usize][lane_bits as usize];
    if let Some(table) = shared.get() {
        return Some(table);
    }
    let table = compute_unrank_table(slots, lane_bits)?;
    // If several threads compute it at the same time, all take the table of the first.
    Some(shared.get_or_init(|| table))
}

fn compute_unrank_table(slots: u32, bits: u32) -> Option<Box<[u32]>> {
    let mut table = boxed_slice(1 << rank_bits(slots), || 0)?;
    let highest = (1 << high_bits(slots)) - 1;
    let (low, by) = (parts_below_32(slots, bits), fold(slots, bits));
    let mut list = 0u64;
    for entry in &mut table {
        *entry = (list & low | (list & !low) >> by) as u32;
        // The list of the next rank: raise the first high part that is below its neighbor (or below the highest, for
        // the last), and set those before it to 0.
        let part = |slot: u32| if slot == slots { highest } else { list >> (slot * bits) & highest };
        let Some(slot) = (0..slots).find(|&slot| part(slot) < part(slot + 1)) else { break };
        list = ((list >> (slot * bits)) + 1) << (slot * bits);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrank_inverts_rank_for_every_list() {
        let widest = |slots| (u64::BITS - rank_bits(slots)) / slots;
        // Tables that grow have lanes that are narrower than they could be.
        for (slots, bits) in
            (3..=MAX_SLOTS).flat_map(|slots| (widest(slots).min(9)..=widest(slots)).map(move |bits| (slots, bits)))
        {
            let (table, highest) = (unrank_table(slots, bits).expect("memory"), high_bits(slots));
            let mut lists = 0;
            for (r, &folded) in table.iter().enumerate().take_while(|&(r, &folded)| r == 0 || folded != 0) {
                let list = unfold(folded, fold(slots, bits), list_mask(slots, bits));
                assert_eq!(rank(list, slots, bits), r as u32, "{slots} slots, list {list:x}");
                let parts: Vec<u64> = (0..slots).map(|j| list >> (bits * j) & ((1 << highest) - 1)).collect();
                assert!(parts.is_sorted(), "{slots} slots, list {list:x}");
                lists += 1;
            }
            let values = 1 << high_bits(slots);
            let multisets = (1..=slots).fold(1, |product, j| product * (values - 1 + j) / j);
            assert_eq!(lists, multisets, "C({values} - 1 + {slots}, {slots}) lists");
        }
    }
}
