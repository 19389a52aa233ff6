//! What `--plot` writes, and when it can't.

use std::fs;
#[cfg(target_os = "linux")]
use std::process::Stdio;

#[cfg(target_os = "linux")]
use crate::process::throughput;
use crate::process::{TemporaryFile, run};

/// The labels of a plot's series.
const SERIES: [&str; 9] = [
    "insert",
    "insert, batched",
    "lookup present",
    "lookup present, batched",
    "lookup absent",
    "lookup absent, batched",
    "90/5/5 mix",
    "remove",
    "remove, batched",
];

/// Asserts that this is an SVG document and that each element is closed where it should be.
#[track_caller]
fn assert_is_svg(text: &str) {
    assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"), "{text}");
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag's end");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{text}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag's name"));
        }
    }
    assert!(open.is_empty(), "{open:?} in {text}");
}

/// The texts in an SVG document.
fn labels(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1);
    texts.filter_map(|text| Some(text.split_once('>')?.1.split_once('<')?.0.trim())).collect()
}

#[test]
fn the_plot_shows_every_workload_by_threads() {
    let plot = TemporaryFile::to_be("plot.svg");
    let outcome = run(&["--items", "9000", "--threads", "4", "--plot", plot.path()], b"");
    outcome.assert_success("9,000", "8,883");
    let svg = plot.text();
    assert_is_svg(&svg);
    let labels = labels(&svg);
    for label in ["threads", "throughput (million operations a second)", "1", "2", "3", "4"].iter().chain(&SERIES) {
        assert!(labels.contains(label), "no '{label}' in {labels:?}");
    }
    assert!(labels[1].starts_with("9,000 items; ") && labels[1].ends_with("batches of 1,000 keys"), "{labels:?}");
    // Two series have round points: one for each number of threads, and one in the legend.
    assert_eq!(svg.matches("<circle").count(), 2 * (3 + 1), "{svg}");
}

#[test]
fn a_plot_for_one_number_of_threads_has_points() {
    let plot = TemporaryFile::to_be("points.SVG");
    for threads in ["1,", "256,"] {
        let outcome = run(&["--items", "500", "--threads", threads, "--plot", plot.path()], b"");
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        let svg = plot.text();
        assert_is_svg(&svg);
        assert!(SERIES.iter().all(|series| labels(&svg).contains(series)), "{svg}");
        assert!(labels(&svg).contains(&threads.trim_end_matches(',')), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2 * (1 + 1), "{svg}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_earlier_plot_stays_until_there_is_a_new_one() {
    let earlier = "an earlier plot ".repeat(10_000);
    let plot = TemporaryFile::new("earlier.svg", earlier.as_bytes());
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let status = throughput().args(["--plot", plot.path()]).stdout(full).stderr(Stdio::null()).status();
    assert_eq!(status.expect("the program starts").code(), Some(1));
    assert!(plot.text() == earlier);

    let outcome = run(&["--items", "500", "--threads", "1", "--plot", plot.path()], b"");
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    assert_is_svg(&plot.text());
}

#[test]
fn a_plot_that_cannot_be_written_is_a_bad_argument() {
    let nowhere = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-such-directory/plot.svg");
    let directory = TemporaryFile::to_be("directory.svg");
    fs::create_dir(&directory.0).expect("a directory");
    for path in [nowhere, directory.path()] {
        let outcome = run(&["--plot", path], b"");
        outcome.assert_failure(2, &["error: can't write the plot", path, "give --plot a file"]);
        // The error comes before any work is done.
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    fs::remove_dir(&directory.0).expect("an empty directory");

    for path in ["plot.png", "plot", "-", ".svg", "svg"] {
        run(&["--plot", path], b"").assert_failure(2, &["error: invalid value", path, "--plot", "ends in .svg"]);
    }
    for arguments in [&["--plot"][..], &["--plot", ""]] {
        run(arguments, b"").assert_failure(2, &["error: a value is required for '--plot <FILE.svg>'"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_plot_that_fails_in_the_end_leaves_the_report() {
    let full = TemporaryFile::to_be("full.svg");
    std::os::unix::fs::symlink("/dev/full", &full.0).expect("a link");
    let outcome = run(&["--items", "500", "--threads", "2,", "--plot", full.path()], b"");
    assert_eq!(outcome.status, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("error: can't write the plot"), "{}", outcome.stderr);
    assert_eq!(outcome.thread_counts(), [[2], [2]]);
}
