//! Reads the files of a run, and rejects invalid records.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::catalogue::{self, Axis};
use crate::record::{FORMAT, Point, Run, TestRecord};
use crate::run_files::{self, FILE_NAME};

/// Maximum size of a file of a run; the longest have some hundred kilobytes.
pub const RUN_BYTES_MAX: u64 = 64 << 20;

/// The reason why a run cannot be read: error, place and fix.
#[derive(Debug)]
pub enum ReadError {
    /// The file is missing or cannot be read.
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is larger than [`RUN_BYTES_MAX`].
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not JSON of the expected shape.
    Shape {
        /// The file.
        path: PathBuf,
        /// The error and its position.
        error: serde_json::Error,
    },
    /// The file has another version of the format.
    Format {
        /// The file.
        path: PathBuf,
        /// The version, if the file has one.
        found: Option<u64>,
    },
    /// The record contradicts itself.
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The place in the record (`tests[3].points[17]`).
        place: String,
        /// The contradiction.
        what: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } if error.kind() == io::ErrorKind::NotFound => write!(
                f,
                "{}: there is no such file; name a folder that `weir bench run` wrote \
                 (bench/runs/<date>-<host>)",
                path.display()
            ),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::TooLarge { path } => write!(
                f,
                "{}: larger than {} MiB, which no run is; was it overwritten?",
                path.display(),
                RUN_BYTES_MAX >> 20
            ),
            Self::Shape { path, error } => {
                // serde_json puts the position at the end of its message; here it comes first.
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                write!(
                    f,
                    "{}:{}:{}: {message}; the file was cut off or edited: run `weir bench run` again",
                    path.display(),
                    error.line(),
                    error.column()
                )
            }
            Self::Format { path, found: Some(found) } => write!(
                f,
                "{}: format {found}, but this weir reads format {FORMAT}; use the weir that made the run, \
                 or run `weir bench run` again",
                path.display()
            ),
            Self::Format { path, found: None } => {
                write!(f, "{}: has no `format`, so it is not the record of a run", path.display())
            }
            Self::Contradiction { path, place, what } => write!(
                f,
                "{}: {place}: {what}; the file was edited or its writer is at fault: run \
                 `weir bench run` again",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            Self::Shape { error, .. } => Some(error),
            Self::TooLarge { .. } | Self::Format { .. } | Self::Contradiction { .. } => None,
        }
    }
}

/// Reads and checks the run in that folder.
pub fn read(run_folder: &Path) -> Result<Run, ReadError> {
    let path = run_folder.join(FILE_NAME);
    let head = parse_head(&bytes(&path)?, &path)?;
    let tests = head.tests.iter().map(|name| read_test(run_folder, name));
    let mut run = head.with_tests(tests.collect::<Result<Vec<_>, _>>()?);
    check(&run).map_err(|(place, what)| ReadError::Contradiction { path, place, what })?;
    settle(&mut run);
    Ok(run)
}

/// Reads the record of a test. The name comes from a file, so it must not lead elsewhere.
fn read_test(run_folder: &Path, name: &str) -> Result<TestRecord, ReadError> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        let (path, place) = (run_folder.join(FILE_NAME), "tests".to_owned());
        return Err(ReadError::Contradiction { path, place, what: format!("{name:?} is no test") });
    }
    let path = run_files::test_file(run_folder, name);
    let record: TestRecord = serde_json::from_slice(&bytes(&path)?)
        .map_err(|error| ReadError::Shape { path: path.clone(), error })?;
    if record.name != name {
        let what = format!("it is the record of {:?}", record.name);
        return Err(ReadError::Contradiction { path, place: "name".into(), what });
    }
    Ok(record)
}

