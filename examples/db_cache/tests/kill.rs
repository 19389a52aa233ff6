//! Kills a process in the middle of writes and snapshots, with a signal that it can't catch. Filter and store are in step
//! afterwards. (A power cut, for which redb and the snapshot sync their files, is not tested here.)

#![cfg(unix)]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use anyhow::Context;
use db_cache::{Cache, RedbStore};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// In every other round, the filter is large enough for a kill in the middle of its snapshot.
fn open(database: &Path, round: u64) -> Cache {
    let store = RedbStore::open(database, 4 << 20).unwrap();
    let capacity = [1000, 2_000_000][round as usize % 2];
    Cache::open(Arc::new(store), database.with_extension("filter"), capacity).unwrap()
}

/// The process that is killed: this program again, with only this test and with these variables. It says `snapshot` on
/// standard error after each.
#[test]
fn churn() {
    let (Ok(database), Ok(round)) = (env::var("CHURN_DATABASE"), env::var("CHURN_ROUND")) else { return };
    let round: u64 = round.parse().unwrap();
    let cache = &open(Path::new(&database), round);
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(4 * round + thread);
                loop {
                    let keys = [(); 12].map(|()| random.random_range(0..1000_u16).to_le_bytes());
                    let changes = keys.each_ref().map(|key| (&key[..], random.random_bool(0.6).then_some(&key[..])));
                    cache.apply(&changes).unwrap();
                }
            });
        }
        loop {
            cache.snapshot().unwrap();
            eprintln!("snapshot");
            thread::sleep(Duration::from_millis([20, 0][round as usize % 2]));
        }
    });
}

/// Kills the process a while after its first snapshot, in every other round in the middle of one if the file is seen.
fn write_and_kill(database: &Path, round: u64, life: Duration) {
    let output = database.with_extension("output");
    let said = || fs::read_to_string(&output).unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["churn", "--exact", "--nocapture"])
        .envs([("CHURN_DATABASE", database.as_os_str()), ("CHURN_ROUND", round.to_string().as_ref())])
        .stdout(Stdio::null())
        .stderr(File::create(&output).unwrap())
        .spawn()
        .unwrap();
    while !said().contains("snapshot") {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself: {}", said());
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(life);
    let folder = database.parent().unwrap();
    while round % 2 == 1 && partial_files(folder) == 0 && said().lines().count() < 100 {}
    child.kill().unwrap(); // SIGKILL
    assert!(child.wait().unwrap().code().is_none(), "it ended by itself: {}", said());
}

/// How many partial files of snapshots there are.
fn partial_files(directory: &Path) -> usize {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "partial")).count()
}

#[test]
fn filter_and_store_of_a_killed_process_are_in_step() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("killed.redb");
    let mut random = SmallRng::seed_from_u64(1);
    let (mut replays, mut partial) = (0, 0);
    for round in 0..60 {
        write_and_kill(&database, round, Duration::from_micros(random.random_range(0..250_000)));
        partial = partial_files(directory.path()); // they stay until nobody has written to them for ten minutes
        let cache = open(&database, round);
        replays += u32::from(*cache.restored.as_ref().unwrap() > 0);
        let filter = cache.filter();
        let is_found = |key: &[u8]| filter.contains(key).then_some(()).with_context(|| format!("no {key:?}"));
        cache.store.for_each_key(&mut |key| is_found(key)).unwrap();
        assert_eq!(filter.len() as u64, cache.store.state().unwrap().keys, "copies and keys");
        if round > 10 && replays > 1 && partial > 1 {
            return;
        }
    }
    panic!("{replays} replays, {partial} partial files");
}
