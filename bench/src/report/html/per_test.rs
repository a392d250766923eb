//! A section per test: description, charts and tables. Also the CPU section over all tests.

mod envelope;
mod over_time;

use maud::{Markup, html};

use super::chip;
use crate::catalogue::{Axis, BetterDirection, Figure, Picture, Test};
use crate::report::chart::{
    Bar, Bars, Dots, Kind, Lane, Lines, Row, Series, SeriesPoint, Style, XAxis, swatch,
};
use crate::report::discards;
use crate::report::facts;
use crate::report::goals;
use crate::report::handshakes;
use crate::report::knee::{Knees, P99_MAX_MS};
use crate::report::limits;
use crate::report::model::{Cell, FigureReport, Report, TestReport};
use crate::report::percentiles;
use crate::report::published_figures;
use crate::report::stats::Spread;
use crate::report::story;
use crate::report::text;
use crate::report::verdict::{Judgement, Subject, Verdicts};

/// Maximum number of product columns in a card of half the page's width.
const COLUMNS_MAX: usize = 5;

/// Maximum number of discarded measurements that a test lists. With more, it shows only their number.
const DISCARDED_SHOWN_MAX: usize = 3;

/// The section of a test.
pub fn test(report: &Report, verdicts: &Verdicts, test: &TestReport) -> Markup {
    let record = report.record(test);
    let errors = story::errors_of(report, test);
    let short = story::short_of_rounds(report, test);
    let called = |name: &str| report.called(name).to_owned();
    html! {
        article id=(test.test.name) class="test" {
            h3 { (test.test.title) " " code { (test.test.name) } }
            p { (test.test.summary) }
            p class="source" { "After: " (test.test.after) ". "
                (text::counted(record.rounds as usize, "round")) "."
                @for sentence in facts::sentences(&record.facts, &called) { " " (sentence) }
            }
            @if record.points.is_empty() {
                p class="note" { "Nothing was measured." }
            } @else {
                (legend(report, &test.takers))
                div class="cards" {
                    (pictures(report, test))
                    @for figure in &test.figures { (card(report, verdicts, test, figure)) }
                }
                @if let Some(sentence) = story::one_peer(report, verdicts, test) {
                    p class="note" { (sentence) }
                }
                @if let Some(sentence) = story::few_requests(report, test) {
                    p class="note" { (sentence) }
                }
                @for load in facts::loads(&record.facts, &called) {
                    p class="note" { (load) }
                }
                @for sentence in handshakes::told(report, test).into_iter().chain(published_figures::told(report, test)) {
                    p class="note" { (sentence) }
                }
                @for goal in goals::told(report, test) {
                    p class="note" { b { "Goal" } ": " (goal) "." }
                }
                @for sentence in limits::told(report, test) {
                    p class="note strong" { (sentence) }
                }
                @if let Some(sentence) = story::unsent_of(report, test) {
                    p class="note strong" { (sentence) }
                }
                @if errors.is_empty() {
                    p class="note" { "No request that was sent failed." }
                } @else {
                    p class="note strong" { "Failed transactions: " (errors.join("; ")) "." }
                }
            }
            @if !short.is_empty() {
                p class="note" { b { "Fewer rounds than planned" } ": " (short.join("; ")) }
            }
            @for omission in &record.omissions {
                p class="note" {
                    b { (report.called(&omission.product)) } " left out"
                    (story::place_of(test.test.axis, omission)) ": " (omission.reason)
                }
            }
            @if record.discarded.len() > DISCARDED_SHOWN_MAX {
                p class="note" {
                    b { "Discarded" } ": " (record.discarded.len()) " measurements, each listed under "
                    a href="#left-out" { "Left out" }
                }
            } @else {
                @for discarded in &record.discarded {
                    p class="note" { b { "Discarded" } ": " (discards::discarded(report, test.test.axis, discarded)) }
                }
            }
        }
    }
}

/// The charts before those of the figures.
fn pictures(report: &Report, test: &TestReport) -> Markup {
    match test.test.picture {
        Picture::Envelope => envelope::cards(report, test),
        Picture::Percentiles => percentile_cards(report, test),
        Picture::OverTime => over_time::card(report, test),
        Picture::Bars | Picture::Lines => html! {},
    }
}

/// The section of a test that is not in the run.
pub fn not_run(test: &Test) -> Markup {
    html! {
        article id=(test.name) class="test" {
            h3 { (test.title) " " code { (test.name) } }
            p class="note" { "Not in this run: " code { "weir bench run " (test.name) } " runs it." }
        }
    }
}

