//! This crate's layouts, and the properties of a filter of each at capacity.

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding};

use super::support::ours::{builder, of_size};

/// One of this crate's layouts, found through its builder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) encoding: Encoding,
    pub(crate) slots: usize,
    pub(crate) bits: u32,
    /// The rate with every slot taken. A builder that is asked for this rate and this encoding chooses this layout.
    pub(crate) rate: f64,
}

impl Layout {
    /// By memory, and then by rate: the order in which the builder tries them.
    pub(crate) fn all() -> Vec<Self> {
        let mut layouts = Vec::new();
        for encoding in [Encoding::Plain, Encoding::SemiSorted] {
            // Each layout is the cheapest for its own rate. The next rate to ask for is one that this layout cannot
            // meet.
            let mut wanted = 0.5;
            while let Ok(filter) = Self::builder(encoding, wanted).capacity(1000).build() {
                let (slots, bits, rate) =
                    (filter.slots_per_bucket(), filter.fingerprint_bits(), filter.max_false_positive_rate());
                layouts.push(Self { encoding, slots, bits, rate });
                wanted = rate * 0.999;
            }
        }
        layouts.sort_by(|one, other| other.rate.total_cmp(&one.rate));
        layouts
    }

    fn builder(encoding: Encoding, rate: f64) -> concurrent_cuckoo_filter::Builder<u64, RandomState> {
        builder().encoding(encoding).false_positive_rate(rate)
    }

    pub(crate) fn is_semi_sorted(self) -> bool {
        self.encoding == Encoding::SemiSorted
    }

    /// Such as "5x14".
    pub(crate) fn name(self) -> String {
        format!("{}x{}{}", self.slots, self.bits, if self.is_semi_sorted() { "s" } else { "" })
    }

    /// The largest table in this many bytes, or one that is at most 1 % smaller.
    pub(crate) fn with_bytes(self, bytes: usize) -> ConcurrentCuckooFilter<u64, RandomState> {
        of_size(bytes, self.slots, |capacity| {
            Self::builder(self.encoding, self.rate).capacity(capacity).build().expect("a valid filter")
        })
    }
}

/// The share of the slots that is taken when the filter holds as many keys as it is made for.
pub(crate) fn load_at_capacity(filter: &ConcurrentCuckooFilter<u64, RandomState>) -> f64 {
    filter.capacity() as f64 / filter.slots() as f64
}

/// Bits for each key, and the computed rate, in a filter at capacity.
pub(crate) fn at_capacity(filter: &ConcurrentCuckooFilter<u64, RandomState>) -> (f64, f64) {
    let load = load_at_capacity(filter);
    // A rate is the probability that one of the taken slots holds an equal fingerprint, each independent of the
    // others.
    let rate = -f64::exp_m1(load * f64::ln_1p(-filter.max_false_positive_rate()));
    (filter.memory_usage() as f64 * 8.0 / filter.capacity() as f64, rate)
}
