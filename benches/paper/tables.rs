//! The tables.

use super::Findings;
use super::measure::Measured;
use super::space;
use super::support::report::align;

/// A table with a heading for each column.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// The headings, with a bar between each two.
    pub(crate) head: &'static str,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// In Markdown. All columns except the first `left` are right-aligned.
    pub(crate) fn text(&self, left: usize) -> String {
        let head = self.head.split('|').map(String::from).collect();
        let rows: Vec<Vec<String>> = [head].into_iter().chain(self.rows.iter().cloned()).collect();
        align(&rows, left).trim_end().to_owned() + "\n"
    }

    pub(crate) fn csv(&self) -> String {
        let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "'"));
        // The unit moves from the cells to the heading.
        let is_percent = |column: usize| self.rows.iter().any(|row| row[column].ends_with(" %"));
        let head = self.head.split('|').enumerate().map(|(column, cell)| {
            let unit = if is_percent(column) { ", %" } else { "" };
            quoted(&format!("{cell}{unit}"))
        });
        let mut text = head.collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            let cells: Vec<_> = row
                .iter()
                .map(|cell| {
                    let number = cell.trim_end_matches(" %");
                    if number.parse::<f64>().is_ok() { number.to_string() } else { quoted(cell) }
                })
                .collect();
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

/// A measured rate. If it is 0, the number of lookups without a false positive.
fn measured_rate(measured: &Measured) -> String {
    let (positives, lookups) = measured.positives;
    if positives > 0 { percent(measured.rate()) } else { format!("0 of {:.1} M", lookups as f64 / 1e6) }
}

fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    // Two significant digits.
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{percent:.digits$} %")
}

/// A rate on an axis, with as few digits as possible.
pub(crate) fn short_percent(rate: f64) -> String {
    let text = format!("{:.8}", rate * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn mops(mops: f64) -> String {
    format!("{mops:.2}")
}

fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

impl Findings {
    pub(crate) fn table2(&self) -> Table {
        let mut rows: Vec<Vec<String>> = [
            ("paper's cuckoo filter", "(log2(1/e) + 3) / load", Some(space::PAPERS_LOAD), "2", "2"),
            ("paper's semi-sorted one", "(log2(1/e) + 2) / load", Some(space::PAPERS_LOAD), "2", "2"),
            ("space-optimised Bloom", "1.44 log2(1/e)", None, "log2(1/e)", "2"),
        ]
        .into_iter()
        .map(|(name, formula, load, hit, miss)| {
            let load = or_dash(load, |load| format!("{:.1} %", 100.0 * load));
            vec![name.into(), formula.into(), "-".into(), load, "-".into(), hit.into(), miss.into()]
        })
        .collect();
        for ours in &self.layouts {
            rows.push(vec![
                format!("ours {}", ours.layout.name()),
                format!("64 / ({} load)", ours.layout.slots),
                format!("{:.2}", ours.bits),
                format!("{:.1} %", 100.0 * ours.load),
                percent(ours.rate),
                "2".into(),
                "2".into(),
            ]);
        }
        for measured in self.alone.iter().filter(|measured| !measured.name.starts_with("ours ")) {
            rows.push(vec![
                measured.name.clone(),
                "-".into(),
                or_dash(measured.bits_per_item(), |bits| format!("{bits:.2}")),
                "-".into(),
                measured_rate(measured),
                measured.lines[0].into(),
                measured.lines[1].into(),
            ]);
        }
        let head = "system|bits a key|at capacity|load|rate e|lines read: hit|miss";
        Table { head, rows }
    }

    pub(crate) fn table3(&self) -> Table {
        let papers = |name: &str, bits: &str, rate: &str| {
            let mut row = vec![name.to_string(), "Table 3 of the paper".into(), "192".into(), "-".into()];
            row.extend([bits, rate, "-", "-", "-", "-", "-"].map(String::from));
            row
        };
        let mut rows = vec![
            papers("paper's cuckoo filter", "12.60", "0.19 %"),
            papers("paper's semi-sorted one", "12.58", "0.09 %"),
        ];
        for measured in &self.alone {
            let at_capacity = |share: usize| mops(measured.shares[share].1);
            rows.push(vec![
                measured.name.clone(),
                measured.about.into(),
                or_dash(measured.bytes, |bytes| format!("{:.2}", bytes as f64 / f64::from(1 << 20))),
                format!("{:.2}", measured.capacity as f64 / 1e6),
                or_dash(measured.bits_per_item(), |bits| format!("{bits:.2}")),
                measured_rate(measured),
                mops(measured.construction),
                at_capacity(4),
                at_capacity(2),
                at_capacity(0),
                or_dash(measured.removal, mops),
            ]);
        }
        let head = "system|what|MiB|million keys|bits a key|rate|construction|lookup hit|half|miss|delete";
        Table { head, rows }
    }

    pub(crate) fn space_row(&self) -> Table {
        let rows = self.space.iter().map(|space| {
            let measured = self.of_name(&format!("ours {}", space.layout));
            let papers = space::papers_semi_sorted(space.asked);
            let bloom = space::bloom(space.asked);
            let verdict = match (space.bits <= papers, space.bits < bloom) {
                (true, true) => "below both",
                (true, false) => "above Bloom",
                (false, true) => "above paper's",
                (false, false) => "above both",
            };
            vec![
                percent(space.asked),
                space.layout.clone(),
                format!("{:.2}", space.bits),
                format!("{papers:.2}"),
                format!("{bloom:.2}"),
                verdict.into(),
                percent(space.rate),
                or_dash(measured, measured_rate),
                format!("{:.2}", space::papers_semi_sorted(space.rate)),
                format!("{:.2}", space::bloom(space.rate)),
            ]
        });
        let head = "rate asked for|layout|ours|paper's|Bloom|ours is|its own rate|measured|paper's there|Bloom there";
        Table { head, rows: rows.collect() }
    }

    pub(crate) fn fastfilter(&self) -> Table {
        let nanoseconds = |mops: f64| format!("{:.1}", 1e3 / mops);
        let rows = self.alone.iter().map(|measured| {
            let mut row = vec![measured.name.clone(), nanoseconds(measured.construction)];
            row.extend(measured.shares.iter().map(|&(_, mops)| nanoseconds(mops)));
            let bits = measured.bits_per_item();
            // An exact set has no rate.
            let optimal = (measured.positives.0 > 0).then(|| space::bound(measured.rate()));
            let wasted = bits.zip(optimal).map(|(bits, optimal)| bits / optimal - 1.0);
            row.extend([
                measured_rate(measured),
                or_dash(bits, |bits| format!("{bits:.2}")),
                or_dash(optimal, |bits| format!("{bits:.2}")),
                or_dash(wasted, |share| format!("{:.1} %", 100.0 * share)),
                format!("{:.1}", measured.capacity as f64 / 1e6),
            ]);
            row
        });
        let head = "filter|ns/add|ns/find: 0|25|50|75|100 % hits|rate|bits/key|optimal bits|wasted|million keys";
        Table { head, rows: rows.collect() }
    }
}
