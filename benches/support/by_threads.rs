//! Speeds by the number of threads, as a table, a chart, and a CSV file.

use std::io;
use std::iter;
use std::thread::available_parallelism;
use std::time::Duration;

use super::filled::{Bench, Steady};
use super::options::Options;
use super::plot::{Axis, Chart, Series, Style};
use super::report::{Spread, align, median};

/// How fast some subjects are on several numbers of threads.
pub(crate) struct ByThreads<'a> {
    /// What is measured.
    pub(crate) title: String,
    /// Of what.
    pub(crate) about: String,
    /// The unit, of which rows have millions per second.
    pub(crate) unit: &'a str,
    pub(crate) threads: &'a [u64],
    /// For each subject and each number of threads, what all threads together did in each round: millions per second.
    pub(crate) rows: Vec<(String, Vec<Vec<f64>>)>,
    /// The subject that shows what the machine allows, if there is one.
    pub(crate) array: Option<usize>,
}

impl ByThreads<'_> {
    /// The medians, and how many times as fast the most threads are as one: with min and max, and relative to the array.
    fn table(&self) -> String {
        let most = self.threads.last().copied().filter(|&most| most > 1);
        let mut head = vec![String::new()];
        head.extend(self.threads.iter().map(|threads| format!("threads: {threads}")));
        head.extend(most.map(|most| format!("{most} over 1")));
        head.extend(most.and(self.array).map(|_| "relative to the array".into()));
        let rows = self.rows.iter().map(|(name, speeds)| {
            let medians = speeds.iter().map(|speeds| format!("{:.1}", median(speeds.iter().copied())));
            let mut row: Vec<String> = iter::once(name.clone()).chain(medians).collect();
            row.extend(most.map(|_| Spread::of(gains(speeds)).show()));
            let array = most.and(self.array).map(|array| &self.rows[array].1);
            row.extend(array.map(|array| Spread::of_ratios(&gains(speeds), &gains(array)).show()));
            row
        });
        let rows: Vec<Vec<String>> = iter::once(head).chain(rows).collect();
        format!("### {}, {}: million {} a second\n\n{}", self.title, self.about, self.unit, align(&rows, 1))
    }

    fn chart(&self) -> Chart {
        let series = self.rows.iter().enumerate().map(|(number, (name, speeds))| Series {
            name: name.clone(),
            points: iter::zip(self.threads, speeds)
                .map(|(&threads, speeds)| (threads as f64, median(speeds.iter().copied())))
                .collect(),
            style: Style::nth(number),
        });
        let cores = available_parallelism().map_or(0, usize::from);
        Chart {
            title: format!("{}, all threads together", self.title),
            subtitle: format!("{}; a machine with {cores} cores", self.about),
            x: Axis::linear("threads"),
            y: Axis::linear(&format!("million {} a second", self.unit)),
            series: series.collect(),
        }
    }

    /// Prints the table, and writes the chart as `file.csv` and `file.svg` into a folder: this one, or that of `--out`.
    pub(crate) fn show(&self, options: &Options, folder: &str, file: &str) -> io::Result<()> {
        let (table, chart) = (self.table(), self.chart());
        if !options.test {
            print!("{table}");
        }
        chart.write(options, folder, file)
    }
}

/// How long each subject's turn is, and how many operations a first try has, which shows how many fit in a turn.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    pub(crate) rounds: usize,
    pub(crate) turn: Duration,
    pub(crate) first: u64,
}

/// Millions of operations per second in each round: of each subject, for each kind of operations, on each number of
/// threads. A subject that cannot remove has none for those that change.
pub(crate) fn steady(
    subjects: &mut [Box<dyn Bench>],
    kinds: &[Steady],
    threads: &[u64],
    Turns { rounds, turn, first }: Turns,
) -> Vec<Vec<Vec<Vec<f64>>>> {
    let mut speeds = vec![vec![vec![Vec::new(); threads.len()]; kinds.len()]; subjects.len()];
    let mut counts = vec![vec![vec![first; threads.len()]; kinds.len()]; subjects.len()];
    for round in 0..=rounds {
        for (nth, subject) in subjects.iter_mut().enumerate() {
            for (thread, &threads) in threads.iter().enumerate() {
                for (kind, &what) in kinds.iter().enumerate() {
                    if what.changes() && !subject.about().removes {
                        continue;
                    }
                    let count = &mut counts[nth][kind][thread];
                    let sample = subject.steady(what, *count, threads);
                    if round == 0 {
                        *count = ((turn.as_nanos() as f64 / sample.nanoseconds()) as u64).max(first);
                    } else {
                        speeds[nth][kind][thread].push(sample.mops());
                    }
                }
            }
        }
    }
    speeds
}

/// The speedup of the most threads over one, in each round.
fn gains(speeds: &[Vec<f64>]) -> Vec<f64> {
    let [one, most] = [speeds.first(), speeds.last()].map(|speeds| speeds.expect("a number of threads"));
    iter::zip(most, one).map(|(most, one)| most / one).collect()
}

/// 1, 2, 4 and so on: up to the number of cores, but at least 2 and at most 64.
pub(crate) fn thread_counts() -> Vec<u64> {
    let cores = available_parallelism().map_or(1, usize::from).clamp(2, 64) as u64;
    iter::successors(Some(1), |threads| Some(2 * threads)).take_while(|&threads| threads <= cores).collect()
}
