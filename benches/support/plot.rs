//! Line charts as SVG: a title, axes with their units, and a legend at the side.
//!
//! The colors are those of Okabe and Ito, which people with any kind of color vision can distinguish. Series also
//! differ by their markers. A chart has a background of its own, and is dark if the reader's system prefers that.

use std::fmt::Write as _;
use std::{fs, io};

use super::options::Options;

/// How the values of an axis are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// In proportion to the values.
    Linear,
    /// In proportion to the values' logarithms.
    Log10,
}

/// One of the two axes.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows, and its unit.
    pub(crate) label: String,
    /// How the values are laid out.
    pub(crate) scale: Scale,
    /// The min and the max of the values to show. `None` takes what the data need. Points outside are left out.
    pub(crate) range: Option<(f64, f64)>,
    /// The text for a value.
    pub(crate) show: fn(f64) -> String,
}

impl Axis {
    /// From 0 to slightly more than the greatest value.
    pub(crate) fn linear(label: &str) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: None, show: |value| format!("{value}") }
    }

    fn place(&self, value: f64) -> f64 {
        if self.scale == Scale::Log10 { value.log10() } else { value }
    }

    fn text(&self, place: f64) -> String {
        // Rounded, because sums and powers are not exact.
        (self.show)(match self.scale {
            Scale::Linear => (place * 1e9).round() / 1e9,
            Scale::Log10 => format!("{:.6e}", 10f64.powf(place)).parse().expect("a number"),
        })
    }

    /// The least and the greatest place (not value) of the axis.
    fn bounds(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        if let Some((least, most)) = self.range {
            return (self.place(least), self.place(most));
        }
        let places = values.map(|value| self.place(value));
        let (least, most) =
            places.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), place| (least.min(place), most.max(place)));
        match self.scale {
            Scale::Linear => (0.0, most * 1.05),
            Scale::Log10 => (least - 0.05, most + 0.05),
        }
    }

    /// The places of the labels.
    fn ticks(&self, (least, most): (f64, f64)) -> Vec<f64> {
        let mut ticks: Vec<f64> = match self.scale {
            Scale::Linear => {
                // About eight of them, at multiples of 1, 2 or 5 times a power of ten.
                let decade = 10f64.powf(((most - least) / 8.0).log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
                let step = step.into_iter().find(|step| (most - least) / step <= 10.0).unwrap_or(10.0 * decade);
                let first = (least / step).ceil();
                (0..=10).map(|tick| (first + f64::from(tick)) * step).collect()
            }
            Scale::Log10 => {
                let between: &[f64] = if most - least <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let decades = least.floor() as i32..=most.ceil() as i32;
                decades.flat_map(|decade| between.iter().map(move |tick| f64::from(decade) + tick.log10())).collect()
            }
        };
        ticks.retain(|tick| (least - 1e-9..=most + 1e-9).contains(tick));
        ticks
    }
}

/// The shape of a series' points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    None,
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

impl Marker {
    /// Its outline around (0, 0), as a path of SVG.
    fn path(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Circle => "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
            Self::Square => "M-4-4h8v8h-8z",
            Self::Triangle => "M0-5L5 4H-5z",
            Self::Diamond => "M0-6L6 0L0 6L-6 0z",
            Self::Cross => "M-5-3L-3-5L0-2L3-5L5-3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0z",
        }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// 0 to 7: vermilion, blue, bluish green, orange, sky blue, reddish purple, black (white on a dark page), gray.
    pub(crate) color: usize,
    /// The shape of the points.
    pub(crate) marker: Marker,
    /// What connects the points.
    pub(crate) line: Line,
}

/// What connects a series' points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    None,
    Thin,
    Thick,
    Dashed,
}

/// In the order of [`Style::color`].
const COLORS: [&str; 8] = ["#d55e00", "#0072b2", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "currentColor", "#808080"];

const MARKERS: [Marker; 5] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];

impl Style {
    /// A style for the `n`th series: no two of the first 40 are the same.
    pub(crate) fn nth(n: usize) -> Self {
        Self { color: n % COLORS.len(), marker: MARKERS[n % MARKERS.len()], line: Line::Thin }
    }
}

/// Points with a name.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The text in the legend.
    pub(crate) name: String,
    /// Values on the horizontal and on the vertical axis.
    pub(crate) points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub(crate) style: Style,
}

/// A chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The first line.
    pub(crate) title: String,
    /// A smaller line below the title.
    pub(crate) subtitle: String,
    /// The horizontal axis.
    pub(crate) x: Axis,
    /// The vertical axis.
    pub(crate) y: Axis,
    /// In the order of the legend.
    pub(crate) series: Vec<Series>,
}

const HEIGHT: f64 = 540.0;
/// The part of the plot: left, right, top and bottom.
const PLOT: [f64; 4] = [104.0, 694.0, 62.0, 480.0];
const LEGEND: f64 = 704.0;
/// Where the names begin in the legend, and more than the mean width of a character there.
const NAMES: f64 = LEGEND + 46.0;
const CHARACTER: f64 = 8.0;

/// The colors of all but the series, for a light and for a dark page.
const COLOR_SCHEMES: &str = "<style>\
    svg{color:#1f2328}.page{fill:#ffffff}.text{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d8dee4}.axis{stroke:#818b98}\
    @media(prefers-color-scheme:dark){\
    svg{color:#f0f6fc}.page{fill:#0d1117}.text{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#30363d}.axis{stroke:#6e7681}\
    }</style>";

