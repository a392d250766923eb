//! The page: a single file without network access, readable on phones and paper.

mod appendix;
mod per_test;
mod summary;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::{Style, swatch};
use super::configurations::KeptConfigurations;
use super::model::Report;
use super::story;
use super::text;
use super::verdict::{AgainstPeers, Verdicts, difference_told};

/// The style sheet. It must not contain `<` or `&`.
const STYLE_SHEET: &str = include_str!("style.css");

/// The whole page.
pub fn page(report: &Report, verdicts: &Verdicts, kept: &KeptConfigurations) -> Markup {
    let run = &report.run;
    let title =
        format!("Weirgate comparative report, {}, {}", run.machine.host, date(&run.started));
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE_SHEET)) }
            }
            body {
                (header(report))
                main {
                    (summary::summary(report, verdicts))
                    (summary::lost(report, verdicts))
                    (summary::won(report, verdicts))
                    section id="tests" {
                        h2 { "Tests" }
                        (reading_help())
                        @for (index, test) in report.tests.iter().enumerate() {
                            @if report.begins_chapter(index) {
                                h3 class="chapter" { (test.test.chapter.title()) }
                            }
                            (per_test::test(report, verdicts, test))
                        }
                        @if !report.tests_not_run.is_empty() {
                            h3 class="chapter" { "Not in this run" }
                        }
                        @for test in &report.tests_not_run { (per_test::not_run(test)) }
                    }
                    (per_test::cpu(report))
                    (appendix::pending())
                    (appendix::left_out(report))
                    (appendix::method(report))
                    (appendix::machine(report))
                    (appendix::configurations(report, kept))
                }
                footer {
                    "Made by " code { "weir bench report" } " from " code { "run.json" }
                    " in the same folder, which has every measurement."
                }
            }
        }
    }
}

fn header(report: &Report) -> Markup {
    let run = &report.run;
    html! {
        header {
            p class="kicker" { "Weirgate · comparative performance report" }
            h1 { "weir and its peers, measured on " (run.machine.host) }
            dl class="facts" {
                div { dt { "Date" } dd { (date(&run.started)) } }
                div { dt { "Machine" } dd { (run.machine.cpu) ", " (text::counted(run.machine.cores, "core")) } }
                div { dt { "System" } dd { (run.machine.system) ", " (run.machine.kernel) } }
                div { dt { "Extent" } dd { (run.extent) ", " (duration(run.elapsed_s)) } }
            }
            ul class="legend products" {
                @for (index, product) in run.products.iter().enumerate() {
                    li { (swatch(Style::of(&product.name, index)))
                        (story::versioned(report, index)) }
                }
            }
            nav aria-label="Contents" {
                a href="#summary" { "Summary" } a href="#lost" { "Lost" } a href="#won" { "Won" }
                @for test in &report.tests { a href=(format!("#{}", test.test.name)) { (test.test.name) } }
                a href="#cpu" { "CPU" }
                @if !crate::catalogue::PENDING.is_empty() { a href="#pending" { "Still to come" } }
                a href="#method" { "Method" }
                a href="#machine" { "Machine" } a href="#configurations" { "Configurations" }
            }
        }
    }
}

fn reading_help() -> Markup {
    html! {
        p class="help" {
            "Points and bars are medians over the rounds, whiskers reach from the lowest round to the highest. \
             Ratios are weir divided by the peer, paired round by round, with the range that the noise allows \
             in parentheses; " span class="chip won" { "won" } " and " span class="chip lost" { "lost" }
            " appear only where that range excludes 1 and the ratio is at least " (difference_told()) " away from it, " span class="chip even" { "even" } " only where it stays \
             within about 10% of 1; everything else is " span class="chip undecided" { "undecided" } ". The relay does not parse HTTP: it shows the kernel's \
             share of the cost and is not judged. † marks a product that fell behind the offered rate. Point at \
             a mark to see its values."
        }
    }
}

/// The standing as a coloured word.
fn chip(standing: AgainstPeers, word: &str) -> Markup {
    let class = match standing {
        AgainstPeers::Won => "chip won",
        AgainstPeers::Lost => "chip lost",
        AgainstPeers::Even => "chip even",
        AgainstPeers::Undecided => "chip undecided",
    };
    html! { span class=(class) { (word) } }
}

/// Formats RFC 3339 as `2026-11-21 09:12 UTC`. Other text stays unchanged.
fn date(started: &str) -> String {
    let is_expected = started.is_ascii() && started.len() >= 20 && started.ends_with('Z');
    if is_expected {
        format!("{} {} UTC", &started[..10], &started[11..16])
    } else {
        started.to_owned()
    }
}

