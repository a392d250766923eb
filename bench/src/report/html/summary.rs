//! The summary for a reader with a minute: wins and losses.

use maud::{Markup, html};

use super::chip;
use crate::report::chart::{Kind, Scale};
use crate::report::model::Report;
use crate::report::story::{self, Row};
use crate::report::verdict::{AgainstPeers, Group, Judgement, Verdicts};

pub fn summary(report: &Report, verdicts: &Verdicts) -> Markup {
    let groups = verdicts.groups();
    let scale = Track::around(&verdicts.judgements);
    html! {
        section id="summary" {
            h2 {
                "Summary"
                @if story::too_noisy(verdicts).is_some() { ": most could not be decided" }
            }
            (tally(verdicts))
            div class="story" {
                @for sentence in story::sentences(report, verdicts) { p { (sentence) } }
            }
            @if !groups.is_empty() {
                div class="scroll" {
                    table class="summary" {
                        thead {
                            tr {
                                th { "Test" } th { "Figure" } th class="n wide" { "weir" }
                                th class="n wide" { "Hardest peer" } th class="wide" {} th class="n" { "Ratio by round" }
                                th class="track wide" { "worse " span class="one" { "1" } " better" }
                                th { "Verdict" }
                            }
                        }
                        tbody {
                            @for (index, group) in groups.iter().enumerate() {
                                (row(report, group, &scale, index == 0
                                    || groups[index - 1].test.name != group.test.name))
                            }
                        }
                    }
                }
                p class="note" {
                    "Judged against every peer at each setting. The table shows the peer with the worst result for weir, and \
                     the ratio paired by round, which can differ from the quotient of the medians. Several settings are shown as a \
                     range, and each as a mark in the picture (a bar through a mark is the noise)."
                }
            }
        }
    }
}

fn tally(verdicts: &Verdicts) -> Markup {
    let of = |standing| verdicts.with(standing).len();
    html! {
        ul class="tally" {
            li class="won" { b { (of(AgainstPeers::Won)) } " won" }
            li class="even" { b { (of(AgainstPeers::Even)) } " even" }
            li class="undecided" { b { (of(AgainstPeers::Undecided)) } " undecided" }
            li class="lost" { b { (of(AgainstPeers::Lost)) } " lost" }
            @if !verdicts.missing.is_empty() {
                li class="lost" { b { (verdicts.missing.len()) } " not measured" }
            }
        }
    }
}

fn row(report: &Report, group: &Group<'_>, track: &Track, begins_test: bool) -> Markup {
    let row = Row::new(report, group);
    html! {
        tr class=(if begins_test { "begins" } else { "" }) {
            th scope="row" { @if begins_test { a href=(format!("#{}", row.test)) { (row.test) } } }
            td { (row.subject) }
            td class="n wide" { (row.weir) }
            td class="n wide" { (row.best) } td class="who wide" { (row.peers) }
            td class="n" { (row.ratio) }
            td class="track wide" { (track.draw(group)) }
            td {
                (chip(row.standing, &row.verdict))
                @if let Some(alone) = &row.alone { small { (alone) } }
            }
        }
    }
}

/// The small chart of a row: weir's advantage on a logarithmic scale, with 1 in the middle and better values on the
/// right.
struct Track {
    scale: Scale,
}

impl Track {
    const WIDTH: f64 = 180.0;
    const HEIGHT: f64 = 22.0;

    fn around(judgements: &[Judgement]) -> Self {
        /// Larger advantages are drawn at the edge.
        const EXTENT_MAX: f64 = 3.0;
        /// Minimum extent, so that ratios close to 1 do not look large.
        const EXTENT_MIN: f64 = 1.4;
        let extent = judgements
            .iter()
            .map(|judgement| judgement.advantage().max(1.0 / judgement.advantage()) * 1.1)
            .fold(EXTENT_MIN, f64::max)
            .min(EXTENT_MAX);
        let scale = Scale::between(Kind::Log, 1.0 / extent, extent, 6.0, Self::WIDTH - 6.0);
        Self { scale }
    }

