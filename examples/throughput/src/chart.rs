//! What `--plot` writes: throughput against threads, with a line for each workload.

use std::fs::{self, OpenOptions};
use std::path::Path;

use indicatif::HumanCount;
use plot::{Axis, Chart, Line, Marker, Scale, Series, Style};

use crate::failure::Failure;
use crate::workload::{Calls, Figures, WORKLOADS};

/// The point shapes of single calls, one for each workload. A batched workload has the colour of the same workload
/// and the shape of the next one. So points without lines, for one number of threads, differ too.
const MARKERS: [Marker; WORKLOADS.len()] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];

/// The widest range of thread counts with a grid line for each number.
const MOST_GRID_LINES: usize = 16;

pub(crate) struct ChartFile<'a>(&'a Path);

impl<'a> ChartFile<'a> {
    /// Makes sure that the file exists or can be made. Its contents stay until the new plot is complete.
    pub(crate) fn create(path: &'a Path) -> Result<Self, Failure> {
        match OpenOptions::new().append(true).create(true).open(path) {
            Ok(_) => Ok(Self(path)),
            Err(error) => Err(Failure::Argument(format!(
                "can't write the plot to '{}': {error}; give --plot a file that can be written",
                path.display()
            ))),
        }
    }

    pub(crate) fn write(&self, rows: &[Figures], summary: String) -> Result<(), Failure> {
        let written = chart(rows, summary).svg().and_then(|svg| Ok(fs::write(self.0, svg)?));
        written.map_err(|error| Failure::Plot(format!("can't write the plot to '{}': {error}", self.0.display())))
    }
}

fn chart(rows: &[Figures], summary: String) -> Chart {
    let least = rows.iter().map(|row| row.threads).min().unwrap_or(1);
    let most = rows.iter().map(|row| row.threads).max().unwrap_or(1);
    let margin = (0.03 * (most - least) as f64).max(0.5);
    Chart {
        title: "Throughput of a filter that threads share".into(),
        subtitle: format!("{summary}; batches of {} keys", HumanCount(Calls::Batched.keys() as u64)),
        x: Axis {
            // No grid lines at half a thread.
            scale: if most - least < MOST_GRID_LINES {
                Scale::Names((0..=most).map(|threads| threads.to_string()).collect())
            } else {
                Scale::Linear
            },
            range: Some((least as f64 - margin, most as f64 + margin)),
            ..Axis::linear("threads")
        },
        y: Axis::linear("throughput (million operations a second)"),
        series: (0..WORKLOADS.len())
            .flat_map(|workload| Calls::ALL.map(|calls| series(rows, workload, calls)))
            .filter(|series| !series.points.is_empty())
            .collect(),
    }
}

fn series(rows: &[Figures], workload: usize, calls: Calls) -> Series {
    let (suffix, line, shape) = match calls {
        Calls::Single => ("", Line::Thin, workload),
        Calls::Batched => (", batched", Line::Dashed, (workload + 1) % MARKERS.len()),
    };
    let rows = rows.iter().filter(|row| row.calls == calls);
    let speeds = rows.filter_map(|row| Some((row.threads as f64, row.speeds()[workload]?)));
    // A few keys may take less time than the clock can measure.
    let mut points: Vec<_> = speeds.filter(|(_, speed)| speed.is_finite()).collect();
    points.sort_by(|left, right| left.0.total_cmp(&right.0));
    Series {
        name: format!("{}{suffix}", WORKLOADS[workload]),
        points,
        style: Style { colour: workload, marker: MARKERS[shape], line },
    }
}
