//! Pure: the set of values that a lookup in a maplet finds.

use core::fmt;

use crate::word::semisort::MAX_SLOTS;

/// The most entries that the two buckets of a key can hold.
const MOST: usize = 2 * MAX_SLOTS as usize;

/// The values of one key, as [`ConcurrentCuckooMaplet::values`](crate::ConcurrentCuckooMaplet::values) finds them: a set of at
/// most 12, in ascending order.
///
/// It is on the stack, and takes 26 bytes.
///
/// ```
/// use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
///
/// let segments = ConcurrentCuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
/// segments.insert("apple", 3)?;
/// segments.insert("apple", 9)?;
/// let values = segments.values("apple");
/// assert!(values.contains(3) && values.contains(9));
/// for segment in values {
///     println!("segment {segment} may hold it");
/// }
/// assert_eq!(values.mask().map(|mask| mask & 0b10_0000_1000), Some(0b10_0000_1000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Values {
    /// Ascending; those from `len` on are 0.
    values: [u16; MOST],
    len: u8,
}

impl Values {
    pub(crate) const EMPTY: Self = Self { values: [0; MOST], len: 0 };

    /// Adds a value, unless it is there.
    #[inline(always)]
    pub(crate) fn insert(&mut self, value: u16) {
        if self.len == 0 {
            self.values[0] = value;
            self.len = 1;
        } else {
            self.insert_among(value);
        }
    }

    #[inline(never)]
    fn insert_among(&mut self, value: u16) {
        if let Err(place) = self.as_slice().binary_search(&value) {
            self.values.copy_within(place..usize::from(self.len), place + 1);
            self.values[place] = value;
            self.len += 1;
        }
    }

    /// The values, in ascending order.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u16] {
        &self.values[..usize::from(self.len)]
    }

    /// The values, in ascending order.
    #[inline]
    pub fn iter(&self) -> core::iter::Copied<core::slice::Iter<'_, u16>> {
        self.as_slice().iter().copied()
    }

    /// Whether the value is one of them.
    #[inline]
    #[must_use]
    pub fn contains(&self, value: u16) -> bool {
        self.as_slice().contains(&value)
    }

    /// How many there are, up to 12.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there is none: the key is not in, for certain.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values as a bit mask, with bit `v` for value `v`; `None` if one of them is above 63, which takes more than 6 value
    /// bits.
    #[inline]
    #[must_use]
    pub fn mask(&self) -> Option<u64> {
        self.iter().try_fold(0, |mask, value| Some(mask | 1u64.checked_shl(value.into())?))
    }
}

/// The values as a set.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self).finish()
    }
}

impl IntoIterator for Values {
    type Item = u16;
    type IntoIter = core::iter::Take<core::array::IntoIter<u16, MOST>>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter().take(self.len())
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = u16;
    type IntoIter = core::iter::Copied<core::slice::Iter<'a, u16>>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_a_set(inserted in proptest::collection::vec(0u16..20, 0..MOST)) {
            let mut values = Values::EMPTY;
            inserted.iter().for_each(|&value| values.insert(value));
            let expected: BTreeSet<u16> = inserted.into_iter().collect();
            prop_assert_eq!(values.iter().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(values.into_iter().collect::<BTreeSet<_>>(), expected.clone());
            prop_assert_eq!(values.len(), expected.len());
            prop_assert!((0..20).all(|value| values.contains(value) == expected.contains(&value)));
            prop_assert_eq!(values.mask(), Some(expected.iter().map(|value| 1 << value).sum()));
        }
    }

    #[test]
    fn values_above_63_have_no_mask() {
        let mut values = Values::EMPTY;
        values.insert(63);
        assert_eq!(values.mask(), Some(1 << 63));
        values.insert(64);
        assert_eq!(values.mask(), None);
    }
}
