//! The tables.

use super::measure::Measured;

/// A heading for each column, with a bar between each two.
fn head(names: &str) -> Vec<String> {
    names.split('|').map(String::from).collect()
}

/// A measured rate. If it is 0, the number of lookups without a false positive.
fn measured_rate(measured: &Measured) -> String {
    let (positives, lookups) = measured.positives;
    let percent = measured.rate() * 100.0;
    // Two significant digits.
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize;
    if positives > 0 { format!("{percent:.digits$}%") } else { format!("0 of {:.1} M", lookups as f64 / 1e6) }
}

fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

pub(crate) fn table3(all: &[Measured]) -> Vec<Vec<String>> {
    let papers = |row: &str| head(&format!("{row}|-|-|-|-|-|-|-|-"));
    let mut rows = vec![
        head(
            "system|what|MiB|million keys|bits per key|rate|construction|from 45%|90%|95%|lookup hit|half|miss|delete",
        ),
        papers("paper's cuckoo filter|Table 3 of the paper|192|-|12.60|0.19%"),
        papers("paper's semi-sorted one|Table 3 of the paper|192|-|12.58|0.09%"),
    ];
    let mops = |mops: f64| format!("{mops:.2}");
    rows.extend(all.iter().map(|measured| {
        vec![
            measured.name.clone(),
            measured.about.into(),
            or_dash(measured.bytes, |bytes| format!("{:.2}", bytes as f64 / f64::from(1 << 20))),
            format!("{:.2}", measured.capacity as f64 / 1e6),
            or_dash(measured.bits_per_item(), |bits| format!("{bits:.2}")),
            measured_rate(measured),
            mops(measured.construction),
            mops(measured.inserts_from(45)),
            mops(measured.inserts_from(90)),
            mops(measured.inserts_from(95)),
            mops(measured.lookups[2]),
            mops(measured.lookups[1]),
            mops(measured.lookups[0]),
            or_dash(measured.removal, mops),
        ]
    }));
    rows
}

pub(crate) fn fastfilter(all: &[Measured]) -> Vec<Vec<String>> {
    let nanoseconds = |mops: f64| format!("{:.1}", 1e3 / mops);
    let mut rows = vec![head("filter|ns/add|ns/find: 0|50|100% hits|rate|bits/key|optimal bits|wasted|million keys")];
    rows.extend(all.iter().map(|measured| {
        let mut row = vec![measured.name.clone(), nanoseconds(measured.construction)];
        row.extend(measured.lookups.iter().map(|&mops| nanoseconds(mops)));
        let bits = measured.bits_per_item();
        // An exact set has no rate.
        let optimal = (measured.positives.0 > 0).then(|| -measured.rate().log2());
        let wasted = bits.zip(optimal).map(|(bits, optimal)| bits / optimal - 1.0);
        row.extend([
            measured_rate(measured),
            or_dash(bits, |bits| format!("{bits:.2}")),
            or_dash(optimal, |bits| format!("{bits:.2}")),
            or_dash(wasted, |share| format!("{:.1}%", 100.0 * share)),
            format!("{:.1}", measured.capacity as f64 / 1e6),
        ]);
        row
    }));
    rows
}
