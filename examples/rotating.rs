//! Drops messages that are delivered twice within ten minutes. The memory is constant, whatever the number of messages.

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, RotatingCuckooFilter};

/// A new generation begins every 150 seconds.
const PERIOD: u64 = 150;

fn main() -> Result<(), Box<dyn Error>> {
    // With five generations a key is remembered for at least four whole periods, ten minutes, and at most for five.
    // A false positive drops a new message, so the rate is one in 100,000.
    let builder = RotatingCuckooFilter::<u64>::builder().generations(5).generation_capacity(10_000);
    let delivered = builder.false_positive_rate(1e-5).build()?;

    // `true` for the first delivery of a message within the window. Many threads may call this at the same time.
    let is_new = |message: u64, unix_seconds: u64| {
        delivered.advance_to(unix_seconds / PERIOD); // one load where no period has ended
        delivered.insert_if_absent(&message)
    };

    // A service passes the wall clock. This program lets it run ahead, so that nobody has to wait.
    let start = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    assert!(is_new(4711, start)?);
    assert!(!is_new(4711, start + 1)?, "delivered twice");
    assert!(!is_new(4711, start + 4 * PERIOD)?, "delivered again after ten minutes");
    assert!(is_new(4711, start + 5 * PERIOD)?, "forgotten after five periods");

    // A clock that is set back by five periods: nothing expires until it has caught up.
    assert_eq!(delivered.advance_to(start / PERIOD), Advance::Behind { by: 5 });
    println!("generation {}, {} of {} keys", delivered.generation(), delivered.len(), delivered.capacity());
    Ok(())
}
