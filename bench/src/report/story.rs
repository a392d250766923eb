//! The summary as sentences and rows. The page and the Markdown share it.

use std::collections::BTreeMap;

use crate::catalogue::{self, Axis, Figure, PLAIN_WEIR, RELAY, SIGNATURES};
use crate::load::ErrorKind;
use crate::record::{Omission, Point, Product, TestRecord};

use super::discards;
use super::knee::P99_MAX_MS;
use super::model::{Report, TestReport, WEIR};
use super::percentiles::SLOWER_COUNT_MIN;
use super::points::is_judgeable;
use super::stats::{Ratio, Spread};
use super::text;
use super::verdict::{AgainstPeers, Forfeit, Group, Judgement, Subject, Verdicts, difference_told};

/// The summary as sentences.
pub fn sentences(report: &Report, verdicts: &Verdicts) -> Vec<String> {
    let mut said: Vec<String> = too_noisy(verdicts).into_iter().collect();
    said.push(who(report));
    if report.weir.is_none() {
        said.push("weir took no part in this run, so nothing is won or lost.".to_owned());
    }
    said.extend(tally(report, verdicts));
    said.extend(thrown_away_told(report));
    said.extend(over_settings(verdicts, Figure::CpuPerRequest, "CPU per request"));
    said.extend(over_settings(verdicts, Figure::LatencyP99, "P99 latency"));
    said.extend(knees(report));
    said.extend(errors(report));
    said.extend(discards::errors(report));
    said
}

fn who(report: &Report) -> String {
    let run = &report.run;
    let peers: Vec<String> = report.peers().map(|peer| report.label(peer).to_owned()).collect();
    let against = if peers.is_empty() { "no other product".to_owned() } else { text::list(&peers) };
    let made = Spread::of(report.tests.iter().flat_map(|test| rounds_made(report, test)));
    let rounds = match made {
        None => "no round".to_owned(),
        Some(made) if made.min == made.max => text::counted(made.min as usize, "round"),
        Some(made) => format!("{} to {} rounds", made.min, made.max),
    };
    format!(
        "weir against {against} on one machine ({}, {}), in {} of {rounds} at each setting, one product after \
         the other in every round.",
        run.machine.cpu.trim(),
        text::counted(run.machine.cores, "core"),
        text::counted(report.tests.len(), "test"),
    )
}

/// Number of measured rounds at each setting of a test, of the product with the most rounds.
fn rounds_made(report: &Report, test: &TestReport) -> impl Iterator<Item = f64> {
    let points = &report.record(test).points;
    let made = |at: f64, product: &str| {
        points.iter().filter(|point| point.at == at && point.product == product).count()
    };
    let products = &report.run.products;
    let most = move |&at: &f64| products.iter().map(|product| made(at, &product.name)).max();
    test.settings.iter().filter_map(most).filter(|rounds| *rounds > 0).map(|rounds| rounds as f64)
}

/// Number of settings at which no product was measured (one for a test without settings), and their tests.
fn measured_for_nobody(report: &Report) -> (usize, Vec<&'static str>) {
    let mut tests = Vec::new();
    let mut settings = 0;
    for test in &report.tests {
        let points = &report.record(test).points;
        let is_empty = |at: &&f64| !points.iter().any(|point| point.at == **at);
        let empty = test.settings.iter().filter(is_empty).count();
        let empty = if test.settings.is_empty() { 1 } else { empty };
        if empty > 0 {
            settings += empty;
            tests.push(test.test.name);
        }
    }
    (settings, tests)
}

/// Numbers of discarded measurements and of all measurements.
fn thrown_away(report: &Report) -> (usize, usize) {
    let count = |of: fn(&TestRecord) -> usize| report.run.tests.iter().map(of).sum::<usize>();
    let discarded = count(|test| test.discarded.len());
    (discarded, discarded + count(|test| test.points.len()))
}

