//! The figures.

use super::support::plot::{Axis, Chart, Line, Marker, Scale, Series, Style};

use super::measure::Measured;
use super::space::{self, Loads};
use super::support::ours::builder;
use super::systems::Part;
use super::tables::short_percent;
use super::{Findings, size};

impl Findings {
    /// Each chart, with the name of its file and a sentence on what it shows.
    pub(crate) fn charts(&self) -> Vec<(&'static str, &'static str, Chart)> {
        let by_load = "keys in, % of capacity";
        vec![
            ("figure2", "How full a table gets before it first refuses a key, by layout and size.", self.figure2()),
            (
                "figure3",
                "Bits a key that a rate costs: between two steps, ours takes the coarser layout with fewer slots taken.",
                self.figure3(),
            ),
            (
                "figure4",
                "Rate against bits a key, measured, with the bound below which no filter gets.",
                self.figure4(),
            ),
            (
                "figure5",
                "Lookups at capacity, by the share of them that hit.",
                self.speeds("5: lookups at capacity, by the share of hits", "hits, % of all lookups", |it| &it.shares),
            ),
            (
                "figure6a",
                "Lookups of absent keys, from a nearly empty table to a full one.",
                self.speeds("6a: lookups of absent keys, by load", by_load, |it| &it.misses),
            ),
            (
                "figure6b",
                "Lookups of present keys, from a nearly empty table to a full one.",
                self.speeds("6b: lookups of present keys, by load", by_load, |it| &it.hits),
            ),
            (
                "figure7",
                "Inserts from empty to capacity: a cuckoo filter's slow down at the end.",
                logarithmic(self.speeds("7: inserts, by load", by_load, |it| &it.inserts)),
            ),
            (
                "figure8",
                "Removals from capacity to empty (Bloom filters can't).",
                self.speeds("8: removals, by load", by_load, |it| &it.removals),
            ),
        ]
    }

    fn figure2(&self) -> Chart {
        let names = self.layouts.iter().map(|ours| ours.layout.name()).collect();
        let show = |share: f64| format!("{:.0} %", share * 100.0);
        let mut series = Vec::new();
        for (index, (buckets, loads)) in self.loads.iter().enumerate() {
            let points = |load: fn(&Loads) -> f64| {
                loads.iter().enumerate().map(|(place, loads)| (place as f64, load(loads))).collect()
            };
            series.push(Series {
                name: format!("{buckets} buckets: refused"),
                points: points(|loads| loads.first_refused),
                style: Style { line: Line::Thick, ..Style::nth(index) },
            });
            series.push(Series {
                name: format!("{buckets} buckets: capacity"),
                points: points(|loads| loads.capacity),
                style: Style { line: Line::Dashed, ..Style::nth(index) },
            });
        }
        Chart {
            title: "Figure 2: how full a table gets, by layout and size".into(),
            subtitle: "Slots taken when a key is first refused, and at the capacity that is promised".into(),
            x: Axis {
                scale: Scale::Names(names),
                ..Axis::linear("slots a bucket x bits a fingerprint (s: semi-sorted)")
            },
            y: Axis { range: Some((0.3, 1.0)), show, ..Axis::linear("slots taken, % of all") },
            series,
        }
    }

    fn rates(label: &str, range: (f64, f64)) -> Axis {
        Axis { label: label.into(), scale: Scale::Log10, range: Some(range), show: short_percent }
    }

