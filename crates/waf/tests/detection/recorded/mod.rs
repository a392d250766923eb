//! Recorded requests of real applications, without attacks, and the false positives of rule sets. README.md describes the
//! recording.
//!
//! `WEIR_EXAMPLES=1` prints each false positive.

mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_waf::checks::Checks;
use weir_waf::inspection::{Mode, Options, Verdict};
use weir_waf::plan::{RuleSet, View};

use self::file::Recorded;
use crate::figures::Share;
use crate::send::{Judged, judge, view};

/// Minimum number of requests for meaningful figures.
const REQUESTS_MIN: usize = 2_000;

/// Applications whose users send code for execution: a database administrator sends SQL.
const CONSOLES: [&str; 1] = ["phpmyadmin"];

/// The requests of each application, by its name.
type Requests = BTreeMap<String, Vec<Recorded>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/detection/recorded")
}

fn requests(folder: &Path) -> Requests {
    let entries = std::fs::read_dir(folder).expect("the folder of recorded requests");
    let paths = entries.flatten().map(|entry| entry.path());
    let files = paths.filter(|path| path.extension().is_some_and(|it| it == "http"));
    files
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let bytes = std::fs::read(&path).expect("a file");
            let requests = file::read(&bytes);
            (name, requests.unwrap_or_else(|at| panic!("{}: byte {at}", path.display())))
        })
        .collect()
}

/// Requests without program code.
fn ordinary() -> Requests {
    requests(&folder())
}

/// Requests with code: posts, tickets and wiki pages about programs.
fn with_code() -> Requests {
    requests(&folder().join("code"))
}

/// The false positives of one application.
#[derive(Debug, Default)]
struct Denied {
    share: Share,
    /// The causes, and the number of requests for each.
    by: BTreeMap<String, usize>,
    /// For each denied request, the causes and the beginning of the request.
    examples: Vec<String>,
}

fn measure<'a>(
    view: &Arc<View>,
    options: &Options,
    requests: impl IntoIterator<Item = &'a Recorded>,
) -> Denied {
    let mut denied = Denied::default();
    for request in requests {
        denied.share.whole += 1;
        let judged = request.with_parts(|parts| judge(view, options, parts));
        if judged.verdict == Verdict::Pass {
            continue;
        }
        denied.share.part += 1;
        let causes = causes(&judged);
        denied.examples.push(format!("{causes:?} {}", request.shown()));
        for cause in causes {
            *denied.by.entry(cause).or_default() += 1;
        }
    }
    denied
}

/// The causes of a denial: the rules that scored, the check or the limit.
fn causes(judged: &Judged) -> BTreeSet<String> {
    match &judged.verdict {
        Verdict::Refused { check, .. } => BTreeSet::from([check.name().to_owned()]),
        Verdict::Exceeded(limit) => BTreeSet::from([limit.name().to_owned()]),
        _ => judged.ids().iter().map(ToString::to_string).collect(),
    }
}

/// Prints the false positives of all applications. Returns the rate without consoles.
fn report(name: &str, measured: &BTreeMap<String, Denied>) -> Share {
    let mut all = Share::default();
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    println!("\n{name}, recorded requests denied:");
    for (application, denied) in measured {
        println!("  {application:<12} {}", denied.share);
        if std::env::var_os("WEIR_EXAMPLES").is_some() {
            for example in &denied.examples {
                println!("    {example}");
            }
        }
        if CONSOLES.contains(&application.as_str()) {
            continue;
        }
        all.part += denied.share.part;
        all.whole += denied.share.whole;
        for (cause, count) in &denied.by {
            *by.entry(cause).or_default() += count;
        }
    }
    println!("  all but {CONSOLES:?}: {all}, by {by:?}");
    all
}

fn measured(requests: &Requests, view: &Arc<View>, options: &Options) -> BTreeMap<String, Denied> {
    let each = requests.iter();
    each.map(|(name, requests)| (name.clone(), measure(view, options, requests))).collect()
}

fn rules_only() -> Options {
    Options::new(Mode::Block)
}

