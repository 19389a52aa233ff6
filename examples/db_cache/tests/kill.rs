//! Kills a process in the middle of writes and snapshots, with a signal that it can't catch. No key's membership is
//! lost. (A power cut, for which redb and the snapshot sync their files, is not tested here.)

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use anyhow::Context;
use db_cache::{Cache, Change, RedbStore};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// A key, and its value or none to delete it.
type Owned = (Vec<u8>, Option<Vec<u8>>);

const THREADS: u64 = 4;
/// The first byte of the keys that all threads write. Those of one thread begin with its number.
const SHARED: u8 = 255;

/// In every other round, the filter is large enough for a kill in the middle of its snapshot.
fn open(database: &Path, round: u64) -> Cache {
    let store = RedbStore::open(database, 4 << 20).unwrap();
    let capacity = [1000, 2_000_000][round as usize % 2];
    Cache::open(Arc::new(store), database.with_extension("filter"), capacity).unwrap()
}

/// What a thread writes in one step. Most keys are its own, so that their state follows from its steps.
fn changes(round: u64, thread: u64, step: u64) -> Vec<Owned> {
    let mut random = SmallRng::seed_from_u64((round * THREADS + thread) << 32 | step);
    let mut change = || {
        let whose = if random.random_ratio(4, 5) { thread as u8 } else { SHARED };
        let value = random.random_ratio(3, 5).then(|| random.random::<[u8; 4]>().to_vec());
        (vec![whose, random.random_range(0..200)], value)
    };
    (0..12).map(|_| change()).collect()
}

/// The process that is killed: this program again, with only this test and with these variables. Its lines on standard
/// error are the number of a thread that has done its next step, or `snapshot`.
#[test]
fn churn() {
    let (Ok(database), Ok(round)) = (env::var("CHURN_DATABASE"), env::var("CHURN_ROUND")) else { return };
    let round = round.parse().unwrap();
    let cache = &open(Path::new(&database), round);
    // Each line in one write.
    let say = |line: String| io::stderr().write_all(line.as_bytes()).unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for step in 0.. {
                    let changes = changes(round, thread, step);
                    let changes = changes.iter().map(|(key, value)| (&key[..], value.as_deref()));
                    cache.apply(&changes.collect::<Vec<Change<'_>>>()).unwrap();
                    say(format!("{thread}\n"));
                }
            });
        }
        loop {
            cache.snapshot().unwrap();
            say("snapshot\n".into());
            thread::sleep(Duration::from_millis([20, 0][round as usize % 2]));
        }
    });
}

/// Kills the process a while after its first snapshot, in every other round in the middle of one if the file is seen, and
/// returns how many steps each thread has certainly done.
fn write_and_kill(database: &Path, round: u64, life: Duration) -> [u64; THREADS as usize] {
    let output = database.with_extension("output");
    let lines = || fs::read_to_string(&output).unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["churn", "--exact", "--nocapture"])
        .envs([("CHURN_DATABASE", database.as_os_str()), ("CHURN_ROUND", round.to_string().as_ref())])
        .stdout(Stdio::null())
        .stderr(File::create(&output).unwrap())
        .spawn()
        .unwrap();
    while !lines().contains("snapshot") {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself: {}", lines());
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(life);
    let folder = database.parent().unwrap();
    while round % 2 == 1 && partial_files(folder) == 0 && lines().matches("snapshot").count() < 100 {}
    child.kill().unwrap(); // SIGKILL
    assert!(child.wait().unwrap().code().is_none(), "it ended by itself: {}", lines());
    let mut done = [0; THREADS as usize];
    for thread in lines().lines().filter(|line| *line != "snapshot") {
        done[thread.parse::<usize>().expect(thread)] += 1;
    }
    done
}

/// How many partial files of snapshots there are.
fn partial_files(directory: &Path) -> usize {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "partial")).count()
}

#[test]
fn a_killed_process_loses_no_key() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("killed.redb");
    let mut random = SmallRng::seed_from_u64(1);
    let (mut known, mut replays, mut partial) = (BTreeMap::new(), 0, 0);
    for round in 0..60 {
        let done = write_and_kill(&database, round, Duration::from_micros(random.random_range(0..250_000)));
        partial = partial_files(directory.path()); // they stay until nobody has written to them for ten minutes
        let cache = open(&database, round);
        replays += u32::from(*cache.restored.as_ref().unwrap() > 0);
        let filter = cache.filter();
        let is_found = |key: &[u8]| filter.contains(key).then_some(()).with_context(|| format!("no {key:?}"));
        cache.store.for_each_key(&mut |key| is_found(key)).unwrap();
        assert_eq!(filter.len() as u64, cache.store.state().unwrap().keys, "copies and keys");

        // The next step of each thread may have been committed, or not.
        let mut unsure = BTreeMap::new();
        for (thread, &steps) in (0..).zip(&done) {
            known.extend((0..steps).flat_map(|step| changes(round, thread, step)));
            unsure.extend(changes(round, thread, steps));
        }
        for (key, value) in known.iter().filter(|(key, _)| key[0] != SHARED) {
            let found = cache.get(key).unwrap();
            assert!(found == *value || unsure.get(key) == Some(&found), "{key:?}: {found:?} instead of {value:?}");
        }
        known.extend(unsure.into_keys().map(|key| (key.clone(), cache.get(&key).unwrap())));

        if round > 10 && replays > 1 && partial > 1 {
            return;
        }
    }
    panic!("{replays} replays, {partial} partial files");
}
