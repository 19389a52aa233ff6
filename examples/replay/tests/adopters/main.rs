//! The adapters, by the cases of each project's own tests, and by what its own cannot do.

mod agave;
mod hoprnet;
mod shadowsocks;
mod vector_dedupe;
mod vector_table;

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Few of the keys of a test look alike at this rate. (Which ones is another matter in each run.)
const RATE: f64 = 3e-8;

/// Random bytes, the same in each run.
fn random(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// So many different keys of 16 bytes.
fn keys(number: usize, seed: u64) -> Vec<[u8; 16]> {
    let mut random = random(seed);
    (0..number).map(|_| random.random()).collect()
}
