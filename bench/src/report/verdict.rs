//! Wins and losses of weir.

use crate::catalogue::{BetterDirection, Figure, Test};

use super::knee::Knees;
use super::limits;
use super::model::{Cell, FigureReport, Report, TestReport};
use super::stats::Ratio;
use super::text;

/// The subject of a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A figure of the catalogue.
    Figure(Figure),
    /// The knee: the highest rate that was kept.
    Knee,
}

impl Subject {
    /// The subject's title in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.title(),
            Self::Knee => "knee (highest rate kept)",
        }
    }

    /// A value with its unit.
    pub fn with_unit(self, value: f64) -> String {
        match self {
            Self::Figure(figure) => text::with_unit(value, figure),
            Self::Knee => text::with_unit(value, Figure::Rate),
        }
    }

    fn better(self) -> BetterDirection {
        match self {
            Self::Figure(figure) => figure.better(),
            Self::Knee => BetterDirection::Higher,
        }
    }

    /// Inverts the ratio weir/peer if lower is better, so that more than 1 is weir's advantage.
    pub fn advantage(self, ratio: f64) -> f64 {
        if self.better() == BetterDirection::Lower { 1.0 / ratio } else { ratio }
    }
}

/// A smaller difference is neither a win nor a loss, even if the rounds scatter less, because restarting a program
/// changes figures by a few percent.
pub const DIFFERENCE_SHARE_MIN: f64 = 0.05;

/// [`DIFFERENCE_SHARE_MIN`] as text: `5%`.
pub fn difference_told() -> String {
    format!("{:.0}%", DIFFERENCE_SHARE_MIN * 100.0)
}

/// Two products are even if the whole interval of their ratio lies in this range.
pub const EVEN: std::ops::RangeInclusive<f64> = 1.0 / 1.11..=1.11;

/// Medians whose quotient differs from the paired ratio by more than this share are flagged.
const DISAGREEMENT_SHARE_MAX: f64 = 0.2;

/// Weir's result against its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgainstPeers {
    /// Significantly better, and by at least [`DIFFERENCE_SHARE_MIN`].
    Won,
    /// The whole noise interval lies within [`EVEN`].
    Even,
    /// The noise interval allows a relevant difference, but does not prove one. Or timed figures have a single round,
    /// so the noise is unknown.
    Undecided,
    /// Significantly worse, and by at least [`DIFFERENCE_SHARE_MIN`].
    Lost,
}

impl AgainstPeers {
    /// The standing in one to three words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::Even => "even",
            Self::Undecided => "undecided",
            Self::Lost => "lost",
        }
    }
}

/// The comparison with all peers at one setting. The hardest peer represents them: the one against which weir is worst.
#[derive(Debug)]
pub struct Judgement {
    /// The test.
    pub test: &'static Test,
    /// The subject.
    pub subject: Subject,
    /// The setting; 0 if the test has none.
    pub at: f64,
    /// Index of the hardest peer.
    pub peer: usize,
    /// Weir's median.
    pub weir: f64,
    /// The peer's median.
    pub best: f64,
    /// Weir divided by the peer, paired by round.
    pub ratio: Ratio,
    /// Won against all peers, lost against at least one, or neither.
    pub standing: AgainstPeers,
    /// Number of peers in the comparison.
    pub against: usize,
    /// The reason that decided a latency instead of the ratio.
    pub forfeit: Option<Forfeit>,
}

/// A latency decided without a ratio. A product that failed requests or fell behind the offered rate has no valid
/// latency at that setting, because missing and late responses are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forfeit {
    /// Only weir: weir lost.
    Weir,
    /// Only the peer: weir won.
    Peer,
    /// Both: undecided.
    Both,
}

impl Forfeit {
    fn of(weir: bool, peer: bool) -> Option<Self> {
        match (weir, peer) {
            (true, false) => Some(Self::Weir),
            (false, true) => Some(Self::Peer),
            (true, true) => Some(Self::Both),
            (false, false) => None,
        }
    }