    fn draw(&self, group: &Group<'_>) -> Markup {
        let middle = Self::HEIGHT / 2.0;
        let one = self.scale.at(1.0);
        html! {
            svg viewBox=(format!("0 0 {} {}", Self::WIDTH, Self::HEIGHT)) width=(Self::WIDTH)
                height=(Self::HEIGHT) role="img" aria-label="ratios" {
                line class="base" x1="2" x2=(Self::WIDTH - 2.0) y1=(middle) y2=(middle) {}
                line class="one" x1=(one) x2=(one) y1="1" y2=(Self::HEIGHT - 1.0) {}
                @for judgement in &group.judgements { (self.mark(judgement)) }
            }
        }
    }

    fn mark(&self, judgement: &Judgement) -> Markup {
        // The noise interval of a knee may be open.
        let at = |ratio: f64| {
            format!("{:.1}", self.scale.at(judgement.subject.advantage(ratio).min(f64::MAX)))
        };
        let class = match judgement.standing {
            AgainstPeers::Won => "won",
            AgainstPeers::Lost => "lost",
            AgainstPeers::Even | AgainstPeers::Undecided => "even",
        };
        let middle = Self::HEIGHT / 2.0;
        html! {
            g class=(class) {
                @if let Some((low, high)) = judgement.ratio.interval {
                    line class="noise" x1=(at(low)) x2=(at(high)) y1=(middle) y2=(middle) {}
                }
                circle cx=(at(judgement.ratio.median)) cy=(middle) r="4.2" {
                    title { (judgement.label()) ": " (story::ratio(&judgement.ratio)) }
                }
            }
        }
    }
}

pub fn lost(report: &Report, verdicts: &Verdicts) -> Markup {
    let behind = verdicts.behind();
    let (lost, undecided): (Vec<_>, Vec<_>) =
        behind.into_iter().partition(|judgement| judgement.standing == AgainstPeers::Lost);
    html! {
        section id="lost" {
            h2 { "What weir lost" }
            @if lost.is_empty() && verdicts.missing.is_empty() {
                p { (story::nothing_lost(report, verdicts)) }
            }
            @if !lost.is_empty() { (table(report, &lost)) }
            @if !verdicts.missing.is_empty() {
                ul {
                    @for missing in &verdicts.missing {
                        li { a href=(format!("#{}", missing.test.name)) { (missing.test.name) } ": " (missing.what) }
                    }
                }
            }
            @if !undecided.is_empty() {
                h3 { "Behind, but undecided" }
                p { "weir's median is worse here, but the rounds are too few or too noisy to be sure." }
                (table(report, &undecided))
            }
        }
    }
}

pub fn won(report: &Report, verdicts: &Verdicts) -> Markup {
    let won = verdicts.clearest_wins();
    html! {
        section id="won" {
            h2 { "What weir won" }
            @if won.is_empty() {
                p { "Nothing in this run." }
            } @else {
                p { "Of every test and figure the setting with the clearest win; the tests have the others." }
                (table(report, &won))
            }
        }
    }
}

fn table(report: &Report, judgements: &[&Judgement]) -> Markup {
    html! {
        div class="scroll" {
            table class="judgements" {
                thead {
                    tr {
                        th { "Test" } th { "Figure" } th class="n wide" { "weir" }
                        th class="n wide" { "Hardest peer" } th class="n" { "Ratio by round (noise)" }
                        th class="wide" { "By how much" } th { "Verdict" }
                    }
                }
                tbody {
                    @for judgement in judgements {
                        tr {
                            th scope="row" {
                                a href=(format!("#{}", judgement.test.name)) { (judgement.test.name) }
                            }
                            td { (judgement.label()) }
                            td class="n wide" { (story::value(report, judgement, judgement.weir, report.weir)) }
                            td class="n wide" {
                                (story::value(report, judgement, judgement.best, Some(judgement.peer)))
                                span class="peer" {
                                    (report.label(judgement.peer))
                                }
                            }
                            td class="n" { (story::ratio(&judgement.ratio)) }
                            td class="wide" {
                                (judgement.distance())
                                @if let Some(said) = story::medians_say(judgement) { small { (said) } }
                                @if let Some(said) = story::forfeit_told(report, judgement) { small { (said) } }
                            }
                            td { (chip(judgement.standing, judgement.standing.word())) }
                        }
                    }
                }
            }
        }
    }
}
