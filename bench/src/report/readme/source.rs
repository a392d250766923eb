//! Reads a document and its runs, and writes the block.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::brief::brief;
use super::{ReportedRun, block};
use crate::report::model::Report;
use crate::report::verdict::Verdicts;
use crate::report::{ReadError, read, replace};

const OPENING_END: &str = "-->\n";

/// A kind of block, with the marks around it.
struct Form {
    opening: &'static str,
    closing: &'static str,
    make: fn(&[ReportedRun]) -> Result<String, &str>,
}

const SUMMARY: Form =
    Form { opening: "<!-- bench:summary", closing: "<!-- /bench:summary -->", make: block };
const BRIEF: Form =
    Form { opening: "<!-- bench:brief", closing: "<!-- /bench:brief -->", make: brief };

/// The reason why no block was written.
#[derive(Debug)]
pub enum ReadmeError {
    /// A run cannot be read.
    Read(ReadError),
    /// A run adds no row: a later run has all its tests.
    NothingOf(String),
    /// Neither the caller nor the mark names a run.
    NoRuns(PathBuf),
    /// The document lacks a mark.
    NoMarks(PathBuf),
    /// A run's folder is outside the document's repository.
    Elsewhere(PathBuf),
    /// A file or folder cannot be read or written.
    File(PathBuf, io::Error),
}

impl fmt::Display for ReadmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::NothingOf(run) => {
                write!(
                    f,
                    "{run}: adds no row (a later run has the same tests, or its tests have no row); leave it out"
                )
            }
            Self::NoRuns(path) => write!(
                f,
                "{}: the opening mark names no run; name the runs: weir bench summary RUN… --into {}",
                path.display(),
                path.display()
            ),
            Self::NoMarks(path) => {
                write!(
                    f,
                    "{}: put the lines `{} -->` and `{}` where the figures shall be, or `{} -->` and `{}` for a few of them",
                    path.display(),
                    SUMMARY.opening,
                    SUMMARY.closing,
                    BRIEF.opening,
                    BRIEF.closing
                )
            }
            Self::Elsewhere(run) => {
                write!(
                    f,
                    "{}: outside the repository of the document, so no link can lead there",
                    run.display()
                )
            }
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for ReadmeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::File(_, error) => Some(error),
            _ => None,
        }
    }
}

/// A document and its block.
struct Readme {
    form: &'static Form,
    before: String,
    /// Folders in the mark, relative to the document.
    runs: Vec<String>,
    block: String,
    after: String,
}

impl Readme {
    fn read(path: &Path) -> Result<Self, ReadmeError> {
        let text =
            fs::read_to_string(path).map_err(|error| ReadmeError::File(path.to_owned(), error))?;
        Self::parse(&text).ok_or_else(|| ReadmeError::NoMarks(path.to_owned()))
    }

    fn parse(text: &str) -> Option<Self> {
        [&SUMMARY, &BRIEF].into_iter().find_map(|form| Self::of(form, text))
    }

    fn of(form: &'static Form, text: &str) -> Option<Self> {
        let (before, rest) = text.split_once(form.opening)?;
        let (runs, rest) = rest.split_once(OPENING_END)?;
        let (block, after) = rest.split_once(form.closing)?;
        let runs = runs.split_whitespace().map(str::to_owned).collect();
        Some(Self { form, before: before.into(), runs, block: block.into(), after: after.into() })
    }

    fn text(&self) -> String {
        let Self { form: Form { opening, closing, .. }, before, runs, block, after } = self;
        let runs: String = runs.iter().map(|run| format!(" {run}")).collect();
        format!("{before}{opening}{runs} {OPENING_END}{block}{closing}{after}")
    }

    /// Generates the block again.
    fn made(&self, path: &Path) -> Result<String, ReadmeError> {
        made(folder(path), &self.runs, self.form.make)
    }

    /// Uses the caller's runs. Without any, keeps the runs of the mark.
    fn choose(&mut self, path: &Path, named: &[PathBuf]) -> Result<(), ReadmeError> {
        if !named.is_empty() {
            let base = folder(path);
            let of = |run: &PathBuf| relative(base, run);
            self.runs = named.iter().map(of).collect::<Result<_, _>>()?;
        }
        if self.runs.is_empty() {
            return Err(ReadmeError::NoRuns(path.to_owned()));
        }
        Ok(())
    }
}

fn folder(readme: &Path) -> &Path {
    match readme.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The path from the document's folder to the run's. Both must be in one repository. Without a repository, the run must
/// be below `base`.
fn relative(base: &Path, run: &Path) -> Result<String, ReadmeError> {
    let whole =
        |path: &Path| path.canonicalize().map_err(|error| ReadmeError::File(path.into(), error));
    let (base, whole_run) = (whole(base)?, whole(run)?);
    let root = base.ancestors().find(|it| it.join(".git").exists()).unwrap_or(&base);
    if !whole_run.starts_with(root) {
        return Err(ReadmeError::Elsewhere(run.to_owned()));
    }
    let shared = base.ancestors().find(|it| whole_run.starts_with(it)).unwrap_or(root);
    let up = base.strip_prefix(shared).map_or(0, |below| below.components().count());
    let down = whole_run.strip_prefix(shared).unwrap_or(&whole_run);
    Ok(format!("{}{}", "../".repeat(up), down.display()))
}

/// Generates the block of these runs, whose folders are relative to `base`.
fn made(
    base: &Path,
    runs: &[String],
    make: fn(&[ReportedRun]) -> Result<String, &str>,
) -> Result<String, ReadmeError> {
    let read = |folder: &String| {
        let report = Report::new(read(&base.join(folder)).map_err(ReadmeError::Read)?);
        let verdicts = Verdicts::new(&report);
        Ok(ReportedRun { folder: folder.clone(), report, verdicts })
    };
    let runs: Vec<ReportedRun> = runs.iter().map(read).collect::<Result<_, _>>()?;
    make(&runs).map_err(|run| ReadmeError::NothingOf(run.to_owned()))
}

/// The summary of these runs as text. Links are relative to the current folder.
pub fn print(runs: &[PathBuf]) -> Result<String, ReadmeError> {
    let runs: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
    made(Path::new("."), &runs, SUMMARY.make)
}

/// Writes the block of these runs between the document's marks. Without runs, generates the block again from the runs
/// in the mark.
pub fn write(readme: &Path, runs: &[PathBuf]) -> Result<(), ReadmeError> {
    let mut text = Readme::read(readme)?;
    text.choose(readme, runs)?;
    text.block = text.made(readme)?;
    replace(readme, text.text().as_bytes())
        .map_err(|error| ReadmeError::File(readme.to_owned(), error))
}

/// Whether the document's block equals a newly generated one.
pub fn is_current(readme: &Path) -> Result<bool, ReadmeError> {
    let mut text = Readme::read(readme)?;
    text.choose(readme, &[])?;
    Ok(text.made(readme)? == text.block)
}