    fn standing(self) -> AgainstPeers {
        match self {
            Self::Weir => AgainstPeers::Lost,
            Self::Peer => AgainstPeers::Won,
            Self::Both => AgainstPeers::Undecided,
        }
    }
}

impl Judgement {
    /// Weir's advantage: more than 1 if weir is better, also if lower is better.
    pub fn advantage(&self) -> f64 {
        self.subject.advantage(self.ratio.median)
    }

    /// Weir's median divided by the peer's, if it differs from the paired ratio by more than
    /// [`DISAGREEMENT_SHARE_MAX`]. A reader who divides the two medians needs an explanation.
    pub fn contradicting_medians(&self) -> Option<f64> {
        let quotient = self.weir / self.best;
        let apart = (quotient / self.ratio.median).ln().abs();
        (apart.is_finite() && apart > (1.0 + DISAGREEMENT_SHARE_MAX).ln()).then_some(quotient)
    }

    /// Whether weir's median ratio is worse than 1, significantly or not.
    pub fn is_behind(&self) -> bool {
        self.advantage() < 1.0
    }

    /// The difference in the figure, such as `12% more`.
    pub fn distance(&self) -> String {
        text::away_from_one(self.ratio.median)
    }

    /// The setting, such as `8 KB`; empty for a knee.
    pub fn setting(&self) -> String {
        match self.subject {
            Subject::Knee => String::new(),
            Subject::Figure(_) => text::setting(self.test.axis, self.at),
        }
    }

    /// Example: `P99 latency, 12,000 connections`.
    pub fn label(&self) -> String {
        match self.setting() {
            setting if setting.is_empty() => self.subject.title().to_owned(),
            setting => format!("{}, {setting}", self.subject.title()),
        }
    }
}

/// A result that weir lacks and a peer has.
#[derive(Debug)]
pub struct MissingResult {
    /// The test.
    pub test: &'static Test,
    /// The missing result, as text.
    pub what: String,
}

/// All judgements of a run.
#[derive(Debug)]
pub struct Verdicts {
    /// The judgements, in the order of the report.
    pub judgements: Vec<Judgement>,
    /// Missing results, which count as losses.
    pub missing: Vec<MissingResult>,
}

/// The judgements of one test and subject.
#[derive(Debug)]
pub struct Group<'a> {
    /// The test.
    pub test: &'static Test,
    /// The subject.
    pub subject: Subject,
    /// One judgement per setting; never empty.
    pub judgements: Vec<&'a Judgement>,
}

impl Verdicts {
    /// The verdicts of a report.
    pub fn new(report: &Report) -> Self {
        let mut verdicts = Self { judgements: Vec::new(), missing: Vec::new() };
        let Some(weir) = report.weir else { return verdicts };
        for test in &report.tests {
            verdicts.judge_knee(report, test, weir);
            for figure in test.figures.iter().filter(|figure| figure.is_judged) {
                verdicts.judge_figure(report, test, figure, weir);
            }
            verdicts.find_missing(report, test, weir);
        }
        verdicts
    }

    /// The judgements with this standing, weir's largest advantage first.
    pub fn with(&self, standing: AgainstPeers) -> Vec<&Judgement> {
        let mut found: Vec<_> =
            self.judgements.iter().filter(|judgement| judgement.standing == standing).collect();
        found.sort_by(|a, b| b.advantage().total_cmp(&a.advantage()));
        found
    }

    /// Judgements in which weir is behind the hardest peer: losses, then possible losses, the clearest first. Excludes
    /// even figures, and figures with a single round.
    pub fn behind(&self) -> Vec<&Judgement> {
        let is_behind = |found: &&Judgement| match found.standing {
            AgainstPeers::Lost => true,
            AgainstPeers::Undecided => found.is_behind() && found.ratio.interval.is_some(),
            AgainstPeers::Won | AgainstPeers::Even => false,
        };
        let mut found: Vec<_> = self.judgements.iter().filter(is_behind).collect();
        found.sort_by(|a, b| {
            let is_lost = |judgement: &Judgement| judgement.standing == AgainstPeers::Lost;
            is_lost(b).cmp(&is_lost(a)).then(a.advantage().total_cmp(&b.advantage()))
        });
        found
    }

