//! Saves a filter with its position in a log of changes. After a restart, loads it and applies only later changes.

use std::error::Error;
use std::{env, fs, process};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError, Loader, StableHashBuilder};

type Revoked = ConcurrentCuckooFilter<str, StableHashBuilder>;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // The log of a database or a message queue, in which each change has a number.
    let log: Vec<String> = (0..10_000).map(|number| format!("token-{number}")).collect();
    let path = env::temp_dir().join(format!("revoked-{}.ccf", process::id()));

    // The default hasher differs in each process. This one depends only on its key, which belongs in the configuration.
    let hasher = StableHashBuilder::with_key(*b"sixteen secrets!");
    // More than the log will have: up to its capacity, a filter accepts all keys again, in whatever order they come.
    let revoked = Revoked::builder_with_hasher(hasher.clone()).capacity(100_000).schema("revoked tokens").build()?;
    apply(&revoked, &log[..7_000])?;
    // The snapshot is of the moment of `begin_save`. So the thread that applies the log calls it, between two changes.
    let save = revoked.begin_save()?.position(7_000);
    apply(&revoked, &log[7_000..8_000])?; // the filter stays in use
    save.write_to_path(&path)?; // the file has the old snapshot or the new one, also after a crash
    drop(revoked);

    // After a restart. A snapshot of other keys, with another hasher or of more than 64 MiB is an error.
    let loader = Loader::<Revoked, _>::new(hasher, 64 << 20).schema("revoked tokens");
    let loaded = loader.load_from_path(&path)?; // on an error, apply the whole log: never go on with an empty filter
    fs::remove_file(&path)?;
    let position = loaded.position.ok_or("a snapshot without a position")?;
    println!("loaded {} keys, position {position}", loaded.filter.len());
    apply(&loaded.filter, &log[position as usize..])?;
    assert!(log.iter().all(|token| loaded.filter.contains(&**token)));
    assert_eq!(loaded.filter.len(), log.len(), "no change was applied twice, and none left out");
    Ok(())
}

fn apply(revoked: &Revoked, tokens: &[String]) -> Result<(), InsertError> {
    // Beyond its capacity, a filter may refuse after a restart what it has accepted before.
    if revoked.len() + tokens.len() > revoked.capacity() {
        return Err(InsertError::full(revoked.len(), revoked.capacity()));
    }
    tokens.iter().try_for_each(|token| revoked.insert(&**token))
}
