//! Lookups and changes, interleaved.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::counting::counted;
use crate::support::clock::own_time;
use crate::support::keys::{ABSENT, Shuffled, drawn, key};
use crate::support::report::{Spread, speed};
use crate::{Clocked, Held, Kind, NOW, end};

/// How many operations are timed at a time, at most. That is enough for a small filter to be in the cache for
/// nearly all of them, whichever subject ran before.
const SLICE: u64 = 32 << 10;

/// What is timed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Present,
    Absent,
    PresentBatched,
    AbsentBatched,
    Insert,
    Remove,
}

impl What {
    const LOOKUPS: [Self; 4] = [Self::Present, Self::Absent, Self::PresentBatched, Self::AbsentBatched];
    const ALL: usize = 6;
}

struct Subject {
    name: String,
    /// The subject that it is compared with.
    base: usize,
    held: Box<dyn Held>,
    bytes: usize,
    /// Nanoseconds an operation, in each turn.
    times: [Vec<f64>; What::ALL],
    /// The mean while it was filled.
    fill: f64,
    found_absent: f64,
    /// How many inserts failed.
    lost: u64,
}

impl Subject {
    fn new(kind: Kind, base: usize, keys: u64) -> Self {
        let (held, mut bytes) = counted(|| kind.make(keys));
        if kind == Kind::Moka {
            // Most of the memory of `moka` is that of its entries.
            let (filled, all) = counted(|| {
                let held = kind.make(keys);
                held.insert(&entries(0, keys));
                (0..3).for_each(|_| held.rest());
                held
            });
            (_, bytes) = (filled, all);
        }
        let times = Default::default();
        Self { name: kind.name(), base, held, bytes, times, fill: 0.0, found_absent: 0.0, lost: 0 }
    }

    /// The median speed, and how many times as fast the base is.
    fn cells(&self, what: What, base: Option<&Self>) -> [String; 2] {
        let own = &self.times[what as usize];
        if own.is_empty() {
            return ["–".into(), "–".into()];
        }
        let ratio = |base: &Self| Spread::of_ratios(own, &base.times[what as usize]).show();
        [format!("{:.2}", speed(own)), base.map_or("–".into(), ratio)]
    }
}

/// Entries with these numbers. All of them are live.
fn entries(from: u64, len: u64) -> Vec<Clocked> {
    (from..from + len).map(|number| (key(number), end(NOW, number))).collect()
}

/// Nanoseconds an operation, and how many operations succeeded.
fn time(operations: usize, run: impl FnOnce() -> Option<usize>) -> Option<(f64, usize)> {
    let start = own_time();
    let well = run()?;
    Some(((own_time() - start) as f64 / operations as f64, well))
}

/// All subjects at one size, measured.
pub(crate) struct Run {
    subjects: Vec<Subject>,
    keys: u64,
    slice: u64,
}

impl Run {
    /// Measures each kind of operation for this long, times the number of subjects.
    pub(crate) fn new(keys: u64, kinds: &[(Kind, usize)], length: Duration) -> Self {
        // The table that all semi-sorted filters share is made before any memory is counted.
        drop(kinds[0].0.make(1));
        let subjects: Vec<_> = kinds.iter().map(|&(kind, base)| Subject::new(kind, base, keys)).collect();
        let length = length * subjects.len() as u32;
        let mut run = Self { subjects, keys, slice: SLICE.min(keys / 4) };
        run.fill();
        for what in What::LOOKUPS {
            run.look_up(what, length);
        }
        run.change(length);
        run
    }

    /// From empty until all keys are in, one quarter after the other.
    fn fill(&mut self) {
        let mut next = 0;
        for quarter in 1..=4 {
            let until = self.keys * quarter / 4;
            while next < until {
                let new = entries(next, self.slice.min(until - next));
                for subject in &mut self.subjects {
                    let (time, well) = time(1, || Some(subject.held.insert(&new))).expect("all insert");
                    subject.fill += time / self.keys as f64;
                    subject.lost += (new.len() - well) as u64;
                }
                next += new.len() as u64;
            }
            if quarter < 4 {
                self.subjects.iter().for_each(|subject| subject.held.rest());
            }
        }
    }

