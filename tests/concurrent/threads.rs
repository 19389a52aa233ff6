//! How many threads there are, how long they run, and which threads wait for which.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand::SeedableRng;
use rand::rngs::SmallRng;

pub(crate) const THREADS: u64 = 4;

/// How often a loop runs whose usual count is `times`.
pub(crate) fn scaled(times: u64) -> u64 {
    let factor = std::env::var("CCF_STRESS").map_or(1, |factor| factor.parse().expect("CCF_STRESS is a number"));
    if cfg!(miri) { times / 20_000 + 3 } else { times * factor }
}

/// How many keys a filter is made for that usually has `capacity`. Few under Miri, where filling it takes longest.
pub(crate) fn sized(capacity: u64) -> u64 {
    if cfg!(miri) { capacity.min(60) } else { capacity }
}

/// The same for several, each once.
pub(crate) fn sizes<const N: usize>(capacities: [u64; N]) -> Vec<u64> {
    let mut sizes = capacities.map(sized).to_vec();
    sizes.dedup();
    sizes
}

/// Runs `write` on some threads and `read` on two more, until the writers have ended.
pub(crate) fn writers_and_readers(writers: u64, write: impl Fn(u64) + Sync, read: impl Fn(&mut SmallRng) + Sync) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|id| {
                let write = &write;
                scope.spawn(move || write(id))
            })
            .collect();
        for id in 0..2 {
            let (done, read) = (&done, &read);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(id);
                while !done.load(Ordering::Relaxed) {
                    read(&mut random);
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a writer failed");
    });
}
