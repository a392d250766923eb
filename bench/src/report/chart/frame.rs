//! The plot area: grid, axes, ticks and units.

use maud::{Markup, html};

use super::scale::{Scale, Tick};
use super::{CHARACTER, Px, WIDTH};

/// Height of a line of text, with space above and below.
const LINE: f64 = 18.0;

/// The position of the plot on the canvas.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Area {
    /// The usual plot area, with this lower end.
    pub const fn plot(bottom: f64) -> Self {
        Self { left: 58.0, right: WIDTH - 16.0, top: 26.0, bottom }
    }
}

/// Space for a label below a horizontal axis.
pub fn room_across(label: &str) -> f64 {
    label.chars().count() as f64 * CHARACTER + 10.0
}

/// Space for a label beside a vertical axis.
pub fn room_along(_: &str) -> f64 {
    LINE
}

/// The title of an axis; it mentions a logarithmic scale.
pub fn axis_title(name: &str, scale: &Scale) -> String {
    if scale.is_log() { format!("{name} (logarithmic)") } else { name.to_owned() }
}

/// Horizontal grid lines with labels on the left, and the axis' title above.
pub fn vertical_axis(area: Area, scale: &Scale, title: &str) -> Markup {
    html! {
        g class="axis" {
            @for Tick { value, label } in scale.ticks(room_along) {
                @let y = scale.at(value);
                line class=(if label.is_some() { "grid" } else { "grid minor" })
                    x1=(Px(area.left)) x2=(Px(area.right)) y1=(Px(y)) y2=(Px(y)) {}
                @if let Some(label) = label {
                    text x=(Px(area.left - 7.0)) y=(Px(y)) dy="0.35em" text-anchor="end" { (label) }
                }
            }
            text class="axis-title" x="2" y="12" { (title) }
        }
    }
}

/// Vertical grid lines with labels below, and the axis' title below them.
pub fn horizontal_axis(area: Area, scale: &Scale, ticks: &[Tick], title: &str) -> Markup {
    html! {
        g class="axis" {
            @for Tick { value, label } in ticks {
                @let x = scale.at(*value);
                line class=(if label.is_some() { "grid" } else { "grid minor" })
                    x1=(Px(x)) x2=(Px(x)) y1=(Px(area.top)) y2=(Px(area.bottom)) {}
                @if let Some(label) = label {
                    text x=(Px(x)) y=(Px(area.bottom + 18.0)) text-anchor="middle" { (label) }
                }
            }
            line class="base" x1=(Px(area.left)) x2=(Px(area.right)) y1=(Px(area.bottom))
                y2=(Px(area.bottom)) {}
            text class="axis-title" x=(Px((area.left + area.right) / 2.0)) y=(Px(area.bottom + 37.0))
                text-anchor="middle" { (title) }
        }
    }
}
