//! Pure: the semi-sorting code of the paper (section 5.2), which stores the top four bits of a bucket's fingerprints in
//! fewer bits.
//!
//! The order of the fingerprints in a bucket has no meaning, so it need not be stored. A bucket of `b` slots keeps
//! its fingerprints sorted by their top four bits (the *nibbles*). A sorted list of `b` nibbles is a multiset of 16
//! values, and there are only `C(15 + b, b)` of those. The list is stored as its *rank* among them: 14 bits instead
//! of 20 for five slots.
//!
//! The rank is that of the combinatorial number system: with the nibbles `n_0 <= n_1 <= …`, the values `n_j + j`
//! strictly increase, and `rank = Σ C(n_j + j, j + 1)`. So an empty bucket, all zeros, has rank 0.
//!
//! A list is packed in a `u32`, with five bits for each nibble: `n_j` is in bits `5j..5j+4`. The bit above it is 0:
//! the *guard*, which separates the arithmetic on one nibble from the next.

use std::sync::OnceLock;

use crate::machine::memory::boxed_slice;

/// The most slots a semi-sorted bucket can have here: with seven, the decode table would take 0.7 MB.
pub(crate) const MAX_SLOTS: u32 = 6;

/// `BINOMIAL[j][n]` is `C(n + j, j + 1)`: what nibble `n` in place `j` adds to the rank.
const BINOMIAL: [[u16; 16]; MAX_SLOTS as usize] = {
    let mut table = [[0; 16]; MAX_SLOTS as usize];
    let mut n = 0;
    while n < 16 {
        table[0][n] = n as u16;
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

/// How far apart the nibbles of a list are, in bits.
pub(crate) const STRIDE: u32 = 5;

/// Bit 0 of every nibble.
const ONES: u32 = {
    let (mut ones, mut j) = (0, 0);
    while j < MAX_SLOTS {
        ones |= 1 << (STRIDE * j);
        j += 1;
    }
    ones
};

const GUARDS: u32 = ONES << (STRIDE - 1);

/// Two nibbles with their guards, except the last guard.
const PAIR: u32 = (1 << (2 * STRIDE - 1)) - 1;

/// `PAIRS[i][p]` is what the nibbles in places `2i` and `2i + 1`, packed as `p`, add to the rank. That takes half
/// as many loads as [`BINOMIAL`], in 3 KiB.
static PAIRS: [[u16; PAIR as usize + 1]; MAX_SLOTS as usize / 2] = {
    let mut table = [[0; PAIR as usize + 1]; MAX_SLOTS as usize / 2];
    let mut i = 0;
    while i < MAX_SLOTS as usize / 2 {
        let mut pair = 0;
        while pair <= PAIR as usize {
            table[i][pair] = BINOMIAL[2 * i][pair & 15] + BINOMIAL[2 * i + 1][pair >> STRIDE];
            pair += 1;
        }
        i += 1;
    }
    table
};

/// The rank of a sorted list of `slots` nibbles.
#[inline(always)]
pub(crate) fn rank(list: u32, slots: u32) -> u32 {
    (0..slots.div_ceil(2)).map(|i| u32::from(PAIRS[i as usize][(list >> (2 * STRIDE * i) & PAIR) as usize])).sum()
}

/// How many of a sorted list's nibbles are less than `nibble`.
#[inline(always)]
pub(crate) fn less_than(list: u32, nibble: u32, slots: u32) -> u32 {
    // A guard stays where its nibble did not borrow from it. The lowest such guard counts the nibbles below it.
    let not_less = ((list | GUARDS) - nibble * ONES) & GUARDS;
    (not_less | 1 << (STRIDE * slots)).trailing_zeros() / STRIDE
}

/// How many bits hold every rank of `slots` nibbles.
pub(crate) const fn rank_bits(slots: u32) -> u32 {
    // The largest rank is that of all fifteens.
    let mut largest = 0;
    let mut j = 0;
    while j < slots {
        largest += BINOMIAL[j as usize][15] as u32;
        j += 1;
    }
    u32::BITS - largest.leading_zeros()
}

/// The table that decodes a rank to its sorted list: entry `r` is the list of rank `r`. It has
/// `1 << rank_bits(slots)` entries.
///
/// It is computed when the first filter with this number of slots is built, and all filters share it (4 KiB for
/// three slots; 16, 64 and 256 KiB for four, five and six). `None` if the memory is refused.
pub(crate) fn unrank_table(slots: u32) -> Option<&'static [u32]> {
    static TABLES: [OnceLock<Box<[u32]>>; MAX_SLOTS as usize + 1] = [const { OnceLock::new() }; MAX_SLOTS as usize + 1];
    let shared = &TABLES[slots as usize];
    if let Some(table) = shared.get() {
        return Some(table);
    }
    let table = compute_unrank_table(slots)?;
    // If several threads compute it at the same time, all take the table of the first.
    Some(shared.get_or_init(|| table))
}

fn compute_unrank_table(slots: u32) -> Option<Box<[u32]>> {
    let mut table = boxed_slice(1 << rank_bits(slots), || 0)?;
    let mut list = 0;
    for entry in &mut table {
        *entry = list;
        // The list of the next rank: raise the first nibble that is below its neighbour (or below 15, for the last),
        // and set those before it to 0.
        let neighbours = list >> STRIDE | 15 << (STRIDE * (slots - 1));
        // As in `less_than`.
        let below = ((neighbours | GUARDS) - list - ONES) & GUARDS;
        if below == 0 {
            break;
        }
        let place = STRIDE * (below.trailing_zeros() / STRIDE);
        list = ((list >> place) + 1) << place;
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrank_inverts_rank_for_every_list() {
        for slots in 3..=MAX_SLOTS {
            let table = unrank_table(slots).expect("memory");
            let mut lists = 0;
            for (r, &list) in table.iter().enumerate().take_while(|&(r, &list)| r == 0 || list != 0) {
                assert_eq!(rank(list, slots), r as u32, "{slots} slots, list {list:x}");
                let nibbles: Vec<u32> = (0..slots).map(|j| list >> (STRIDE * j) & 15).collect();
                assert!(nibbles.is_sorted(), "{slots} slots, list {list:x}");
                lists += 1;
            }
            let multisets = (1..=slots).fold(1, |product, j| product * (15 + j) / j);
            assert_eq!(lists, multisets, "C(15 + {slots}, {slots}) lists");
        }
    }

    #[test]
    fn less_than_counts() {
        for slots in 3..=MAX_SLOTS {
            for (r, &list) in unrank_table(slots).expect("memory").iter().enumerate() {
                if r > 0 && list == 0 {
                    break;
                }
                for nibble in 0..16 {
                    let counted = (0..slots).filter(|j| list >> (STRIDE * j) & 15 < nibble).count();
                    assert_eq!(less_than(list, nibble, slots), counted as u32, "{list:x}, {nibble}");
                }
            }
        }
    }

    #[test]
    fn ranks_fill_the_bits_of_the_paper() {
        assert_eq!((3..=6).map(rank_bits).collect::<Vec<_>>(), [10, 12, 14, 16]);
    }
}