    fn figure3(&self) -> Chart {
        let rates: Vec<f64> = (0..=2000).map(|step| 10f64.powf(-6.0 + f64::from(step) * 0.0025)).collect();
        let ours = |asked: f64| {
            let plan = builder().capacity(self.table_bytes / 2).false_positive_rate(asked).plan();
            let plan = plan.expect("the rate is not too low");
            plan.memory_usage as f64 * 8.0 / plan.capacity as f64
        };
        let line = |name: &str, style: Style, bits: &dyn Fn(f64) -> f64| {
            let points: Vec<_> = rates.iter().map(|&rate| (rate, bits(rate))).collect();
            // The ends of a straight line are enough.
            let ends = points.iter().enumerate().filter(|&(index, point)| {
                let (before, after) = (points.get(index.wrapping_sub(1)), points.get(index + 1));
                !before.zip(after).is_some_and(|(before, after)| (before.1 + after.1 - 2.0 * point.1).abs() < 1e-9)
            });
            Series { name: name.into(), points: ends.map(|(_, point)| *point).collect(), style }
        };
        let plain = |colour: usize, line: Line| Style { colour, marker: Marker::None, line };
        // Whole bits of fingerprint, at the loads that the paper gives for two, four and eight slots.
        let papers = |slots: f64, load: f64| move |rate: f64| (space::bound(rate) + (2.0 * slots).log2()).ceil() / load;
        Chart {
            title: "Figure 3: what a false-positive rate costs, by the slots of a bucket".into(),
            subtitle:
                "Ours as the builder chooses; the paper's by its formula, with whole bits, at 84, 95 and 98 % load"
                    .into(),
            x: Self::rates("false-positive rate asked for", (1e-6, 0.1)),
            y: Axis { range: Some((0.0, 40.0)), ..Axis::linear("bits a key at capacity") },
            series: vec![
                line("ours, 2 to 8 slots", plain(0, Line::Thick), &ours),
                line("paper's, 2 slots", plain(2, Line::Thin), &papers(2.0, 0.84)),
                line("paper's, 4 slots", plain(1, Line::Thin), &papers(4.0, 0.95)),
                line("paper's, 8 slots", plain(5, Line::Thin), &papers(8.0, 0.98)),
                line("Bloom, space-optimised", plain(6, Line::Thin), &space::bloom),
                line("minimum with removals", plain(7, Line::Thick), &space::bound_with_removals),
                line("minimum without", plain(7, Line::Thin), &space::bound),
            ],
        }
    }

    fn figure4(&self) -> Chart {
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
        let line =
            |name: &str, style: Style, bits: fn(f64) -> f64| Series { name: name.into(), points: ends(bits), style };
        let plain = |colour: usize, line: Line| Style { colour, marker: Marker::None, line };
        let point = |measured: &Measured| {
            let within = |bits: f64| (BITS.0..BITS.1).contains(&bits) && measured.positives.0 > 0;
            measured.bits_per_item().filter(|&bits| within(bits)).map(|bits| (bits, measured.rate()))
        };
        let ours = |is_semi_sorted: bool| -> Vec<(f64, f64)> {
            let layouts = self.layouts.iter().map(|ours| ours.layout);
            let of_kind = layouts.filter(|layout| layout.is_semi_sorted() == is_semi_sorted);
            of_kind.filter_map(|layout| point(self.of_name(&format!("ours {}", layout.name()))?)).collect()
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
        for measured in self.alone.iter().filter(|measured| !measured.name.starts_with("ours ")) {
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
                size(self.table_bytes)
            ),
            x: Axis { range: Some(BITS), ..Axis::linear("bits a key") },
            y: Self::rates("false-positive rate", RATES),
            series,
        }
    }

    fn speeds(&self, title: &str, x: &str, points: fn(&Measured) -> &Vec<(f64, f64)>) -> Chart {
        let shown = self.alone.iter().filter(|measured| measured.part != Part::Table && !points(measured).is_empty());
        let series = shown.map(|measured| Series {
            name: measured.name.clone(),
            points: points(measured).iter().map(|&(share, mops)| (share * 100.0, mops)).collect(),
            style: style_of(&measured.name),
        });
        Chart {
            title: format!("Figure {title}"),
            subtitle: format!("u64 keys, tables of {}, one thread", size(self.table_bytes)),
            x: Axis { range: Some((0.0, 100.0)), ..Axis::linear(x) },
            y: Axis::linear("million operations a second"),
            series: series.collect(),
        }
    }
}

fn logarithmic(mut chart: Chart) -> Chart {
    chart.y.scale = Scale::Log10;
    chart
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
