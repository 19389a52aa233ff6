//! The buckets that the classes of a world share, and how much room they have.

use ccf_steps::model::{Key, ModelEntries, ModelLayout, Table};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// The most classes of keys that a world has.
pub(crate) const CLASSES: usize = 8;

/// How many copies there are of each class.
pub(crate) type Copies = [u8; CLASSES];

/// The buckets of each class, and how many copies a bucket holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    slots_of_bucket: usize,
    buckets: usize,
    pairs: [(usize, usize); CLASSES],
    /// Whether the buckets are at least these, and all keys may have others.
    grows: bool,
}

impl Room {
    /// An empty table that `make` makes with the given number of buckets, and a key of each class. A narrow world has two
    /// buckets.
    pub(crate) fn with<E: ModelEntries, L: ModelLayout>(
        narrow: bool,
        random: &mut SmallRng,
        make: impl FnOnce(usize) -> Table<E, L>,
    ) -> (Self, Table<E, L>, [Key; CLASSES]) {
        let buckets = if narrow { 2 } else { *[1, 2, 4, 4, 6, 8].choose(random).expect("not empty") };
        let buckets = buckets.max(Table::<E, L>::LEAST_BUCKETS);
        let mut pairs = [(0, 0); CLASSES];
        for class in 0..CLASSES {
            pairs[class] = match random.random_range(0..=class) {
                // The pair of an earlier class.
                earlier if earlier < class && random.random() => pairs[earlier],
                _ if buckets == 1 => (0, 0),
                // One of the two buckets is even, the other is odd.
                _ => (random.random_range(0..buckets / 2) * 2, random.random_range(0..buckets / 2) * 2 + 1),
            };
        }
        let keys = std::array::from_fn(|class| Table::<E, L>::key(buckets, pairs[class].0, pairs[class].1, class));
        let table = make(buckets);
        (Self { slots_of_bucket: table.slots_per_bucket(), buckets, pairs, grows: false }, table, keys)
    }

    /// That of a filter which grows: each pair of buckets has so many slots.
    pub(crate) fn that_grows(slots_of_bucket: usize) -> Self {
        Self { slots_of_bucket, buckets: 2, pairs: [(0, 1); CLASSES], grows: true }
    }

    /// How many slots the table has.
    pub(crate) fn slots(&self) -> usize {
        self.slots_of_bucket * self.buckets
    }

    /// Whether an insert of a copy of the class may fail while these copies are in: as full, or because the class has
    /// as many copies as reported.
    pub(crate) fn fails(&self, class: usize, copies: Copies, reported: Option<usize>) -> bool {
        let mut more = copies;
        more[class] += 1;
        match reported {
            // Half of the slots of a class's two buckets. There may be one copy more than that if inserts overlap.
            Some(_) if self.grows => usize::from(copies[class]) >= self.slots() / 2,
            _ => reported.is_none_or(|reported| reported == usize::from(copies[class])) && !self.fits(more),
        }
    }

    /// Whether all classes have the same two buckets.
    pub(crate) fn is_narrow(&self) -> bool {
        self.buckets <= 2
    }

    /// Whether this many copies of a class take up all slots that they may have, in a world of two buckets.
    pub(crate) fn is_full_of(&self, copies: u8) -> bool {
        usize::from(copies) == self.slots()
    }

    /// Whether these copies fit in the table in some placement. They do if no set of buckets has more copies with
    /// both ends in it than slots (Hall's theorem).
    ///
    /// If one more copy fits, a path leads to a free slot, whatever the placement is now. So an insert may
    /// fail if and only if this returns `false`.
    pub(crate) fn fits(&self, copies: Copies) -> bool {
        (1..1u32 << self.buckets).all(|set| {
            let inside = |bucket: usize| set >> bucket & 1 == 1;
            let both = self.pairs.iter().map(|&(one, other)| inside(one) && inside(other));
            let held = copies.iter().zip(both).map(|(&copies, both)| usize::from(copies) * usize::from(both));
            held.sum::<usize>() <= self.slots_of_bucket * set.count_ones() as usize
        })
    }
}