#[test]
fn recorded_requests_pass_the_built_in_rules() {
    let rules = crate::builtin();
    for (level, ordinary_max, code_max) in [("1", 0.5, 40.0), ("2", 50.0, 100.0)] {
        let view = view(&rules, &[("blocking_paranoia_level", level)]);
        let name = format!("built-in, level {level}");
        let all = report(&name, &measured(&ordinary(), &view, &rules_only()));
        assert!(all.whole >= REQUESTS_MIN && all.percent() <= ordinary_max, "{all}");
        let all = report(&format!("{name}, code"), &measured(&with_code(), &view, &rules_only()));
        assert!(all.percent() <= code_max, "{all}");
    }
}

#[test]
fn recorded_requests_pass_the_checks() {
    // Rules add to the score, but do not deny requests.
    let lenient = view(&crate::builtin(), &[("inbound_anomaly_score_threshold", "1000000")]);
    let mut checks = Checks::default();
    // The methods that `checks: { methods: … }` recommends for calendars and shared folders.
    let dav = ["PROPFIND", "PROPPATCH", "REPORT", "MKCOL", "MKCALENDAR", "MOVE", "COPY"];
    checks.policy.methods.extend(dav.map(Into::into));
    let options = Options { checks: Some(Arc::new(checks)), ..rules_only() };
    for requests in [ordinary(), with_code()] {
        let all = report("checks", &measured(&requests, &lenient, &options));
        assert_eq!(all.part, 0, "{all}");
    }
}

/// The settings that crs-setup.conf requires: the methods and media types of the applications. By default, CRS permits four
/// methods, and does not permit the types of Git, CalDAV and files.
const CRS_SETTINGS: [(&str, &str); 2] = [
    (
        "allowed_methods",
        "GET HEAD POST OPTIONS PUT PATCH DELETE PROPFIND PROPPATCH REPORT MKCOL MKCALENDAR MOVE COPY",
    ),
    (
        "allowed_request_content_type",
        "|application/x-www-form-urlencoded| |multipart/form-data| |text/xml| |application/xml| |application/json| |text/plain| |text/calendar| |text/vcard| |application/octet-stream| |application/x-git-upload-pack-request| |application/x-git-receive-pack-request|",
    ),
];

#[test]
fn crs_denies_some_recorded_requests() {
    let Some(crs) = crate::data::rules() else { return };
    for (name, settings, max) in
        [("as it comes", &[][..], 30.0), ("with methods and types set", &CRS_SETTINGS[..], 22.0)]
    {
        let view = view(&crs, settings);
        let name = format!("CRS 4, level 1, {name}");
        let all = report(&name, &measured(&ordinary(), &view, &rules_only()));
        assert!(all.percent() <= max, "{all}");
        report(&format!("{name}, code"), &measured(&with_code(), &view, &rules_only()));
    }
}

/// CRS 4 with the exclusions for an application, if there are any.
fn crs_with_exceptions(application: &str) -> Option<Arc<RuleSet>> {
    let mut paths = crate::data::paths()?;
    let exceptions = folder().join("exceptions").join(format!("{application}.conf"));
    if exceptions.is_file() {
        paths.insert(1, exceptions);
    }
    Some(crate::data::compiled(paths))
}

/// `weir waf tune` derived the exclusions from half of each application's requests (three of six). The other half shows
/// their effect.
#[test]
fn tuned_crs_denies_fewer_recorded_requests() {
    let mut measured = [BTreeMap::new(), BTreeMap::new()];
    for (name, requests) in ordinary() {
        let Some(crs) = crs_with_exceptions(&name) else { return };
        let view = view(&crs, &CRS_SETTINGS);
        for (parity, measured) in measured.iter_mut().enumerate() {
            let half = requests.iter().enumerate().filter(|(at, _)| at / 3 % 2 == parity);
            let half = half.map(|(_, request)| request);
            measured.insert(name.clone(), measure(&view, &rules_only(), half));
        }
    }
    let [seen, others] = &measured;
    let all = report("CRS 4, level 1, tuned, on what it was tuned by", seen);
    assert!(all.percent() <= 3.5, "{all}");
    let all = report("CRS 4, level 1, tuned, on other requests", others);
    assert!(all.percent() <= 4.0, "{all}");
}
