//! Speeds by the number of threads, as a table, a chart, and a CSV file.

use std::io;
use std::iter;
use std::thread::available_parallelism;
use std::time::Duration;

use super::filled::{Bench, Steady};
use super::options::Options;
use super::plot::{Axis, Chart, Line, Series, Style};
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
        format!("### {}, {}: million {} per second\n\n{}", self.title, self.about, self.unit, align(&rows, 1))
    }

    /// The chart of all subjects but the array, which would flatten the lines of the others.
    fn chart(&self) -> Chart {
        let subjects = self.rows.iter().enumerate().filter(|&(number, _)| Some(number) != self.array);
        let series = subjects.map(|(_, (name, speeds))| {
            let medians = speeds.iter().map(|speeds| median(speeds.iter().copied()));
            (
                name.clone(),
                iter::zip(self.threads, medians).map(|(&threads, median)| (threads as f64, median)).collect(),
            )
        });
        let cores = available_parallelism().map_or(0, usize::from);
        chart(
            format!("{}, all threads together", self.title),
            format!("{}; a machine with {cores} cores", self.about),
            format!("million {} per second", self.unit),
            series.collect(),
        )
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

/// A chart by the number of threads. The legend has the order in which the lines end, and the lines of this crate are thick.
fn chart(title: String, subtitle: String, unit: String, mut series: Vec<(String, Vec<(f64, f64)>)>) -> Chart {
    let last = |points: &[(f64, f64)]| points.last().map_or(0.0, |point| point.1);
    series.sort_by(|(_, one), (_, other)| last(other).total_cmp(&last(one)));
    let series = series.into_iter().enumerate().map(|(number, (name, points))| {
        let line = if name.starts_with("concurrent-cuckoo-filter") { Line::Thick } else { Line::Thin };
        Series { name, points, style: Style { line, ..Style::nth(number) } }
    });
    Chart { title, subtitle, x: Axis::linear("threads"), y: Axis::linear(&unit), series: series.collect() }
}

/// The chart of a run that was recorded: of the CSV file that [`ByThreads::show`] has written.
pub(crate) fn redrawn(csv: &str) -> Option<Chart> {
    let mut lines = csv.lines();
    let mut comment = || lines.next()?.strip_prefix("# ").map(str::to_owned);
    let (title, subtitle) = (comment()?, comment()?);
    let unit = lines.next()?.strip_prefix("series,\"threads\",")?.trim_matches('"').to_owned();
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for line in lines {
        let (name, point) = line.strip_prefix('"')?.split_once("\",")?;
        let (threads, speed) = point.split_once(',')?;
        if series.last().is_none_or(|(last, _)| last != name) {
            series.push((name.to_owned(), Vec::new()));
        }
        series.last_mut()?.1.push((threads.parse().ok()?, speed.parse().ok()?));
    }
    Some(chart(title, subtitle, unit, series))
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
