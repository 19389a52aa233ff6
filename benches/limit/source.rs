//! The keys that are looked up.

use rand::RngCore;
use rand::rngs::SmallRng;

use super::support::keys::{Shuffled, key};

/// How many keys there are in a slice.
pub(crate) const BATCH: usize = 1024;

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Hit,
    Miss,
    /// Either, at random.
    Half,
}

/// Makes the keys of the lookups.
pub(crate) struct Source {
    pub(crate) what: What,
    pub(crate) present: Shuffled,
    pub(crate) absent: u64,
    pub(crate) random: SmallRng,
}

impl Source {
    #[inline(never)]
    pub(crate) fn fill(&mut self, keys: &mut [u64; BATCH]) {
        let mut coins = 0;
        for (i, slot) in keys.iter_mut().enumerate() {
            let index = match self.what {
                What::Hit => self.present.next(),
                What::Miss => {
                    self.absent += 1;
                    self.absent
                }
                What::Half => {
                    if i % 64 == 0 {
                        coins = self.random.next_u64();
                    }
                    self.absent += 1;
                    [self.absent, self.present.next()][(coins >> (i % 64) & 1) as usize]
                }
            };
            *slot = key(index);
        }
    }
}
