//! The adapters, by the cases of each project's own tests, and by what its own cannot do.

mod agave;
mod hoprnet;
mod shadowsocks;
mod vector_dedupe;
mod vector_table;

use std::sync::Barrier;
use std::thread;

use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Few of the keys of a test look alike at this rate. (Which ones is another matter in each run.)
const RATE: f64 = 3e-8;

/// Random bytes, the same in each run.
fn random(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// Four threads bring all keys in the same order: how many keys are called new by no thread, by one, and by more.
fn race(keys: usize, is_new: impl Fn(usize) -> bool + Sync) -> [usize; 3] {
    let start = Barrier::new(4);
    let bring_all = || {
        start.wait();
        (0..keys).map(&is_new).collect::<Vec<_>>()
    };
    let answers: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(bring_all)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut called = [0; 3];
    (0..keys).for_each(|key| called[answers.iter().filter(|new| new[key]).count().min(2)] += 1);
    called
}

/// So many different keys of 16 bytes.
fn keys(number: usize, seed: u64) -> Vec<[u8; 16]> {
    let mut random = random(seed);
    (0..number).map(|_| random.random()).collect()
}
