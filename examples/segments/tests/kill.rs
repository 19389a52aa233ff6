//! The process is killed in the middle of puts, flushes, compactions and saves, with a signal that it can't catch.
//! No key is lost, and the maplet has exactly the pairs it needs.
//!
//! (The system keeps what a killed process has written. After a power cut it does not: the log is not synced. That
//! case is not tested here.)

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use segments::{Options, Origin, Store, Strategy};

/// What the program has reported about the keys. Each of its threads has keys of its own.
#[derive(Default)]
struct Said {
    /// By key: the value that was put, or `None` if the key was deleted, as far as the change was surely committed.
    known: BTreeMap<String, Option<String>>,
    /// By thread: a change that was begun, and may have been committed.
    pending: BTreeMap<String, (String, Option<String>)>,
    committed: usize,
    flushed: usize,
    compacted: usize,
    saved: usize,
}

impl Said {
    fn hear(&mut self, line: &str) {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["flushed"] => self.flushed += 1,
            ["compacted"] => self.compacted += 1,
            ["saved"] => self.saved += 1,
            [thread, "try", "put", key, value] => self.begin(thread, key, Some(value.to_owned())),
            [thread, "try", "delete", key] => self.begin(thread, key, None),
            [thread, "done"] => {
                self.known.extend(self.pending.remove(thread));
                self.committed += 1;
            }
            _ => panic!("{line}"),
        }
    }

    fn begin(&mut self, thread: &str, key: &str, value: Option<String>) {
        assert!(self.pending.insert(thread.to_owned(), (key.to_owned(), value)).is_none(), "{thread} is not done");
    }

    /// Gets each key. Records the outcome of the changes that may or may not have been committed.
    fn check(&mut self, store: &Store) {
        let unsure: BTreeMap<String, Option<String>> = std::mem::take(&mut self.pending).into_values().collect();
        let get = |key: &str| {
            let value = store.get(key.as_bytes()).expect("a get");
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

/// Starts the program, lets it work for a while after its first flush, kills it, and reads the rest of its output.
fn work_and_kill(directory: &Path, strategy: &str, seed: u64, life: Duration, said: &mut Said) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_segments"))
        .args(["--path", directory.to_str().expect("a name"), "--strategy", strategy, "churn"])
        .args(["--seed", &seed.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let (begun, begins) = mpsc::channel();
    let listener = thread::spawn(move || {
        let (mut lines, mut line) = (Vec::new(), String::new());
        // A line without an end was not finished, and no change was begun after it.
        while out.read_line(&mut line).expect("text") > 0 && line.ends_with('\n') {
            if line == "flushed\n" {
                let _ = begun.send(());
            }
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        lines
    });
    begins.recv_timeout(Duration::from_secs(60)).expect("a first flush");
    thread::sleep(life);
    // SIGKILL.
    child.kill().expect("it can be killed");
    let status = child.wait().expect("it has ended");
    assert!(status.code().is_none(), "it ended by itself: {status}");
    for line in listener.join().expect("no panic") {
        said.hear(&line);
    }
}

/// A store is worked on, killed and checked at least this often, and until everything that must be seen was seen.
const LEAST_ROUNDS: u64 = 12;
const MOST_ROUNDS: u64 = 60;

#[test]
fn a_killed_process_loses_no_key() {
    // In memory, if the system has such a directory. What a killed process has written is there in either case.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let mut said = Said::default();
    let mut random = SmallRng::seed_from_u64(1);
    let (mut leftovers, mut loaded, mut scanned, mut unsure) = (0, 0, 0, 0);
    for round in 0.. {
        // The stored data does not depend on the strategy.
        let strategy = ["maplet", "maplet", "filters", "maplet", "engine"][round as usize % 5];
        let life = Duration::from_micros(random.random_range(0..150_000));
        work_and_kill(directory.path(), strategy, round, life, &mut said);
        unsure += said.pending.len();

        let store = Store::open(directory.path(), Options::new(Strategy::Maplet)).expect("the store opens");
        leftovers += store.opened().deleted;
        match &store.opened().maplet {
            Origin::FromSnapshot { .. } => loaded += 1,
            Origin::Scanned { .. } => scanned += 1,
            other => panic!("{other:?}"),
        }
        assert_no_leftovers(&store);
        said.check(&store);
        // Each pair that is replaced or removed now must be there. Otherwise the store returns an error.
        store.flush().expect("a flush");
        said.check(&store);
        if round % 3 == 0 {
            store.compact(0..store.segments().len()).expect("a compaction");
            said.check(&store);
        }
        if round % 2 == 0 {
            assert!(store.save().expect("a save"));
        }
        drop(store);

        let seen = leftovers > 2 && loaded > 1 && scanned > 1 && unsure > 1;
        if round + 1 >= LEAST_ROUNDS && seen {
            break;
        }
        assert!(round < MOST_ROUNDS, "{leftovers} leftovers, {loaded} loaded, {scanned} scanned, {unsure} under way");
    }
    println!(
        "{} commits, {} flushes, {} compactions, {} saves, {} keys; {leftovers} left over, {loaded} maplets loaded, \
         {scanned} rebuilt, {unsure} changes under way",
        said.committed,
        said.flushed,
        said.compacted,
        said.saved,
        said.known.len()
    );
}

/// Asserts that there is a directory for each live segment, and no other.
fn assert_no_leftovers(store: &Store) {
    let mut expected: Vec<String> =
        store.segments().iter().map(|segment| format!("segment-{}", segment.number)).collect();
    let names = fs::read_dir(store.directory()).expect("a directory").map(|entry| entry.expect("a file").file_name());
    let mut found: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    found.retain(|name| name.starts_with("segment-"));
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