    /// For every test and subject, the setting with weir's clearest win; the clearest first.
    pub fn clearest_wins(&self) -> Vec<&Judgement> {
        let mut wins: Vec<&Judgement> = Vec::new();
        for win in self.with(AgainstPeers::Won) {
            let is_same = |other: &&Judgement| {
                other.test.name == win.test.name && other.subject == win.subject
            };
            if !wins.iter().any(is_same) {
                wins.push(win);
            }
        }
        wins
    }

    /// The judgements grouped by test and subject, in the order of the report.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for judgement in &self.judgements {
            let (test, subject) = (judgement.test, judgement.subject);
            match groups.last_mut() {
                Some(last) if last.test.name == test.name && last.subject == subject => {
                    last.judgements.push(judgement);
                }
                _ => groups.push(Group { test, subject, judgements: vec![judgement] }),
            }
        }
        groups
    }

    fn judge_figure(
        &mut self,
        report: &Report,
        test: &TestReport,
        figure: &FigureReport,
        weir: usize,
    ) {
        if figure.figure.better() == BetterDirection::Neither {
            return;
        }
        for setting in 0..figure.cells.len() {
            let judge = |peer| judge_pair(report, test, (figure, setting), (weir, peer));
            let pairs = report.peers().filter_map(judge);
            self.judgements.extend(hardest(pairs));
        }
    }

    fn judge_knee(&mut self, report: &Report, test: &TestReport, weir: usize) {
        let Some(knees) = &test.knees else { return };
        let knee = |product: usize| knees.of[product].map(|knee| knee.at);
        let peers = || report.peers().filter_map(|peer| Some((peer, knee(peer)?)));
        let Some(own) = knee(weir) else {
            let best = peers().reduce(|best, next| if next.1 > best.1 { next } else { best });
            let Some((peer, best)) = best else { return };
            let name = report.label(peer);
            let what =
                format!("no rate of the ramp was kept; {name} kept {}/s", text::number(best));
            self.missing.push(MissingResult { test: test.test, what });
            return;
        };
        let pairs = peers().filter_map(|(peer, best)| {
            let ratio = knees.ratios[peer]?;
            Some(Judgement {
                test: test.test,
                subject: Subject::Knee,
                at: 0.0,
                peer,
                weir: own,
                best,
                ratio,
                standing: standing(Subject::Knee, &ratio),
                against: 1,
                forfeit: None,
            })
        });
        self.judgements.extend(hardest(pairs));
    }

    /// Finds settings at which a peer was measured and weir was not.
    fn find_missing(&mut self, report: &Report, test: &TestReport, weir: usize) {
        let Some(figure) = test.figures.iter().find(|figure| figure.is_judged) else { return };
        let has_nothing = |cell: &&Cell| cell.values[weir].is_none_or(|own| own.max <= 0.0);
        for cell in figure.cells.iter().filter(has_nothing) {
            let peers: Vec<String> = report
                .peers()
                .filter(|&peer| cell.values[peer].is_some())
                .map(|peer| report.label(peer).to_owned())
                .collect();
            if peers.is_empty() {
                continue;
            }
            let record = report.record(test);
            let has_answers = |point: &crate::record::Point| {
                let is_its = point.product == report.product(weir) && point.at == cell.at;
                is_its && point.load.requests > 0
            };
            // The difference of two measurements may be zero or negative.
            let unknown = if record.points.iter().any(has_answers) {
                "the value is too small to be measured"
            } else {
                "not one good transaction was recorded"
            };
            let reason = record
                .omissions
                .iter()
                .find(|omission| {
                    omission.product == report.product(weir) && omission.covers(cell.at)
                })
                .map_or(unknown, |omission| &omission.reason);
            let setting = match text::setting(test.test.axis, cell.at) {
                setting if setting.is_empty() => "not measured".to_owned(),
                setting => format!("not measured at {setting}"),
            };
            let what = format!("{setting} ({reason}); {} could", text::list(&peers));
            self.missing.push(MissingResult { test: test.test, what });
        }
    }
}

