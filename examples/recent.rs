//! Drops messages that are delivered twice within ten minutes. The memory is constant. When more messages come than the
//! filter has room for, it evicts the oldest sooner, and says by how much.

use std::error::Error;
use std::time::{Duration, SystemTime};

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, WhenFull};

/// One tick of the filter.
const TICK: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    // Ten minutes are up to eleven ticks. 1,000 messages are expected in each, and the filter also holds those of two
    // ticks that have just ended. A false positive drops a new message, so the rate is one in 100,000.
    let delivered = ExpiringCuckooFilter::<u64>::builder()
        .capacity(1000 * (11 + 2))
        .lifetime(10 * TICK, TICK)
        .false_positive_rate(1e-5)
        .when_full(WhenFull::EvictSoonest)
        .build()?;

    // `true` for the first delivery of a message within the window. Many threads may call this at the same time.
    let is_new = |message: u64, now: SystemTime| -> Result<bool, Box<dyn Error>> {
        delivered.advance_to(delivered.tick_at(now)?); // three loads where nothing is due
        Ok(delivered.insert_if_absent(&message)?)
    };

    // A service passes the wall clock. This program lets it run ahead, so that nobody has to wait.
    let start = SystemTime::now();
    assert!(is_new(4711, start)?);
    assert!(!is_new(4711, start + Duration::from_secs(1))?, "delivered twice");
    assert!(!is_new(4711, start + 10 * TICK)?, "delivered again after ten minutes");
    assert!(is_new(4711, start + 11 * TICK)?, "forgotten after eleven ticks");

    // Three times as many messages as expected.
    for minute in 12..30 {
        for message in 3000 * minute..3000 * (minute + 1) {
            is_new(message.into(), start + minute * TICK)?; // none is refused
        }
    }
    let stats = delivered.stats();
    println!(
        "{} live entries, forgotten up to {} minutes early",
        delivered.live_len(),
        stats.expiry.as_ref().unwrap().evicted_early_by
    );
    assert!(delivered.contains(&89_999) && (1..10).contains(&stats.expiry.as_ref().unwrap().evicted_early_by));
    Ok(())
}