impl Chart {
    /// The chart as an SVG document.
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let x = self.x.bounds(points().map(|point| point.0));
        let y = self.y.bounds(points().map(|point| point.1));
        let [left, right, top, bottom] = PLOT;
        let longest = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let width = NAMES + longest as f64 * CHARACTER + 16.0;
        let across = |place: f64| left + (place - x.0) / (x.1 - x.0) * (right - left);
        let up = |place: f64| bottom - (place - y.0) / (y.1 - y.0) * (bottom - top);
        let mut svg = Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {width} {HEIGHT}\" font-family=\"sans-serif\" role=\"img\">\n\
             <title>{}: {}</title>\n\
             {COLOR_SCHEMES}\n\
             <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
            escaped(&self.title),
            escaped(&self.subtitle),
        ));
        svg.text(&self.title, (16.0, 30.0), "class=\"text\" font-size=\"21\"");
        svg.text(&self.subtitle, (16.0, 50.0), "class=\"faint\" font-size=\"14\"");
        for tick in self.x.ticks(x) {
            svg.line(&[(across(tick), top), (across(tick), bottom)], "class=\"grid\"", 1, "none");
            svg.text(
                &self.x.text(tick),
                (across(tick), bottom + 18.0),
                "class=\"text\" font-size=\"14\" text-anchor=\"middle\"",
            );
        }
        for tick in self.y.ticks(y) {
            svg.line(&[(left, up(tick)), (right, up(tick))], "class=\"grid\"", 1, "none");
            svg.text(
                &self.y.text(tick),
                (left - 6.0, up(tick) + 5.0),
                "class=\"text\" font-size=\"14\" text-anchor=\"end\"",
            );
        }
        svg.line(&[(left, top), (left, bottom), (right, bottom)], "class=\"axis\"", 1, "none");
        let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
        svg.text(&self.x.label, (middle.0, HEIGHT - 14.0), "class=\"text\" font-size=\"15\" text-anchor=\"middle\"");
        let turned =
            format!("class=\"text\" font-size=\"15\" text-anchor=\"middle\" transform=\"rotate(-90 18 {})\"", middle.1);
        svg.text(&self.y.label, (18.0, middle.1), &turned);
        for (row, Series { name, points, style }) in self.series.iter().enumerate() {
            let places = points.iter().map(|&(x, y)| (self.x.place(x), self.y.place(y)));
            let is_inside = |range: (f64, f64), place: f64| (range.0 - 1e-9..=range.1 + 1e-9).contains(&place);
            let inside = places.filter(|place| is_inside(x, place.0) && is_inside(y, place.1));
            let at: Vec<(f64, f64)> = inside.map(|place| (across(place.0), up(place.1))).collect();
            let in_legend = 76.0 + row as f64 * 24.0;
            svg.series(*style, &at, &at);
            svg.series(*style, &[(LEGEND + 4.0, in_legend), (LEGEND + 38.0, in_legend)], &[(LEGEND + 21.0, in_legend)]);
            svg.text(name, (NAMES, in_legend + 5.0), "class=\"text\" font-size=\"14\"");
        }
        svg.0 + "</svg>\n"
    }

    /// Writes the chart as `file.csv` and `file.svg` into a folder: this one, or that of `--out`.
    pub(crate) fn write(&self, options: &Options, folder: &str, file: &str) -> io::Result<()> {
        let (csv, svg, folder) = (self.csv(), self.svg(), options.out(folder));
        // The figures of a test mean nothing, but drawing them must succeed.
        if options.test {
            return Ok(());
        }
        fs::create_dir_all(&folder)?;
        let file = folder.join(file.replace(['/', ' '], "_").to_lowercase());
        fs::write(file.with_extension("csv"), csv)?;
        fs::write(file.with_extension("svg"), svg)
    }

    /// The title and the subtitle as comments, and a line for each point.
    pub(crate) fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "'"));
        let mut text = format!("# {}\n# {}\n", self.title, self.subtitle);
        writeln!(text, "series,{},{}", quoted(&self.x.label), quoted(&self.y.label)).expect("a string takes all");
        for Series { name, points, .. } in &self.series {
            for &(x, y) in points {
                writeln!(text, "{},{x},{y}", quoted(name)).expect("a string takes all");
            }
        }
        text
    }
}

/// Text as SVG has it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A document that is being written.
struct Svg(String);

impl Svg {
    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes all");
    }

    fn text(&mut self, text: &str, (x, y): (f64, f64), how: &str) {
        self.element(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {how}>{}</text>", escaped(text)));
    }

    /// `stroke` is the attribute of its color.
    fn line(&mut self, points: &[(f64, f64)], stroke: &str, width: u32, dashes: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.element(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" {stroke} stroke-width=\"{width}\" \
             stroke-dasharray=\"{dashes}\"/>"
        ));
    }

    /// A line through some points, and the markers of others.
    fn series(&mut self, style: Style, line: &[(f64, f64)], markers: &[(f64, f64)]) {
        let color = COLORS[style.color];
        let stroke = format!("stroke=\"{color}\"");
        match style.line {
            Line::None => {}
            Line::Thin => self.line(line, &stroke, 2, "none"),
            Line::Thick => self.line(line, &stroke, 4, "none"),
            Line::Dashed => self.line(line, &stroke, 2, "8 5"),
        }
        for (x, y) in markers.iter().filter(|_| style.marker != Marker::None) {
            let path = style.marker.path();
            self.element(format_args!("<path d=\"{path}\" fill=\"{color}\" transform=\"translate({x:.1} {y:.1})\"/>"));
        }
    }
}
