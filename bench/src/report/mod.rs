//! The report of a run: an HTML page and Markdown.
//!
//! `source` reads and checks `run.json`, `model` calculates figures by product and setting, `verdict` finds wins and
//! losses, and the other modules write the report. Nothing is measured here.

mod chart;
mod configurations;
mod discards;
mod facts;
mod goals;
mod handshakes;
mod html;
mod knee;
mod limits;
mod markdown;
mod method;
pub(crate) mod model;
pub(crate) mod percentiles;
mod points;
mod published_figures;
pub mod readme;
mod source;
pub mod stats;
mod story;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
mod verdict;

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::catalogue;
use model::Report;
use verdict::Verdicts;

pub use knee::{Knee, Knees, P99_MAX_MS};
pub use source::{RUN_BYTES_MAX, ReadError, read};

/// Name of the page in a run's folder.
pub const HTML_FILE: &str = "report.html";

/// Name of the Markdown in a run's folder.
pub const MARKDOWN_FILE: &str = "report.md";

/// Paths of the written files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFiles {
    /// The page.
    pub html: PathBuf,
    /// The Markdown.
    pub markdown: PathBuf,
}

/// The reason why no report was written.
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
pub fn write(run_folder: &Path) -> Result<WrittenFiles, ReportError> {
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
        WrittenFiles { html: run_folder.join(HTML_FILE), markdown: run_folder.join(MARKDOWN_FILE) };
    let save = |path: &Path, text: String| {
        replace(path, text.as_bytes()).map_err(|error| ReportError::Write(path.to_owned(), error))
    };
    save(&written.html, html::page(&report, &verdicts, &kept).into_string())?;
    save(&written.markdown, markdown::page(&report, &verdicts))?;
    Ok(written)
}

/// Replaces a whole file. A symbolic link at `path` is replaced, not followed: a run's folder may come from elsewhere, and a
/// report must not overwrite the link's target.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // A killed process with the same id may have left the temporary file, or an attacker may have placed a link.
    // Removing a link does not remove its target.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = fs::File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The caller gets the first error. Removing a file that was never created also fails.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        fs::write(place("precious"), "kept").expect("a file");
        std::os::unix::fs::symlink(place("precious"), place(HTML_FILE)).expect("a link");
        for text in ["first", "second"] {
            replace(&place(HTML_FILE), text.as_bytes()).expect("a file");
            assert_eq!(fs::read_to_string(place(HTML_FILE)).expect("a report"), text);
        }
        let kind = fs::symlink_metadata(place(HTML_FILE)).expect("a report").file_type();
        assert!(kind.is_file());
        assert_eq!(fs::read_to_string(place("precious")).expect("a file"), "kept");
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            2,
            "something is left over"
        );

        // A failed replacement leaves nothing behind.
        fs::create_dir(place("taken")).expect("a folder");
        assert!(replace(&place("taken"), b"text").is_err());
        assert_eq!(
            fs::read_dir(folder.path()).expect("a folder").count(),
            3,
            "something is left over"
        );
    }
}
