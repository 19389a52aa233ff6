//! This crate's layouts, found through its builder.

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentBuilder, Encoding};

use super::support::ours::{Fixed, builder, of_size};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) encoding: Encoding,
    pub(crate) slots: usize,
    pub(crate) bits: u32,
    /// The rate with every slot taken. A builder that is asked for this rate and this encoding chooses this layout.
    rate: f64,
}

impl Layout {
    /// By memory, and then by rate: the order in which the builder tries them.
    pub(crate) fn all() -> Vec<Self> {
        let mut layouts = Vec::new();
        for encoding in [Encoding::Plain, Encoding::SemiSorted] {
            // Each layout is chosen for rates that it meets with every slot taken, and some for lower ones.
            let rates = (0..).map(|step| 0.5 * 0.98f64.powi(step));
            let plans =
                rates.map_while(|rate| Some((rate, Self::builder(encoding, rate).capacity(1 << 22).plan().ok()?)));
            for (wanted, plan) in plans {
                let (slots, bits) = (plan.layout.slots_per_bucket, plan.layout.fingerprint_bits);
                let load = plan.capacity as f64 / plan.slots as f64;
                let rate = -f64::exp_m1(f64::ln_1p(-plan.max_false_positive_rate) / load);
                let is_new =
                    !layouts.iter().any(|it: &Self| (it.encoding, it.slots, it.bits) == (encoding, slots, bits));
                if is_new && rate <= wanted {
                    layouts.push(Self { encoding, slots, bits, rate: rate * 1.000_001 });
                }
            }
        }
        layouts.sort_by(|one, other| other.rate.total_cmp(&one.rate));
        layouts
    }

    fn builder(encoding: Encoding, rate: f64) -> ConcurrentBuilder<u64, RandomState> {
        builder().encoding(encoding).false_positive_rate(rate)
    }

    /// Such as "5x14", with an "s" if it is semi-sorted.
    pub(crate) fn name(self) -> String {
        format!("{}x{}{}", self.slots, self.bits, if self.encoding == Encoding::SemiSorted { "s" } else { "" })
    }

    /// The largest table in this many bytes, or one that is at most 1% smaller.
    pub(crate) fn with_bytes(self, bytes: usize) -> Fixed {
        of_size(bytes, self.slots, |capacity| {
            Self::builder(self.encoding, self.rate).capacity(capacity).build().expect("a valid filter")
        })
    }
}
