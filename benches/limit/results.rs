//! The columns of the results, and how they are shown.

use super::changes::Changes;
use super::lookups::Lookups;
use super::source::What;
use super::support::plan::Size;
use super::support::report::{Spread, align, median};

/// One column of the results.
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) lookups: Box<dyn Lookups>,
    /// How many keys are present, or are looked up as if they were.
    pub(crate) len: u64,
    /// Whether it knows the keys.
    pub(crate) answers: bool,
    /// The column to which its ratios are relative.
    pub(crate) limit: usize,
}

/// Prints a table of speeds, one of ratios, and one of inserts and removals.
pub(crate) fn print(
    size: Size,
    columns: &[Column],
    rows: &[(What, bool)],
    results: &[Vec<Vec<f64>>],
    changes: &[(String, Changes)],
) {
    let name = |&(what, batched): &(What, bool)| {
        let how = if batched { "batched" } else { "single" };
        format!("{how} {}", format!("{what:?}").to_lowercase())
    };
    let head = || [String::new()].into_iter().chain(columns.iter().map(|column| column.name.clone()));
    let mut mops = vec![head().collect::<Vec<_>>()];
    let mut ratios = vec![head().collect::<Vec<_>>()];
    for (row, results) in rows.iter().zip(results) {
        let cell = |numbers: &Vec<f64>| match numbers.as_slice() {
            [] => "-".into(),
            some => format!("{:.1}", median(some.iter().copied())),
        };
        mops.push([name(row)].into_iter().chain(results.iter().map(cell)).collect());
        // A subject without batches has ratios in the rows of single lookups only.
        let ratio = |(column, numbers): (&Column, &Vec<f64>)| match numbers.as_slice() {
            [] => "-".into(),
            some => Spread::of_ratios(some, &results[column.limit]).show(),
        };
        ratios.push([name(row)].into_iter().chain(columns.iter().zip(results).map(ratio)).collect());
    }
    println!("## {}: lookups, millions a second, one thread\n\n{}", size.name(), align(&mops, 1));
    println!("### {}: over the limit: (a) for single, (b) for batched lookups\n\n{}", size.name(), align(&ratios, 1));

    let mut table = vec![["", "single", "batched", "batched over single"].map(String::from).to_vec()];
    for (name, Changes { inserts, removals }) in changes {
        for (what, pairs) in [("insert to 75 %", inserts), ("remove from 90 %", removals)] {
            let mops = |i: usize| format!("{:.1}", median(pairs.iter().map(|pair| pair[i])));
            let ratio = Spread::of(pairs.iter().map(|[single, batched]| batched / single)).show();
            table.push(vec![format!("{name} {what}"), mops(0), mops(1), ratio]);
        }
    }
    println!("### {}: changes, millions a second\n\n{}", size.name(), align(&table, 1));
}
