//! Comparison of two runs: ratios that changed significantly.
//!
//! Absolute figures of two runs are not comparable, because the machine's state differs. The ratios weir/peer are,
//! because each is formed within the rounds of one run.

mod failures;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::catalogue::{Axis, BetterDirection, maker};
use crate::record::{Product, Run};
use crate::report::ReadError;
use crate::report::model::{FigureReport, Report, TestReport, WEIR, is_peer};
use crate::report::stats::{Ratio, Spread};
use crate::report::text;

pub use failures::{ERROR_SHARE_CHANGE_MIN, Failure};

/// Smaller changes are ignored, even if the rounds scatter less: a restarted program has another memory layout, which
/// can change figures as much.
pub const CHANGE_MIN: f64 = 0.01;

/// Rates offered by two runs that differ by more than this share cause a note.
pub const OFFERED_CHANGE_MAX: f64 = 0.05;

/// Rates within one run that differ by less than this share are equal.
const OFFERED_NOISE_SHARE: f64 = 1e-6;

/// Maximum number of insignificant changes that the text names.
const WITHIN_NAMED_MAX: usize = 5;

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The earlier run.
    pub a: RunName,
    /// The later run.
    pub b: RunName,
    /// Differences that the reader should know: machine, kernel, versions, tests.
    pub notes: Vec<String>,
    /// Warnings if most of a run has no counterpart in the other.
    pub warnings: Vec<String>,
    /// All ratios that both runs have, the most significant change first.
    pub changes: Vec<Change>,
    /// Results of weir in the first run that are missing in the second.
    pub failures: Vec<Failure>,
    /// Whether weir became worse; see [`Comparison::worsened`].
    pub worsened: bool,
}

/// The identity of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunName {
    /// The folder.
    pub folder: String,
    /// Start of the run.
    pub started: String,
    /// Host name.
    pub host: String,
    /// Weir's version text.
    pub weir: String,
}

/// One ratio in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The test.
    pub test: String,
    /// The figure.
    pub figure: String,
    /// The setting in words; empty if the test varies nothing.
    pub setting: String,
    /// The product that weir is compared with.
    pub peer: String,
    /// Whether the report judges by this figure and this peer.
    pub is_judged: bool,
    /// Weir/peer in the earlier run.
    pub a: Ratio,
    /// Weir/peer in the later run.
    pub b: Ratio,
    /// The later ratio divided by the earlier one.
    pub change: f64,
    /// The noise of both runs, as a factor: a change between 1/noise and noise is insignificant. `None` if a run has a
    /// single round. Infinite (`null` in JSON) for a knee beyond the ramp.
    pub noise: Option<f64>,
    /// The assessment of the change.
    pub moved: RatioChange,
}

/// The assessment of a changed ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioChange {
    /// A significant change in weir's favour.
    Better,
    /// A significant change against weir.
    Worse,
    /// A significant change of a figure that has no better direction.
    Otherwise,
    /// No significant change.
    Not,
    /// A run has a single round, so the noise is unknown.
    Untold,
}

impl RatioChange {
    fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Otherwise => "changed",
            Self::Not => "within noise",
            Self::Untold => "one round, noise not known",
        }
    }
}

/// The reason why two runs cannot be compared.
#[derive(Debug)]
pub enum CompareError {
    /// A run cannot be read.
    Read(ReadError),
    /// The runs share no test, setting and peer.
    NothingInCommon(PathBuf, PathBuf),
    /// All shared ratios have a single round, so their noise is unknown.
    NothingTold(PathBuf, PathBuf),
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::NothingInCommon(a, b) => write!(
                f,
                "{} and {} have no test, setting and peer in common, so nothing can be compared; run the \
                 same tests with the same peers",
                a.display(),
                b.display()
            ),
            Self::NothingTold(a, b) => write!(
                f,
                "{} and {} have only single rounds in common, so nothing can be told from noise; run \
                 more rounds",
                a.display(),
                b.display()
            ),
        }
    }
}

impl std::error::Error for CompareError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::NothingInCommon(..) | Self::NothingTold(..) => None,
        }
    }
}

