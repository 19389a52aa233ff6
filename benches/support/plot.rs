//! Line charts as SVG: a title, axes with their units, and a legend at the side.
//!
//! The colours are those of Okabe and Ito, which people with any kind of colour vision can distinguish. Series also
//! differ by their markers. The background is white, so that a chart can be read on a dark page.

use std::error::Error;
use std::fmt::Write as _;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// How the values of an axis are laid out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// In proportion to the values.
    Linear,
    /// In proportion to the values' logarithms.
    Log10,
    /// One place for each name: the values are 0, 1, 2 …
    Names(Vec<String>),
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
        match &self.scale {
            // Rounded, because sums and powers are not exact.
            Scale::Linear => (self.show)((place * 1e9).round() / 1e9),
            Scale::Log10 => (self.show)(format!("{:.6e}", 10f64.powf(place)).parse().expect("a number")),
            Scale::Names(names) => names.get(place.round() as usize).cloned().unwrap_or_default(),
        }
    }

    /// The least and the greatest place (not value) of the axis.
    fn bounds(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        if let Some((least, most)) = self.range {
            return (self.place(least), self.place(most));
        }
        let places = values.map(|value| self.place(value));
        let (least, most) =
            places.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), place| (least.min(place), most.max(place)));
        match &self.scale {
            Scale::Linear => (0.0, most * 1.05),
            Scale::Log10 => (least - 0.05, most + 0.05),
            Scale::Names(names) => (-0.5, names.len() as f64 - 0.5),
        }
    }

    /// The places of the labels.
    fn ticks(&self, (least, most): (f64, f64)) -> Vec<f64> {
        let mut ticks: Vec<f64> = match &self.scale {
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
            Scale::Names(names) => (0..names.len()).map(|place| place as f64).collect(),
        };
        ticks.retain(|tick| (least - 1e-9..=most + 1e-9).contains(tick));
        ticks
    }
}

/// A range with labels at given places.
struct Ticked {
    range: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ticked {
    fn new((least, most): (f64, f64), ticks: Vec<f64>) -> Self {
        Self { range: (least..most).into(), ticks }
    }
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.range()
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

/// How a series is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// 0 to 7: vermilion, blue, bluish green, orange, sky blue, reddish purple, black, grey.
    pub(crate) colour: usize,
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

/// In the order of [`Style::colour`].
const COLOURS: [RGBColor; 8] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0x80, 0x80, 0x80),
];

const MARKERS: [Marker; 5] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];

impl Style {
    /// A style for the `n`th series: no two of the first 40 are the same.
    pub(crate) fn nth(n: usize) -> Self {
        Self { colour: n % COLOURS.len(), marker: MARKERS[n % MARKERS.len()], line: Line::Thin }
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

const SIZE: (u32, u32) = (960, 540);
const LEGEND_WIDTH: u32 = 230;
const TITLE_HEIGHT: u32 = 62;
const FONT: &str = "sans-serif";

type Drawn = Result<(), Box<dyn Error>>;

impl Chart {
    /// The chart as an SVG document.
    pub(crate) fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            root.fill(&WHITE)?;
            root.draw(&Text::new(self.title.clone(), (16, 12), (FONT, 21).into_font()))?;
            root.draw(&Text::new(self.subtitle.clone(), (16, 38), (FONT, 14).into_font().color(&BLACK.mix(0.7))))?;
            let (_, below) = root.split_vertically(TITLE_HEIGHT);
            let (plot, legend) = below.split_horizontally(SIZE.0 - LEGEND_WIDTH);
            self.draw_plot(&plot)?;
            self.draw_legend(&legend)?;
            root.present()?;
        }
        Ok(text)
    }