/// Compares weir with one peer; `None` if there is nothing to judge.
fn judge_pair(
    report: &Report,
    test: &TestReport,
    (figure, setting): (&FigureReport, usize),
    (weir, peer): (usize, usize),
) -> Option<Judgement> {
    let cell = &figure.cells[setting];
    // The product is not responsible for a rate that the load limited.
    let is_limited = |product| limits::is_load_the_limit(report, test, product, cell.at);
    let is_rate = matches!(figure.figure, Figure::Rate | Figure::Goodput);
    if is_rate && (is_limited(weir) || is_limited(peer)) {
        return None;
    }
    // Beyond a knee, latency depends on the length of the test and not on the product. There the knees decide.
    let is_served = |knees: &Knees| knees.holds(weir, cell.at) && knees.holds(peer, cell.at);
    if test.knees.as_ref().is_some_and(|knees| !is_served(knees)) {
        return None;
    }
    let subject = Subject::Figure(figure.figure);
    let ratio = cell.ratios[peer]?;
    let has_failed = |product| figure.figure.is_latency() && test.has_failed(setting, product);
    let forfeit = Forfeit::of(has_failed(weir), has_failed(peer));
    Some(Judgement {
        test: test.test,
        subject,
        at: cell.at,
        peer,
        weir: cell.values[weir]?.median,
        best: cell.values[peer]?.median,
        ratio,
        standing: forfeit.map_or_else(|| standing(subject, &ratio), Forfeit::standing),
        against: 1,
        forfeit,
    })
}

/// Of the comparisons with all peers, the one in which weir is worst represents all. So a win is a win against all
/// peers, and one loss is a loss.
fn hardest(pairs: impl Iterator<Item = Judgement>) -> Option<Judgement> {
    let pairs: Vec<Judgement> = pairs.collect();
    let against = pairs.len();
    let by_hardness = |a: &Judgement, b: &Judgement| {
        a.standing.cmp(&b.standing).then(b.advantage().total_cmp(&a.advantage()))
    };
    let hardest = pairs.into_iter().max_by(by_hardness)?;
    Some(Judgement { against, ..hardest })
}