/// Reads two runs and compares them: `a` is the earlier run. Fails if nothing is comparable, because a check without
/// data must not pass.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison, CompareError> {
    let read =
        |folder: &Path| crate::report::read(folder).map(Report::new).map_err(CompareError::Read);
    Comparison::new((a, &read(a)?), (b, &read(b)?)).told(a, b)
}

impl Comparison {
    fn new((folder_a, a): (&Path, &Report), (folder_b, b): (&Path, &Report)) -> Self {
        let mut notes = notes(&a.run, &b.run);
        let (mut changes, mut failures) = (Vec::new(), Vec::new());
        for test in &a.tests {
            match b.tests.iter().find(|other| other.test.name == test.test.name) {
                Some(other) => {
                    compare_test((a, test), (b, other), &mut changes, &mut notes);
                    failures.extend(failures::failures((a, test), (b, other)));
                }
                None => notes.push(format!("test {} is in A only", test.test.name)),
            }
        }
        for test in &b.tests {
            if !a.tests.iter().any(|other| other.test.name == test.test.name) {
                notes.push(format!("test {} is in B only", test.test.name));
            }
        }
        changes.sort_by(|a, b| b.significance().total_cmp(&a.significance()));
        let little = [("A", a), ("B", b)]
            .into_iter()
            .filter_map(|(letter, run)| warning(letter, ratio_count(run), changes.len()));
        let warnings = little.chain(one_peer_only(&changes)).collect();
        let worsened = worsened(&changes) || !failures.is_empty();
        let (a, b) = (run_name(folder_a, &a.run), run_name(folder_b, &b.run));
        Self { a, b, notes, warnings, changes, failures, worsened }
    }

    /// Returns the comparison, or an error if nothing in it is comparable.
    fn told(self, a: &Path, b: &Path) -> Result<Self, CompareError> {
        let (a, b) = (a.to_owned(), b.to_owned());
        if !self.failures.is_empty() {
            return Ok(self);
        }
        if self.changes.is_empty() {
            return Err(CompareError::NothingInCommon(a, b));
        }
        if self.changes.iter().all(|change| change.moved == RatioChange::Untold) {
            return Err(CompareError::NothingTold(a, b));
        }
        Ok(self)
    }

    /// Whether weir became worse: it has a new failure, or a judged figure changed significantly against weir, at one
    /// setting and against every peer that both runs have there.
    ///
    /// A real loss of weir shows against all peers. A ratio that changed against only one peer is due to a bad or good
    /// round of that peer. Requiring all peers avoids false alarms among the hundreds of ratios: with three rounds and
    /// three peers without a change, 2 of 79 synthetic comparisons raised an alarm; with one significant peer and only
    /// the same direction for the others, 27 did. In return, a small loss needs more than three rounds to show. The
    /// relay is not a peer.
    pub fn worsened(&self) -> bool {
        self.worsened
    }

    /// Significant changes, the most significant first.
    pub fn moved(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| {
            matches!(
                change.moved,
                RatioChange::Better | RatioChange::Worse | RatioChange::Otherwise
            )
        })
    }
}

/// A warning if less than half of a run's ratios are compared.
fn warning(letter: &str, all: usize, compared: usize) -> Option<String> {
    (compared * 2 < all).then(|| {
        format!(
            "only {} of the {} ratios in {letter} are in the other run too: this says little",
            text::count(compared as u64),
            text::count(all as u64)
        )
    })
}

/// A caveat if a change is against a single peer, whose bad round may look like a good round of weir.
fn one_peer_only(changes: &[Change]) -> Option<String> {
    let told = changes.iter().filter(|change| change.is_judged && change.noise.is_some());
    let alone = told.filter(|change| at_one_place(changes, change).count() == 1).count();
    (alone > 0).then(|| {
        format!(
            "{} of the judged ratios have one peer alone; of such about one in twenty moves by chance, so \
             measure again what moved there, or add a peer",
            text::count(alone as u64)
        )
    })
}

/// The judged changes of one figure at one setting, against each peer.
fn at_one_place<'a>(changes: &'a [Change], change: &'a Change) -> impl Iterator<Item = &'a Change> {
    changes.iter().filter(move |other| {
        other.is_judged
            && (&other.test, &other.figure, &other.setting)
                == (&change.test, &change.figure, &change.setting)
    })
}

