//! How filters scale with threads, up to the number of cores.
//!
//! `cargo bench --bench many_cores [-- --quick | --l2 | --large | --out=DIR | --redraw]`
//!
//! `--redraw` measures nothing: it draws the chart of the README again, `benches/plots/threads.svg`, from the recorded
//! figures beside it.
//!
//! `ci/many-cores` makes a folder of it that runs without cargo. Threads are 1, 2, 4 and so on, as many as the machine has
//! cores. The tables have 512 KiB (L2), 16 MiB (L3) and 192 MiB. This crate's filter, and other sets that threads share, do
//! - lookups, half of them of present keys; the mixes 90/5/5 and 98/1/1 (lookups, inserts, removals; the second is that of
//!   conc-map-bench's read-heavy workload). All at 90% load;
//! - inserts from half full on, of a quarter of the slots but a million keys at most, and their removal.
//!
//! *Any shared array* is no set. For each operation it loads two random words of an array of as many bytes, and changes
//! one of them by compare-exchange if the operation is a change. Its scaling is the machine's: a line that one core has
//! changed must travel to the core that needs it next. So the last column relates the gain of each subject to that of
//! the array, round by round. (In a virtual machine both vary: the host may run two threads on two cores, or on the two
//! hardware threads of one, which share their caches.)
//!
//! The subjects take turns, as in `ratios`, and tables and charts show medians. The answers are checked, as in
//! `ratios`: the races of other crates' filters are reported, but do not end the run. `fastbloom` cannot remove, and
//! the exact sets hold fewer keys in as many bytes.

mod support;

use std::time::Duration;
use std::{fs, io};

use support::array::ARRAY;
use support::by_threads::{ByThreads, Turns, redrawn, steady, thread_counts};
use support::exact::{Locked, Papaya, SccIndex, exact};
use support::filled::{Bench, Filled, Sample, Steady};
use support::options::Options;
use support::ours::{DEFAULT_5X14, PLAIN_4X16};
use support::peers::{ATOMIC, ATOMIC_BLOOM};
use support::plan::{STEADY_LOAD, Size, items};

/// How much is measured.
struct Plan {
    table_bytes: usize,
    turns: Turns,
    threads: Vec<u64>,
}

/// The array comes first: the others are shown relative to it.
fn subjects(table_bytes: usize) -> [Box<dyn Bench>; 8] {
    [
        Filled::boxed(ARRAY, table_bytes),
        Filled::boxed(DEFAULT_5X14, table_bytes),
        Filled::boxed(PLAIN_4X16, table_bytes),
        Filled::boxed(ATOMIC, table_bytes),
        Filled::boxed(ATOMIC_BLOOM, table_bytes),
        Filled::boxed(exact::<Papaya>(), table_bytes),
        Filled::boxed(exact::<SccIndex>(), table_bytes),
        Filled::boxed(exact::<Locked>(), table_bytes),
    ]
}

/// What is measured, in the order of [`Speeds`].
const WORK: [&str; 5] = ["Inserts", "Removals", "Lookups", "Mix 90/5/5", "Mix 98/1/1"];
const LOOKUPS: usize = 2;
const STEADY: [Steady; 3] = [Steady::Half, Steady::Mix, Steady::ReadHeavy];

/// The load from which inserts are timed, and to which removals are.
const CHANGED_LOAD: f64 = 0.5;
/// The most inserts of one turn.
const MOST_CHANGES: u64 = 1_000_000;

/// For each work and each number of threads, the speeds of all rounds.
type Speeds = [Vec<Vec<f64>>; WORK.len()];

fn bring_to(subject: &mut dyn Bench, load: f64, plan: &Plan) {
    let len = items(subject, load);
    if subject.len() > len && !subject.about().removes {
        subject.renew();
    }
    // By all threads, because it takes most of the time.
    let most = *plan.threads.last().expect("a number of threads");
    if subject.len() > len {
        subject.remove_to(len, most);
    } else {
        subject.insert_to(len, most);
    }
}

