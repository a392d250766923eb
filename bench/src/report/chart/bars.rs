//! Bars, one per product, with the spread of the rounds, and dot plots for many rows.

use maud::{Markup, html};

use super::frame::{self, Area};
use super::scale::{Kind, Scale};
use super::{CHARACTER, Px, Style, WIDTH, marker};
use crate::report::stats::Spread;

/// Distance between two bars.
const STEP: f64 = 30.0;

/// Height of a bar.
const BAR: f64 = 18.0;

/// Height of a group's heading.
const HEADING: f64 = 26.0;

/// Distance between two rows of dots.
const ROW: f64 = 22.0;

/// Minimum left end of bars; longer names move it to the right.
const LEFT_MIN: f64 = 84.0;

/// A chart of bars.
pub struct Bars<'a> {
    /// A description for readers who cannot see the chart.
    pub description: &'a str,
    /// The axis' title, with its unit.
    pub title: &'a str,
    /// Groups with headings. A single group has an empty heading.
    pub groups: Vec<(String, Vec<Bar>)>,
}

/// The bar of a product.
pub struct Bar {
    /// The product's name.
    pub name: String,
    /// The product's style.
    pub style: Style,
    /// The value; `None` if it was not measured.
    pub value: Option<Spread>,
    /// The value as text.
    pub label: String,
}

impl Bars<'_> {
    /// The chart as SVG.
    pub fn draw(&self) -> Markup {
        let heading = |name: &str| if name.is_empty() { 0.0 } else { HEADING };
        let rows: f64 =
            self.groups.iter().map(|(name, bars)| heading(name) + bars.len() as f64 * STEP).sum();
        let bars = || self.groups.iter().flat_map(|(_, bars)| bars);
        let widest = bars().map(|bar| bar.label.chars().count()).max().unwrap_or(0) as f64;
        let right = WIDTH - 18.0 - widest * CHARACTER;
        let longest = bars().map(|bar| bar.name.chars().count()).max().unwrap_or(0) as f64;
        let left = (longest * CHARACTER + 10.0).clamp(LEFT_MIN, WIDTH / 2.0);
        let area = Area { left, right, top: 6.0, bottom: 6.0 + rows };
        let values = bars().filter_map(|bar| bar.value).map(|spread| spread.max);
        let x = Scale::around(Kind::Linear, values, area.left, area.right);
        let ticks = x.ticks(frame::room_across);
        let mut y = area.top;
        let mut drawn = Vec::new();
        for (name, bars) in &self.groups {
            if !name.is_empty() {
                drawn.push(html! {
                    text class="heading" x="2" y=(Px(y + 17.0)) { (name) }
                });
                y += HEADING;
            }
            for bar in bars {
                drawn.push(draw_bar(bar, &x, area.left, y));
                y += STEP;
            }
        }
        let height = area.bottom + 46.0;
        html! {
            svg class="chart" viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
                aria-label=(self.description) {
                (frame::horizontal_axis(area, &x, &ticks, self.title))
                @for bar in drawn { (bar) }
            }
        }
    }
}

fn draw_bar(bar: &Bar, x: &Scale, left: f64, y: f64) -> Markup {
    let middle = y + STEP / 2.0;
    html! {
        g {
            text x=(Px(left - 8.0)) y=(Px(middle)) dy="0.35em" text-anchor="end"
                class=(if bar.style.is_strong { "name strong" } else { "name" }) { (bar.name) }
            @if let Some(value) = bar.value {
                @let end = x.at(value.median);
                rect x=(Px(left)) y=(Px(middle - BAR / 2.0)) width=(Px((end - left).max(1.0)))
                    height=(Px(BAR)) fill=(bar.style.colour)
                    opacity=(if bar.style.is_faint { "0.45" } else { "0.88" }) {
                    title { (bar.name) ": " (bar.label) }
                }
                @if value.max > value.min {
                    @let (low, high) = (Px(x.at(value.min)), Px(x.at(value.max)));
                    path class="spread" fill="none" d=(format!(
                        "M{low} {t}V{b}M{low} {m}H{high}M{high} {t}V{b}",
                        t = Px(middle - 5.0), m = Px(middle), b = Px(middle + 5.0))) {}
                }
                text class="value" x=(Px(x.at(value.max) + 7.0)) y=(Px(middle)) dy="0.35em" { (bar.label) }
            } @else {
                text class="note" x=(Px(left + 6.0)) y=(Px(middle)) dy="0.35em" { "not measured" }
            }
        }
    }
}

/// A dot plot with rows over a logarithmic axis.
pub struct Dots<'a> {
    /// A description for readers who cannot see the chart.
    pub description: &'a str,
    /// The axis' title, with its unit.
    pub title: &'a str,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row: its name, and its dots with tooltips.
pub struct Row {
    /// The name.
    pub name: String,
    /// Style, value and tooltip of each dot.
    pub dots: Vec<(Style, f64, String)>,
}

impl Dots<'_> {
    /// The chart as SVG, twice as wide as usual; the page shows it over both columns.
    pub fn draw(&self) -> Markup {
        let width = 2.0 * WIDTH;
        let widest = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0) as f64;
        let bottom = 6.0 + self.rows.len() as f64 * ROW;
        let left = (widest * CHARACTER + 12.0).min(width / 2.0);
        let area = Area { left, right: width - 18.0, top: 6.0, bottom };
        let values = self.rows.iter().flat_map(|row| row.dots.iter().map(|(_, value, _)| *value));
        let x = Scale::around(Kind::Log, values, area.left, area.right);
        let ticks = x.ticks(frame::room_across);
        let y = |index: usize| area.top + (index as f64 + 0.5) * ROW;
        html! {
            svg class="chart wide" viewBox=(format!("0 0 {width} {}", bottom + 46.0)) role="img"
                aria-label=(self.description) {
                (frame::horizontal_axis(area, &x, &ticks, &frame::axis_title(self.title, &x)))
                @for (index, row) in self.rows.iter().enumerate() {
                    text x=(Px(left - 10.0)) y=(Px(y(index))) dy="0.35em" text-anchor="end" { (row.name) }
                    line class="row" x1=(Px(left)) x2=(Px(area.right)) y1=(Px(y(index)))
                        y2=(Px(y(index))) {}
                    @for (style, value, title) in &row.dots {
                        (marker(*style, x.at(*value), y(index), 5.0, title))
                    }
                }
            }
        }
    }
}
