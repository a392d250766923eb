//! Envelopes: requests per second against goodput, one chart for each number of requests per connection.

use maud::{Markup, html};

use super::{description, drawn_order};
use crate::catalogue::{self, Figure, Shape};
use crate::report::chart::{Envelope, Outline, Style};
use crate::report::model::{FigureReport, Report, TestReport};
use crate::report::stats::Spread;

/// The charts of a test.
pub fn cards(report: &Report, test: &TestReport) -> Markup {
    let of = |wanted: Figure| test.figures.iter().find(|figure| figure.figure == wanted);
    let (Some(rate), Some(goodput)) = (of(Figure::Rate), of(Figure::Goodput)) else {
        return html! {};
    };
    let shapes = || test.settings.iter().filter_map(|at| catalogue::shape_of(test.test.name, *at));
    let mut numbers: Vec<u64> = shapes().map(|shape| shape.requests_per_connection).collect();
    numbers.dedup();
    html! {
        @if numbers.is_empty() { (card(report, test, (rate, goodput), None)) }
        @for number in numbers { (card(report, test, (rate, goodput), Some(number))) }
    }
}

/// The object size of a setting, if the setting belongs to the chart of this number of requests.
fn size_at(test: &TestReport, at: f64, number: Option<u64>) -> Option<f64> {
    let Some(Shape { bytes, requests_per_connection }) = catalogue::shape_of(test.test.name, at)
    else {
        return Some(at);
    };
    (Some(requests_per_connection) == number).then_some(bytes as f64)
}

fn card(
    report: &Report,
    test: &TestReport,
    (rate, goodput): (&FigureReport, &FigureReport),
    number: Option<u64>,
) -> Markup {
    let is_positive = |spread: &Spread| spread.min > 0.0;
    let outlines: Vec<Outline> = drawn_order(report)
        .map(|index| Outline {
            name: report.label(index).to_owned(),
            style: Style::of(report.product(index), index),
            points: rate
                .cells
                .iter()
                .zip(&goodput.cells)
                .filter_map(|(rate, goodput)| {
                    let size = size_at(test, rate.at, number)?;
                    let (rate_at, goodput) = (rate.values[index]?, goodput.values[index]?);
                    (is_positive(&rate_at) && is_positive(&goodput))
                        .then_some((size, rate_at, goodput))
                })
                .collect(),
        })
        .filter(|outline| !outline.points.is_empty())
        .collect();
    let sizes: Vec<f64> =
        test.settings.iter().filter_map(|at| size_at(test, *at, number)).collect();
    let described = description(test, "goodput against requests per second");
    html! {
        figure class="card whole" {
            figcaption {
                "Envelope: requests per second against goodput"
                @match number {
                    Some(1) => { ", 1 request per connection" }
                    Some(number) => { ", " (number) " requests per connection" }
                    None => {}
                }
                span class="direction" { "further up and right is better" }
            }
            div class="narrowed" {
                (Envelope { description: &described, sizes: &sizes, outlines: &outlines }.draw())
            }
            p class="note" { "Dotted: all points of one object size." }
        }
    }
}
