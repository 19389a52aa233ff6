//! Two filters that all threads share, without a lock around them: blocked mail domains, and addresses that signed up.

use std::error::Error;
use std::{process, thread};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // Keys of the type `str`: each `&str` is hashed, and not kept.
    let blocked = ConcurrentCuckooFilter::<str>::with_capacity(100_000);
    let signed_up = ConcurrentCuckooFilter::<str>::with_capacity(100_000);
    blocked.insert("mailinator.com")?;
    blocked.insert("trashmail.com")?;

    // Every address comes to each of four threads, but only one of them accepts it: `insert_if_absent` is one step.
    let sign_up_all = || -> Result<usize, InsertError> {
        let mut accepted = 0;
        for user in 0..1000 {
            let domain = if user % 4 == 0 { "trashmail.com" } else { "example.org" };
            if !blocked.contains(domain) && signed_up.insert_if_absent(&*format!("user{user}@{domain}"))? {
                accepted += 1;
            }
        }
        Ok(accepted)
    };
    let accepted: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(sign_up_all)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<Result<_, _>>()
    })?;

    // Never more than 750. Fewer are possible, but rare: a false positive rejects a new address.
    println!(
        "{accepted} addresses accepted; {} in the filter, {} bytes",
        signed_up.len(),
        signed_up.stats().memory_usage
    );
    assert!((740..=750).contains(&accepted));
    assert!(signed_up.contains("user1@example.org"), "a key that is in is always found");

    // Remove only what was inserted, once for each insert.
    assert!(blocked.remove("trashmail.com"));
    assert!(blocked.contains("mailinator.com"));
    Ok(())
}
