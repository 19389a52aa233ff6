//! The options on the command line.

use std::env;
use std::path::{Path, PathBuf};

use super::plan::Size;
use super::report::align;

/// The options on the command line.
pub(crate) struct Options {
    options: Vec<String>,
    /// Whether this is a run of the tests, which only checks that the benchmark works.
    pub(crate) test: bool,
    pub(crate) quick: bool,
}

impl Options {
    /// `None` if there is nothing to do, because a name is for another benchmark.
    pub(crate) fn parse() -> Option<Self> {
        let options: Vec<String> = env::args().skip(1).collect();
        if let Some(name) = options.iter().find(|option| !option.starts_with('-')) {
            eprintln!("`{name}` is no option. As a part of a name it is for the bench `filters`: nothing to do here");
            return None;
        }
        let has = |name: &str| options.iter().any(|option| option == name);
        let (test, quick) = (!has("--bench") || has("--test"), has("--quick"));
        Some(Self { options, test, quick })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }

    /// The value of an option such as `--tables=2`.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// The first of these in a test, the second if `--quick` is given, and else the third.
    pub(crate) fn pick<T>(&self, test: T, quick: T, full: T) -> T {
        if self.test {
            test
        } else if self.quick {
            quick
        } else {
            full
        }
    }

    /// Whether `--only` names this part, or none.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.value("--only").is_none_or(|only| only == part)
    }

    /// Makes and prints a table with a title, if its part is wanted. (The figures of a test mean nothing.)
    pub(crate) fn part(&self, part: &str, table: impl FnOnce() -> (String, Vec<Vec<String>>)) {
        if self.wants(part) {
            if !self.test {
                eprintln!("{part}");
            }
            let (title, rows) = table();
            if !self.test {
                println!("## {title}\n\n{}", align(&rows, 1));
            }
        }
    }

    /// The number of `--keys`, or a default.
    pub(crate) fn keys(&self, default: u64) -> u64 {
        self.value("--keys").map_or(default, |keys| keys.parse().expect("--keys=NUMBER"))
    }

    /// The folder for files: `--out`, or a default. It is relative to the root of the workspace, because cargo runs a
    /// benchmark in the folder of its package; or, if the workspace is not there, to the current folder.
    pub(crate) fn out(&self, default: &str) -> PathBuf {
        let out = self.value("--out").unwrap_or(default);
        match Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
            Some(root) if root.is_dir() => root.join(out),
            _ => out.into(),
        }
    }

    /// The sizes that are requested with `--l2` or `--large`; otherwise those that there is time for. A test's tables are
    /// small, so there is time for both.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = Size> + use<> {
        let both = !self.has("--l2") && !self.has("--large");
        let sizes = [(self.has("--l2") || both, Size::L2), (self.has("--large") || both && !self.quick, Size::Large)];
        sizes.into_iter().filter_map(|(wanted, size)| wanted.then_some(size))
    }

    /// How large a table is, in bytes.
    pub(crate) fn table_bytes(&self, size: Size) -> usize {
        if self.test { 64 << 10 } else { size.table_bytes() }
    }
}
