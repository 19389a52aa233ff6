//! Kills a process in the middle of writes and snapshots, with a signal that it can't catch. Filter and store are in step
//! afterwards. (A power cut, for which redb syncs its file, is not tested here.)

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use anyhow::Context;
use db_cache::{Cache, RedbStore};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// A filter that takes a while to save.
fn open(database: &Path) -> Cache {
    Cache::open(Arc::new(RedbStore::open(database, 4 << 20).unwrap()), 500_000).unwrap()
}

/// The process that is killed: this program again, with only this test and with this variable. It says `snapshot` on
/// standard error after each.
#[test]
fn churn() {
    let Ok(database) = env::var("CHURN_DATABASE") else { return };
    let cache = &open(Path::new(&database));
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                cache.snapshot().unwrap();
                eprintln!("snapshot");
            }
        });
        let mut random = SmallRng::seed_from_u64(1);
        loop {
            let keys = [(); 12].map(|()| random.random_range(0..1000_u16).to_le_bytes());
            let changes = keys.each_ref().map(|key| (&key[..], random.random_bool(0.6).then_some(&key[..])));
            cache.apply(&changes).unwrap();
        }
    });
}

#[test]
fn filter_and_store_of_a_killed_process_are_in_step() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("killed.redb");
    let mut random = SmallRng::seed_from_u64(1);
    let mut replays = 0;
    for _ in 0..12 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["churn", "--exact", "--nocapture"])
            .env("CHURN_DATABASE", &database)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "snapshot"), "it ended by itself");
        thread::sleep(Duration::from_micros(random.random_range(0..250_000)));
        child.kill().unwrap(); // SIGKILL
        assert!(child.wait().unwrap().code().is_none(), "it ended by itself: {:?}", lines.collect::<Vec<_>>());

        let cache = open(&database);
        replays += u32::from(*cache.restored.as_ref().unwrap() > 0);
        let filter = cache.filter();
        let is_found = |key: &[u8]| filter.contains(key).then_some(()).with_context(|| format!("no {key:?}"));
        cache.store.for_each_key(&mut |key| is_found(key)).unwrap();
        assert_eq!(filter.len() as u64, cache.store.state().unwrap().keys, "copies and keys");
    }
    assert!(replays > 1, "{replays}");
}
