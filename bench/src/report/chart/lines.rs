//! Lines over an axis, with the spread of the rounds.

use maud::{Markup, html};

use super::frame::{self, Area};
use super::scale::{Kind, Scale, Tick};
use super::{Px, Series, Style, WIDTH, dash, marker, stroke_width};

/// Height of the canvas without lanes.
const HEIGHT: f64 = 330.0;

/// Horizontal distance between the points of two products, so that none hides another.
const ASIDE: f64 = 4.0;

/// Half the width of a whisker's cap.
const CAP: f64 = 3.0;

/// Height of a lane below the plot: a name, and a bar below it.
const LANE: f64 = 32.0;

/// Height of the lane's bar.
const LANE_BAR: f64 = 10.0;

/// The horizontal axis of [`Lines`].
pub struct XAxis<'a> {
    /// The title.
    pub title: &'a str,
    /// The scale.
    pub kind: Kind,
    /// Positions of the ticks; empty: round values.
    pub ticks: &'a [f64],
    /// The label of a tick.
    pub label: &'a dyn Fn(f64) -> String,
}

/// A chart of lines.
pub struct Lines<'a> {
    /// A description for readers who cannot see the chart.
    pub description: &'a str,
    /// The horizontal axis.
    pub x: XAxis<'a>,
    /// Unit and name of the vertical axis.
    pub y_title: &'a str,
    /// The scale of the vertical axis.
    pub y_kind: Kind,
    /// Values that the vertical axis must contain, in addition to the series.
    pub y_holds: &'a [f64],
    /// The lines. Later ones are drawn above earlier ones.
    pub series: &'a [Series],
    /// A marked value on the vertical axis, and its name.
    pub threshold: Option<(f64, &'a str)>,
    /// Draws the line where both axes have equal values, with this name.
    pub diagonal: Option<&'a str>,
    /// Marked values on the horizontal axis, each in a lane below the plot.
    pub lanes: &'a [Lane],
    /// The tooltip of a point.
    pub value_title: &'a dyn Fn(&Series, usize) -> String,
}

/// A marked value on the horizontal axis.
pub struct Lane {
    /// The product's style.
    pub style: Style,
    /// The value; `None`: not marked.
    pub at: Option<f64>,
    /// The label.
    pub label: String,
}