fn legend(report: &Report, products: &[usize]) -> Markup {
    html! {
        ul class="legend" {
            @for &index in products {
                @let name = report.product(index);
                li { (swatch(Style::of(name, index))) (report.label(index)) }
            }
        }
    }
}

fn caption(figure: Figure) -> Markup {
    let direction = match figure.better() {
        BetterDirection::Higher => "more is better",
        BetterDirection::Lower => "less is better",
        BetterDirection::Neither => "not judged",
    };
    html! {
        figcaption { (text::sentence_case(figure.title()))
            span class="direction" { (direction) } }
    }
}

/// The chart and table of a figure.
fn card(report: &Report, verdicts: &Verdicts, test: &TestReport, figure: &FigureReport) -> Markup {
    // Named cases have no values between them, so they get no lines.
    let is_over_axis = matches!(test.test.picture, Picture::Lines | Picture::Envelope)
        && !matches!(test.test.axis, Axis::Cases(_));
    let judged: Vec<&Judgement> = verdicts
        .judgements
        .iter()
        .filter(|judgement| {
            judgement.test.name == test.test.name
                && judgement.subject == Subject::Figure(figure.figure)
        })
        .collect();
    // A table with many product columns needs the whole width.
    let is_wide = test.test.axis != Axis::Single && test.takers.len() > COLUMNS_MAX;
    html! {
        figure class=(if is_wide { "card whole" } else { "card" }) {
            (caption(figure.figure))
            div class=(if is_wide { "narrowed" } else { "" }) {
                @if is_over_axis { (lines(report, test, figure)) } @else { (bars(report, test, figure)) }
            }
            @if test.test.axis == Axis::Single {
                (table_of_products(report, test, figure, &judged))
            } @else {
                (table_of_settings(report, test, figure, &judged))
            }
        }
    }
}

fn bars(report: &Report, test: &TestReport, figure: &FigureReport) -> Markup {
    let bar = |cell: &Cell, index: usize| {
        let value = cell.values[index];
        let label = value.map_or(String::new(), |v| text::with_unit(v.median, figure.figure));
        let name = report.product(index);
        Bar { name: report.label(index).to_owned(), style: Style::of(name, index), value, label }
    };
    let groups = figure
        .cells
        .iter()
        .map(|cell| {
            let bars = test.takers.iter().map(|&index| bar(cell, index)).collect();
            (text::setting(test.test.axis, cell.at), bars)
        })
        .collect();
    let description = description(test, figure.figure.title());
    Bars { description: &description, title: text::axis_unit(figure.figure), groups }.draw()
}

fn description(test: &TestReport, what: &str) -> String {
    format!("{}: {what}, by product", test.test.title)
}

/// Products in drawing order: weir last, above all others.
fn drawn_order(report: &Report) -> impl Iterator<Item = usize> {
    (0..report.run.products.len()).rev()
}

