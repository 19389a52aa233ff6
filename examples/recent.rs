//! Drops messages that are delivered twice: the last 10,000, or those of ten minutes. The memory is constant, no call fails,
//! and no old message has to be removed.

use std::error::Error;
use std::time::Duration;
use std::{process, thread};

use concurrent_cuckoo_filter::RecentCuckooFilter;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // A false positive drops a new message, so the rate is one in a million.
    let builder = RecentCuckooFilter::<u64>::builder().false_positive_rate(1e-6);

    // Four consumers get the same messages. Each message is processed once, by whichever comes first.
    let delivered = builder.clone().last(10_000).build()?;
    let consume = || (0..20_000).filter(|message| delivered.insert(message)).count();
    let processed: usize = thread::scope(|threads| {
        let consumers = [(); 4].map(|()| threads.spawn(consume));
        consumers.into_iter().map(|consumer| consumer.join().expect("it does not panic")).sum()
    });
    // A consumer that is more than 10,000 messages behind the others would process some again.
    println!("{processed} messages, each delivered four times; the filter holds {}", delivered.window());
    assert!(delivered.contains(&19_999), "the last message of all consumers");

    // With a single consumer, the last 10,000 are there, but for a false positive: it was dropped as if it were not new.
    let delivered = builder.clone().last(10_000).build()?;
    (0..20_000).for_each(|message| _ = delivered.insert(&message));
    assert!((10_000..20_000).filter(|message| delivered.contains(message)).count() > 9990, "the last 10,000");
    assert!(!delivered.contains(&0), "it has left");

    // The messages of ten minutes, of which 1,000 are expected. When more come, the oldest go sooner.
    let delivered = builder.within(Duration::from_secs(600), 1000).build()?;
    assert!(delivered.insert(&4711) && !delivered.insert(&4711), "delivered twice");
    (0..5000).for_each(|message| _ = delivered.insert(&message));
    let recent = delivered.stats().recent.ok_or("a filter of recent keys has these figures")?;
    println!("{} keys evicted, by up to {:.0}% of the window", recent.evicted, 100.0 * recent.evicted_early_by);
    assert!(delivered.contains(&4999) && recent.evicted_early_by > 0.0);
    Ok(())
}
