//! Counts distinct visitors whose number is not known beforehand. The filter grows while threads insert, and
//! shrinks when the visitors have gone.

use std::error::Error;
use std::{process, thread};

use concurrent_cuckoo_filter::{GrowableCuckooFilter, GrowableInsertError};

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // Room for 1,000 keys at first. From then on the table grows with its keys, by 32 buckets at a time, within 16 MiB.
    let visitors = GrowableCuckooFilter::<u64>::builder().capacity(1_000).memory_limit(16 << 20).build()?;

    // Four log files. Each visitor comes in two of them.
    let count_new = |log: u64| -> Result<u64, GrowableInsertError> {
        let mut new = 0;
        for visit in 0..100_000 {
            let visitor = log / 2 * 100_000 + visit;
            new += u64::from(visitors.insert_if_absent(&visitor)?);
        }
        Ok(new)
    };
    let new: u64 = thread::scope(|scope| {
        let logs: Vec<_> = (0..4).map(|log| scope.spawn(move || count_new(log))).collect();
        logs.into_iter().map(|log| log.join().expect("no panic")).sum::<Result<_, _>>()
    })?;

    println!(
        "{new} visitors, counted in {} KiB, with room for {}; 200,000 came",
        visitors.stats().memory_usage / 1024,
        visitors.capacity()
    );
    // A false positive takes a new visitor for a known one: at most 0.1%, the default rate, of them on average.
    assert!((199_500..=200_000).contains(&new));
    assert_eq!(visitors.len() as u64, new);

    // Growth takes time. `reserve` does it before a burst instead of during one.
    visitors.reserve(100_000)?;
    assert!(visitors.capacity() >= visitors.len() + 100_000);

    // The day is over. The memory goes back, while other threads may go on.
    visitors.clear();
    visitors.shrink_to_fit();
    println!("{} KiB after the day", visitors.stats().memory_usage / 1024);
    Ok(())
}
