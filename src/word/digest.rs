//! PURE: a multiset of copies as one number.
//!
//! Each copy is hashed: its fingerprint, its pair of buckets (by the lower-numbered one), and what its payload means.
//! The hashes are added up, so the order makes no difference. The sum is mixed with the table's parameters. Equal
//! multisets have equal digests. Others collide once in 2⁶⁴ comparisons. A digest gives no protection against an
//! adversary who chooses the keys.
//!
//! **A digest is the same in all versions with the same format of snapshots** (`snapshot/format.rs`), because nodes
//! of different versions compare theirs. A change of this arithmetic must raise that version.

/// Odd, and with as many ones as zeros.
const FIRST: u64 = 0xa076_1d64_78bd_642f;
const SECOND: u64 = 0xe703_7ed1_a0b4_28db;
const THIRD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of one copy. A payload without a meaning is 0.
#[inline(always)]
pub(crate) fn of_copy(fingerprint: u32, lower_bucket: u64, payload: u64) -> u64 {
    let (a, b) = (u64::from(fingerprint) ^ FIRST, lower_bucket ^ payload.wrapping_mul(THIRD) ^ SECOND);
    let product = u128::from(a) * u128::from(b);
    // The fold alone is nearly bilinear: two copies that swap their fingerprints would get nearly the same number.
    mix(product as u64 ^ (product >> 64) as u64)
}

/// The digest so far, combined with another number. The order counts.
pub(crate) fn with(digest: u64, number: u64) -> u64 {
    mix(digest.wrapping_mul(THIRD) ^ number)
}

/// A number from another, such that each bit depends on each. No two numbers give the same.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 32).wrapping_mul(FIRST);
    x = (x ^ x >> 29).wrapping_mul(SECOND);
    x ^ x >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by another program. Nodes of different versions compare their digests.
    #[test]
    fn hashes_are_the_same_in_all_versions() {
        assert_eq!(of_copy(1, 0, 0), 0xed25_ac0e_2268_ddee);
        assert_eq!(of_copy(0x3fff, 12_345, 0), 0x2939_229d_f038_512f);
        assert_eq!(of_copy(77, 1 << 20, 9), 0xabc1_39ce_7e32_dd63);
        assert_eq!(with(0, 1), 0xf2b3_0d5a_85d0_321e);
        assert_eq!(with(0x1234_5678_90ab_cdef, 0xfeed_face), 0x43c5_4e54_510b_fc06);
    }
}
