//! Many keys from a file, with progress.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use db_cache::{Cache, Change, RedbStore};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// How many changes go into one transaction: enough that its sync to the disk hardly counts, and few enough that they
/// take little memory.
pub(crate) const BATCH: usize = 100_000;

/// What was read.
pub(crate) struct Loaded {
    lines: u64,
    added: u64,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lines, added } = *self;
        write!(f, "{} keys added, {} replaced", HumanCount(added), HumanCount(lines - added))
    }
}

/// Puts the keys of a file. Each line has a key, a tab and a value.
pub(crate) fn load(cache: &Cache<RedbStore>, file: &Path) -> Result<Loaded, Failure> {
    let failed = |error: io::Error| {
        Failure::Input(format!("can't read the keys from '{}': {error}; give a file of lines", file.display()))
    };
    let mut size = 0;
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(file).map_err(failed)?;
        size = file.metadata().map_err(failed)?.len();
        Box::new(file)
    };
    let bar = bar(size, "{bytes} of {total_bytes}");
    let mut input = BufReader::new(bar.wrap_read(input));
    let mut loaded = Loaded { lines: 0, added: 0 };
    let mut lines = Vec::with_capacity(BATCH);
    loop {
        let mut line = Vec::new();
        let end = input.read_until(b'\n', &mut line).map_err(failed)? == 0;
        if !end {
            while line.pop_if(|last| matches!(last, b'\n' | b'\r')).is_some() {}
            lines.push(line);
        }
        if lines.len() == BATCH || end {
            let changes: Vec<Change<'_>> = lines.iter().map(|line| put(line)).collect();
            loaded.lines += lines.len() as u64;
            loaded.added += cache.apply(&changes)?.added as u64;
            lines.clear();
        }
        if end {
            bar.finish_and_clear();
            return Ok(loaded);
        }
    }
}

/// A line without a tab is a key with an empty value.
fn put(line: &[u8]) -> Change<'_> {
    let tab = line.iter().position(|&byte| byte == b'\t').unwrap_or(line.len());
    Change::Put { key: &line[..tab], value: line.get(tab + 1..).unwrap_or_default() }
}

/// A progress bar, on standard error if that is a terminal.
pub(crate) fn bar(total: u64, counts: &str) -> ProgressBar {
    let template = format!("{{bar:40}} {counts} {{msg}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}
