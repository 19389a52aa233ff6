//! The figures.

use super::measure::Measured;
use super::support::plot::{Axis, Chart, Line, Marker, Scale, Series, Style};

/// Each chart, with the name of its file.
pub(crate) fn charts(all: &[Measured], size: &str) -> [(&'static str, Chart); 3] {
    let mut figure7 = speeds(all, size, "7: inserts, by load", "keys in, % of capacity", |it| &it.inserts);
    figure7.y.scale = Scale::Log10;
    let figure5 =
        speeds(all, size, "5: lookups at capacity, by the share of hits", "hits, % of all lookups", |it| &it.shares);
    [("figure4", figure4(all, size)), ("figure5", figure5), ("figure7", figure7)]
}

/// The information-theoretic bound, in bits for each key.
fn bound(rate: f64) -> f64 {
    -rate.log2()
}

/// The share of its slots that the paper's table fills.
const PAPERS_LOAD: f64 = 0.955;

/// A rate on an axis, with as few digits as possible.
fn short_percent(rate: f64) -> String {
    let text = format!("{:.8}", rate * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn figure4(all: &[Measured], size: &str) -> Chart {
    const BITS: (f64, f64) = (5.0, 26.0);
    const RATES: (f64, f64) = (1e-7, 0.1);
    // These are straight lines, because the rate is on a logarithmic axis. They go from where they enter the view to
    // where they leave it.
    let line = |name: &str, color, line, bits: fn(f64) -> f64| {
        let rates = (0..=1200).map(|step| RATES.1 * 10f64.powf(-0.005 * f64::from(step)));
        let points = rates.map(|rate| (bits(rate), rate)).filter(|point| (BITS.0..=BITS.1).contains(&point.0));
        let points: Vec<_> = points.collect();
        let ends = vec![points[0], points[points.len() - 1]];
        Series { name: name.into(), points: ends, style: Style { color, marker: Marker::None, line } }
    };
    let point = |measured: &Measured| {
        let within = |bits: f64| (BITS.0..BITS.1).contains(&bits) && measured.positives.0 > 0;
        measured.bits_per_item().filter(|&bits| within(bits)).map(|bits| (bits, measured.rate()))
    };
    let (ours, others): (Vec<_>, Vec<_>) = all.iter().partition(|measured| measured.name.starts_with("ours "));
    let of_ours = |name: &str, marker, semi_sorted| {
        let of_kind = ours.iter().filter(|measured| measured.name.ends_with('s') == semi_sorted);
        let points = of_kind.filter_map(|measured| point(measured)).collect();
        Series { name: name.into(), points, style: Style { color: 0, marker, line: Line::None } }
    };
    let mut series = vec![
        line("information-theoretic bound", 6, Line::Thick, bound),
        line("Bloom, space-optimized", 6, Line::Dashed, |rate| std::f64::consts::LOG2_E * bound(rate)),
        line("paper's semi-sorted, 95.5 %", 1, Line::Thin, |rate| (bound(rate) + 2.0) / PAPERS_LOAD),
        line("paper's plain, 95.5 %", 1, Line::Dashed, |rate| (bound(rate) + 3.0) / PAPERS_LOAD),
        of_ours("ours, semi-sorted", Marker::Circle, true),
        of_ours("ours, plain", Marker::Cross, false),
    ];
    series.extend(others.iter().filter_map(|measured| {
        let style = Style { line: Line::None, ..style_of(&measured.name) };
        point(measured).map(|point| Series { name: measured.name.clone(), points: vec![point], style })
    }));
    Chart {
        title: "Figure 4: false-positive rate against bits a key".into(),
        subtitle: format!(
            "Points: measured at capacity, tables of {size}; lines: formulas. Out of view: ours 2x32, counting Bloom, exact"
        ),
        x: Axis { range: Some(BITS), ..Axis::linear("bits a key") },
        y: Axis { label: "false-positive rate".into(), scale: Scale::Log10, range: Some(RATES), show: short_percent },
        series,
    }
}

fn speeds(all: &[Measured], size: &str, title: &str, x: &str, points: fn(&Measured) -> &Vec<(f64, f64)>) -> Chart {
    let series = all.iter().filter(|measured| measured.in_figures).map(|measured| Series {
        name: measured.name.clone(),
        points: points(measured).iter().map(|&(share, mops)| (share * 100.0, mops)).collect(),
        style: style_of(&measured.name),
    });
    Chart {
        title: format!("Figure {title}"),
        subtitle: format!("u64 keys, tables of {size}, one thread"),
        x: Axis { range: Some((0.0, 100.0)), ..Axis::linear(x) },
        y: Axis::linear("million operations a second"),
        series: series.collect(),
    }
}

/// The same style for a system in all charts. Ours are highlighted.
fn style_of(name: &str) -> Style {
    let (color, marker, line) = match name {
        "ours 5x14s" => (0, Marker::Circle, Line::Thick),
        "ours, growable" => (0, Marker::Square, Line::None),
        "ours 5x12" => (1, Marker::Square, Line::Thick),
        "Bloom" | "Bloom, atomic" => (6, Marker::Circle, Line::Thin),
        "blocked Bloom" => (2, Marker::Triangle, Line::Thin),
        "quotient" => (3, Marker::Diamond, Line::Thin),
        "d-left counting Bloom" => (5, Marker::Square, Line::Thin),
        "counting Bloom" => (7, Marker::Triangle, Line::Thin),
        "atomic" => (4, Marker::Diamond, Line::Thin),
        "scalable" => (4, Marker::Cross, Line::Dashed),
        _ => (7, Marker::Cross, Line::Dashed),
    };
    Style { color, marker, line }
}