    /// A line for each point.
    pub(crate) fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "'"));
        let mut text = format!("series,{},{}\n", quoted(&self.x.label), quoted(&self.y.label));
        for Series { name, points, .. } in &self.series {
            for &(x, y) in points {
                let x = if matches!(self.x.scale, Scale::Names(_)) { quoted(&self.x.text(x)) } else { format!("{x}") };
                writeln!(text, "{},{x},{y}", quoted(name)).expect("a string takes all");
            }
        }
        text
    }

    fn draw_plot<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn
    where
        DB::ErrorType: 'static,
    {
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x = self.x.bounds(points().map(|point| point.0));
        let y = self.y.bounds(points().map(|point| point.1));
        let mut chart = ChartBuilder::on(area)
            .margin_left(12)
            .margin_right(14)
            .margin_bottom(8)
            .x_label_area_size(52)
            .y_label_area_size(72)
            .build_cartesian_2d(Ticked::new(x, self.x.ticks(x)), Ticked::new(y, self.y.ticks(y)))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.12))
            .axis_style(BLACK.mix(0.6))
            .x_label_formatter(&|place| self.x.text(*place))
            .y_label_formatter(&|place| self.y.text(*place))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .draw()?;
        for Series { points, style, .. } in &self.series {
            let is_inside = |(x_place, y_place): &(f64, f64)| {
                (x.0 - 1e-9..=x.1 + 1e-9).contains(x_place) && (y.0 - 1e-9..=y.1 + 1e-9).contains(y_place)
            };
            let places = || points.iter().map(|&(x, y)| (self.x.place(x), self.y.place(y))).filter(is_inside);
            let colour = COLOURS[style.colour];
            match style.line {
                Line::None => {}
                Line::Thin => drop(chart.draw_series(LineSeries::new(places(), colour.stroke_width(2)))?),
                Line::Thick => drop(chart.draw_series(LineSeries::new(places(), colour.stroke_width(4)))?),
                Line::Dashed => {
                    let dashes = DashedLineSeries::new(places(), 8, 5, colour.stroke_width(2));
                    chart.draw_series(dashes)?;
                }
            }
            chart.draw_series(places().map(|place| EmptyElement::at(place) + style.marker.at((0, 0), colour)))?;
        }
        Ok(())
    }

    fn draw_legend<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Drawn
    where
        DB::ErrorType: 'static,
    {
        const STEP: i32 = 24;
        for (row, Series { name, style, .. }) in self.series.iter().enumerate() {
            let y = 14 + row as i32 * STEP;
            let colour = COLOURS[style.colour];
            let pieces: &[(i32, i32)] = match style.line {
                Line::None => &[],
                Line::Thin | Line::Thick => &[(4, 38)],
                Line::Dashed => &[(4, 13), (18, 27), (32, 38)],
            };
            let width = if style.line == Line::Thick { 4 } else { 2 };
            for &(from, to) in pieces {
                area.draw(&PathElement::new([(from, y), (to, y)], colour.stroke_width(width)))?;
            }
            area.draw(&(EmptyElement::at((21, y)) + style.marker.at((0, 0), colour)))?;
            let font = (FONT, 14).into_font().into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(name.clone(), (46, y), font))?;
        }
        Ok(())
    }
}

impl Marker {
    /// A polygon around a point, for every shape except the circle.
    fn at<DB: DrawingBackend>(self, at: (i32, i32), colour: RGBColor) -> DynElement<'static, DB, (i32, i32)> {
        let polygon = |corners: &[(i32, i32)]| {
            let corners: Vec<_> = corners.iter().map(|corner| (at.0 + corner.0, at.1 + corner.1)).collect();
            Polygon::new(corners, colour.filled()).into_dyn()
        };
        match self {
            Self::None => polygon(&[]),
            Self::Circle => Circle::new(at, 4, colour.filled()).into_dyn(),
            Self::Square => polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
            Self::Triangle => polygon(&[(0, -5), (5, 4), (-5, 4)]),
            Self::Diamond => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
            Self::Cross => polygon(&[
                (-5, -3),
                (-3, -5),
                (0, -2),
                (3, -5),
                (5, -3),
                (2, 0),
                (5, 3),
                (3, 5),
                (0, 2),
                (-3, 5),
                (-5, 3),
                (-2, 0),
            ]),
        }
    }
}
