//! The figures.

use super::layout::Layout;
use super::measure::Measured;
use super::support::plot::{Axis, Chart, Line, Marker, Scale, Series, Style};
use super::systems::Part;
use super::{size, space};

/// Each chart, with the name of its file and a sentence on what it shows.
pub(crate) fn charts(systems: &[Measured], table_bytes: usize) -> [(&'static str, &'static str, Chart); 3] {
    let size = size(table_bytes);
    let shares = speeds(
        "Figure 5: lookups at capacity, by the share of hits",
        &size,
        ("hits, % of all lookups", "million lookups a second"),
        systems,
        |measured| &measured.shares,
    );
    let mut inserts = speeds(
        "Figure 7: inserts, by load",
        &size,
        ("keys in, % of capacity", "million inserts a second"),
        systems,
        |measured| &measured.inserts,
    );
    inserts.y.scale = Scale::Log10;
    [
        (
            "figure4",
            "Rate against bits a key, measured, with the bound below which no filter gets.",
            figure4(systems, &size),
        ),
        ("figure5", "Lookups at capacity, by the share of them that hit.", shares),
        ("figure7", "Inserts from empty to capacity: a cuckoo filter's slow down at the end.", inserts),
    ]
}

fn figure4(systems: &[Measured], size: &str) -> Chart {
    const BITS: (f64, f64) = (5.0, 26.0);
    const RATES: (f64, f64) = (1e-7, 0.1);
    // These are straight lines, because the rate is on a logarithmic axis. They go from where they enter the
    // view to where they leave it.
    let ends = |bits: fn(f64) -> f64| -> Vec<(f64, f64)> {
        let rates = (0..=1200).map(|step| RATES.1 * 10f64.powf(-0.005 * f64::from(step)));
        let points = rates.map(|rate| (bits(rate), rate)).filter(|point| (BITS.0..=BITS.1).contains(&point.0));
        let points: Vec<_> = points.collect();
        [points[0], points[points.len() - 1]].into()
    };
    let line = |name: &str, style: Style, bits: fn(f64) -> f64| Series { name: name.into(), points: ends(bits), style };
    let plain = |colour: usize, line: Line| Style { colour, marker: Marker::None, line };
    let point = |measured: &Measured| {
        let within = |bits: f64| (BITS.0..BITS.1).contains(&bits) && measured.positives.0 > 0;
        measured.bits_per_item().filter(|&bits| within(bits)).map(|bits| (bits, measured.rate()))
    };
    let layouts = Layout::all();
    let ours = |is_semi_sorted: bool| -> Vec<(f64, f64)> {
        let of_kind = layouts.iter().filter(|layout| layout.is_semi_sorted() == is_semi_sorted);
        let of_name = |name: String| systems.iter().find(|measured| measured.name == name);
        of_kind.filter_map(|layout| point(of_name(format!("ours {}", layout.name()))?)).collect()
    };
    let dots = |style: Style| Style { line: Line::None, ..style };
    let mut series = vec![
        line("information-theoretic bound", plain(6, Line::Thick), space::bound),
        line("Bloom, space-optimised", plain(6, Line::Dashed), space::bloom),
        line("paper's semi-sorted, 95.5 %", plain(1, Line::Thin), space::papers_semi_sorted),
        line("paper's plain, 95.5 %", plain(1, Line::Dashed), space::papers_plain),
        Series {
            name: "ours, semi-sorted".into(),
            points: ours(true),
            style: Style { colour: 0, marker: Marker::Circle, line: Line::None },
        },
        Series {
            name: "ours, plain".into(),
            points: ours(false),
            style: Style { colour: 0, marker: Marker::Cross, line: Line::None },
        },
    ];
    for measured in systems.iter().filter(|measured| !measured.name.starts_with("ours ")) {
        if let Some(point) = point(measured) {
            series.push(Series {
                name: measured.name.clone(),
                points: vec![point],
                style: dots(style_of(&measured.name)),
            });
        }
    }
    Chart {
        title: "Figure 4: false-positive rate against bits a key".into(),
        subtitle: format!(
            "Points: measured at capacity, tables of {}; lines: formulas. Out of view: ours 2x32, counting Bloom, exact",
            size
        ),
        x: Axis { range: Some(BITS), ..Axis::linear("bits a key") },
        y: Axis { scale: Scale::Log10, range: Some(RATES), show: short_percent, ..Axis::linear("false-positive rate") },
        series,
    }
}

fn speeds(
    title: &str,
    size: &str,
    (x, y): (&str, &str),
    systems: &[Measured],
    points: fn(&Measured) -> &Vec<(f64, f64)>,
) -> Chart {
    let shown = systems.iter().filter(|measured| measured.part != Part::Table && !points(measured).is_empty());
    let series = shown.map(|measured| Series {
        name: measured.name.clone(),
        points: points(measured).iter().map(|&(share, mops)| (share * 100.0, mops)).collect(),
        style: style_of(&measured.name),
    });
    Chart {
        title: title.into(),
        subtitle: format!("u64 keys, tables of {}, one thread", size),
        x: Axis { range: Some((0.0, 100.0)), ..Axis::linear(x) },
        y: Axis::linear(y),
        series: series.collect(),
    }
}

/// A rate on an axis, with as few digits as possible.
fn short_percent(rate: f64) -> String {
    let text = format!("{:.8}", rate * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The same style for a system in all charts. Ours are highlighted.
fn style_of(name: &str) -> Style {
    let (colour, marker, line) = match name {
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
    Style { colour, marker, line }
}
