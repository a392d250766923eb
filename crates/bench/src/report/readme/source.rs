//! Reading the README and its runs, and putting the block back.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Kept, block};
use crate::report::model::Report;
use crate::report::verdict::Verdicts;
use crate::report::{ReadError, read, replace};

const OPENING: &str = "<!-- bench:summary";
const OPENING_END: &str = "-->\n";
const CLOSING: &str = "<!-- /bench:summary -->";

/// Why there is no block: what, where, and how to mend it.
#[derive(Debug)]
pub enum ReadmeError {
    /// A run cannot be read.
    Read(ReadError),
    /// Everything that a run has stands in a later one.
    NothingOf(String),
    /// No run is named, neither by the caller nor by the mark.
    NoRuns(PathBuf),
    /// The README lacks a mark.
    NoMarks(PathBuf),
    /// A run's folder is not below the README's, so that no link leads there.
    Elsewhere(PathBuf),
    /// A file or folder.
    File(PathBuf, io::Error),
}

impl fmt::Display for ReadmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::NothingOf(run) => {
                write!(
                    f,
                    "{run}: every test of it is in a run that is named later, or has no row; leave it out"
                )
            }
            Self::NoRuns(path) => write!(
                f,
                "{}: the mark `{OPENING} … -->` names no run; name them: weir bench summary RUN…",
                path.display()
            ),
            Self::NoMarks(path) => {
                write!(
                    f,
                    "{}: put the lines `{OPENING} -->` and `{CLOSING}` where the figures shall be",
                    path.display()
                )
            }
            Self::Elsewhere(run) => {
                write!(
                    f,
                    "{}: not below the folder of the README, so that no link leads there",
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

/// A README around its block.
struct Readme {
    before: String,
    /// Folders that the mark names, from the README's.
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
        let (before, rest) = text.split_once(OPENING)?;
        let (runs, rest) = rest.split_once(OPENING_END)?;
        let (block, after) = rest.split_once(CLOSING)?;
        let runs = runs.split_whitespace().map(str::to_owned).collect();
        Some(Self { before: before.into(), runs, block: block.into(), after: after.into() })
    }

    fn text(&self) -> String {
        let Self { before, runs, block, after } = self;
        let runs: String = runs.iter().map(|run| format!(" {run}")).collect();
        format!("{before}{OPENING}{runs} {OPENING_END}{block}{CLOSING}{after}")
    }

    /// The runs that are named, or else those of the mark.
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

/// The way from the README's folder to the run's.
fn relative(base: &Path, run: &Path) -> Result<String, ReadmeError> {
    let whole =
        |path: &Path| path.canonicalize().map_err(|error| ReadmeError::File(path.into(), error));
    let (base, whole_run) = (whole(base)?, whole(run)?);
    let below =
        whole_run.strip_prefix(&base).map_err(|_| ReadmeError::Elsewhere(run.to_owned()))?;
    Ok(below.display().to_string())
}

/// The block of these runs; their folders are told as they are linked to, from `base`.
fn made(base: &Path, runs: &[String]) -> Result<String, ReadmeError> {
    let read = |folder: &String| {
        let report = Report::new(read(&base.join(folder)).map_err(ReadmeError::Read)?);
        let verdicts = Verdicts::new(&report);
        Ok(Kept { folder: folder.clone(), report, verdicts })
    };
    let runs: Vec<Kept> = runs.iter().map(read).collect::<Result<_, _>>()?;
    block(&runs).map_err(|run| ReadmeError::NothingOf(run.to_owned()))
}

/// The block of these runs as text; links lead there from the current folder.
pub fn print(runs: &[PathBuf]) -> Result<String, ReadmeError> {
    let runs: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
    made(Path::new("."), &runs)
}

/// Writes the block of these runs, or of those that it names already, between the README's marks.
pub fn write(readme: &Path, runs: &[PathBuf]) -> Result<(), ReadmeError> {
    let mut text = Readme::read(readme)?;
    text.choose(readme, runs)?;
    text.block = made(folder(readme), &text.runs)?;
    replace(readme, text.text().as_bytes())
        .map_err(|error| ReadmeError::File(readme.to_owned(), error))
}

/// Whether the README says what the runs that it names give.
pub fn is_current(readme: &Path) -> Result<bool, ReadmeError> {
    let mut text = Readme::read(readme)?;
    text.choose(readme, &[])?;
    Ok(made(folder(readme), &text.runs)? == text.block)
}