fn worsened(changes: &[Change]) -> bool {
    let is_worse = |change: &Change| {
        change.is_judged
            && at_one_place(changes, change).all(|other| other.moved == RatioChange::Worse)
    };
    changes.iter().any(is_worse)
}

fn run_name(folder: &Path, run: &Run) -> RunName {
    let weir = run.products.iter().find(|product| product.name == WEIR);
    RunName {
        folder: folder.display().to_string(),
        started: run.started.clone(),
        host: run.machine.host.clone(),
        weir: weir.map_or_else(|| "without weir".to_owned(), version_and_commit),
    }
}

/// Example: `0.1.0 at commit 0123abc`.
fn version_and_commit(weir: &Product) -> String {
    let commit = weir.commit.as_ref().map(|commit| format!(" at commit {commit}"));
    weir.version.clone() + &commit.unwrap_or_default()
}

fn compare_test(
    (a, test_a): (&Report, &TestReport),
    (b, test_b): (&Report, &TestReport),
    changes: &mut Vec<Change>,
    notes: &mut Vec<String>,
) {
    let (name, axis) = (test_a.test.name, test_a.test.axis);
    let lacks = |of: &TestReport, other: &TestReport| -> Vec<String> {
        let settings = of.settings.iter().filter(|at| !other.settings.contains(at));
        settings.map(|&at| text::setting_short(axis, at)).collect()
    };
    for (run, missing) in [("A", lacks(test_a, test_b)), ("B", lacks(test_b, test_a))] {
        if !missing.is_empty() && axis != Axis::OfferedRate {
            notes.push(format!("{name}: settings in {run} only: {}", missing.join("; ")));
        }
    }
    if axis != Axis::OfferedRate {
        notes.extend(rates_apart((a, test_a), (b, test_b)));
    } else {
        notes.push(format!(
            "{name}: its steps follow the capacity that each run found, so only the knees are compared"
        ));
    }
    for peer_a in 0..a.run.products.len() {
        let peer = a.product(peer_a);
        let Some(peer_b) = b.run.products.iter().position(|product| product.name == peer) else {
            continue;
        };
        for figure_a in comparable_figures(test_a) {
            let figure_b = test_b.figures.iter().find(|other| other.figure == figure_a.figure);
            let Some(figure_b) = figure_b else { continue };
            let pairs = pairs((figure_a, peer_a), (figure_b, peer_b));
            changes.extend(pairs.into_iter().map(|(at, ratio_a, ratio_b)| {
                let figure = figure_a.figure;
                let is_judged = figure_a.is_judged && is_peer(peer);
                let setting = text::setting(axis, at);
                let place = [name, figure.title(), &setting, peer].map(str::to_owned);
                Change::new(place, is_judged, figure.better(), ratio_a, ratio_b)
            }));
        }
        let knee =
            |test: &TestReport, peer: usize| test.knees.as_ref().and_then(|k| k.ratios[peer]);
        if let (Some(ratio_a), Some(ratio_b)) = (knee(test_a, peer_a), knee(test_b, peer_b)) {
            let place = [name, "knee", "", peer].map(str::to_owned);
            changes.push(Change::new(
                place,
                is_peer(peer),
                BetterDirection::Higher,
                ratio_a,
                ratio_b,
            ));
        }
    }
}

/// Settings at which the offered rates of both runs differ too much: their ratios belong to different tests.
fn rates_apart(
    (a, test_a): (&Report, &TestReport),
    (b, test_b): (&Report, &TestReport),
) -> Option<String> {
    // If a test offers each product its own rate, the rate is a result.
    let offered = |report: &Report, test: &TestReport, at: f64| {
        let points = report.record(test).points.iter().filter(|point| point.at == at);
        let rates = Spread::of(points.filter_map(|point| point.load.offered_per_second))?;
        (rates.max - rates.min <= rates.max * OFFERED_NOISE_SHARE).then_some(rates.median)
    };
    let apart = |&at: &f64| {
        let (rate_a, rate_b) = (offered(a, test_a, at)?, offered(b, test_b, at)?);
        let is_apart = rate_a.max(rate_b) > rate_a.min(rate_b) * (1.0 + OFFERED_CHANGE_MAX);
        let setting = text::setting(test_a.test.axis, at);
        let [rate_a, rate_b] = [rate_a, rate_b].map(text::number);
        is_apart.then(|| (format!("{rate_a}/s in A and {rate_b}/s in B"), setting))
    };
    let apart: Vec<(String, String)> = test_a.settings.iter().filter_map(apart).collect();
    let (first, _) = apart.first()?;
    let told = if apart.iter().all(|(rates, _)| rates == first) {
        first.clone()
    } else {
        let each = apart.iter().map(|(rates, setting)| format!("{rates} at {setting}"));
        each.collect::<Vec<_>>().join("; ")
    };
    let name = test_a.test.name;
    Some(format!("{name}: other rates were offered, so this is not the same test: {told}"))
}

