//! How results are shown.

/// The median, the min and the max of some numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut numbers: Vec<f64> = numbers.into_iter().collect();
        numbers.sort_by(f64::total_cmp);
        Self { median: numbers[numbers.len() / 2], least: numbers[0], most: numbers[numbers.len() - 1] }
    }

    /// Of the ratios of two series, round by round.
    pub(crate) fn of_ratios(over: &[f64], under: &[f64]) -> Self {
        Self::of(over.iter().zip(under).map(|(over, under)| over / under))
    }

    pub(crate) fn show(self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.median, self.least, self.most)
    }
}

pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(numbers).median
}

/// The median speed in millions a second, of times in nanoseconds.
pub(crate) fn speed(times: &[f64]) -> f64 {
    median(times.iter().map(|time| 1e3 / time))
}

/// A table in Markdown. All columns except the first `left` are right-aligned.
pub(crate) fn align(rows: &[Vec<String>], left: usize) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            text += &if column < left { format!("| {cell:<width$} ") } else { format!("| {cell:>width$} ") };
        }
        text += "|\n";
        if index == 0 {
            for (column, &width) in widths.iter().enumerate() {
                let line = "-".repeat(width + 1);
                text += &if column < left { format!("|{line}-") } else { format!("|{line}:") };
            }
            text += "|\n";
        }
    }
    text + "\n"
}
