//! A growable filter with a memory limit: it goes on when it is full, survives a restart, and gets a higher limit while it
//! is in use.
//!
//! The guide's page `recipes` explains `Seen`, and `tests/recipes.rs` shows which order of steps ends in a restart that fails.

use std::error::Error;
use std::process;
use std::sync::{Arc, Mutex, RwLock};

use concurrent_cuckoo_filter::{GrowableCuckooFilter, GrowableInsertError, Loader, StableHashBuilder};

type Filter = GrowableCuckooFilter<str, StableHashBuilder>;

/// What a restart finds: two files, in a program.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) snapshot: Vec<u8>,
    /// The keys that were accepted after the snapshot.
    pub(crate) log: Vec<String>,
}

pub(crate) struct Seen {
    pub(crate) filter: RwLock<Arc<Filter>>,
    /// Its lock is held by each insert, and by no lookup.
    pub(crate) disk: Mutex<Disk>,
}

impl Seen {
    /// Loads the snapshot, and inserts the keys of the log.
    pub(crate) fn open(disk: Disk, memory_limit: usize) -> Result<Self, Box<dyn Error>> {
        let filter = Loader::<Filter, _>::new(hasher(), memory_limit).load(&disk.snapshot[..])?.filter;
        disk.log.iter().try_for_each(|key| filter.insert_if_absent(key.as_str()).map(drop))?;
        Ok(Self { filter: RwLock::new(Arc::new(filter)), disk: Mutex::new(disk) })
    }

    pub(crate) fn filter(&self) -> Arc<Filter> {
        Arc::clone(&self.filter.read().unwrap())
    }

    /// Fails if the filter is full at its limit. Then nothing has changed, and lookups go on.
    pub(crate) fn insert(&self, key: &str) -> Result<bool, GrowableInsertError> {
        let mut disk = self.disk.lock().unwrap();
        let is_new = self.filter().insert_if_absent(key)?;
        if is_new {
            disk.log.push(key.to_owned()); // only now: what is in the log has been accepted
        }
        Ok(is_new)
    }

    /// Gives the filter more memory. Lookups go on meanwhile, inserts wait.
    pub(crate) fn raise_limit(&self, memory_limit: usize) -> Result<(), Box<dyn Error>> {
        let mut disk = self.disk.lock().unwrap();
        let mut snapshot = Vec::new();
        self.filter().save(&mut snapshot)?;
        let larger = Loader::<Filter, _>::new(hasher(), memory_limit).load(&snapshot[..])?.filter;
        *self.filter.write().unwrap() = Arc::new(larger);
        *disk = Disk { snapshot, log: Vec::new() };
        Ok(())
    }
}

/// The same in each process: its key is in the configuration.
pub(crate) fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"sixteen secrets!")
}

/// What the installation writes: an empty filter. The limit is that of `open`.
pub(crate) fn install() -> Result<Disk, Box<dyn Error>> {
    let mut disk = Disk::default();
    Filter::builder_with_hasher(hasher()).capacity(0).build()?.save(&mut disk.snapshot)?;
    Ok(disk)
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let limit = 100_000;
    let seen = Seen::open(install()?, limit)?;
    let full = (0..).find_map(|number| seen.insert(&format!("key {number}")).err());
    println!("{}", full.expect("it is full at some point"));

    let len = seen.filter().len();
    let seen = Seen::open(seen.disk.into_inner()?, limit)?; // a restart
    assert!((0..len).all(|number| seen.filter().contains(&*format!("key {number}"))));
    seen.raise_limit(2 * limit)?;
    assert!(seen.insert("one more key")?);
    println!("{} keys after the restart, and room for {}", seen.filter().len(), seen.filter().max_capacity());
    Ok(())
}