/// The counts of a run: wins, losses, undecided and missing results, as sentences.
pub fn tally(report: &Report, verdicts: &Verdicts) -> Vec<String> {
    let mut said = Vec::new();
    let all = verdicts.judgements.len();
    if all > 0 {
        said.push(format!(
            "Of {} with the peers: won against all of them {}, lost against one {} (either by at least {} and beyond the \
             noise), even (within about 10% either way) {}, undecided {}.",
            text::counted(all, "comparison"),
            verdicts.with(AgainstPeers::Won).len(),
            verdicts.with(AgainstPeers::Lost).len(),
            difference_told(),
            verdicts.with(AgainstPeers::Even).len(),
            undecided_told(verdicts),
        ));
    }
    let alone = verdicts.judgements.iter().filter(|found| is_one_of_many(report, found)).count();
    if alone > 0 {
        let alone = text::counted(alone, "comparison");
        said.push(format!("{alone} had only one peer that could be measured and judged."));
    }
    if !verdicts.missing.is_empty() {
        let missing = text::counted(verdicts.missing.len(), "setting");
        said.push(format!("In {missing} weir could not be measured where a peer could."));
    }
    let (settings, tests) = measured_for_nobody(report);
    if settings > 0 {
        let tests: Vec<String> = tests.into_iter().map(str::to_owned).collect();
        let settings = text::counted(settings, "setting");
        said.push(format!("Not measured for any product: {settings} (of {}).", text::list(&tests)));
    }
    said
}

/// Number of discarded measurements, as a sentence.
fn thrown_away_told(report: &Report) -> Option<String> {
    let (discarded, made) = thrown_away(report);
    let [count, of] = [discarded, made].map(|number| text::count(number as u64));
    (discarded > 0)
        .then(|| format!("Thrown away: {count} of {of} measurements, by product and reason below."))
}

/// Whether a judgement has only one peer, although the run has several.
fn is_one_of_many(report: &Report, judgement: &Judgement) -> bool {
    judgement.against == 1 && report.peers().nth(1).is_some()
}

/// The settings at which weir was judged against only one peer although the run has several, as a sentence.
pub fn one_peer(report: &Report, verdicts: &Verdicts, test: &TestReport) -> Option<String> {
    let places: Vec<String> = verdicts
        .judgements
        .iter()
        .filter(|found| found.test.name == test.test.name && is_one_of_many(report, found))
        .map(|found| format!("{} ({})", found.label(), report.label(found.peer)))
        .collect();
    (!places.is_empty()).then(|| {
        format!(
            "Judged against a single peer, because no other could be measured or judged: {}.",
            places.join("; ")
        )
    })
}

/// Example: `39 (weir's median is behind in 10, 12 rest on a single round)`.
fn undecided_told(verdicts: &Verdicts) -> String {
    let undecided = verdicts.with(AgainstPeers::Undecided);
    let is_single = |found: &&&Judgement| found.ratio.interval.is_none();
    let single = undecided.iter().filter(is_single).count();
    let behind = undecided.iter().filter(|found| found.is_behind()).count();
    let mut parts = Vec::new();
    if behind > 0 {
        parts.push(format!("weir's median is behind in {behind}"));
    }
    if single > 0 {
        parts.push(format!("{single} rest on a single round"));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("{}{parts}", undecided.len())
}

/// From this share of undecided comparisons on, the summary begins with a warning.
const UNDECIDED_SHARE_MAX: f64 = 0.5;

/// The warning about a run with mostly undecided comparisons.
pub fn too_noisy(verdicts: &Verdicts) -> Option<String> {
    let (undecided, all) =
        (verdicts.with(AgainstPeers::Undecided).len(), verdicts.judgements.len());
    (undecided > 0 && undecided as f64 >= all as f64 * UNDECIDED_SHARE_MAX).then(|| {
        format!(
            "This run could not decide {undecided} of its {}: the machine was too noisy, or the rounds were \
             too few.",
            text::counted(all, "comparison")
        )
    })
}

/// The text for a run without losses. It adds that this is no proof that weir has none.
pub fn nothing_lost(report: &Report, verdicts: &Verdicts) -> String {
    let mut said = format!("Lost: 0. Undecided: {}.", undecided_told(verdicts));
    let (settings, _) = measured_for_nobody(report);
    if settings > 0 {
        said +=
            &format!(" No product could be measured in {}.", text::counted(settings, "setting"));
    }
    said
}

/// A judged figure over all its settings, as a sentence.
fn over_settings(verdicts: &Verdicts, figure: Figure, name: &str) -> Option<String> {
    let mut ratios: Vec<&Judgement> = verdicts
        .judgements
        .iter()
        .filter(|judgement| judgement.subject == Subject::Figure(figure))
        .collect();
    ratios.sort_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median));
    let (first, last) = (ratios.first()?, ratios.last()?);
    let middle = Spread::of(ratios.iter().map(|found| found.ratio.median))?.median;
    let is_undecided = |found: &&&Judgement| found.standing == AgainstPeers::Undecided;
    let undecided = ratios.iter().filter(is_undecided).count();
    let mut said = if ratios.len() == 1 {
        format!("{name}: {} than the hardest peer", first.distance())
    } else {
        format!(
            "{name}: from {} ({}) to {} ({}) of the hardest peer's, in the middle of {} settings {}",
            text::ratio(first.ratio.median),
            place(first),
            text::ratio(last.ratio.median),
            place(last),
            ratios.len(),
            text::ratio(middle),
        )
    };
    if undecided > 0 {
        let of = if ratios.len() == 1 { String::new() } else { format!(" in {undecided} of them") };
        said += &format!("; undecided{of}");
    }
    Some(said + ".")
}

