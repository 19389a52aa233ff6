//! What `--plot` writes: throughput against threads, with a line for each set and workload.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use plot::{Axis, Chart, Line, Marker, Scale, Series, Style};

use crate::measure::{Row, WORKLOADS};
use crate::sets::{Calls, SetKind};

/// The point shapes of [`Row::KINDS`]. A workload has the same colour in all of them. So points without lines, for one
/// number of threads, differ too.
const MARKERS: [Marker; Row::KINDS.len()] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];

/// The widest range of thread counts with a grid line for each number.
const MOST_GRID_LINES: usize = 16;

/// Makes sure that the file exists or can be made. Its contents stay until the new plot is complete.
pub(crate) fn prepare(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path).map(drop)
}

pub(crate) fn write(path: &Path, rows: &[Row], subtitle: String) -> Result<(), Box<dyn Error>> {
    let written = chart(rows, subtitle).svg().and_then(|svg| Ok(fs::write(path, svg)?));
    written.map_err(|error| format!("can't write the plot to '{}': {error}", path.display()).into())
}

fn chart(rows: &[Row], subtitle: String) -> Chart {
    let least = rows.iter().map(|row| row.threads).min().unwrap_or(1);
    let most = rows.iter().map(|row| row.threads).max().unwrap_or(1);
    let margin = (0.03 * (most - least) as f64).max(0.5);
    Chart {
        title: "Throughput of a set that threads share: the filter, and a HashSet behind a lock".into(),
        subtitle,
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
        series: (0..Row::KINDS.len())
            .flat_map(|kind| (0..WORKLOADS.len()).map(move |workload| series(rows, kind, workload)))
            .filter(|series| !series.points.is_empty())
            .collect(),
    }
}

fn series(rows: &[Row], kind: usize, workload: usize) -> Series {
    let (set, calls) = Row::KINDS[kind];
    let rows = rows.iter().filter(|row| (row.set, row.calls) == (set, calls));
    let mut points: Vec<_> = rows.filter_map(|row| Some((row.threads as f64, row.speed(workload)?))).collect();
    points.sort_by(|left, right| left.0.total_cmp(&right.0));
    // Longer names would not fit.
    let batch = if calls == Calls::Batched { ", batch" } else { "" };
    let line = if set == SetKind::Filter { Line::Thin } else { Line::Dashed };
    Series {
        name: format!("{}: {}{batch}", set.name(), WORKLOADS[workload]),
        points,
        style: Style { colour: workload, marker: MARKERS[kind], line },
    }
}
