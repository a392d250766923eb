//! The performance envelope: requests per second against goodput, with one line per product through its object sizes.
//!
//! Both axes are logarithmic, so the points of one object size lie on one diagonal, for all products. The diagonals are
//! drawn and labelled once at their end, instead of labelling every point.

use maud::{Markup, html};

use super::frame::{self, Area};
use super::scale::{Kind, Scale};
use super::{Px, Style, WIDTH, dash, marker, stroke_width};
use crate::report::stats::Spread;
use crate::report::text;

const HEIGHT: f64 = 400.0;

/// Space above the plot for the labels of diagonals.
const NAMES: f64 = 24.0;

/// Space right of the plot for these labels.
const NAMES_ASIDE: f64 = 44.0;

/// A chart of envelopes.
pub struct Envelope<'a> {
    /// A description for readers who cannot see the chart.
    pub description: &'a str,
    /// Object sizes in bytes, ascending.
    pub sizes: &'a [f64],
    /// The outlines, one per product.
    pub outlines: &'a [Outline],
}

/// The line of a product.
pub struct Outline {
    /// The product's name.
    pub name: String,
    /// The product's style.
    pub style: Style,
    /// Points of size in bytes, requests per second and Gbit/s, ascending by size.
    pub points: Vec<(f64, Spread, Spread)>,
}

impl Envelope<'_> {
    /// The chart as SVG.
    pub fn draw(&self) -> Markup {
        let mut area = Area::plot(HEIGHT - 46.0);
        area.top += NAMES;
        area.right -= NAMES_ASIDE;
        let points = || self.outlines.iter().flat_map(|outline| &outline.points);
        let rates = points().flat_map(|(_, rate, _)| [rate.min, rate.max]);
        let goodputs = points().flat_map(|(_, _, goodput)| [goodput.min, goodput.max]);
        let x = Scale::around(Kind::Log, rates, area.left, area.right);
        let y = Scale::around(Kind::Log, goodputs, area.bottom, area.top);
        let ticks = x.ticks(frame::room_across);
        html! {
            svg class="chart" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img"
                aria-label=(self.description) {
                (frame::vertical_axis(area, &y, "goodput, Gbit/s (logarithmic)"))
                (frame::horizontal_axis(area, &x, &ticks, "requests/s (logarithmic)"))
                (self.diagonals(area, &x, &y))
                @for outline in self.outlines { (draw_outline(outline, &x, &y)) }
            }
        }
    }

    /// The lines of equal object size, from edge to edge of the plot.
    fn diagonals(&self, area: Area, x: &Scale, y: &Scale) -> Markup {
        /// Number of points tried along a diagonal to find where it enters and leaves the plot.
        const STEPS: u32 = 600;
        let decades = |step: u32| 10f64.powf(f64::from(step) / f64::from(STEPS) * 12.0 - 2.0);
        let mut named_until = area.left - 40.0;
        let mut named_down_to = area.top - 18.0;
        let mut lines = Vec::new();
        // The diagonal of the largest object is furthest left.
        for &size in self.sizes.iter().rev().filter(|size| **size > 0.0) {
            let goodput = |rate: f64| rate * size * 8.0 / 1e9;
            let inside = || {
                (0..=STEPS)
                    .map(decades)
                    .filter(|&rate| x.holds(rate) && y.holds(goodput(rate)))
                    .map(|rate| (x.at(rate), y.at(goodput(rate))))
            };
            let (Some(start), Some(end)) = (inside().next(), inside().next_back()) else {
                continue;
            };
            // The label stands at the upper end: above the plot, or right of it.
            let is_at_top = end.1 < area.top + 8.0;
            let label = text::bytes(size);
            let place = if is_at_top {
                let half = frame::room_across(&label) / 2.0;
                let has_room = end.0 - half >= named_until;
                has_room.then(|| {
                    named_until = end.0 + half;
                    (end.0, area.top - 6.0, "middle")
                })
            } else {
                let has_room = end.1 - named_down_to >= frame::room_along(&label);
                has_room.then(|| {
                    named_down_to = end.1;
                    (area.right + 6.0, end.1 + 4.0, "start")
                })
            };
            lines.push((start, end, place.map(|place| (place, label))));
        }
        html! {
            @for (start, end, name) in lines {
                line class="threshold" x1=(Px(start.0)) y1=(Px(start.1)) x2=(Px(end.0)) y2=(Px(end.1)) {}
                @if let Some(((x, y, anchor), label)) = name {
                    text class="note" x=(Px(x)) y=(Px(y)) text-anchor=(anchor) { (label) }
                }
            }
        }
    }
}

fn draw_outline(outline: &Outline, x: &Scale, y: &Scale) -> Markup {
    let mut path = String::new();
    let mut spread = String::new();
    for (_, rate, goodput) in &outline.points {
        let (at_x, at_y) = (Px(x.at(rate.median)), Px(y.at(goodput.median)));
        let command = if path.is_empty() { 'M' } else { 'L' };
        path += &format!("{command}{at_x} {at_y}");
        spread += &format!("M{} {at_y}H{}", Px(x.at(rate.min)), Px(x.at(rate.max)));
        spread += &format!("M{at_x} {}V{}", Px(y.at(goodput.min)), Px(y.at(goodput.max)));
    }
    let title = |size: f64, rate: &Spread, goodput: &Spread| {
        format!(
            "{}, {}: {}/s, {} Gbit/s",
            outline.name,
            text::bytes(size),
            text::number(rate.median),
            text::number(goodput.median)
        )
    };
    html! {
        g {
            path class="whiskers" d=(spread) fill="none" stroke=(outline.style.colour) {}
            path d=(path) fill="none" stroke=(outline.style.colour) stroke-linejoin="round"
                stroke-width=(stroke_width(outline.style)) stroke-dasharray=(dash(outline.style)) {}
            @for (size, rate, goodput) in &outline.points {
                (marker(outline.style, x.at(rate.median), y.at(goodput.median), 4.6,
                    &title(*size, rate, goodput)))
            }
        }
    }
}
