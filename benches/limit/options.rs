//! The command line.

use std::env;
use std::time::Duration;

use super::support::plan::Size;

/// The options on the command line.
pub(crate) struct Options {
    pub(crate) sizes: Vec<Size>,
    pub(crate) rounds: usize,
    pub(crate) turn: Duration,
    pub(crate) test: bool,
}

impl Options {
    /// As for `ratios`: `None` if there is nothing to do.
    pub(crate) fn parse() -> Option<Self> {
        let (mut bench, mut test, mut quick, mut l2, mut large) = (false, false, false, false, false);
        let mut args = env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                "--quick" => quick = true,
                "--l2" => l2 = true,
                "--large" => large = true,
                "--csv" | "--out" => drop(args.next()),
                // A name is for another bench.
                name if !name.starts_with('-') => return None,
                _ => eprintln!("limit: {arg} is not an option of this benchmark"),
            }
        }
        let test = test || !bench;
        let (l2, large) = if l2 || large { (l2, large) } else { (true, !quick && !test) };
        let sizes = [(l2, Size::L2), (large, Size::Large)];
        let sizes = sizes.into_iter().filter_map(|(wanted, size)| wanted.then_some(size)).collect();
        let (rounds, turn) = match (test, quick) {
            (true, _) => (1, 0),
            (false, true) => (3, 20),
            (false, false) => (7, 60),
        };
        Some(Self { sizes, rounds, turn: Duration::from_millis(turn), test })
    }

    /// How large a table is, in bytes.
    pub(crate) fn table_bytes(&self, size: Size) -> usize {
        if self.test { 64 << 10 } else { size.table_bytes() }
    }
}
