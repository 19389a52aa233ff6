//! Finds the orders of known customers, a batch of keys in each call. In a table larger than the cache, batches are
//! several times as fast as single calls, because the next buckets are fetched meanwhile. Run it with `--release`.

use std::error::Error;
use std::process;
use std::time::Instant;

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let customers: Vec<u64> = (0..2_000_000).map(|customer| customer * 7).collect();
    // 3.3 MB, which the cache of many machines holds. Batches gain more in larger tables.
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(customers.len());
    filter.insert_batch(&customers)?; // an error says which one was refused
    assert_eq!(filter.len(), customers.len());

    // Orders in no particular order of customers. Every seventh customer number is known.
    let orders: Vec<u64> = (0..2_000_000_u64).map(|order| order.wrapping_mul(0x9e37_79b9) % 14_000_000).collect();

    let start = Instant::now();
    let one_by_one = orders.iter().filter(|&customer| filter.contains(customer)).count();
    let single = start.elapsed();

    let start = Instant::now();
    let (mut matched, mut found) = (0, Vec::with_capacity(1024));
    for some in orders.chunks(1024) {
        found.clear(); // its memory is used again
        filter.contains_batch(some, &mut found); // the answers are in the order of the keys
        matched += found.iter().filter(|&&found| found).count();
    }
    println!("{matched} of {} orders; one by one {single:?}, in batches {:?}", orders.len(), start.elapsed());
    assert_eq!(matched, one_by_one);

    let mut removed = Vec::new();
    filter.remove_batch(&customers[..1000], &mut removed); // they have closed their accounts
    assert!(removed.iter().all(|&removed| removed));
    assert_eq!(filter.len(), customers.len() - 1000);
    Ok(())
}
