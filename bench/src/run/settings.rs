//! The settings of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::bed::Network;
use super::extent::Extent;
use super::idle::Idle;
use super::{RunError, products};
use crate::catalogue::{PENDING, TESTS, Test};

/// Upper bound of `rounds`. More rounds would not improve the results.
pub const ROUNDS_MAX: u32 = 100;

/// Maximum number of rows of one product. A chart can distinguish no more.
pub const ROWS_MAX: usize = 2;

/// The settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The command line, for the record.
    pub command: String,
    /// The tests, and the length of their measurements.
    pub selection: Selection,
    /// Number of undisturbed rounds of each timed test, [`ROUNDS_MAX`] at most; `None`: the number of the extent.
    pub rounds: Option<u32>,
    /// Names of the participating peers, see [`Settings::peers_of`].
    pub peers: Vec<&'static str>,
    /// Programs by product; each is a row of its own, [`ROWS_MAX`] at most. A bare name is searched in PATH. A product
    /// without an entry is searched in PATH by its own name.
    pub programs: BTreeMap<String, Vec<PathBuf>>,
    /// Weir's program; a bare name is searched in PATH.
    pub weir: PathBuf,
    /// The program `weir-bench`, which serves as the origin and the relay.
    pub laboratory: PathBuf,
    /// Whether the byte relay takes part.
    pub relay: bool,
    /// The folder of the results, which must be empty or absent; `None`: a new folder in `bench/runs`, named by date
    /// and host.
    pub folder: Option<PathBuf>,
    /// The network between client, product and origin.
    pub network: Network,
    /// Cores of the product; `None`: one core.
    pub product_cores: Option<Vec<usize>>,
    /// Cores of load generator and origin; `None`: all other cores.
    pub load_cores: Option<Vec<usize>>,
    /// The behaviour of idle cores; `None`: the behaviour that suits the machine.
    pub idle: Option<Idle>,
}

/// The tests of a run, and the length of their measurements.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The length of the measurements.
    pub extent: Extent,
    /// The tests, in the order of the report.
    pub tests: Vec<&'static Test>,
    /// Whether the command line names tests.
    pub is_chosen: bool,
}

impl Selection {
    /// Parses the words of the command line: `quick`, `full` or names of tests. Without a word the extent is `quick`.
    /// Named tests run as in `full`, unless the words also name an extent. Some tests run in `quick` only when named.
    /// An unknown word, or both extents, is an error.
    pub fn from_words<S: AsRef<str>>(words: &[S]) -> Result<Self, RunError> {
        let (mut extent, mut tests) = (None, Vec::new());
        for word in words.iter().map(AsRef::as_ref) {
            match Extent::of_name(word) {
                Some(other) if extent.is_some_and(|known| known != other) => {
                    return Err(RunError::Input("name one of quick and full, not both".into()));
                }
                Some(named) => extent = Some(named),
                None => tests.push(known_test(word)?),
            }
        }
        let is_chosen = !tests.is_empty();
        let extent = extent.unwrap_or(if is_chosen { Extent::Full } else { Extent::Quick });
        let is_own = |test: &Test| extent.budget(test.name).is_some_and(|budget| !budget.is_extra);
        let is_wanted =
            |test: &&Test| if is_chosen { tests.contains(&test.name) } else { is_own(test) };
        Ok(Self { extent, tests: TESTS.iter().filter(is_wanted).collect(), is_chosen })
    }

    /// The selection's name in the record.
    pub fn name(&self) -> &'static str {
        if self.is_chosen { "chosen" } else { self.extent.name() }
    }
}

impl Settings {
    /// The peers with those names, in the order of the report; all peers if `names` is empty. An unknown name is an
    /// error.
    pub fn peers_of<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static str>, RunError> {
        let known = products::peer_names();
        for name in names.iter().map(AsRef::as_ref) {
            if !known.contains(&name) {
                let advice = advice(name, &known);
                return Err(RunError::Input(format!("no peer is called {name}; {advice}")));
            }
        }
        let is_wanted = |peer: &&'static str| {
            names.is_empty() || names.iter().any(|name| name.as_ref() == *peer)
        };
        Ok(known.into_iter().filter(is_wanted).collect())
    }
}

fn known_test(word: &str) -> Result<&'static str, RunError> {
    if let Some(test) = crate::catalogue::test(word) {
        return Ok(test.name);
    }
    if let Some(pending) = PENDING.iter().find(|pending| pending.name == word) {
        return Err(RunError::Input(format!(
            "the test {word} waits for {} and cannot be run yet",
            pending.waits_for
        )));
    }
    let mut known: Vec<&str> = vec!["quick", "full"];
    known.extend(TESTS.iter().map(|test| test.name));
    Err(RunError::Input(format!("no test is called {word}; {}", advice(word, &known))))
}

/// The most similar known name, or the list of all known names.
fn advice(word: &str, known: &[&str]) -> String {
    let distance = |candidate: &str| strsim::damerau_levenshtein(word, candidate);
    let nearest = known.iter().min_by_key(|candidate| distance(candidate));
    match nearest {
        Some(nearest) if distance(nearest) <= nearest.len() / 3 => {
            format!("did you mean {nearest}?")
        }
        _ => format!("the known names are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections() {
        let check = |words: &[&str], name: &str, extent: Extent, tests: Option<&[&str]>| {
            let selection = Selection::from_words(words).expect("known");
            assert_eq!((selection.name(), selection.extent), (name, extent), "{words:?}");
            let names: Vec<&str> = selection.tests.iter().map(|test| test.name).collect();
            match tests {
                Some(tests) => assert_eq!(names, tests),
                None => {
                    let own = extent.budgets().iter().filter(|budget| !budget.is_extra);
                    assert_eq!(names, own.map(|budget| budget.test).collect::<Vec<_>>());
                }
            }
        };
        check(&[], "quick", Extent::Quick, None);
        check(&["full"], "full", Extent::Full, None);
        check(&["smoke"], "smoke", Extent::Smoke, None);
        check(&["ramp", "basic-l7"], "chosen", Extent::Full, Some(&["basic-l7", "ramp"]));
        check(&["quick", "ramp"], "chosen", Extent::Quick, Some(&["ramp"]));
        check(&["quick", "growth"], "chosen", Extent::Quick, Some(&["growth"]));
    }

    #[test]
    fn unknown_names_get_advice() {
        let check = |words: &[&str], part: &str| {
            let error = Selection::from_words(words).expect_err("unknown").to_string();
            assert!(error.contains(part), "{error}");
        };
        check(&["ramps"], "did you mean ramp?");
        check(&["l7-request"], "did you mean l7-requests?");
        check(&["qick"], "did you mean quick?");
        check(&["zzzzzz"], "the known names are: quick, full, basic-l7");
        check(&["waf-gett"], "did you mean waf-get?");
        check(&["quick", "full"], "not both");
    }

    #[test]
    fn peers() {
        let check = |names: &[&str], expected: &[&str]| {
            assert_eq!(Settings::peers_of(names).expect("known"), expected);
        };
        check(&[], &["nginx", "haproxy", "envoy", "nginx-modsecurity", "coraza"]);
        check(&["envoy", "nginx"], &["nginx", "envoy"]);
        let error = Settings::peers_of(&["haprox"]).expect_err("unknown").to_string();
        assert_eq!(error, "no peer is called haprox; did you mean haproxy?");
        let error = Settings::peers_of(&["weir"]).expect_err("no peer").to_string();
        assert!(error.contains("the known names are: nginx, haproxy, envoy"), "{error}");
    }
}
