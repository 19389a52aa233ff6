//! Limits the requests of each client: 600 per minute, and 20 at once. The memory is constant, whoever comes.

use std::error::Error;
use std::time::Duration;
use std::{process, thread};

use concurrent_cuckoo_filter::CuckooRateLimiter;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let minute = Duration::from_secs(60);
    let builder = CuckooRateLimiter::<str>::builder().allow(600, minute).burst(20).capacity(100_000);
    println!("{}", builder.plan()?);
    let limiter = builder.ticks_per_request(20).build()?;

    // Four threads serve one client. However they race, it gets what it may have, and no more.
    let serve = || (0..20).filter(|_| limiter.check("203.0.113.7").is_ok()).count();
    let served: usize = thread::scope(|threads| {
        let servers = [(); 4].map(|()| threads.spawn(serve));
        servers.into_iter().map(|server| server.join().expect("it does not panic")).sum()
    });
    println!("{served} of 80 requests were served");
    assert!(served >= 20);

    // The client is told when to come again, and others are not concerned. A search counts as five requests.
    let limited = limiter.check_n("203.0.113.7", 20).err().ok_or("it has none left")?;
    println!("{limited}");
    limiter.check_n("203.0.113.8", 5)?;
    println!("{} requests are left", limiter.peek("203.0.113.8").remaining);

    // A customer who pays has another limit, in the same table.
    let paying = limiter.quota(6000, minute, 200)?;
    println!("a customer who pays: {paying}");
    assert!((0..200).all(|_| limiter.check_with("customer-17", &paying).is_ok()));

    let counts = limiter.stats().limiter.ok_or("a rate limiter has these figures")?;
    println!("{} allowed, {} rejected", counts.allowed, counts.rejected);
    Ok(())
}