fn lines(report: &Report, test: &TestReport, figure: &FigureReport) -> Markup {
    let axis = test.test.axis;
    let series: Vec<Series> = drawn_order(report)
        .map(|index| Series {
            name: report.label(index).to_owned(),
            style: Style::of(report.product(index), index),
            points: figure
                .cells
                .iter()
                .filter_map(|cell| Some(SeriesPoint { x: cell.at, y: cell.values[index]? }))
                .collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let values =
        || series.iter().flat_map(|series| series.points.iter().map(|point| point.y.median));
    let is_ramp = axis == Axis::OfferedRate;
    let shows = |wanted: Figure| is_ramp && figure.figure == wanted;
    // A share is compared with 100%, and an achieved rate with the offered rate.
    let is_even = figure.figure == Figure::CoreBusy || shows(Figure::Rate);
    let lanes = match &test.knees {
        Some(knees) if shows(Figure::LatencyP99) => lanes(report, knees),
        _ => Vec::new(),
    };
    Lines {
        description: &description(
            test,
            &format!("{} over {}", figure.figure.title(), text::axis(axis)),
        ),
        x: XAxis {
            title: text::axis(axis),
            kind: if is_ramp { Kind::Linear } else { Kind::fitting(test.settings.iter().copied()) },
            ticks: if is_ramp { &[] } else { &test.settings },
            label: &|at| text::setting_tick(axis, at),
        },
        y_title: text::axis_unit(figure.figure),
        y_kind: if is_even { Kind::Linear } else { Kind::fitting(values()) },
        y_holds: if figure.figure == Figure::CoreBusy { &[100.0] } else { &[] },
        series: &series,
        threshold: shows(Figure::LatencyP99).then_some((P99_MAX_MS, "10 ms")),
        diagonal: shows(Figure::Rate).then_some("achieved = offered"),
        lanes: &lanes,
        value_title: &|series, index| {
            let point = series.points[index];
            let value = with_spread(point.y, figure.figure);
            format!("{}, {}: {value}", series.name, text::setting(axis, point.x))
        },
    }
    .draw()
}

/// The knees as labelled lanes below the ramp's chart.
fn lanes(report: &Report, knees: &Knees) -> Vec<Lane> {
    (0..report.run.products.len())
        .map(|index| {
            let name = report.label(index);
            let style = Style::of(report.product(index), index);
            let knee = knees.of[index];
            let rounds = knee.filter(|knee| knee.rounds.max > knee.rounds.min);
            let rounds = rounds.map(|knee| format!("; rounds: {}", text::range(&knee.rounds)));
            let label = match knees.told_short(index) {
                Some(told) => format!("{name}: {told}{}", rounds.unwrap_or_default()),
                None => format!("{name}: no rate kept, or not measured"),
            };
            Lane { style, at: knee.map(|knee| knee.at), label }
        })
        .collect()
}

/// Example: `0.412 ms (0.398–0.441)`.
fn with_spread(spread: Spread, figure: Figure) -> String {
    format!("{} ({})", text::with_unit(spread.median, figure), text::range(&spread))
}

fn percentile_cards(report: &Report, test: &TestReport) -> Markup {
    let record = report.record(test);
    html! {
        @for &at in &test.settings {
            @let series: Vec<Series> = drawn_order(report)
                .map(|index| Series {
                    name: report.label(index).to_owned(),
                    style: Style::of(report.product(index), index),
                    points: percentiles::over_rounds(record, report.product(index), at),
                })
                .filter(|series| !series.points.is_empty())
                .collect();
            @if !series.is_empty() {
                figure class="card" {
                    figcaption {
                        "Latency by percentile, " (text::setting(test.test.axis, at))
                        span class="direction" { "less is better" }
                    }
                    (percentile_lines(test, at, &series))
                }
            }
        }
    }
}

fn percentile_lines(test: &TestReport, at: f64, series: &[Series]) -> Markup {
    let what = format!("latency by percentile, {}", text::setting(test.test.axis, at));
    Lines {
        description: &description(test, &what),
        x: XAxis {
            title: "percentile, by 1/(1−p)",
            kind: Kind::Nines,
            ticks: &[],
            label: &text::tick,
        },
        y_title: "ms",
        y_kind: Kind::Log,
        y_holds: &[],
        series,
        threshold: None,
        diagonal: None,
        lanes: &[],
        value_title: &|series, index| {
            let point = series.points[index];
            let value = with_spread(point.y, Figure::LatencyP99);
            format!("{}, P{}: {value}", series.name, text::tick(point.x))
        },
    }
    .draw()
}

fn value_cell(spread: Option<Spread>, is_behind: bool) -> Markup {
    html! {
        td class="n" {
            @if let Some(spread) = spread {
                (text::number(spread.median)) @if is_behind { "†" }
                @if spread.max > spread.min {
                    @let range = text::range(&spread);
                    @if range.contains('–') { small { (range) } }
                }
            } @else { "–" }
        }
    }
}

fn table_of_products(
    report: &Report,
    test: &TestReport,
    figure: &FigureReport,
    judged: &[&Judgement],
) -> Markup {
    let Some(cell) = figure.cells.first() else { return html! {} };
    let has_ratios = figure.figure.better() != BetterDirection::Neither;
    html! {
        div class="scroll" {
            table {
                thead {
                    tr {
                        th {} th class="n" { "Median" } th class="n" { "Lowest–highest" }
                        @if has_ratios { th class="n" { "weir ÷ it by round (noise)" } th {} }
                    }
                }
                tbody {
                    @for &index in &test.takers {
                        tr {
                            th scope="row" { (report.label(index)) }
                            @if let Some(value) = cell.values[index] {
                                td class="n" { (text::number(value.median)) }
                                td class="n" { (text::range(&value)) }
                            } @else {
                                td class="n" { "–" } td class="n" { "–" }
                            }
                            @if has_ratios {
                                td class="n" {
                                    @if let Some(ratio) = &cell.ratios[index] { (story::ratio(ratio)) }
                                }
                                td {
                                    @for judgement in judged.iter().filter(|found| found.peer == index) {
                                        (chip(judgement.standing, judgement.standing.word()))
                                        @if let Some(said) = story::medians_say(judgement) { small class="said" { (said) } }
                                        @if let Some(said) = story::forfeit_told(report, judgement) { small class="said" { (said) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table_of_settings(
    report: &Report,
    test: &TestReport,
    figure: &FigureReport,
    judged: &[&Judgement],
) -> Markup {
    let axis = test.test.axis;
    html! {
        div class="scroll" {
            table class="settings" {
                thead {
                    tr {
                        th { (text::sentence_case(text::axis(axis))) }
                        @for &index in &test.takers {
                            th class="n" { (report.label(index)) }
                        }
                        @if figure.is_judged { th class="n" { "weir ÷ hardest by round" } }
                    }
                }
                tbody {
                    @for (setting, cell) in figure.cells.iter().enumerate() {
                        tr {
                            th scope="row" { (text::setting_short(axis, cell.at)) }
                            @for &index in &test.takers {
                                (value_cell(cell.values[index], test.fell_behind(setting, index)))
                            }
                            @if figure.is_judged {
                                @let found = judged.iter().find(|found| found.at == cell.at);
                                td class="n" {
                                    @if let Some(judgement) = found {
                                        (chip(judgement.standing, &text::ratio(judgement.ratio.median)))
                                        @if let Some(ends) = judgement.ratio.interval {
                                            small { (story::interval(ends)) }
                                        }
                                        @if let Some(said) = story::medians_say(judgement) { small class="said" { (said) } }
                                        @if let Some(said) = story::forfeit_told(report, judgement) { small class="said" { (said) } }
                                    } @else { "–" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// CPU per request in every test with that figure, and whether the load generator was the limit.
pub fn cpu(report: &Report) -> Markup {
    let figure_of = |test: &TestReport, wanted: Figure| {
        test.figures.iter().position(|figure| figure.figure == wanted)
    };
    let mut rows = Vec::new();
    for test in &report.tests {
        let Some(figure) = figure_of(test, Figure::CpuPerRequest) else { continue };
        for cell in &test.figures[figure].cells {
            let setting = text::setting(test.test.axis, cell.at);
            let separator = if setting.is_empty() { "" } else { ", " };
            rows.push(Row {
                name: format!("{}{separator}{setting}", test.test.name),
                dots: drawn_order(report)
                    .filter_map(|index| {
                        let value = cell.values[index].filter(|value| value.median > 0.0)?;
                        let name = report.product(index);
                        let title = with_spread(value, Figure::CpuPerRequest);
                        let title = format!("{}: {title}", report.label(index));
                        Some((Style::of(name, index), value.median, title))
                    })
                    .collect(),
            });
        }
    }
    html! {
        section id="cpu" {
            h2 { "CPU" }
            p {
                "Busy time of the product's core per transaction, softirq included, in every test that judges \
                 this figure. Further left is better; the distance between two marks is their ratio."
            }
            @if rows.is_empty() {
                p class="note" { "No test of this run measured it." }
            } @else {
                (legend(report, &(0..report.run.products.len()).collect::<Vec<_>>()))
                div class="scroll" {
                    (Dots { description: "CPU per request by test and product", title: text::axis_unit(Figure::CpuPerRequest), rows }.draw())
                }
            }
            (generator(report))
        }
    }
}

/// In a closed loop, the busier side is the limit: the product's core, or load and origin.
fn generator(report: &Report) -> Markup {
    let tests = report.tests.iter().filter(|test| limits::is_closed_loop(report, test));
    let tests: Vec<&TestReport> = tests.collect();
    let shares = |test: &TestReport, product: &str| {
        let (busy, load) = limits::core_shares(report, test, product, None)?;
        Some(format!("{busy:.0}% / {load:.0}%"))
    };
    html! {
        @if !tests.is_empty() {
            h3 { "Limits" }
            p {
                "Core busy of the product / share of the load's cores that load generator and origin took, in \
                 closed-loop tests (the rest of the load's cores is interrupt work). A product far from 100% \
                 was not driven to its limit. If the load's cores were full at that time, the product's rate is a \
                 lower bound: it is not judged, and CPU per request decides. If they were not full, both \
                 sides waited for a part of the time."
            }
            div class="scroll" {
                table {
                    thead {
                        tr {
                            th { "Test" }
                            @for index in 0..report.run.products.len() {
                                th class="n" { (report.label(index)) }
                            }
                        }
                    }
                    tbody {
                        @for test in tests {
                            tr {
                                th scope="row" { (test.test.name) }
                                @for product in &report.run.products {
                                    td class="n" { (shares(test, &product.name).unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