fn place(judgement: &Judgement) -> String {
    match judgement.setting() {
        setting if setting.is_empty() => judgement.test.name.to_owned(),
        setting => format!("{}, {setting}", judgement.test.name),
    }
}

fn knees(report: &Report) -> Option<String> {
    let knees = report.tests.iter().find_map(|test| test.knees.as_ref())?;
    let mut said = Vec::new();
    for index in report.weir.into_iter().chain(report.peers()) {
        let name = report.label(index);
        let knee = knees.told(index).unwrap_or_else(|| "no step of the ramp".to_owned());
        said.push(format!("{name} {knee}"));
    }
    Some(format!("Highest rate kept with a P99 below {P99_MAX_MS} ms: {}.", said.join("; ")))
}

/// Failed requests of the kept measurements, and unsent requests of open loops, as sentences.
fn errors(report: &Report) -> Vec<String> {
    let of = |count: fn(&Point) -> u64, is_meant: fn(&TestRecord) -> bool| -> Vec<u64> {
        let tests = || report.run.tests.iter().filter(|record| is_meant(record));
        let points = || tests().flat_map(|test| &test.points);
        let sum = |product: &Product| {
            let own = points().filter(|point| point.product == product.name);
            own.map(count).fold(0, u64::saturating_add)
        };
        report.run.products.iter().map(sum).collect()
    };
    let by_product = |counts: &[u64]| {
        let named = counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(index, n)| format!("{} {}", report.label(index), text::count(*n)));
        text::list(&named.collect::<Vec<_>>())
    };
    let sum = |counts: &[u64]| counts.iter().copied().fold(0, u64::saturating_add);
    let failed = of(|point| point.load.errors, |_| true);
    let sent = of(|point| point.load.requests.saturating_add(point.load.errors), |_| true);
    let sent = text::count(sum(&sent));
    let mut said = vec![if sum(&failed) == 0 {
        format!("None of {sent} requests in the kept measurements failed.")
    } else {
        format!(
            "{} of {sent} requests in the kept measurements failed; no figure counts them as done: {} (by test \
             below).",
            text::count(sum(&failed)),
            by_product(&failed)
        )
    }];
    let is_ramp: fn(&TestRecord) -> bool =
        |record| catalogue::test(&record.name).is_some_and(|test| test.axis == Axis::OfferedRate);
    let is_other: fn(&TestRecord) -> bool =
        |record| catalogue::test(&record.name).is_none_or(|test| test.axis != Axis::OfferedRate);
    for (where_from, is_meant) in [("the ramp's", is_ramp), ("the other tests'", is_other)] {
        let unsent = of(|point| point.load.unsent, is_meant);
        if sum(&unsent) > 0 {
            said.push(format!(
                "{} of {where_from} requests were never sent, because every connection still waited for \
                 an answer: {}.",
                text::count(sum(&unsent)),
                by_product(&unsent)
            ));
        }
    }
    said
}