/// The figures of a test that another run may have at the same settings. A ramp has none: its rates depend on the
/// machine's speed in that run.
fn comparable_figures(test: &TestReport) -> &[FigureReport] {
    if test.test.axis == Axis::OfferedRate { &[] } else { &test.figures }
}

/// Number of ratios of a run that could be compared.
fn ratio_count(report: &Report) -> usize {
    let of_test = |test: &TestReport| {
        let cells = comparable_figures(test).iter().flat_map(|figure| &figure.cells);
        let knees = test.knees.iter().flat_map(|knees| &knees.ratios).flatten().count();
        knees + cells.flat_map(|cell| &cell.ratios).flatten().count()
    };
    report.tests.iter().map(of_test).sum()
}

/// Ratios of one figure and peer at the settings that both runs have.
fn pairs(
    (a, peer_a): (&FigureReport, usize),
    (b, peer_b): (&FigureReport, usize),
) -> Vec<(f64, Ratio, Ratio)> {
    a.cells
        .iter()
        .filter_map(|cell| {
            let other = b.cells.iter().find(|other| other.at == cell.at)?;
            Some((cell.at, cell.ratios[peer_a]?, other.ratios[peer_b]?))
        })
        .collect()
}

impl Change {
    fn new(
        [test, figure, setting, peer]: [String; 4],
        is_judged: bool,
        better: BetterDirection,
        a: Ratio,
        b: Ratio,
    ) -> Self {
        let change = b.median / a.median;
        // The runs are independent, so their noise adds as the root of the sum of squares. With few rounds the noise is
        // rather too large, so fewer than 1 of 20 unchanged ratios counts as changed.
        let noise_ln = a.noise_ln().zip(b.noise_ln()).map(|(a, b)| a.hypot(b));
        let size = change.ln().abs();
        let moved = match (noise_ln, better) {
            (None, _) => RatioChange::Untold,
            (Some(noise), _) if size <= noise || size < CHANGE_MIN => RatioChange::Not,
            (_, BetterDirection::Neither) => RatioChange::Otherwise,
            (_, BetterDirection::Higher) if change > 1.0 => RatioChange::Better,
            (_, BetterDirection::Lower) if change < 1.0 => RatioChange::Better,
            _ => RatioChange::Worse,
        };
        let noise = noise_ln.map(f64::exp);
        Self { test, figure, setting, peer, is_judged, a, b, change, noise, moved }
    }