fn standing(subject: Subject, ratio: &Ratio) -> AgainstPeers {
    let Some((low, high)) = ratio.interval else { return AgainstPeers::Undecided };
    let advantage = subject.advantage(ratio.median);
    let difference = 1.0 + DIFFERENCE_SHARE_MIN;
    match ratio.is_beyond_noise() {
        true if advantage >= difference => AgainstPeers::Won,
        true if advantage <= 1.0 / difference => AgainstPeers::Lost,
        _ if EVEN.contains(&low) && EVEN.contains(&high) => AgainstPeers::Even,
        _ => AgainstPeers::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Omission, Run};
    use crate::report::testing;

    fn verdicts_of(run: Run) -> (Report, Verdicts) {
        let report = Report::new(run);
        let verdicts = Verdicts::new(&report);
        (report, verdicts)
    }

    /// A run of `l7-requests` only, with these rates by product, one per round.
    fn with_rates(rates: &[(&str, &[f64])]) -> Run {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "l7-requests");
        for point in &mut run.tests[0].points {
            let of = rates.iter().find(|(name, _)| *name == point.product);
            point.load.requests_per_second =
                of.map_or(1.0, |(_, rates)| rates[point.round as usize]);
        }
        run
    }

    #[test]
    fn every_peer_is_judged_against_and_the_relay_never() {
        let check = |weir: &[f64], nginx: &[f64], expected: AgainstPeers| {
            let relay: &[f64] = &[900.0; 3];
            let haproxy: Vec<f64> = nginx.iter().map(|rate| rate / 2.0).collect();
            let rates = [("weir", weir), ("nginx", nginx), ("haproxy", &haproxy), ("relay", relay)];
            let (report, verdicts) = verdicts_of(with_rates(&rates));
            let found = &verdicts.judgements[0];
            assert_eq!(found.subject, Subject::Figure(Figure::Rate));
            assert_eq!(report.product(found.peer), "nginx");
            assert_eq!(found.standing, expected, "{weir:?} beside {nginx:?}");
            assert_eq!(found.is_behind(), found.ratio.median < 1.0);
        };
        check(&[120.0, 121.0, 119.0], &[100.0, 100.0, 100.0], AgainstPeers::Won);
        check(&[80.0, 81.0, 79.0], &[100.0, 100.0, 100.0], AgainstPeers::Lost);
        check(&[99.0, 101.0, 100.0], &[100.0, 100.0, 100.0], AgainstPeers::Even);
        // Significant, but less than 5%: neither a win nor a loss. If the noise also allows a relevant difference, it
        // is undecided.
        check(&[104.0, 104.1, 103.9], &[100.0, 100.0, 100.0], AgainstPeers::Even);
        check(&[96.0, 96.1, 95.9], &[100.0, 100.0, 100.0], AgainstPeers::Even);
        check(&[101.0, 104.0, 101.5], &[97.0, 100.0, 97.5], AgainstPeers::Even);
        check(&[105.1, 105.0, 105.2], &[100.0, 100.0, 100.0], AgainstPeers::Won);
        check(&[95.1, 95.2, 95.0], &[100.0, 100.0, 100.0], AgainstPeers::Lost);
        // With this scatter, three rounds allow 13% in either direction. A ratio of 4 with any scatter is not even.
        check(&[95.0, 105.0, 99.0], &[100.0, 100.0, 100.0], AgainstPeers::Undecided);
        check(&[400.0, 700.0, 120.0], &[100.0, 100.0, 100.0], AgainstPeers::Undecided);
        // In one round the machine was half as fast. Both products were affected, so the ratio is not.
        check(&[120.0, 60.0, 120.0], &[100.0, 50.0, 100.0], AgainstPeers::Won);
    }

    #[test]
    fn the_hardest_peer_stands_for_all() {
        let check = |nginx: &[f64], haproxy: &[f64], envoy: &[f64], peer: &str, expected| {
            let rates: [(&str, &[f64]); 4] =
                [("weir", &[100.0; 3]), ("nginx", nginx), ("haproxy", haproxy), ("envoy", envoy)];
            let (report, verdicts) = verdicts_of(with_rates(&rates));
            let found = &verdicts.judgements[0];
            assert_eq!((report.product(found.peer), found.standing), (peer, expected));
            assert_eq!(found.against, 3);
        };
        let scattered: &[f64] = &[40.0, 70.0, 120.0];
        check(&[80.0; 3], &[90.0; 3], &[10.0; 3], "haproxy", AgainstPeers::Won);
        // One undecided comparison makes the result undecided; one loss makes it a loss. The medians do not matter.
        check(scattered, &[90.0; 3], &[10.0; 3], "nginx", AgainstPeers::Undecided);
        check(&[150.0, 300.0, 60.0], &[110.0; 3], &[10.0; 3], "haproxy", AgainstPeers::Lost);
        check(&[100.0; 3], &[90.0; 3], &[10.0; 3], "nginx", AgainstPeers::Even);
    }

    #[test]
    fn who_fails_requests_or_falls_behind_loses_its_latency() {
        let check = |weir: &[&str], nginx: &[&str], expected: Option<Forfeit>, standing| {
            let mut run = testing::run();
            run.products.retain(|product| product.name == "weir" || product.name == "nginx");
            run.tests.retain(|test| test.name == "object-sizes");
            let record = &mut run.tests[0];
            record
                .points
                .retain(|p| p.at == 2048.0 && (p.product == "weir" || p.product == "nginx"));
            for point in &mut record.points {
                let faults = if point.product == "weir" { weir } else { nginx };
                let latency_us =
                    if point.product == "weir" { 100 } else { 100 + 10 * point.at as u64 };
                point.load.latency_us.p99 = latency_us;
                let is_behind = faults.contains(&"behind");
                testing::keep_share(point, if is_behind { 0.9 } else { 1.0 });
                point.load.errors = u64::from(faults.contains(&"errors") && point.round == 1);
            }
            let (_, verdicts) = verdicts_of(run);
            let of = |figure| {
                let subject = Subject::Figure(figure);
                verdicts.judgements.iter().find(|found| found.subject == subject).expect("one")
            };
            let found = of(Figure::LatencyP99);
            assert_eq!((found.forfeit, found.standing), (expected, standing), "{weir:?} {nginx:?}");
            assert_eq!(of(Figure::CpuPerRequest).forfeit, None);
            let is_behind = verdicts.behind().iter().any(|behind| behind.subject == found.subject);
            assert_eq!(is_behind, standing == AgainstPeers::Lost);
        };
        check(&[], &[], None, AgainstPeers::Won);
        check(&["errors"], &[], Some(Forfeit::Weir), AgainstPeers::Lost);
        check(&["behind"], &[], Some(Forfeit::Weir), AgainstPeers::Lost);
        check(&[], &["errors"], Some(Forfeit::Peer), AgainstPeers::Won);
        check(&["behind"], &["errors", "behind"], Some(Forfeit::Both), AgainstPeers::Undecided);
    }

    #[test]
    fn one_round_is_not_judged() {
        let mut run = testing::run();
        run.tests.iter_mut().for_each(|test| test.points.retain(|point| point.round == 0));
        let (_, verdicts) = verdicts_of(run);
        assert!(!verdicts.judgements.is_empty());
        let is_counted = |found: &&Judgement| match found.subject {
            Subject::Figure(figure) => figure.is_repeatable(found.test.axis, found.at),
            Subject::Knee => false,
        };
        let (counted, timed): (Vec<_>, Vec<_>) =
            verdicts.judgements.iter().partition(|found| is_counted(found));
        assert!(timed.iter().all(|found| found.standing == AgainstPeers::Undecided));
        assert!(!counted.is_empty());
        assert!(counted.iter().all(|found| found.standing != AgainstPeers::Undecided));
        assert!(
            verdicts.behind().iter().all(is_counted),
            "one round cannot show which product is behind"
        );
    }

    #[test]
    fn what_weir_could_not_do_is_a_loss() {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "l7-requests");
        let record = &mut run.tests[0];
        record.points.retain(|point| point.product != WEIR_NAME);
        let reason = "it did not start".to_owned();
        record.omissions.push(Omission { product: WEIR_NAME.to_owned(), at: Some(0.0), reason });
        let (_, verdicts) = verdicts_of(run);
        assert!(verdicts.judgements.is_empty());
        let said: Vec<_> = verdicts.missing.iter().map(|missing| missing.what.as_str()).collect();
        assert_eq!(said, ["not measured (it did not start); nginx, HAProxy and Envoy could"]);
    }

    const WEIR_NAME: &str = crate::report::model::WEIR;

    #[test]
    fn losses_come_before_what_is_undecided() {
        let (_, verdicts) = verdicts_of(testing::run_undecided());
        let behind = verdicts.behind();
        assert!(behind.iter().any(|found| found.standing == AgainstPeers::Lost));
        assert!(behind.iter().any(|found| found.standing == AgainstPeers::Undecided));
        assert!(behind.iter().all(|found| found.standing != AgainstPeers::Even));
        assert!(behind.is_sorted_by_key(|found| found.standing != AgainstPeers::Lost));
        assert!(verdicts.clearest_wins().len() < verdicts.with(AgainstPeers::Won).len());
        let grouped: usize = verdicts.groups().iter().map(|group| group.judgements.len()).sum();
        assert_eq!(grouped, verdicts.judgements.len());
    }

    #[test]
    fn latency_past_a_knee_is_not_judged() {
        let (report, verdicts) = verdicts_of(testing::run());
        let ramp = report.tests.iter().find(|test| test.knees.is_some()).expect("the ramp");
        let knees = ramp.knees.as_ref().expect("knees");
        let of_ramp = || verdicts.judgements.iter().filter(|found| found.test.name == "ramp");
        assert!(of_ramp().any(|found| found.subject == Subject::Knee));
        let weir = report.weir.expect("weir");
        for found in of_ramp().filter(|found| found.subject != Subject::Knee) {
            assert!(knees.holds(weir, found.at) && knees.holds(found.peer, found.at));
        }
    }
}
