//! What standard error shows while the example runs: a bar for each stage, or a line for each stage if standard error
//! is no terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{msg:38} [{bar:32}] {prefix} operations";
/// The count of a full bar: in thousandths.
const FULL: u64 = 1_000;

/// Writes a line to standard error. Unlike `eprintln!`, it doesn't panic if nobody reads it any more.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

pub(crate) struct Progress {
    on_terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { on_terminal: io::stderr().is_terminal() }
    }

    /// Begins a stage, which ends after so many operations and so much time.
    pub(crate) fn stage(&self, label: &str, operations: u64, time: Duration) -> Stage {
        let bar = if self.on_terminal { ProgressBar::new(FULL) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template(TEMPLATE).expect("the template is well-formed").progress_chars("=> ");
        let bar = bar.with_style(style).with_message(label.to_owned()).with_prefix("0");
        bar.tick();
        Stage { bar, on_terminal: self.on_terminal, label: label.to_owned(), operations, time }
    }
}

pub(crate) struct Stage {
    bar: ProgressBar,
    on_terminal: bool,
    label: String,
    operations: u64,
    time: Duration,
}

impl Stage {
    pub(crate) fn update(&self, operations: u64, elapsed: Duration) {
        let of_operations = operations as f64 / self.operations.max(1) as f64;
        let of_time = if self.time.is_zero() { 1.0 } else { elapsed.as_secs_f64() / self.time.as_secs_f64() };
        self.bar.set_prefix(HumanCount(operations).to_string());
        self.bar.set_position((of_operations.min(of_time).min(1.0) * FULL as f64) as u64);
    }

    pub(crate) fn finish(self, operations: u64, elapsed: Duration) {
        self.bar.finish_and_clear();
        if !self.on_terminal {
            let operations = HumanCount(operations);
            say(format_args!("{}: {operations} operations in {:.2} s", self.label, elapsed.as_secs_f64()));
        }
    }
}