    /// The change in multiples of its noise. Insignificant changes are sorted last.
    fn significance(&self) -> f64 {
        /// Avoids an infinite significance if the rounds do not scatter.
        const NOISE_LN_MIN: f64 = 1e-3;
        let size = self.change.ln().abs();
        let times = self.noise.map_or(0.0, |noise| size / noise.ln().max(NOISE_LN_MIN));
        match self.moved {
            RatioChange::Not => times.min(1.0),
            RatioChange::Untold => -1.0,
            RatioChange::Better | RatioChange::Worse | RatioChange::Otherwise => times.max(1.0),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.test, self.figure)?;
        if !self.setting.is_empty() {
            write!(f, ", {}", self.setting)?;
        }
        let percent = (self.change - 1.0) * 100.0;
        write!(
            f,
            " vs {}{}: {} → {} ({percent:+.1}%",
            text::maker(&self.peer),
            if maker(&self.peer) == self.peer { "" } else { " (second)" },
            text::ratio(self.a.median),
            text::ratio(self.b.median),
        )?;
        if let Some(noise) = self.noise.filter(|noise| noise.is_finite()) {
            write!(f, ", noise ±{:.1}%", (noise - 1.0) * 100.0)?;
        }
        write!(f, "): {}", self.moved.word())
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (letter, run) in [("A", &self.a), ("B", &self.b)] {
            writeln!(f, "{letter}: {} ({}, {}, {})", run.folder, run.weir, run.host, run.started)?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        writeln!(f)?;
        for failure in &self.failures {
            let setting = &failure.setting;
            let separator = if setting.is_empty() { "" } else { ", " };
            writeln!(f, "weir failed: {}{separator}{setting}: {}", failure.test, failure.what)?;
        }
        let moved = self.moved().count();
        let all = text::count(self.changes.len() as u64);
        if self.changes.is_empty() {
            writeln!(f, "No ratio weir/peer is in both runs.")?;
        } else if moved == 0 {
            writeln!(f, "Nothing moved: all {all} ratios weir/peer are within their noise.")?;
        } else {
            writeln!(
                f,
                "{} of {all} ratios weir/peer moved beyond their noise (by chance, up to one in twenty does):",
                text::count(moved as u64),
            )?;
        }
        let is_judgement = |change: &&Change| change.moved != RatioChange::Otherwise;
        let (first, then): (Vec<_>, Vec<_>) = self.moved().partition(is_judgement);
        for change in first.into_iter().chain(then) {
            writeln!(f, "  {change}")?;
        }
        let within = self.changes.iter().filter(|change| change.moved == RatioChange::Not);
        let named: Vec<_> = within.take(WITHIN_NAMED_MAX).collect();
        if !named.is_empty() {
            writeln!(f, "\nWithin noise, the closest to moving:")?;
        }
        for change in named {
            writeln!(f, "  {change}")?;
        }
        let untold =
            self.changes.iter().filter(|change| change.moved == RatioChange::Untold).count();
        if untold > 0 {
            let untold = text::counted(untold, "ratio");
            writeln!(f, "\n{untold} cannot be told: a run has one round of them.")?;
        }
        for warning in &self.warnings {
            writeln!(f, "\nWARNING: {warning}.")?;
        }
        let verdict = if self.worsened { "weir became worse" } else { "weir did not become worse" };
        writeln!(
            f,
            "\n{verdict} (a judged figure, beyond noise, against every peer in common; or a failure that A did not have)."
        )
    }
}

/// Differences between the runs other than weir.
fn notes(a: &Run, b: &Run) -> Vec<String> {
    let mut notes = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            notes.push(format!("different {what}: {a} in A, {b} in B"));
        }
    };
    let (machine_a, machine_b) = (&a.machine, &b.machine);
    differ("machine", machine_a.host.clone(), machine_b.host.clone());
    differ("processor", machine_a.cpu.clone(), machine_b.cpu.clone());
    differ("number of cores", machine_a.cores.to_string(), machine_b.cores.to_string());
    differ("kernel", machine_a.kernel.clone(), machine_b.kernel.clone());
    differ("system", machine_a.system.clone(), machine_b.system.clone());
    differ("test bed", a.bed.kind.clone(), b.bed.kind.clone());
    let cores = |run: &Run| format!("{:?} and {:?}", run.bed.product_cores, run.bed.load_cores);
    differ("placement (cores of product, of load)", cores(a), cores(b));
    differ("idle cores", a.bed.idle.clone(), b.bed.idle.clone());
    differ("extent", a.extent.clone(), b.extent.clone());
    for product in a.products.iter().filter(|product| product.name != WEIR) {
        if let Some(other) = b.products.iter().find(|other| other.name == product.name) {
            let what = format!("version of {}", product.name);
            differ(&what, product.version.clone(), other.version.clone());
            // Records of earlier versions have no TLS library.
            if let (Some(tls), Some(of_other)) = (&product.tls, &other.tls) {
                let what = format!("TLS library of {}", product.name);
                differ(&what, tls.clone(), of_other.clone());
            }
        }
    }
    for (letter, run, other) in [("A", a, b), ("B", b, a)] {
        for product in &run.products {
            if !other.products.iter().any(|found| found.name == product.name) {
                notes.push(format!("{} is in {letter} only", product.name));
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests;