    /// Lookups, of one kind of keys in one way. Each round begins with another subject, so that none always comes
    /// after the same other one.
    fn look_up(&mut self, what: What, length: Duration) {
        let numbers = match what {
            What::Present | What::PresentBatched => 0..self.keys,
            _ => ABSENT..2 * ABSENT,
        };
        let mut random = SmallRng::seed_from_u64(17);
        let (start, subjects) = (Instant::now(), self.subjects.len());
        let (mut found, mut asked) = (vec![0; subjects], 0);
        for round in 0.. {
            if round > 0 && start.elapsed() >= length {
                break;
            }
            // The same keys for all.
            let keys = drawn(&mut random, numbers.clone(), self.slice);
            for turn in 0..subjects {
                let nth = (turn + round) % subjects;
                let subject = &mut self.subjects[nth];
                let held = &subject.held;
                let timed = time(keys.len(), || match what {
                    What::Present | What::Absent => Some(held.contains(&keys)),
                    _ => held.contains_batch(&keys),
                });
                if let Some((time, yes)) = timed {
                    subject.times[what as usize].push(time);
                    found[nth] += yes;
                }
            }
            asked += keys.len();
        }
        let of_present = matches!(what, What::Present | What::PresentBatched);
        for (subject, &found) in self.subjects.iter().zip(&found).filter(|(subject, _)| of_present && subject.lost == 0)
        {
            let all = found == asked || subject.times[what as usize].is_empty();
            assert!(all, "{} of {asked} were found by {}", found, subject.name);
        }
        if what == What::Absent {
            for (subject, &found) in self.subjects.iter_mut().zip(&found) {
                subject.found_absent = found as f64 / asked as f64;
            }
        }
    }

    /// Removes the oldest keys and inserts new ones. Within a slice, the oldest keys are not removed in the order
    /// of their insertion.
    fn change(&mut self, length: Duration) {
        let start = Instant::now();
        for round in 0.. {
            if round > 0 && start.elapsed() >= length {
                break;
            }
            let oldest = round as u64 * self.slice;
            let mut order = Shuffled::new(oldest..oldest + self.slice, 0.0);
            let old = (0..self.slice).map(|_| order.next()).map(|number| (key(number), end(NOW, number)));
            let old: Vec<Clocked> = old.collect();
            let new = entries(oldest + self.keys, self.slice);
            for turn in 0..self.subjects.len() {
                let nth = (turn + round) % self.subjects.len();
                let Subject { held, times, lost, .. } = &mut self.subjects[nth];
                if let Some((removed, _)) = time(old.len(), || held.remove(&old)) {
                    let (inserted, well) = time(new.len(), || Some(held.insert(&new))).expect("all insert");
                    times[What::Remove as usize].push(removed);
                    times[What::Insert as usize].push(inserted);
                    *lost += (new.len() - well) as u64;
                }
            }
        }
    }

    /// The tables of the output, with their titles.
    pub(crate) fn tables(&self) -> Vec<(&'static str, Vec<Vec<String>>)> {
        let of = |first: [&str; 3], names: [&str; 2], what: [What; 2]| {
            let head = [first[0], first[1], first[2], names[0], "expiring by it", names[1], "expiring by it"];
            let with_head = |rows: Vec<Vec<String>>| {
                std::iter::once(head.map(String::from).to_vec()).chain(rows).collect::<Vec<_>>()
            };
            with_head(self.rows(first[1], what))
        };
        let about = ["", "bits a key", "absent keys found"];
        vec![
            ("lookups one by one", of(about, ["present", "absent"], [What::Present, What::Absent])),
            ("lookups in batches", of(about, ["present", "absent"], [What::PresentBatched, What::AbsentBatched])),
            ("changes", of(["", "fill", "lost"], ["insert", "remove"], [What::Insert, What::Remove])),
        ]
    }

    fn rows(&self, second: &str, what: [What; 2]) -> Vec<Vec<String>> {
        let row = |(nth, subject): (usize, &Subject)| {
            let base = &self.subjects[subject.base];
            let base = (subject.base != nth).then_some(base);
            let mut cells = vec![subject.name.clone()];
            if second == "fill" {
                let by = base.map_or(String::new(), |base| format!(" ({:.2})", subject.fill / base.fill));
                cells.extend([format!("{:.2}{by}", 1e3 / subject.fill), subject.lost.to_string()]);
            } else {
                cells.push(format!("{:.1}", subject.bytes as f64 * 8.0 / self.keys as f64));
                cells.push(format!("{:.4} %", subject.found_absent * 100.0));
            }
            cells.extend(what.iter().flat_map(|&what| subject.cells(what, base)));
            cells
        };
        let shown = self.subjects.iter().enumerate();
        shown.filter(|(_, subject)| !subject.times[what[0] as usize].is_empty() || second == "fill").map(row).collect()
    }
}