/// Number of due requests of a test that were never sent, by product, as a sentence.
pub fn unsent_of(report: &Report, test: &TestReport) -> Option<String> {
    let told = |name: &str| {
        let own = || report.record(test).points.iter().filter(|point| point.product == name);
        let sum = |count: fn(&Point) -> u64| own().map(count).fold(0, u64::saturating_add);
        let unsent = sum(|point| point.load.unsent);
        let begun = sum(|point| point.load.requests.saturating_add(point.load.errors));
        let due = text::count(begun.saturating_add(unsent));
        (unsent > 0).then(|| format!("{} {} of {due}", report.called(name), text::count(unsent)))
    };
    let products = test.takers.iter().filter_map(|&index| told(report.product(index)));
    let told = products.collect::<Vec<_>>().join(", ");
    (!told.is_empty()).then(|| {
        format!(
            "Requests never sent, because answers came too slowly for the offered rate: {told}."
        )
    })
}

/// Failed transactions of a test, by product and kind, as sentences.
pub fn errors_of(report: &Report, test: &TestReport) -> Vec<String> {
    let mut said = Vec::new();
    for index in 0..report.run.products.len() {
        let mut by_kind: BTreeMap<ErrorKind, u64> = BTreeMap::new();
        let (mut errors, mut good, mut warm_up) = (0u64, 0u64, 0u64);
        let own = report.record(test).points.iter();
        for point in own.filter(|point| point.product == report.product(index)) {
            errors = errors.saturating_add(point.load.errors);
            good = good.saturating_add(point.load.requests);
            warm_up = warm_up.saturating_add(point.load.warm_up_errors);
            for (kind, count) in &point.load.errors_by_kind {
                let sum = by_kind.entry(*kind).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        let name = report.label(index);
        if errors == 0 {
            if warm_up > 0 {
                said.push(format!("{name}: {} before the measurement began", text::count(warm_up)));
            }
            continue;
        }
        let kinds: Vec<String> = by_kind
            .into_iter()
            .map(|(kind, number)| format!("{} {}", text::count(number), kind_name(kind)))
            .collect();
        let mut sentence = format!(
            "{name}: {} failed ({}), {} succeeded",
            text::count(errors),
            kinds.join(", "),
            text::count(good)
        );
        if warm_up > 0 {
            sentence += &format!(", and {} before the measurement began", text::count(warm_up));
        }
        said.push(sentence);
    }
    said
}

/// The products whose P99 has too few requests to be judged, as a sentence.
pub fn few_requests(report: &Report, test: &TestReport) -> Option<String> {
    let is_shown = test.figures.iter().any(|figure| figure.figure == Figure::LatencyP99);
    let is_few = |point: &&Point| !is_judgeable(Figure::LatencyP99, point);
    let points = report.record(test).points.iter().filter(is_few);
    let most = points.map(|point| point.load.latency_us.count).max().filter(|_| is_shown)?;
    Some(format!(
        "A P99 of {} or fewer requests is shown and not judged: fewer than {SLOWER_COUNT_MIN} of a round were \
         slower.",
        text::count(most)
    ))
}

/// Settings at which a product has fewer rounds than wanted, as sentences.
pub fn short_of_rounds(report: &Report, test: &TestReport) -> Vec<String> {
    let record = report.record(test);
    let mut said = Vec::new();
    for &at in &test.settings {
        for product in &report.run.products {
            let own = record.points.iter().filter(|p| p.product == product.name && p.at == at);
            let rounds = own.count();
            if rounds > 0 && rounds < record.rounds as usize {
                let setting = text::setting(test.test.axis, at);
                let place = if setting.is_empty() { setting } else { format!(" at {setting}") };
                let name = report.called(&product.name);
                said.push(format!("{name}{place}: {rounds} of {} rounds", record.rounds));
            }
        }
    }
    said
}

/// Example: ` at 12,000 connections`; empty for a whole test.
pub fn place_of(axis: Axis, omission: &Omission) -> String {
    let setting = omission.at.map(|at| text::setting(axis, at)).unwrap_or_default();
    if setting.is_empty() { setting } else { format!(" at {setting}") }
}

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "not connected",
        ErrorKind::Handshake => "TLS handshakes failed",
        ErrorKind::Reset => "reset",
        ErrorKind::Closed => "closed instead of answered",
        ErrorKind::Short => "cut short",
        ErrorKind::Timeout => "timed out",
        ErrorKind::Malformed => "malformed",
        ErrorKind::Status => "wrong status",
        ErrorKind::Length => "wrong length",
        ErrorKind::Checksum => "wrong checksum",
        ErrorKind::Stream => "streams reset or not taken",
        ErrorKind::Lost => "lost",
        ErrorKind::NotCompressed => "not compressed",
    }
}