/// The content of a file of a run.
fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let file_error = |error| ReadError::File { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(file_error)?;
    file.take(RUN_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(file_error)?;
    match bytes.len() as u64 > RUN_BYTES_MAX {
        true => Err(ReadError::TooLarge { path: path.to_owned() }),
        false => Ok(bytes),
    }
}

fn parse_head(bytes: &[u8], path: &Path) -> Result<Run<String>, ReadError> {
    /// Parsed first, so that another version causes an error about the version and not about a missing field.
    #[derive(Deserialize)]
    struct FormatVersion {
        format: Option<u64>,
    }
    let shape_error = |error| ReadError::Shape { path: path.to_owned(), error };
    let versioned: FormatVersion = serde_json::from_slice(bytes).map_err(shape_error)?;
    if versioned.format != Some(u64::from(FORMAT)) {
        return Err(ReadError::Format { path: path.to_owned(), found: versioned.format });
    }
    serde_json::from_slice(bytes).map_err(shape_error)
}

/// A contradiction: place and description.
type Finding = (String, String);

fn check(run: &Run) -> Result<(), Finding> {
    let mut products = HashSet::new();
    for (index, product) in run.products.iter().enumerate() {
        if !products.insert(product.name.as_str()) {
            return Err((
                format!("products[{index}]"),
                format!("{:?} appears twice", product.name),
            ));
        }
    }
    let mut tests = HashSet::new();
    for (index, test) in run.tests.iter().enumerate() {
        if !tests.insert(test.name.as_str()) {
            return Err((format!("tests[{index}]"), format!("{:?} appears twice", test.name)));
        }
        check_points(test, &products)
            .map_err(|(place, what)| (format!("tests[{index}] ({}).{place}", test.name), what))?;
    }
    Ok(())
}

fn check_points(test: &TestRecord, products: &HashSet<&str>) -> Result<(), Finding> {
    let axis = catalogue::test(&test.name).map(|test| test.axis);
    let mut seen = HashSet::new();
    for (index, point) in test.points.iter().enumerate() {
        let fail = |what: String| Err((format!("points[{index}]"), what));
        if !products.contains(point.product.as_str()) {
            return fail(format!("{:?} is not among the products", point.product));
        }
        if let Some((name, value)) = numbers(point).into_iter().find(|(_, value)| *value < 0.0) {
            return fail(format!("{name} is {value}, below zero"));
        }
        let at = if axis == Some(Axis::Single) { 0.0 } else { point.at };
        if !seen.insert((point.product.as_str(), point.round, key(at))) {
            return fail(format!(
                "a second measurement of {} in round {} at {at}",
                point.product, point.round
            ));
        }
    }
    Ok(())
}

/// The numbers that cannot be negative. `busy_s` can, because the resting share is subtracted.
fn numbers(point: &Point) -> [(&'static str, f64); 11] {
    [
        ("at", point.at),
        ("load.requests_per_second", point.load.requests_per_second),
        ("load.elapsed_s", point.load.elapsed_s),
        ("load.window.elapsed_s", point.load.completed().elapsed_s),
        ("load.cpu_seconds", point.load.cpu_seconds),
        ("cost.elapsed_s", point.cost.elapsed_s),
        ("cost.process_s", point.cost.process_s),
        ("cost.joules", point.cost.joules.unwrap_or(0.0)),
        ("cost.origin_s", point.cost.origin_s.unwrap_or(0.0)),
        ("cost.load_busy_s", point.cost.load_busy_s.unwrap_or(0.0)),
        ("cost.direct_s_per_request", point.cost.direct_s_per_request.unwrap_or(0.0)),
    ]
}

/// A setting as the key of a map.
pub fn key(at: f64) -> u64 {
    // 0.0 and -0.0 are the same setting.
    (at + 0.0).to_bits()
}

/// Normalises the record for the report: the setting of a test without an axis becomes 0, and control characters in
/// text are replaced (HTML forbids some of them).
fn settle(run: &mut Run) {
    for test in &mut run.tests {
        if catalogue::test(&test.name).is_some_and(|test| test.axis == Axis::Single) {
            test.points.iter_mut().for_each(|point| point.at = 0.0);
            test.omissions.iter_mut().for_each(|omission| omission.at = None);
            test.discarded.iter_mut().for_each(|discard| discard.at = None);
        }
        for point in &mut test.points {
            clean(&mut point.product);
        }
        for omission in &mut test.omissions {
            clean(&mut omission.product);
            clean(&mut omission.reason);
        }
        clean(&mut test.name);
        for discard in &mut test.discarded {
            discard.product.iter_mut().for_each(clean);
            clean(&mut discard.reason);
        }
        test.facts = std::mem::take(&mut test.facts)
            .into_iter()
            .map(|(name, value)| (visible(&name), value))
            .collect::<BTreeMap<_, _>>();
    }
    for product in &mut run.products {
        clean(&mut product.name);
        clean(&mut product.version);
        let told = [&mut product.tls, &mut product.commit, &mut product.sha256];
        told.into_iter().flatten().for_each(clean);
    }
    for absence in &mut run.absent {
        clean(&mut absence.product);
        clean(&mut absence.reason);
    }
    let machine = &mut run.machine;
    for text in [
        &mut run.command,
        &mut run.extent,
        &mut run.started,
        &mut run.bed.kind,
        &mut machine.host,
        &mut machine.kernel,
        &mut machine.system,
        &mut machine.cpu,
    ] {
        clean(text);
    }
}

fn clean(text: &mut String) {
    if text.contains(is_invisible) {
        *text = visible(text);
    }
}

/// Replaces control characters, except line ends and tabs.
pub fn visible(text: &str) -> String {
    text.replace(is_invisible, "\u{fffd}")
}

fn is_invisible(character: char) -> bool {
    (character.is_control() && !matches!(character, '\n' | '\t'))
        || matches!(character, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    fn read_changed(change: impl FnOnce(&mut serde_json::Value)) -> Result<Run, ReadError> {
        let mut json = serde_json::to_value(testing::run()).expect("a run as JSON");
        change(&mut json);
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("tests")).expect("a folder");
        for test in json["tests"].as_array_mut().expect("tests") {
            let name = test["name"].clone();
            let path = run_files::test_file(folder.path(), name.as_str().expect("a name"));
            std::fs::write(path, test.to_string()).expect("a file");
            *test = name;
        }
        std::fs::write(folder.path().join(FILE_NAME), json.to_string()).expect("a file");
        read(folder.path())
    }

    #[test]
    fn a_good_run_is_read() {
        assert!(read_changed(|_| ()).is_ok());
    }

    /// Runs of earlier versions have discarded rounds as texts. They have no counts and no CPU time of the origin.
    #[test]
    fn an_earlier_run_is_read() {
        let run = read_changed(|json| {
            json["tests"][0]["discarded"] = serde_json::json!(["12,000 connections: nginx: noise"]);
            json["tests"][0]["omissions"][0]["at"] = 192_000.0.into();
            let points = json["tests"][0]["points"].as_array_mut().expect("points");
            for point in points {
                point.as_object_mut().expect("a point").remove("counts");
                point["cost"].as_object_mut().expect("a cost").remove("origin_s");
            }
        });
        let test = &run.expect("a run").tests[0];
        let discard = &test.discarded[0];
        assert_eq!(discard.reason, "12,000 connections: nginx: noise");
        assert_eq!((discard.round, discard.at, &discard.product), (None, None, &None));
        assert_eq!(test.omissions[0].at, Some(192_000.0));
        assert_eq!(test.points[0].cost.origin_s, None);
    }

    #[test]
    fn faults_are_named_with_their_place() {
        let check = |change: fn(&mut serde_json::Value), expected: &[&str]| {
            let message = read_changed(change).expect_err("a refusal").to_string();
            for part in expected {
                assert!(message.contains(part), "{message:?} has no {part:?}");
            }
        };
        check(|json| json["format"] = 1.into(), &["/run.json: format 1", "reads format 2"]);
        check(|json| json["format"] = serde_json::Value::Null, &["no `format`"]);
        check(|json| json["elapsed_s"] = "NaN".into(), &["/run.json:1:", "\"NaN\", expected f64;"]);
        check(
            |json| json["tests"][1]["points"][4]["product"] = "squid".into(),
            &["tests[1] (l7-requests).points[4]", "\"squid\" is not among"],
        );
        check(
            |json| json["tests"][0]["points"][2]["load"]["elapsed_s"] = (-1.0).into(),
            &["points[2]", "load.elapsed_s is -1, below zero"],
        );
        check(
            |json| {
                let first = json["tests"][0]["points"][0].clone();
                json["tests"][0]["points"][3] = first;
            },
            &["points[3]", "a second measurement"],
        );
        check(|json| json["tests"][1]["name"] = "basic-l7".into(), &["tests[1]", "appears twice"]);
        check(|json| json["products"][1]["name"] = "weir".into(), &["products[1]", "twice"]);
    }

    #[test]
    fn what_is_no_number_is_refused_and_never_panics() {
        let path = Path::new("run.json");
        for text in ["", "{", "[]", "null", "{\"format\":1}", "{\"format\":1e999}", "\u{0}"] {
            assert!(parse_head(text.as_bytes(), path).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_test_is_in_the_file_of_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |expected: &str| {
            let message = read(folder.path()).expect_err("a refusal").to_string();
            assert!(message.contains(expected), "{message}");
        };
        let mut run = testing::run();
        run_files::write(folder.path(), &run).expect("the run's files");
        assert_eq!(read(folder.path()).expect("a run").tests.len(), run.tests.len());
        let [first, second] =
            [0, 1].map(|at| run_files::test_file(folder.path(), &run.tests[at].name));
        std::fs::copy(&second, &first).expect("a copy");
        check("it is the record of");
        std::fs::remove_file(&first).expect("removing it");
        check("there is no such file");
        run.tests[0].name = "../run".into();
        run_files::write_head(folder.path(), &run).expect("run.json");
        check("is no test");
    }

    #[test]
    fn a_missing_run_says_what_to_name() {
        let message = read(Path::new("/nonexistent")).expect_err("a refusal").to_string();
        assert!(message.contains("name a folder that `weir bench run` wrote"), "{message}");
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(visible("a\u{0}b\u{1b}[31m\nc\u{ffff}"), "a\u{fffd}b\u{fffd}[31m\nc\u{fffd}");
    }
}
