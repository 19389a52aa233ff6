//! PURE: the set of values that a lookup in a maplet finds.

use core::fmt;
use core::iter::FusedIterator;

/// The values of one key, as [`CuckooMaplet::values`](crate::CuckooMaplet::values) finds them:
/// a set of at most 12, in ascending order.
///
/// It is on the stack, and takes 16 bytes.
///
/// ```
/// use concurrent_cuckoo_filter::CuckooMaplet;
///
/// let segments = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
/// segments.insert("apple", 3)?;
/// segments.insert("apple", 9)?;
/// let values = segments.values("apple");
/// assert!(values.contains(3) && values.contains(9));
/// for segment in values {
///     println!("segment {segment} may hold it");
/// }
/// let both = 1 << 3 | 1 << 9;
/// assert_eq!(values.mask().map(|mask| mask & both), Some(both));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// From the low end: the list, each value in as many bits as the maplet's values have; in 8 bits, how many bits
// those are, or 0 in an empty set; in 8 bits, how many values there are. So a set is two registers, and a function
// can return it in them.
#[derive(Clone, Copy)]
pub struct Values(u128);

/// The bits of the list. In no layout do the slots of two buckets, times the bits of a payload, come to more.
pub(crate) const LIST_BITS: u32 = 96;

/// Where the number of bits of a value is, and where the number of values is.
const WIDTH_AT: u32 = 104;
const LEN_AT: u32 = 112;

impl Values {
    pub(crate) const EMPTY: Self = Self(0);

    /// The set of one value of `bits` bits, or the empty set.
    #[inline(always)]
    pub(crate) fn of_one_if(exists: bool, value: u16, bits: u32) -> Self {
        // As a mask: a branch would be mispredicted.
        let mask = u64::from(exists).wrapping_neg();
        let counts = 1 << (LEN_AT - 64) | u64::from(bits) << (WIDTH_AT - 64);
        Self(u128::from(u64::from(value) & mask) | u128::from(counts & mask) << 64)
    }

    /// The set with another value, unless it has it already.
    #[inline(always)]
    pub(crate) fn with(self, value: u16, bits: u32) -> Self {
        if self.is_empty() { Self::of_one_if(true, value, bits) } else { self.with_another(value, bits) }
    }

    #[inline(never)]
    fn with_another(self, value: u16, bits: u32) -> Self {
        if self.contains(value) {
            return self;
        }
        let place = bits * self.iter().take_while(|&less| less < value).count() as u32;
        let list = self.0 & ((1 << LIST_BITS) - 1);
        let (below, above) = (list & ((1 << place) - 1), list >> place << (place + bits));
        let counts = (self.0 >> LIST_BITS << LIST_BITS) + (1 << LEN_AT);
        Self(below | u128::from(value) << place | above | counts)
    }

    /// How many bits each value has; 0 in an empty set.
    #[inline(always)]
    fn width(self) -> u32 {
        (self.0 >> WIDTH_AT) as u32 & 0xff
    }

    /// The values, in ascending order.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> ValuesIter {
        ValuesIter { rest: self.0 & ((1 << LIST_BITS) - 1), width: self.width(), len: self.len() }
    }

    /// Whether the value is one of them.
    #[inline]
    #[must_use]
    pub fn contains(&self, value: u16) -> bool {
        self.iter().any(|one| one == value)
    }

    /// How many there are, up to 12.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        (self.0 >> LEN_AT) as usize
    }

    /// Whether there is none. Then the key is definitely absent.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// The values as a bit mask, with bit `v` for value `v`. `None` for a maplet of more than 6 value bits, unless
    /// the set is empty.
    #[inline]
    #[must_use]
    pub fn mask(&self) -> Option<u64> {
        if self.width() > 6 {
            return None;
        }
        // As a rule there is one.
        Some(if self.len() == 1 {
            1 << (self.0 as u64 & 63)
        } else {
            self.iter().fold(0, |mask, value| mask | 1 << (value & 63))
        })
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Values {}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl IntoIterator for Values {
    type Item = u16;
    type IntoIter = ValuesIter;

    #[inline]
    fn into_iter(self) -> ValuesIter {
        self.iter()
    }
}

impl IntoIterator for &Values {
    type Item = u16;
    type IntoIter = ValuesIter;

    #[inline]
    fn into_iter(self) -> ValuesIter {
        self.iter()
    }
}

/// The values of a [`Values`], in ascending order.
#[derive(Clone, Debug)]
pub struct ValuesIter {
    rest: u128,
    width: u32,
    len: usize,
}

impl Iterator for ValuesIter {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        self.len = self.len.checked_sub(1)?;
        let value = self.rest as u64 & ((1 << self.width) - 1);
        self.rest >>= self.width;
        Some(value as u16)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for ValuesIter {}

impl FusedIterator for ValuesIter {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_a_set(bits in 1..=16u32, inserted in proptest::collection::vec(any::<u16>(), 0..12)) {
            let most = (LIST_BITS / bits) as usize;
            let inserted: Vec<u16> = inserted.into_iter().take(most).map(|value| value & u16::MAX >> (16 - bits)).collect();
            let values = inserted.iter().fold(Values::EMPTY, |values, &value| values.with(value, bits));
            let expected: BTreeSet<u16> = inserted.into_iter().collect();
            prop_assert_eq!(values.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(values.iter().len(), expected.len());
            prop_assert_eq!((values.len(), values.is_empty()), (expected.len(), expected.is_empty()));
            prop_assert!((0..20).all(|value| values.contains(value) == expected.contains(&value)));
            prop_assert_eq!(format!("{:?}", values), format!("{:?}", expected));
            let mask = expected.iter().try_fold(0, |mask, &value| (bits <= 6).then(|| mask | 1u64 << value));
            prop_assert_eq!(values.mask(), mask);
            // However wide they are.
            let wide = expected.iter().rev().take(6).fold(Values::EMPTY, |values, &value| values.with(value, 16));
            prop_assert_eq!(wide == values, expected.len() <= 6);
        }
    }
}