/// A row of the summary's table: one figure of a test, over all settings.
pub struct Row {
    /// The test, such as `l7-requests`.
    pub test: &'static str,
    /// The figure, such as `CPU per request`.
    pub subject: &'static str,
    /// Weir's medians, from the smallest to the largest.
    pub weir: String,
    /// Medians of the hardest peers, with their names.
    pub best: String,
    /// Names of the hardest peers.
    pub peers: String,
    /// Weir divided by the hardest peer.
    pub ratio: String,
    /// The verdict, such as `won`, or for several settings `won 4, even 1`.
    pub verdict: String,
    /// Example: `4 beside one peer alone`, if some settings of a run with several peers have only one.
    pub alone: Option<String>,
    /// The worst standing of all settings.
    pub standing: AgainstPeers,
}

impl Row {
    /// The row of a group.
    pub fn new(report: &Report, group: &Group<'_>) -> Self {
        let subject = group.subject;
        let range = |value: fn(&Judgement) -> f64| {
            let spread = Spread::of(group.judgements.iter().map(|j| value(j)));
            spread.map_or((0.0, 0.0), |spread| (spread.min, spread.max))
        };
        let mut peers: Vec<usize> = group.judgements.iter().map(|found| found.peer).collect();
        peers.sort_unstable();
        peers.dedup();
        let peers: Vec<&str> = peers.into_iter().map(|peer| report.label(peer)).collect();
        Self {
            test: group.test.name,
            subject: subject.title(),
            weir: from_to(range(|found| found.weir), subject),
            best: from_to(range(|found| found.best), subject),
            peers: peers.join(", "),
            ratio: match group.judgements.as_slice() {
                [only] => match medians_say(only) {
                    Some(said) => format!("{}; {said}", text::ratio(only.ratio.median)),
                    None => text::ratio(only.ratio.median),
                },
                _ => ratio_from_to(range(|found| found.ratio.median)),
            },
            verdict: verdict_of(group),
            alone: alone_of(report, group),
            standing: group
                .judgements
                .iter()
                .map(|j| j.standing)
                .max()
                .unwrap_or(AgainstPeers::Even),
        }
    }
}

/// Example: `0.412–3.10 ms`. The unit appears once.
fn from_to((low, high): (f64, f64), subject: Subject) -> String {
    let (first, last) = (text::number(low), subject.with_unit(high));
    if low == high || last.starts_with(&format!("{first} ")) {
        last
    } else {
        format!("{first}–{last}")
    }
}

fn ratio_from_to((low, high): (f64, f64)) -> String {
    let (low, high) = (text::ratio(low), text::ratio(high));
    if low == high { low } else { format!("{low}–{high}") }
}

