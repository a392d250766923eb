//! Goodput over the time of a measurement, which shows whether a product's rate is steady.

use maud::{Markup, html};

use super::{description, drawn_order};
use crate::record::Point;
use crate::report::chart::{Kind, Lines, Series, SeriesPoint, Style, XAxis};
use crate::report::model::{Report, TestReport};
use crate::report::stats::Spread;
use crate::report::text;

/// The chart of a test: the median and the spread of the rounds in each interval.
pub fn card(report: &Report, test: &TestReport) -> Markup {
    let series: Vec<Series> = drawn_order(report)
        .map(|index| Series {
            name: report.label(index).to_owned(),
            style: Style::of(report.product(index), index),
            points: over_rounds(report, test, report.product(index)),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    if series.is_empty() {
        return html! {};
    }
    let described = description(test, "goodput over time");
    let chart = Lines {
        description: &described,
        x: XAxis {
            title: "seconds since the measurement began",
            kind: Kind::Linear,
            ticks: &[],
            label: &text::tick,
        },
        y_title: "Gbit/s",
        y_kind: Kind::Linear,
        y_holds: &[0.0],
        series: &series,
        threshold: None,
        diagonal: None,
        lanes: &[],
        value_title: &|series, index| {
            let point = series.points[index];
            let (at, value) = (text::number(point.x), text::number(point.y.median));
            format!("{}, at {at} s: {value} Gbit/s", series.name)
        },
    };
    html! {
        figure class="card whole" {
            figcaption { "Goodput over time" span class="direction" { "more is better, and flat" } }
            div class="narrowed" { (chart.draw()) }
        }
    }
}

fn over_rounds(report: &Report, test: &TestReport, product: &str) -> Vec<SeriesPoint> {
    let points = &report.record(test).points;
    let rounds: Vec<Vec<(f64, f64)>> =
        points.iter().filter(|point| point.product == product).map(goodputs).collect();
    let steps = rounds.iter().map(Vec::len).min().unwrap_or(0);
    let step = |place: usize| {
        let at = Spread::of(rounds.iter().map(|round| round[place].0))?.median;
        Some(SeriesPoint { x: at, y: Spread::of(rounds.iter().map(|round| round[place].1))? })
    };
    (0..steps).filter_map(step).collect()
}

/// The middle of each interval in seconds, and the Gbit/s within it.
fn goodputs(point: &Point) -> Vec<(f64, f64)> {
    let load = &point.load;
    let bytes_each = load.bytes as f64 / (load.requests as f64).max(1.0);
    let steps = load.timeline.windows(2).filter_map(|pair| {
        let length_s = pair[1].at_s - pair[0].at_s;
        let requests = pair[1].requests.saturating_sub(pair[0].requests) as f64;
        let middle_s = pair[0].at_s + length_s / 2.0;
        (length_s > 0.0).then(|| (middle_s, requests * bytes_each * 8.0 / 1e9 / length_s))
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Moment;
    use crate::report::testing;

    #[test]
    fn goodput_of_a_step_is_of_what_was_done_in_it() {
        let mut point = testing::run().tests[0].points[0].clone();
        (point.load.requests, point.load.bytes) = (10, 10 * 125_000_000);
        let moment = |(at_s, requests)| Moment { at_s, requests };
        point.load.timeline = [(0.5, 2), (1.0, 3), (1.0, 3), (3.0, 7)].map(moment).to_vec();
        assert_eq!(goodputs(&point), [(0.75, 2.0), (2.0, 2.0)]);
        point.load.timeline.clear();
        assert!(goodputs(&point).is_empty());
    }
}
