//! The processor time of a thread, and turns of several subjects.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long this thread has been on a processor, in nanoseconds; 0 if the system does not say.
pub(crate) fn processor_time() -> u64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
    #[cfg(not(unix))]
    0
}

/// The processor time of this thread, or the time of day if the system does not say: in nanoseconds, from any
/// start. By this clock, the work of one thread takes as long on a busy machine as on an idle one, except for the
/// caches and the memory that it shares.
pub(crate) fn own_time() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    match processor_time() {
        0 => START.get_or_init(Instant::now).elapsed().as_nanos() as u64,
        time => time,
    }
}

/// Lets the subjects take turns for this long, at least one each. Each round begins with another subject, so that none
/// always follows the same one. Returns for each subject what `turn` returned in each round.
pub(crate) fn by_turns(subjects: usize, length: Duration, mut turn: impl FnMut(usize, u64) -> f64) -> Vec<Vec<f64>> {
    let (mut times, start) = (vec![Vec::new(); subjects], Instant::now());
    for round in 0.. {
        if round > 0 && start.elapsed() >= length {
            break;
        }
        for nth in 0..subjects {
            let subject = (nth + round as usize) % subjects;
            times[subject].push(turn(subject, round));
        }
    }
    times
}