fn verdict_of(group: &Group<'_>) -> String {
    let [only] = group.judgements.as_slice() else {
        let order =
            [AgainstPeers::Won, AgainstPeers::Even, AgainstPeers::Undecided, AgainstPeers::Lost];
        let count = |standing| group.judgements.iter().filter(|j| j.standing == standing).count();
        let parts: Vec<String> = order
            .into_iter()
            .filter(|standing| count(*standing) > 0)
            .map(|standing| format!("{} {}", standing.word(), count(standing)))
            .collect();
        return parts.join(", ");
    };
    only.standing.word().to_owned()
}

fn alone_of(report: &Report, group: &Group<'_>) -> Option<String> {
    let alone = group.judgements.iter().filter(|found| is_one_of_many(report, found)).count();
    match group.judgements.len() {
        _ if alone == 0 => None,
        all if all == alone => Some("one peer only".to_owned()),
        _ => Some(format!("{alone} with one peer only")),
    }
}

/// A loss or win as a sentence without its test: figure, weir, peer, ratio and certainty.
pub fn sentence(report: &Report, judgement: &Judgement) -> String {
    let name = report.label(judgement.peer);
    let sureness = match judgement.standing {
        _ if judgement.forfeit.is_some() => "",
        AgainstPeers::Undecided if judgement.ratio.interval.is_none() => ", undecided: one round",
        AgainstPeers::Undecided => ", undecided",
        AgainstPeers::Even => ", even",
        AgainstPeers::Won | AgainstPeers::Lost => "",
    };
    format!(
        "{}: {} against {} of {name}; paired by round {} (ratio {}{sureness}){}{}",
        judgement.label(),
        value(report, judgement, judgement.weir, report.weir),
        value(report, judgement, judgement.best, Some(judgement.peer)),
        judgement.distance(),
        ratio(&judgement.ratio),
        medians_say(judgement).map(|said| format!("; {said}")).unwrap_or_default(),
        forfeit_told(report, judgement).map(|said| format!("; {said}")).unwrap_or_default()
    )
}

/// The reason that decided a latency instead of the ratio.
pub fn forfeit_told(report: &Report, judgement: &Judgement) -> Option<String> {
    let name = report.label(judgement.peer);
    let (who, outcome) = match judgement.forfeit? {
        Forfeit::Weir => ("weir", "lost"),
        Forfeit::Peer => (name, "won"),
        Forfeit::Both => ("either", "undecided"),
    };
    Some(format!("{outcome}, because {who} failed requests or fell behind the offered rate"))
}

/// The ratio for a row that also has medians: `1.51 (0.90–2.53); the medians say 5.16 times`.
pub fn ratio_beside_medians(judgement: &Judgement) -> String {
    let said = medians_say(judgement).map(|said| format!("; {said}"));
    ratio(&judgement.ratio) + &said.unwrap_or_default()
}

/// Weir's or the peer's value of a judgement, with its unit. For a knee, the bounds of its steps.
pub fn value(report: &Report, judged: &Judgement, value: f64, product: Option<usize>) -> String {
    let test = || report.tests.iter().find(|test| test.test.name == judged.test.name);
    let knee = || test()?.knees.as_ref()?.told(product?);
    let told = if judged.subject == Subject::Knee { knee() } else { None };
    told.unwrap_or_else(|| judged.subject.with_unit(value))
}

/// Example: `the medians say 5.16 times`, if the quotient of the medians contradicts the paired ratio.
pub fn medians_say(judgement: &Judgement) -> Option<String> {
    let quotient = judgement.contradicting_medians()?;
    Some(format!("the medians say {} times", text::ratio(quotient)))
}

/// Example: `0.83 (0.78–0.88)`: the median and its noise interval.
pub fn ratio(ratio: &Ratio) -> String {
    let median = text::ratio(ratio.median);
    match ratio.interval {
        Some(ends) => format!("{median} ({})", interval(ends)),
        None => median,
    }
}

/// Example: `0.78–0.88`; with an open end, only the known side.
pub fn interval((low, high): (f64, f64)) -> String {
    match (low > 0.0, high.is_finite()) {
        (true, true) => format!("{}–{}", text::ratio(low), text::ratio(high)),
        (true, false) => format!("{} or more", text::ratio(low)),
        (false, true) => format!("{} or less", text::ratio(high)),
        (false, false) => "anything".to_owned(),
    }
}

