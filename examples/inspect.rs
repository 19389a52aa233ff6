//! Prints what a snapshot is, without its hasher or the type of its keys, and verifies it. Fails if it is damaged.

use std::error::Error;
use std::process;

use concurrent_cuckoo_filter::SnapshotInfo;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: inspect FILE")?;
    // The header first: it tells what a file is even if its end is missing or damaged.
    let info = SnapshotInfo::read_from_path(&path)?;
    let plan = info.plan;
    println!("filter      {plan}");
    println!("rate        {:.2e} at capacity", plan.max_false_positive_rate);
    println!("capacity    {} keys, {} slots of {:.1} bits", plan.capacity, plan.slots, plan.bits_per_slot());
    println!("memory      {} bytes when loaded", plan.memory_usage);
    println!("schema      {:?}", info.schema);
    println!("position    {}", info.position.map_or("none".to_owned(), |position| position.to_string()));
    println!("attachment  {} bytes", info.attachment.len());
    if plan.lifetime_in_ticks.is_some() {
        println!("tick        {}", info.now.map_or("none yet".to_owned(), |tick| tick.to_string()));
    }
    println!("snapshot    {} bytes, format version {}", info.bytes, info.version);
    let verified = SnapshotInfo::verify_from_path(&path)?;
    println!("keys        {}", verified.len.expect("it was counted"));
    println!("checksums   right");
    Ok(())
}
