//! Gives a filter another hasher key while it is in use, from the store that has its keys.
//!
//! The guide's page `recipes` explains `Users`, and `tests/recipes.rs` shows what is lost without its lock.

use std::collections::HashSet;
use std::error::Error;
use std::process;
use std::sync::{Arc, Mutex, RwLock};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};

pub(crate) struct Users {
    /// The store: all names, as in a database. Each write holds its lock throughout.
    pub(crate) names: Mutex<HashSet<String>>,
    /// Its lock is held only while the `Arc` is cloned or replaced.
    pub(crate) filter: RwLock<Arc<ConcurrentCuckooFilter<str>>>,
}

impl Users {
    fn filter(&self) -> Arc<ConcurrentCuckooFilter<str>> {
        Arc::clone(&self.filter.read().unwrap())
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let filter = Arc::new(ConcurrentCuckooFilter::with_capacity(capacity));
        Self { names: Mutex::default(), filter: RwLock::new(filter) }
    }

    /// Most names that the store does not have never reach it.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.filter().contains(name) && self.names.lock().unwrap().contains(name)
    }

    pub(crate) fn add(&self, name: &str) -> Result<bool, InsertError> {
        let mut names = self.names.lock().unwrap();
        if names.contains(name) {
            return Ok(false);
        }
        self.filter().insert(name)?;
        Ok(names.insert(name.to_owned()))
    }

    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut names = self.names.lock().unwrap();
        names.remove(name) && self.filter().remove(name)
    }

    /// Replaces the filter by one with the same keys, whose hasher has a new key. Lookups go on meanwhile.
    pub(crate) fn rehash(&self) -> Result<(), InsertError> {
        let names = self.names.lock().unwrap(); // no write may come between the scan and the end
        let filter = ConcurrentCuckooFilter::with_capacity(self.filter().capacity()); // draws a new key
        names.iter().try_for_each(|name| filter.insert(name.as_str()))?;
        *self.filter.write().unwrap() = Arc::new(filter);
        Ok(())
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let users = Users::with_capacity(10_000);
    (0..10_000).try_for_each(|number| users.add(&format!("user {number}")).map(drop))?;
    // Names that an adversary has found to be false positives.
    let absent = || (0..1_000_000).map(|number| format!("absent {number}"));
    let collected: Vec<_> = absent().filter(|name| users.filter().contains(name)).collect();
    users.rehash()?;
    let left = collected.iter().filter(|name| users.filter().contains(name)).count();
    println!("of {} false positives that were collected, {left} are left", collected.len());
    assert!(left < collected.len() / 10);
    assert!((0..10_000).all(|number| users.contains(&format!("user {number}"))));
    assert!(users.remove("user 17") && !users.contains("user 17"));
    Ok(())
}
