//! Builds one filter from several lists, one thread for each. A list that turns out to be broken adds nothing.

use std::error::Error;
use std::net::{AddrParseError, IpAddr};
use std::{process, thread};

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

type Addresses = ConcurrentCuckooFilter<IpAddr>;
/// Parses one list into a filter of its own, which is dropped if a line is wrong.
fn read(list: &str, part: Addresses) -> Result<Addresses, Box<dyn Error + Send + Sync>> {
    for line in list.lines() {
        let address: IpAddr = line.parse().map_err(|error: AddrParseError| format!("{line:?}: {error}"))?;
        part.insert(&address)?;
    }
    Ok(part)
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let list = |list| (0..5_000).map(|host| format!("10.{list}.{}.{}\n", host / 250, host % 250)).collect();
    let mut lists: Vec<String> = (0..4).map(list).collect();
    lists[2].push_str("10.2.20\n"); // cut off

    // `absorb` needs the same layout and hasher, so each part is made by `empty_like`.
    let blocked = Addresses::with_capacity(50_000);
    thread::scope(|scope| {
        let threads: Vec<_> = lists.iter().map(|list| scope.spawn(|| read(list, blocked.empty_like()?))).collect();
        for (number, thread) in threads.into_iter().enumerate() {
            match thread.join().expect("no panic") {
                Ok(part) => println!("list {number}: {} addresses", blocked.absorb(&part)?),
                Err(error) => println!("list {number} is left out: {error}"),
            }
        }
        Ok::<_, Box<dyn Error>>(())
    })?;

    assert_eq!(blocked.len(), 15_000);
    assert!(blocked.contains(&"10.3.19.249".parse()?));
    Ok(())
}
