//! Figure 4: the false-positive rate against the bits per key, with the bound.

use super::measure::Measured;
use super::support::plot::{Axis, Chart, Line, Marker, Scale, Series, Style};

/// The information-theoretic bound, in bits for each key.
fn bound(rate: f64) -> f64 {
    -rate.log2()
}

/// The share of its slots that the paper's table fills.
const PAPERS_LOAD: f64 = 0.955;

/// A rate on an axis, with as few digits as possible.
fn short_percent(rate: f64) -> String {
    let text = format!("{:.8}", rate * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

pub(crate) fn figure4(all: &[Measured], size: &str) -> Chart {
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
        line("paper's semi-sorted, 95.5%", 1, Line::Thin, |rate| (bound(rate) + 2.0) / PAPERS_LOAD),
        line("paper's plain, 95.5%", 1, Line::Dashed, |rate| (bound(rate) + 3.0) / PAPERS_LOAD),
        of_ours("ours, semi-sorted", Marker::Circle, true),
        of_ours("ours, plain", Marker::Cross, false),
    ];
    series.extend(others.iter().filter_map(|measured| {
        let style = style_of(&measured.name);
        point(measured).map(|point| Series { name: measured.name.clone(), points: vec![point], style })
    }));
    Chart {
        title: "Figure 4: false-positive rate against bits per key".into(),
        subtitle: format!(
            "Points: measured at capacity, tables of {size}; lines: formulas. Out of view: ours 2x32, counting Bloom, exact"
        ),
        x: Axis { range: Some(BITS), ..Axis::linear("bits per key") },
        y: Axis { label: "false-positive rate".into(), scale: Scale::Log10, range: Some(RATES), show: short_percent },
        series,
    }
}

/// Ours are one series each for both encodings, so only the others have a style of their own.
fn style_of(name: &str) -> Style {
    let (color, marker) = match name {
        "Bloom" => (6, Marker::Circle),
        "blocked Bloom" => (2, Marker::Triangle),
        "quotient" => (3, Marker::Diamond),
        "d-left counting Bloom" => (5, Marker::Square),
        "atomic" => (4, Marker::Diamond),
        "ours, growable" => (0, Marker::Square),
        _ => (4, Marker::Cross),
    };
    Style { color, marker, line: Line::None }
}
