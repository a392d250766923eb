//! The charts of the report as inline SVG. Decision 0009 says why they have their own code.
//!
//! A chart has a canvas of [`WIDTH`] units, which the page scales to its column. The page's style sheet sets the size
//! of text, larger on a narrow screen; all distances leave space for that.

mod bars;
mod envelope;
mod frame;
mod lines;
mod scale;

pub use bars::{Bar, Bars, Dots, Row};
pub use envelope::{Envelope, Outline};
pub use lines::{Lane, Lines, XAxis};
pub use scale::{Kind, Scale};

use std::fmt;

use maud::{Markup, html};

use super::stats::Spread;
use crate::catalogue::{is_yardstick, maker};

/// Width of every canvas.
pub const WIDTH: f64 = 520.0;

/// A generous width of a character at the page's largest text size, in canvas units.
const CHARACTER: f64 = 7.6;

/// A coordinate, written with as many digits as are visible.
struct Px(f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.0)
    }
}

/// The style of a product in every chart: a colour, which colour-blind readers can distinguish, and a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// The colour.
    pub colour: &'static str,
    /// The marker.
    pub marker: Marker,
    /// Whether the product is a yardstick.
    pub is_faint: bool,
    /// Whether it is the second row of a product: lighter than the first.
    pub is_second: bool,
    /// Whether it is weir, the subject of the report.
    pub is_strong: bool,
}

/// The shape of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// ●
    Circle,
    /// ■
    Square,
    /// ▲
    Up,
    /// ▼
    Down,
    /// ◆
    Diamond,
    /// ✕
    Cross,
}

/// Styles of products that the report does not know.
const FURTHER: [(&str, Marker); 4] = [
    ("#b8860b", Marker::Down),
    ("#2b8fb8", Marker::Square),
    ("#6b4c1e", Marker::Diamond),
    ("#3d3d3d", Marker::Up),
];

impl Style {
    /// The style of the product with this name and index.
    pub fn of(name: &str, place: usize) -> Self {
        let is_second = maker(name) != name;
        let (colour, marker) = match (maker(name), is_second) {
            ("weir", _) => ("#0059b3", Marker::Circle),
            ("nginx", false) => ("#00875f", Marker::Square),
            ("nginx", true) => ("#6cc7a4", Marker::Square),
            ("haproxy", false) => ("#d55e00", Marker::Up),
            ("haproxy", true) => ("#f3a86c", Marker::Up),
            ("envoy", false) => ("#a8327d", Marker::Diamond),
            ("envoy", true) => ("#dd92c2", Marker::Diamond),
            ("relay", _) => ("#7a7f87", Marker::Cross),
            ("weir-plain", _) => ("#5b8db8", Marker::Cross),
            _ => FURTHER[place % FURTHER.len()],
        };
        let is_faint = is_yardstick(name);
        Self { colour, marker, is_faint, is_second, is_strong: name == "weir" }
    }
}

/// One product's values over an axis.
#[derive(Debug)]
pub struct Series {
    /// The text in the legend.
    pub name: String,
    /// The product's style.
    pub style: Style,
    /// The points, ascending by `x`.
    pub points: Vec<SeriesPoint>,
}

/// A point of a series.
#[derive(Debug, Clone, Copy)]
pub struct SeriesPoint {
    /// The value on the axis.
    pub x: f64,
    /// The values of the rounds.
    pub y: Spread,
}

/// A marker, with a tooltip if `title` is not empty.
fn marker(style: Style, x: f64, y: f64, size: f64, title: &str) -> Markup {
    let (l, r, t, b) = (Px(x - size), Px(x + size), Px(y - size), Px(y + size));
    let (x, y) = (Px(x), Px(y));
    let outline = match style.marker {
        Marker::Circle => None,
        Marker::Square => Some(format!("M{l} {t}H{r}V{b}H{l}Z")),
        Marker::Up => Some(format!("M{x} {t}L{r} {b}H{l}Z")),
        Marker::Down => Some(format!("M{x} {b}L{r} {t}H{l}Z")),
        Marker::Diamond => Some(format!("M{x} {t}L{r} {y}L{x} {b}L{l} {y}Z")),
        Marker::Cross => Some(format!("M{l} {t}L{r} {b}M{r} {t}L{l} {b}")),
    };
    let is_line = style.marker == Marker::Cross;
    let (fill, stroke) = if is_line { ("none", style.colour) } else { (style.colour, "#fff") };
    let stroke_width = if is_line { "1.8" } else { "1" };
    html! {
        @if let Some(outline) = outline {
            path d=(outline) fill=(fill) stroke=(stroke) stroke-width=(stroke_width) {
                @if !title.is_empty() { title { (title) } }
            }
        } @else {
            circle cx=(x) cy=(y) r=(Px(size)) fill=(fill) stroke=(stroke) stroke-width=(stroke_width) {
                @if !title.is_empty() { title { (title) } }
            }
        }
    }
}

/// The marker of a product in a legend or beside its name.
pub fn swatch(style: Style) -> Markup {
    html! {
        svg class="swatch" viewBox="0 0 26 12" width="26" height="12" aria-hidden="true" {
            line x1="1" y1="6" x2="25" y2="6" stroke=(style.colour) stroke-width=(stroke_width(style))
                stroke-dasharray=(dash(style)) {}
            (marker(style, 13.0, 6.0, 4.5, ""))
        }
    }
}

fn stroke_width(style: Style) -> &'static str {
    if style.is_strong { "2.6" } else { "1.6" }
}

fn dash(style: Style) -> &'static str {
    match style {
        Style { is_faint: true, .. } => "4 3",
        Style { is_second: true, .. } => "9 3",
        _ => "none",
    }
}