impl Lines<'_> {
    /// The chart as SVG.
    pub fn draw(&self) -> Markup {
        let lanes_height = match self.lanes.len() {
            0 => 0.0,
            lanes => lanes as f64 * LANE + 12.0,
        };
        let area = Area::plot(HEIGHT - 46.0);
        let height = HEIGHT + lanes_height;
        let xs = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
        let x = Scale::around(self.x.kind, xs, area.left, area.right);
        let ys = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().flat_map(|point| [point.y.min, point.y.max]))
            .chain(self.y_holds.iter().copied());
        let y = Scale::around(self.y_kind, ys, area.bottom, area.top);
        let ticks = self.ticks(&x);
        html! {
            svg class="chart" viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
                aria-label=(self.description) {
                (frame::vertical_axis(area, &y, &frame::axis_title(self.y_title, &y)))
                (frame::horizontal_axis(area, &x, &ticks, &frame::axis_title(self.x.title, &x)))
                (self.guides(area, &x, &y))
                @for (index, series) in self.series.iter().enumerate() {
                    (whiskers(series, &self.place(index, &x), &y))
                }
                @for (index, series) in self.series.iter().enumerate() {
                    (self.line(series, &self.place(index, &x), &y))
                }
                @for (index, lane) in self.lanes.iter().enumerate() {
                    (draw_lane(lane, area, &x, HEIGHT + 8.0 + index as f64 * LANE))
                }
            }
        }
    }

    /// Maps values of a series to the horizontal axis.
    fn place(&self, index: usize, x: &Scale) -> impl Fn(f64) -> f64 {
        // The first series are drawn lowest and are last in the legend. On a linear axis readers read exact positions,
        // so points are not moved aside; between named settings they do not.
        let step = if x.is_linear() { 0.0 } else { ASIDE };
        let aside = ((self.series.len() - 1) as f64 / 2.0 - index as f64) * step;
        move |value| x.at(value) + aside
    }

    fn ticks(&self, x: &Scale) -> Vec<Tick> {
        if self.x.ticks.is_empty() {
            return x.ticks(frame::room_across);
        }
        x.ticks_at(self.x.ticks.iter().copied(), self.x.label, frame::room_across)
    }

    fn guides(&self, area: Area, x: &Scale, y: &Scale) -> Markup {
        html! {
            @if let Some((value, name)) = self.threshold.filter(|(value, _)| y.holds(*value)) {
                @let at = y.at(value);
                line class="threshold" x1=(Px(area.left)) x2=(Px(area.right)) y1=(Px(at)) y2=(Px(at)) {}
                text class="note" x=(Px(area.left + 6.0)) y=(Px(at - 5.0)) { (name) }
            }
            @if let Some(name) = self.diagonal {
                @let end = self.diagonal_end(x, y);
                line class="threshold" x1=(Px(x.at(0.0))) y1=(Px(y.at(0.0))) x2=(Px(x.at(end)))
                    y2=(Px(y.at(end))) {}
                // Above the line on the left, where no point can be: no product achieves more than the offered rate.
                text class="note" x=(Px(x.at(end * 0.6) - 10.0)) y=(Px(y.at(end * 0.6)))
                    text-anchor="end" { (name) }
            }
        }
    }

    /// The largest value that both axes contain.
    fn diagonal_end(&self, x: &Scale, y: &Scale) -> f64 {
        let largest = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().flat_map(|point| [point.x, point.y.max]));
        largest.filter(|value| x.holds(*value) && y.holds(*value)).fold(0.0, f64::max)
    }

    fn line(&self, series: &Series, x: &impl Fn(f64) -> f64, y: &Scale) -> Markup {
        let drawn =
            || series.points.iter().enumerate().filter(|(_, point)| y.holds(point.y.median));
        let path: String = drawn()
            .enumerate()
            .map(|(index, (_, point))| {
                let command = if index == 0 { 'M' } else { 'L' };
                format!("{command}{} {}", Px(x(point.x)), Px(y.at(point.y.median)))
            })
            .collect();
        let size = if series.style.is_strong { 4.8 } else { 4.2 };
        html! {
            g {
                path d=(path) fill="none" stroke=(series.style.colour) stroke-linejoin="round"
                    stroke-width=(stroke_width(series.style)) stroke-dasharray=(dash(series.style)) {}
                @for (index, point) in drawn() {
                    (marker(series.style, x(point.x), y.at(point.y.median), size,
                        &(self.value_title)(series, index)))
                }
            }
        }
    }
}

fn whiskers(series: &Series, x: &impl Fn(f64) -> f64, y: &Scale) -> Markup {
    let path: String = series
        .points
        .iter()
        .filter(|point| point.y.max > point.y.min)
        .map(|point| {
            let at = x(point.x);
            let (low, high) = (Px(y.at(point.y.min)), Px(y.at(point.y.max)));
            let (left, right) = (Px(at - CAP), Px(at + CAP));
            format!("M{left} {low}H{right}M{} {low}V{high}M{left} {high}H{right}", Px(at))
        })
        .collect();
    html! {
        @if !path.is_empty() {
            path class="whiskers" d=(path) fill="none" stroke=(series.style.colour) {}
        }
    }
}

fn draw_lane(lane: &Lane, area: Area, x: &Scale, y: f64) -> Markup {
    let end = lane.at.map_or(area.left, |at| x.at(at));
    let bar = y + LANE / 2.0;
    html! {
        g class="lane" {
            @if lane.at.is_some() {
                rect x=(Px(area.left)) y=(Px(bar - LANE_BAR / 2.0)) width=(Px(end - area.left))
                    height=(Px(LANE_BAR)) fill=(lane.style.colour) opacity="0.16" {}
                line class="drop" x1=(Px(end)) x2=(Px(end)) y1=(Px(area.bottom - 6.0)) y2=(Px(area.bottom))
                    stroke=(lane.style.colour) {}
                (marker(lane.style, end, bar, 5.0, &lane.label))
            }
            text x=(Px(area.left)) y=(Px(y)) dy="0.35em" { (lane.label) }
        }
    }
}