/// Example: `52 min` or `40 s`.
fn duration(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::record::{Discard, Run};
    use crate::report::configurations::Configuration;
    use crate::report::testing;

    fn page_of(run: Run) -> String {
        let report = Report::new(run);
        let verdicts = Verdicts::new(&report);
        let kept = KeptConfigurations {
            configurations: vec![Configuration {
                product: "nginx".to_owned(),
                file: "nginx.conf".to_owned(),
                text: "server { listen 80; } # <&> \"quoted\"".to_owned(),
                is_cut: false,
                tests: vec!["basic-l7".to_owned()],
            }],
            left_out: 0,
        };
        page(&report, &verdicts, &kept).into_string()
    }

    /// Parses the page as XML. HTML differs in elements without an end tag; `meta` is the only one here.
    fn parsed(page: &str) -> String {
        let page = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
        page.split("<meta ")
            .enumerate()
            .map(|(index, part)| match part.split_once('>') {
                Some((meta, rest)) if index > 0 => format!("<meta {meta}/>{rest}"),
                _ => part.to_owned(),
            })
            .collect()
    }

    #[test]
    fn the_page_is_well_formed_and_has_every_test() {
        let page = parsed(&page_of(testing::run()));
        let document = roxmltree::Document::parse(&page).expect("well-formed markup");
        let has_id = |id: &str| document.descendants().any(|node| node.attribute("id") == Some(id));
        for id in ["summary", "lost", "won", "cpu", "method", "machine", "configurations"] {
            assert!(has_id(id), "no section {id}");
        }
        for test in catalogue::TESTS {
            assert!(has_id(test.name), "no section {}", test.name);
            let section = document.descendants().find(|n| n.attribute("id") == Some(test.name));
            let charts = section.expect("a section").descendants().filter(|node| {
                node.attribute("class").is_some_and(|class| class.starts_with("chart"))
            });
            assert!(charts.count() >= test.judged.len(), "{} lacks charts", test.name);
        }
        for pending in catalogue::PENDING {
            assert!(page.contains(pending.waits_for), "{} is not named", pending.name);
        }
        // Links have targets, ids are unique, and nothing is loaded from elsewhere.
        let mut ids = std::collections::HashSet::new();
        for node in document.descendants() {
            if let Some(id) = node.attribute("id") {
                assert!(ids.insert(id.to_owned()), "{id} stands twice");
            }
            for name in ["src", "href"] {
                let Some(link) = node.attribute(name) else { continue };
                assert!(link.strip_prefix('#').is_some_and(has_id), "{link} leads nowhere");
            }
        }
        assert!(!page.contains("NaN") && !page.contains(">inf"), "a number that is none");
    }

    #[test]
    fn tables_of_many_products_have_the_whole_width() {
        let check = |run: Run, is_wide: bool| {
            let page = parsed(&page_of(run));
            let document = roxmltree::Document::parse(&page).expect("well-formed markup");
            let section =
                document.descendants().find(|n| n.attribute("id") == Some("object-sizes"));
            let cards = section.expect("a section").descendants();
            let mut cards = cards.filter(|node| {
                node.attribute("class").is_some_and(|class| class.split(' ').any(|it| it == "card"))
            });
            let expected = if is_wide { "card whole" } else { "card" };
            assert!(cards.all(|card| card.attribute("class") == Some(expected)), "{expected}");
        };
        check(testing::run(), false);
        check(testing::run_of_two_rows(), true);
    }

    /// Text beyond its canvas would cover the next chart.
    #[test]
    fn labels_stay_on_their_canvas() {
        /// Mean width of a character at the style sheet's size for a wide screen.
        const CHARACTER: f64 = 6.2;
        let page = parsed(&page_of(testing::run_of_two_rows()));
        let document = roxmltree::Document::parse(&page).expect("well-formed markup");
        let is_chart = |node: &roxmltree::Node<'_, '_>| {
            node.attribute("class").is_some_and(|class| class.split(' ').any(|it| it == "chart"))
        };
        let number = |node: roxmltree::Node<'_, '_>, name: &str| -> f64 {
            node.attribute(name).and_then(|text| text.parse().ok()).expect("a number")
        };
        let mut labels = 0;
        for chart in document.descendants().filter(is_chart) {
            let canvas = chart.attribute("viewBox").expect("a canvas").split(' ').nth(2);
            let width: f64 = canvas.and_then(|width| width.parse().ok()).expect("its width");
            for label in chart.descendants().filter(|node| node.has_tag_name("text")) {
                let text = label.text().unwrap_or_default();
                let length = text.chars().count() as f64 * CHARACTER;
                let x = number(label, "x");
                let begins = match label.attribute("text-anchor") {
                    Some("end") => x - length,
                    Some("middle") => x - length / 2.0,
                    _ => x,
                };
                let is_on_it = begins >= 0.0 && begins + length <= width;
                let whole = chart.attribute("aria-label").unwrap_or_default();
                assert!(is_on_it, "{whole}: {text:?} from {begins} to {}", begins + length);
                labels += 1;
            }
        }
        assert!(labels > 1_000, "{labels}");
    }

    #[test]
    fn a_load_that_was_the_limit_is_told_of_connections() {
        let sentence = "The load generator's core was the limit for weir: these rates are lower bounds and are not \
                        judged.";
        let check = |share: f64, expected: bool| {
            let mut run = testing::run();
            run.tests.retain(|test| test.name == "l7-connections");
            for point in &mut run.tests[0].points {
                let share = if point.product == "weir" { share } else { 0.97 };
                point.cost.busy_s = share * point.cost.elapsed_s;
                point.load.cpu_seconds = 0.96 * point.load.elapsed_s;
            }
            let report = Report::new(run.clone());
            let markdown = crate::report::markdown::page(&report, &Verdicts::new(&report));
            assert_eq!(markdown.contains(sentence), expected, "{share}");
            assert_eq!(page_of(run).contains(sentence), expected, "{share}");
        };
        check(0.8, true);
        check(0.95, false);
        // A busy time of zero is not a measurement.
        check(0.0, false);
    }

    #[test]
    fn the_style_sheet_needs_no_escaping() {
        assert!(!STYLE_SHEET.contains(['<', '&']) && !STYLE_SHEET.contains("url("));
    }

    #[test]
    fn hostile_text_stays_text() {
        const HOSTILE: &str = "</title><script>alert(1)</script>\"'&\u{202e}";
        let mut run = testing::run();
        let rename = |name: &mut String| {
            if name == "nginx" {
                *name = HOSTILE.to_owned();
            }
        };
        run.products.iter_mut().for_each(|product| {
            rename(&mut product.name);
            product.version = HOSTILE.to_owned();
        });
        for test in &mut run.tests {
            test.points.iter_mut().for_each(|point| rename(&mut point.product));
            test.discarded.push(Discard {
                round: Some(0),
                at: Some(0.0),
                product: Some(HOSTILE.to_owned()),
                reason: HOSTILE.to_owned(),
                errors: Some(u64::MAX),
                unsent: None,
            });
            test.facts.insert(HOSTILE.to_owned(), 1.0);
        }
        run.machine.host = HOSTILE.to_owned();
        run.machine.cpu = HOSTILE.to_owned();
        run.started = HOSTILE.to_owned();
        let page = page_of(run);
        assert!(!page.contains("<script"), "text became markup");
        let page = parsed(&page);
        roxmltree::Document::parse(&page).expect("well-formed markup");
    }

    #[test]
    fn thin_and_extreme_runs_have_a_page() {
        let check = |change: &dyn Fn(&mut Run)| {
            let mut run = testing::run();
            change(&mut run);
            let page = parsed(&page_of(run));
            roxmltree::Document::parse(&page).expect("well-formed markup");
            assert!(!page.contains("NaN"), "a number that is none");
        };
        let each_point = |run: &mut Run, change: &dyn Fn(&mut crate::record::Point)| {
            run.tests.iter_mut().flat_map(|test| &mut test.points).for_each(change);
        };
        check(&|run| run.tests.clear());
        check(&|run| run.products.clear());
        check(&|run| run.tests.iter_mut().for_each(|test| test.points.clear()));
        check(&|run| {
            run.tests.iter_mut().for_each(|test| test.points.retain(|p| p.product != "weir"));
        });
        check(&|run| {
            run.tests.iter_mut().for_each(|test| test.points.retain(|p| p.product == "weir"));
        });
        check(&|run| run.tests.iter_mut().for_each(|test| test.points.retain(|p| p.round == 0)));
        check(&|run| each_point(run, &|point| point.load.requests = 0));
        check(&|run| {
            each_point(run, &|point| {
                point.load.requests_per_second = 0.0;
                point.load.elapsed_s = 0.0;
                point.cost.busy_s = -1.0;
                point.load.latency_us = crate::load::Latency::default();
            });
        });
        check(&|run| {
            each_point(run, &|point| {
                point.load.requests = u64::MAX;
                point.load.errors = u64::MAX;
                point.load.bytes = u64::MAX;
                point.load.requests_per_second = f64::MAX;
                point.load.latency_us.curve = vec![(f64::MAX, u64::MAX), (-5.0, 0), (50.0, 7)];
                point.cost.busy_s = f64::MAX;
                point.at *= 1e300;
            });
        });
    }

    #[test]
    fn dates_and_durations() {
        assert_eq!(date("2026-11-21T09:12:44Z"), "2026-11-21 09:12 UTC");
        assert_eq!(date("yesterday"), "yesterday");
        assert_eq!(duration(3_140.0), "52 min");
        assert_eq!(duration(40.2), "40 s");
    }
}
