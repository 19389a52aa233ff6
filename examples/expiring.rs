//! Refuses each revoked token until it would have expired anyway. Then the filter forgets it and reuses its slot.
//!
//! The keys are names of tokens. Of a JWT, insert its identifier (`jti`), or what is signed, and never the whole text: a
//! signature can be spelled in several ways, and a revoked token would pass in another one. `examples/token_key` has a function.

use std::error::Error;
use std::process;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, ExpiringInsertError};

/// One tick of the filter, in seconds.
const TICK: u64 = 300;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // Tokens live for an hour at most. An hour is 12 ticks of five minutes, which take 4 bits of each slot.
    let (hour, tick) = (Duration::from_secs(3600), Duration::from_secs(TICK));
    // A false positive refuses a good token, so one in 43,000 is enough here.
    let builder = ExpiringCuckooFilter::<str>::builder().capacity(100_000).false_positive_rate(2.3e-5);
    let revoked = builder.lifetime(hour).resolution(tick).build()?;

    // A service passes the wall clock. This program lets it run ahead, so that nobody has to wait.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let time = |unix_seconds| UNIX_EPOCH + Duration::from_secs(unix_seconds);
    revoked.advance_to(revoked.tick_at(time(now))?);

    // Up to five minutes too long, and never too short. A request may come twice.
    let revoke = |token: &str, exp: u64| revoked.insert_or_renew_until(token, time(exp));
    assert!(revoke("token of alice", now + 900)?);
    assert!(revoke("token of bob", now + 3600)?);
    assert!(!revoke("token of dave", now - TICK)?, "it has expired, so it is not kept");
    // An expiry in milliseconds is a mistake that the filter refuses.
    assert!(matches!(revoke("token of carol", now * 1000), Err(ExpiringInsertError::LifetimeTooLong { .. })));

    for minutes in [0, 14, 20, 59, 65] {
        revoked.advance_to(revoked.tick_at(time(now + minutes * 60))?);
        let refused: Vec<_> = ["alice", "bob"].into_iter().filter(|&name| is_refused(&revoked, name)).collect();
        println!("after {minutes:2} minutes: refused {refused:?}, {} live entries", revoked.live_len());
        assert_eq!((refused.contains(&"alice"), refused.contains(&"bob")), (minutes <= 15, minutes <= 60));
    }
    Ok(())
}

fn is_refused(revoked: &ExpiringCuckooFilter<str>, name: &str) -> bool {
    revoked.contains(&*format!("token of {name}"))
}
