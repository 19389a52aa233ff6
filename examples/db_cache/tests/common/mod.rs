//! What the tests share: a check that filter and store are in step, and a store that fails on demand.
#![allow(dead_code)] // Each test file uses a part of it.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use db_cache::{ApplyError, Cache, Change, Logged, MemoryStore, Store};

/// Asserts that the filter has each key of the store, and as many copies as there are keys. No write may be under
/// way.
#[track_caller]
pub(crate) fn assert_in_step<S: Store>(cache: &Cache<S>) {
    let filter = cache.filter();
    let mut keys = Vec::new();
    cache.store().for_each_key(&mut |key| keys.push(key.to_vec())).expect("a scan");
    for key in &keys {
        assert!(filter.contains_hash(filter.hasher().hash_bytes(key)), "the filter lacks {}", key.escape_ascii());
        assert!(cache.get(key).expect("a get").is_some(), "a get denies {}", key.escape_ascii());
    }
    assert_eq!(filter.len(), keys.len(), "copies in the filter, keys in the store");
}

/// Makes the next call of the method in question fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `apply` changes nothing, and reports that.
    NotApplied,
    /// `apply` changes nothing, and reports that it is not known.
    UnknownAndNotApplied,
    /// `apply` changes everything, and reports that it is not known.
    UnknownAndApplied,
    /// `apply` changes everything, and panics.
    Panic,
    Announce,
    /// `announce` does its work and then fails, as if the process had died.
    AfterAnnounce,
    Settle,
}

/// A store in memory that counts its reads, fails on demand, and lets a test look at the moment of a commit.
pub(crate) struct TestStore {
    pub(crate) inner: MemoryStore,
    /// Calls of `get` and `contains`.
    pub(crate) reads: AtomicU64,
    fault: Mutex<Option<Fault>>,
    after_commit: Mutex<Option<Hook>>,
    after_announcement: Mutex<Option<Hook>>,
}

type Hook = Box<dyn Fn() + Send>;

#[derive(Debug)]
pub(crate) struct TestError;

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as told")
    }
}

impl Error for TestError {}

impl fmt::Debug for TestStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestStore")
    }
}

impl TestStore {
    pub(crate) fn new() -> Arc<Self> {
        let inner = MemoryStore::new().expect("random bytes");
        Arc::new(Self {
            inner,
            reads: AtomicU64::new(0),
            fault: Mutex::default(),
            after_commit: Mutex::default(),
            after_announcement: Mutex::default(),
        })
    }

    pub(crate) fn fail(&self, fault: Fault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
    }

    /// Calls `hook` after each commit, before `apply` returns.
    pub(crate) fn after_commit(&self, hook: impl Fn() + Send + 'static) {
        *self.after_commit.lock().expect("no panic") = Some(Box::new(hook));
    }

    /// Calls `hook` once a snapshot has been announced, and before it is written.
    pub(crate) fn after_announcement(&self, hook: impl Fn() + Send + 'static) {
        *self.after_announcement.lock().expect("no panic") = Some(Box::new(hook));
    }

    /// Whether this fault is set. Clears it if so.
    fn takes(&self, fault: Fault) -> bool {
        let mut set = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *set == Some(fault);
        if now {
            *set = None;
        }
        now
    }
}

fn never<T>(result: Result<T, std::convert::Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

impl Store for TestStore {
    type Error = TestError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TestError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(never(self.inner.get(key)))
    }

    fn contains(&self, key: &[u8]) -> Result<bool, TestError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(never(self.inner.contains(key)))
    }

    fn len(&self) -> Result<u64, TestError> {
        Ok(never(self.inner.len()))
    }

    fn apply(&self, changes: &[Change<'_>], log: &[Logged<'_>]) -> Result<(), ApplyError<TestError>> {
        if self.takes(Fault::NotApplied) {
            return Err(ApplyError::NotApplied(TestError));
        }
        if self.takes(Fault::UnknownAndNotApplied) {
            return Err(ApplyError::Unknown(TestError));
        }
        self.inner.apply(changes, log).expect("a store in memory does not fail");
        if let Some(hook) = &*self.after_commit.lock().expect("no panic") {
            hook();
        }
        assert!(!self.takes(Fault::Panic), "as told");
        if self.takes(Fault::UnknownAndApplied) { Err(ApplyError::Unknown(TestError)) } else { Ok(()) }
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), TestError> {
        never(self.inner.for_each_key(visit));
        Ok(())
    }

    fn sequence(&self) -> Result<u64, TestError> {
        Ok(never(self.inner.sequence()))
    }

    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(u64, Logged<'_>)) -> Result<(), TestError> {
        never(self.inner.for_each_logged(after, visit));
        Ok(())
    }

    fn hash_key(&self) -> Result<[u8; 16], TestError> {
        Ok(never(self.inner.hash_key()))
    }

    fn announce(&self, id: u64, sequence: u64) -> Result<(), TestError> {
        if self.takes(Fault::Announce) {
            return Err(TestError);
        }
        never(self.inner.announce(id, sequence));
        if let Some(hook) = &*self.after_announcement.lock().expect("no panic") {
            hook();
        }
        if self.takes(Fault::AfterAnnounce) { Err(TestError) } else { Ok(()) }
    }

    fn announced(&self, id: u64) -> Result<Option<u64>, TestError> {
        Ok(never(self.inner.announced(id)))
    }

    fn settle(&self, id: u64) -> Result<(), TestError> {
        if self.takes(Fault::Settle) {
            return Err(TestError);
        }
        never(self.inner.settle(id));
        Ok(())
    }
}
