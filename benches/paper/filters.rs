//! Two of the paper's systems for which no crate is in wide use. They follow the papers that they come from.

/// A counting Bloom filter: a Bloom filter with counters of four bits in place of its bits, so that it can delete.
///
/// Source: Fan, Cao, Almeida, Broder, *Summary Cache: A Scalable Wide-Area Web Cache Sharing Protocol* (IEEE/ACM
/// Transactions on Networking 8(3), 2000). Four bits are enough. A counter that has reached 15 stays there, because
/// it no longer shows how many keys it counts.
#[derive(Debug)]
pub(crate) struct CountingBloom {
    /// Sixteen counters to a word.
    words: Vec<u64>,
    hashes: u64,
}

impl CountingBloom {
    const BITS: u64 = 4;
    const MOST: u64 = (1 << Self::BITS) - 1;

    pub(crate) fn new(bytes: usize, hashes: u64) -> Self {
        Self { words: vec![0; bytes / size_of::<u64>()], hashes }
    }

    pub(crate) fn counters(&self) -> u64 {
        self.words.len() as u64 * u64::from(u64::BITS) / Self::BITS
    }

    /// The word and the shift of each of the key's counters: double hashing (Kirsch and Mitzenmacher, ESA 2006).
    #[inline(always)]
    fn places(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let counters = self.counters();
        let step = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32) | 1;
        (0..self.hashes).map(move |i| {
            let hash = hash.wrapping_add(i.wrapping_mul(step));
            let counter = ((u128::from(hash) * u128::from(counters)) >> 64) as u64;
            ((counter / 16) as usize, counter % 16 * Self::BITS)
        })
    }

    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        for (word, shift) in self.places(hash) {
            let below = (self.words[word] >> shift) & Self::MOST != Self::MOST;
            self.words[word] += u64::from(below) << shift;
        }
        true
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.places(hash).all(|(word, shift)| (self.words[word] >> shift) & Self::MOST != 0)
    }

    #[inline]
    pub(crate) fn remove_hash(&mut self, hash: u64) -> bool {
        let present = self.contains_hash(hash);
        if present {
            for (word, shift) in self.places(hash) {
                let counter = (self.words[word] >> shift) & Self::MOST;
                // Not below 0 either: two of a key's counters may be the same one.
                self.words[word] -= u64::from(counter != Self::MOST && counter != 0) << shift;
            }
        }
        present
    }
}

/// A d-left counting Bloom filter: a hash table of fingerprints with counters. Each key has one bucket in each
/// subtable. It goes to the least loaded of these, and to the leftmost if there are several.
///
/// Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, *An Improved Construction for Counting Bloom Filters*
/// (ESA 2006), with its counters of 2 bits and its buckets of 8 cells that are to hold 6 keys on average. Each key
/// has one fingerprint, and the subtables see permutations of it, `a · x mod 2ⁿ` for an odd `a`. So keys that look
/// alike in one subtable look alike in all, and a removal knows which cell to count down. Here a cell has 16 bits
/// and a bucket 16 bytes. There are three subtables, because the tables are three times a power of two in size.
#[derive(Debug)]
pub(crate) struct DLeft {
    /// One subtable after the other.
    buckets: Vec<Bucket>,
    /// The logarithm of the number of buckets in a subtable.
    log2: u32,
}

/// Cells: a remainder and, in the low bits, how many keys have it. A cell with a count of 0 is empty.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Bucket([u16; DLeft::CELLS]);

impl DLeft {
    const SUBTABLES: usize = 3;
    const CELLS: usize = 8;
    const COUNT_BITS: u32 = 2;
    const MOST: u16 = (1 << Self::COUNT_BITS) - 1;
    const REMAINDER_BITS: u32 = u16::BITS - Self::COUNT_BITS;
    /// A lookup compares its fingerprint with six others in each subtable.
    pub(crate) const RATE: f64 = (6 * Self::SUBTABLES) as f64 / (1 << Self::REMAINDER_BITS) as f64;
    const FACTORS: [u64; Self::SUBTABLES] = [1, 0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

    /// The largest that takes at most this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let log2 = (bytes / size_of::<Bucket>() / Self::SUBTABLES).ilog2();
        Self { buckets: vec![Bucket::default(); Self::SUBTABLES << log2], log2 }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Six keys to each bucket.
    pub(crate) fn capacity(&self) -> u64 {
        self.buckets.len() as u64 * 6
    }

    /// In each subtable: the bucket's place, and the key's remainder as it is in a cell with a count of 0.
    #[inline(always)]
    fn places(&self, hash: u64) -> [(usize, u16); Self::SUBTABLES] {
        let bits = self.log2 + Self::REMAINDER_BITS;
        let fingerprint = hash >> (u64::BITS - bits);
        let mut places = [(0, 0); Self::SUBTABLES];
        for (subtable, (place, factor)) in places.iter_mut().zip(Self::FACTORS).enumerate() {
            let permuted = fingerprint.wrapping_mul(factor) & ((1 << bits) - 1);
            let bucket = (permuted >> Self::REMAINDER_BITS) as usize;
            *place = ((subtable << self.log2) + bucket, (permuted << Self::COUNT_BITS) as u16);
        }
        places
    }

    #[inline(always)]
    fn holds(cell: u16, remainder: u16) -> bool {
        cell.wrapping_sub(remainder).wrapping_sub(1) < Self::MOST
    }

    /// This looks at all cells, without a branch: that is a few vector instructions.
    #[inline(always)]
    fn is_in(&self, (bucket, remainder): (usize, u16)) -> bool {
        self.buckets[bucket].0.iter().fold(false, |found, &cell| found | Self::holds(cell, remainder))
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.places(hash).into_iter().any(|place| self.is_in(place))
    }

    /// `false` if all buckets are full.
    #[inline]
    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        let places = self.places(hash);
        for &(bucket, remainder) in &places {
            if self.is_in((bucket, remainder)) {
                let countable = |cell: &&mut u16| Self::holds(**cell, remainder) && **cell - remainder < Self::MOST;
                if let Some(cell) = self.buckets[bucket].0.iter_mut().find(countable) {
                    *cell += 1;
                    return true;
                }
            }
        }
        let load = |bucket: usize| self.buckets[bucket].0.iter().map(|&cell| u16::from(cell != 0)).sum::<u16>();
        let (bucket, remainder) = places.into_iter().min_by_key(|&(bucket, _)| load(bucket)).expect("a subtable");
        let empty = self.buckets[bucket].0.iter_mut().find(|cell| **cell == 0);
        empty.map(|cell| *cell = remainder + 1).is_some()
    }

    #[inline]
    pub(crate) fn remove_hash(&mut self, hash: u64) -> bool {
        for (bucket, remainder) in self.places(hash) {
            if self.is_in((bucket, remainder)) {
                let mut cells = self.buckets[bucket].0.iter_mut();
                let cell = cells.find(|cell| Self::holds(**cell, remainder)).expect("it is in");
                *cell = if *cell == remainder + 1 { 0 } else { *cell - 1 };
                return true;
            }
        }
        false
    }
}