/// Inserts and their removal, at least for the time of a turn.
fn change(subject: &mut dyn Bench, threads: u64, plan: &Plan) -> [Sample; 2] {
    let [half, full] = [CHANGED_LOAD, STEADY_LOAD].map(|load| items(subject, load));
    let count = (subject.size().slots / 4).min(MOST_CHANGES);
    let [mut inserted, mut removed] = [Sample::default(); 2];
    while inserted.operations == 0 || inserted.time + removed.time < plan.turns.turn {
        // What cannot remove goes on from where it is.
        if subject.about().removes || subject.len() < half || subject.len() + count > full {
            bring_to(subject, CHANGED_LOAD, plan);
        }
        let from = subject.len();
        inserted += subject.insert_to(from + count, threads);
        if subject.about().removes {
            removed += subject.remove_to(from, threads);
        }
    }
    [inserted, removed]
}

/// All subjects in all rounds.
fn measure(subjects: &mut [Box<dyn Bench>], plan: &Plan) -> Vec<Speeds> {
    let none = || WORK.map(|_| vec![Vec::new(); plan.threads.len()]);
    let mut all: Vec<Speeds> = subjects.iter().map(|_| none()).collect();
    for round in 0..plan.turns.rounds {
        eprintln!("inserts and removals, round {} of {}", round + 1, plan.turns.rounds);
        for (subject, speeds) in subjects.iter_mut().zip(&mut all) {
            for (nth, &threads) in plan.threads.iter().enumerate() {
                let samples = change(subject.as_mut(), threads, plan);
                for (speeds, sample) in speeds.iter_mut().zip(samples).filter(|(_, sample)| sample.operations > 0) {
                    speeds[nth].push(sample.mops());
                }
            }
        }
    }
    subjects.iter_mut().for_each(|subject| bring_to(subject.as_mut(), STEADY_LOAD, plan));
    eprintln!("lookups and mixes");
    for (all, steady) in all.iter_mut().zip(steady(subjects, &STEADY, &plan.threads, plan.turns)) {
        steady.into_iter().zip(&mut all[2..]).for_each(|(steady, speeds)| *speeds = steady);
    }
    all
}

fn sets(size: Size, plan: &Plan, options: &Options) -> io::Result<()> {
    eprintln!("{}: sets", size.name());
    let mut subjects = subjects(plan.table_bytes);
    let speeds = measure(&mut subjects, plan);
    for (nth, title) in WORK.into_iter().enumerate() {
        let rows = subjects.iter().zip(&speeds).filter(|(_, speeds)| !speeds[nth][0].is_empty());
        let result = ByThreads {
            title: title.into(),
            about: format!("tables of {} KiB or less", plan.table_bytes >> 10),
            unit: if nth == LOOKUPS { "lookups" } else { "operations" },
            threads: &plan.threads,
            rows: rows.map(|(subject, speeds)| (subject.about().about.to_owned(), speeds[nth].clone())).collect(),
            array: Some(0),
        };
        result.show(options, "target/many-cores", &format!("{}_{title}", size.name()))?;
    }
    for subject in &subjects {
        if let (failed @ 1.., changes) = subject.failed_changes() {
            println!("{}: {failed} of {changes} inserts and removals failed in the mixes.\n", subject.about().about);
        }
    }
    Ok(())
}

/// Draws the chart of the README again. A test only compares it with the file.
fn redraw(options: &Options) -> io::Result<()> {
    let plots = options.out("benches/plots");
    let chart =
        redrawn(&fs::read_to_string(plots.join("threads.csv"))?).expect("the figures are as `show` writes them");
    let file = plots.join("threads.svg");
    if options.test {
        assert_eq!(
            chart.svg(),
            fs::read_to_string(&file)?,
            "draw it again: cargo bench --bench many_cores -- --redraw"
        );
        return Ok(());
    }
    fs::write(file, chart.svg())
}

fn main() -> io::Result<()> {
    let Some(options) = Options::parse() else { return Ok(()) };
    if options.has("--redraw") {
        return redraw(&options);
    }
    if options.test {
        redraw(&options)?;
    }
    let (rounds, turn, first) = options.pick((1, 0, 100), (3, 20, 10_000), (5, 60, 100_000));
    let turns = Turns { rounds, turn: Duration::from_millis(turn), first };
    let sizes = options.sizes().flat_map(|size| match size {
        Size::L2 => [Size::L2, Size::L3].to_vec(),
        other => vec![other],
    });
    for size in sizes {
        let table_bytes = options.table_bytes(size);
        sets(size, &Plan { table_bytes, turns, threads: thread_counts() }, &options)?;
    }
    Ok(())
}