/// A product with its version, such as `nginx 1.22.1`.
pub fn versioned(report: &Report, index: usize) -> String {
    let (name, version) = (report.product(index), &*report.run.products[index].version);
    match name {
        RELAY => return "relay (only bytes, no HTTP)".to_owned(),
        SIGNATURES => return "bare signatures (of weir's library, no handshake)".to_owned(),
        PLAIN_WEIR => return format!("{} (without a test's features)", text::maker(name)),
        _ => {}
    }
    let label = report.label(index);
    match text::version_number(version) {
        Some(number) => {
            // With two rows of a product, the label already contains the short version.
            let short = text::short_version_number(version).unwrap_or(number);
            match label.split_once(short) {
                Some((name, rest)) => format!("{name}{number}{rest}"),
                None => format!("{label} {number}"),
            }
        }
        None if version.is_empty() || name == WEIR => label.to_owned(),
        None => format!("{label} ({version})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    #[test]
    fn errors_and_missing_rounds_are_told() {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "l7-requests");
        let points = &mut run.tests[0].points;
        points.retain(|point| point.product != "nginx" || point.round > 0);
        let first = points.iter_mut().find(|point| point.product == "haproxy").expect("a point");
        first.load.errors = 7;
        first.load.errors_by_kind = BTreeMap::from([(ErrorKind::Status, 5), (ErrorKind::Reset, 2)]);
        first.load.warm_up_errors = 3;
        let report = Report::new(run);
        let errors = errors_of(&report, &report.tests[0]);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with("HAProxy: 7 failed (2 reset, 5 wrong status), "));
        assert!(
            errors[0].ends_with(" succeeded, and 3 before the measurement began"),
            "{errors:?}"
        );
        assert_eq!(short_of_rounds(&report, &report.tests[0]), ["nginx: 2 of 3 rounds"]);
    }

    #[test]
    fn the_summary_says_what_it_could_not_tell() {
        let told = |run: crate::record::Run| {
            let report = Report::new(run);
            let verdicts = Verdicts::new(&report);
            (sentences(&report, &verdicts).join("\n"), nothing_lost(&report, &verdicts))
        };
        let check = |text: &str, parts: &[&str]| {
            for part in parts {
                assert!(text.contains(part), "no {part:?} in {text}");
            }
        };
        let (text, _) = told(testing::run());
        check(&text, &["Thrown away: 1 of ", " of 3 rounds at each setting,"]);
        assert!(!text.contains("This run could not decide") && !text.contains("for any product"));

        let mut run = testing::run();
        for test in &mut run.tests {
            test.points.retain(|point| point.round == 0 || test.name == "object-sizes");
            if test.name == "object-sizes" {
                let reason = "no undisturbed round in 3".to_owned();
                let lost = test.points[0].at;
                test.points.retain(|point| point.at != lost);
                let omission = Omission { product: "weir".to_owned(), at: Some(lost), reason };
                test.omissions.push(omission);
            }
        }
        let (text, nothing_lost) = told(run);
        assert!(text.starts_with("This run could not decide "), "{text}");
        check(
            &text,
            &[
                "of 1 to 3 rounds at each setting,",
                "Not measured for any product: 1 setting (of object-sizes).",
                " rest on a single round)",
            ],
        );
        check(
            &nothing_lost,
            &["Lost: 0. Undecided: ", "No product could be measured in 1 setting."],
        );
    }

    #[test]
    fn what_was_never_sent_is_told() {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "ramp");
        for point in &mut run.tests[0].points {
            (point.load.errors, point.load.unsent) = (0, 0);
            point.load.requests = 10;
        }
        let requests = 10 * run.tests[0].points.len();
        let of_all =
            format!("of {} requests in the kept measurements failed", text::count(requests as u64));
        let check = |run: &crate::record::Run, expected: &[String], of_test: Option<&str>| {
            let report = Report::new(run.clone());
            assert_eq!(errors(&report), expected);
            assert_eq!(unsent_of(&report, &report.tests[0]).as_deref(), of_test);
        };
        check(&run, &[format!("None {of_all}.")], None);
        let points = &mut run.tests[0].points;
        for (product, unsent) in [("weir", 5), ("haproxy", 1_007)] {
            let point = points.iter_mut().find(|point| point.product == product);
            point.expect("a point").load.unsent = unsent;
        }
        let never = "1,012 of the ramp's requests were never sent, because every connection still \
                     waited for an answer: weir 5 and HAProxy 1,007.";
        let of_test = "Requests never sent, because answers came too slowly for the offered rate: weir 5 of 365, \
                       HAProxy 1,007 of 1,367.";
        check(&run, &[format!("None {of_all}."), never.to_owned()], Some(of_test));
        let point = &mut run.tests[0].points[0];
        (point.load.requests, point.load.errors) = (8, 2);
        let failed = format!("2 {of_all}; no figure counts them as done: weir 2 (by test below).");
        check(&run, &[failed, never.to_owned()], Some(of_test));
    }

    #[test]
    fn one_peer_alone_is_said() {
        let mut run = testing::run();
        run.tests.retain(|test| test.name == "basic-l7");
        let is_alone =
            |point: &Point| point.at == 96e3 && !matches!(&*point.product, "weir" | "nginx");
        run.tests[0].points.retain(|point| !is_alone(point));
        let report = Report::new(run);
        let verdicts = Verdicts::new(&report);
        let told = one_peer(&report, &verdicts, &report.tests[0]).expect("a sentence");
        assert!(told.contains("P99 latency, 96,000 connections (nginx); "), "{told}");
        assert!(!told.contains("48,000"), "{told}");
        let summary = sentences(&report, &verdicts).join("\n");
        assert!(summary.contains("2 comparisons had only one peer"), "{summary}");
        let row = Row::new(&report, &verdicts.groups()[0]);
        assert_eq!(row.alone.as_deref(), Some("1 with one peer only"));
    }

    #[test]
    fn medians_that_contradict_the_paired_ratio_are_flagged() {
        let report = Report::new(testing::run());
        let said = |pairs: [(f64, f64); 3]| {
            let median = |values: [f64; 3]| Spread::of(values).expect("values").median;
            let judgement = Judgement {
                test: report.tests[0].test,
                subject: Subject::Figure(Figure::LatencyP99),
                at: 0.0,
                peer: 1,
                weir: median(pairs.map(|pair| pair.0)),
                best: median(pairs.map(|pair| pair.1)),
                ratio: Ratio::paired(pairs).expect("a ratio"),
                standing: AgainstPeers::Undecided,
                against: 1,
                forfeit: None,
            };
            sentence(&report, &judgement)
        };
        let apart = said([(2.7, 1.79), (2.7, 0.523), (0.4, 0.523)]);
        let expected = "2.70 ms against 0.523 ms of nginx; paired by round 51% more (ratio 1.51 (";
        assert!(apart.contains(expected), "{apart}");
        assert!(apart.ends_with(", undecided); the medians say 5.16 times"), "{apart}");
        let agreed = said([(1.1, 1.0), (1.2, 1.0), (1.3, 1.0)]);
        assert!(
            agreed.contains("paired by round 20% more (ratio 1.20 (") && !agreed.contains("say")
        );
    }

    #[test]
    fn versions() {
        for (name, version, expected) in [
            ("weir", "weir 0.1.0", "weir 0.1.0"),
            ("nginx", "nginx version: nginx/1.22.1", "nginx 1.22.1"),
            ("haproxy", "HAProxy version 2.6.12-1 2023/12/16", "HAProxy 2.6.12-1"),
            ("envoy", "", "Envoy"),
            ("other", "unreleased", "other (unreleased)"),
        ] {
            let mut run = testing::run();
            run.tests.clear();
            run.products.truncate(1);
            run.products[0] = Product {
                name: name.to_owned(),
                version: version.to_owned(),
                ..run.products[0].clone()
            };
            assert_eq!(versioned(&Report::new(run), 0), expected);
        }
    }
}
