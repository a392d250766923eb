//! The report of a run: one HTML page and its Markdown.
//!
//! `source` reads and checks `run.json`, `model` brings it into figures by product and setting,
//! `verdict` says what was won and lost, and the rest writes that down. Nothing is measured here.

mod chart;
mod configurations;
mod facts;
mod html;
mod knee;
mod markdown;
pub(crate) mod model;
mod percentiles;
mod source;
pub mod stats;
mod story;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
mod verdict;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalogue;
use model::Report;
use verdict::Verdicts;

pub use knee::{Knee, Knees, P99_MAX_MS};
pub use source::{RUN_BYTES_MAX, ReadError, read};

/// The page in a run's folder.
pub const HTML_FILE: &str = "report.html";

/// The Markdown beside it.
pub const MARKDOWN_FILE: &str = "report.md";

/// The files that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The page.
    pub html: PathBuf,
    /// The Markdown.
    pub markdown: PathBuf,
}

/// Why there is no report.
#[derive(Debug)]
pub enum ReportError {
    /// The run cannot be read.
    Read(ReadError),
    /// The kept configurations cannot be read.
    Configurations(PathBuf, io::Error),
    /// A file cannot be written.
    Write(PathBuf, io::Error),
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Configurations(path, error) | Self::Write(path, error) => {
                write!(f, "{}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Configurations(_, error) | Self::Write(_, error) => Some(error),
        }
    }
}

/// Reads the run in that folder and writes [`HTML_FILE`] and [`MARKDOWN_FILE`] into it.
pub fn write(run_folder: &Path) -> Result<Written, ReportError> {
    let report = Report::new(source::read(run_folder).map_err(ReportError::Read)?);
    let verdicts = Verdicts::new(&report);
    let rank = |name: &str| {
        let products = report.run.products.iter().map(|product| product.name.as_str());
        let tests = catalogue::TESTS.iter().map(|test| test.name);
        products.chain(tests).position(|known| known == name).unwrap_or(usize::MAX)
    };
    let kept = configurations::read(run_folder, rank).map_err(|error| {
        ReportError::Configurations(run_folder.join(configurations::FOLDER), error)
    })?;
    let written =
        Written { html: run_folder.join(HTML_FILE), markdown: run_folder.join(MARKDOWN_FILE) };
    let save = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| ReportError::Write(path.to_owned(), error))
    };
    save(&written.html, html::page(&report, &verdicts, &kept).into_string())?;
    save(&written.markdown, markdown::page(&report, &verdicts))?;
    Ok(written)
}
