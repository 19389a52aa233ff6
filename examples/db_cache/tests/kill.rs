//! Kills the process in the middle of writes and snapshots, with a signal that it can't catch. No key's membership is
//! lost.
//!
//! (What a killed process has written remains in the system's page cache. After a power cut it does not. redb and the
//! snapshot sync their files for that case, which is not tested here.)

#![cfg(unix)]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use db_cache::{Cache, Opened, Options, RedbStore, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::assert_in_step;

/// What the program's output says about the keys that each of its threads has to itself.
#[derive(Default)]
struct Said {
    /// The values of keys that were put, and `None` for deleted ones, by changes that were certainly committed.
    known: BTreeMap<String, Option<String>>,
    /// By thread: changes that have begun and may have been committed.
    pending: BTreeMap<String, Vec<(String, Option<String>)>>,
    committed: usize,
    snapshots: usize,
}

impl Said {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        match words[..] {
            ["snapshot"] => self.snapshots += 1,
            [thread, "try", changes] => {
                let changes =
                    changes.split_terminator(';').map(|change| match change.split(' ').collect::<Vec<_>>()[..] {
                        ["put", key, value] => (key.to_owned(), Some(value.to_owned())),
                        ["delete", key] => (key.to_owned(), None),
                        _ => panic!("{line}"),
                    });
                // Several threads write the shared keys, and these lines do not tell which thread was last.
                let own = changes.filter(|(key, _)| key.starts_with(&format!("{thread}-")));
                assert!(self.pending.insert(thread.to_owned(), own.collect()).is_none(), "{line}");
            }
            [thread, "done"] => {
                self.known.extend(self.pending.remove(thread).expect("begun"));
                self.committed += 1;
            }
            _ => panic!("{line}"),
        }
    }

    /// Looks up each key. Records the state of those that were not certain.
    fn check(&mut self, cache: &Cache<RedbStore>) {
        let unsure: BTreeMap<String, Option<String>> =
            std::mem::take(&mut self.pending).into_values().flatten().collect();
        let get = |key: &str| {
            let value = cache.get(key.as_bytes()).expect("a get");
            value.map(|value| String::from_utf8(value).expect("a number"))
        };
        for (key, value) in &self.known {
            let found = get(key);
            assert!(
                found == *value || unsure.get(key) == Some(&found),
                "{key}: {value:?} was said, {found:?} is there"
            );
        }
        for key in unsure.into_keys() {
            let found = get(&key);
            self.known.insert(key, found);
        }
    }
}

/// Starts the program, lets it write for a while after its first snapshot, kills it, and reads its output to the end.
fn write_and_kill(database: &Path, seed: u64, capacity: usize, snapshot_every: u64, life: Duration, said: &mut Said) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_db-cache"))
        .args(["--path", database.to_str().expect("a name"), "--capacity", &capacity.to_string(), "churn"])
        .args(["--seed", &seed.to_string(), "--snapshot-every", &snapshot_every.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let (begun, begins) = mpsc::channel();
    let listener = thread::spawn(move || {
        let (mut lines, mut line) = (Vec::new(), String::new());
        // A line without an end was not finished, and nothing was begun after it.
        while out.read_line(&mut line).expect("text") > 0 && line.ends_with('\n') {
            if line == "snapshot\n" {
                let _ = begun.send(());
            }
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        lines
    });
    begins.recv_timeout(Duration::from_secs(60)).expect("a first snapshot");
    thread::sleep(life);
    // SIGKILL.
    child.kill().expect("it can be killed");
    let status = child.wait().expect("it has ended");
    assert!(status.code().is_none(), "it ended by itself: {status}");
    for line in listener.join().expect("no panic") {
        said.hear(&line);
    }
}

/// How many partial files of snapshots there are.
fn partial_files(directory: &Path) -> usize {
    let names = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("a file").file_name());
    names.filter(|name| name.to_str().is_some_and(|name| name.ends_with(".partial"))).count()
}

/// How often a database is written, killed and checked: at least so often, and until every required event was seen.
const LEAST_ROUNDS: u64 = 12;
const MOST_ROUNDS: u64 = 60;

#[test]
fn a_killed_process_loses_no_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = directory.path().join("killed.redb");
    let snapshot = directory.path().join("killed.redb.filter");
    let mut said = Said::default();
    let mut random = SmallRng::seed_from_u64(1);
    let (mut replays, mut partial, mut inexact) = (0, 0, 0);
    for round in 0.. {
        // In every other round, snapshots follow each other without a break, of a filter large enough to be hit in
        // the middle.
        let (capacity, every) = if round % 2 == 0 { (1000, 20) } else { (2_000_000, 0) };
        let life = Duration::from_micros(random.random_range(0..250_000));
        write_and_kill(&database, round, capacity, every, life, &mut said);
        partial += partial_files(directory.path());
        inexact += said.pending.len();

        let open = |options| {
            let store = RedbStore::open(&database, 4 << 20).expect("the database opens");
            Cache::open(store, options).expect("a cache")
        };
        let cache = open(Options::new(capacity).snapshot(&snapshot));
        let Opened::FromSnapshot { replayed, .. } = *cache.opened() else { panic!("{}", cache.opened()) };
        replays += u32::from(replayed > 0);
        assert_eq!(partial_files(directory.path()), 0, "what was left over is deleted");
        assert_in_step(&cache);
        said.check(&cache);
        drop(cache);

        let cache = open(Options::new(capacity));
        assert!(matches!(cache.opened(), Opened::Rebuilt { .. }), "{}", cache.opened());
        assert_in_step(&cache);
        said.check(&cache);
        assert!(!cache.store().is_empty().expect("a number"));

        let seen = replays > 1 && partial > 1 && inexact > 1;
        if round + 1 >= LEAST_ROUNDS && seen {
            break;
        }
        assert!(round < MOST_ROUNDS, "{replays} replays, {partial} partial files, {inexact} changes under way");
    }
    println!(
        "{} commits, {} snapshots, {} keys; {replays} replays, {partial} killed in a snapshot, {inexact} in a change",
        said.committed,
        said.snapshots,
        said.known.len()
    );
}
