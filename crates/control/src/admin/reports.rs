//! Reports of `weir bench` in a configured folder: read-only, and only `NAME/report.html`.
//!
//! A report may come from anyone. It gets an origin of its own without scripts (`sandbox`), so it can neither read the API nor
//! call it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use axum::http::StatusCode;
use rustix::fs::OFlags;
use weir_api::page::Page;
use weir_api::reports::BenchReport;
use weir_event_loop::error_text::io_error_text;

use super::answer::Answer;
use super::ask::Ask;
use super::page::{PAGE, page};
use super::pools::clip;
use super::problem::Problem;
use super::route::{Content, HandlerResult, Route};
use crate::time::rfc3339;

/// The name of the file with a report.
const FILE: &str = "report.html";

/// The default folder, in the state directory.
const FOLDER: &str = "reports";

/// Maximum number of entries that are read.
const ENTRIES_MAX: usize = 10_000;

/// Maximum size of a report in bytes.
const REPORT_BYTES_MAX: u64 = 16 << 20;

/// The media type of reports.
const HTML: &str = "text/html; charset=utf-8";

/// The content security policy of a report: only styles and pictures that the report contains.
pub(super) const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/reports", "listReports", "Reports of `weir bench`, the newest first", list)
            .query(PAGE)
            .statuses(&[StatusCode::NOT_FOUND])
            .answers::<Page<BenchReport>>(),
        Route::get("/v1/reports/{name}", "getReport", "A report, as a page without scripts", one)
            .content(Content::Text(HTML)),
    ]
}

/// A report in the folder: its modification time in milliseconds since 1970, its name and its size.
type ReportFile = (u64, String, u64);

fn folder(ask: &Ask) -> PathBuf {
    let snapshot = &ask.context.observed.table().snapshot;
    snapshot.admin.reports.clone().unwrap_or_else(|| snapshot.state_dir.join(FOLDER))
}

fn list(ask: &Ask) -> HandlerResult {
    let folder = folder(ask);
    let found = match found(&folder) {
        Ok(found) => found,
        // The folder does not exist yet.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(unreadable(&folder, &error)),
    };
    let page = page(
        &ask.query,
        found.into_iter(),
        |(_, name, _)| name.clone(),
        |(written_ms, name, bytes)| BenchReport {
            name,
            written: rfc3339(written_ms),
            bytes,
            is_shown: bytes <= REPORT_BYTES_MAX,
        },
    )?;
    Answer::json(&page)
}

fn unreadable(folder: &Path, error: &io::Error) -> Problem {
    let (folder, why) = (folder.display(), io_error_text(error));
    Problem::not_found(format_args!("the folder {folder} cannot be read: {why}"))
        .help("weir's user needs the right to read it: see `admin.reports`")
}

/// All reports in the folder, newest first. Links are not followed.
fn found(folder: &Path) -> io::Result<Vec<ReportFile>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(ENTRIES_MAX) {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // A folder without a report, or a folder that was removed in the meantime.
        let Ok(file) = open(folder, &name) else { continue };
        let Ok(metadata) = file.metadata() else { continue };
        let written = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written_ms = written.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        all.push((written_ms, name, metadata.len()));
    }
    all.sort_by(|one, other| other.cmp(one));
    Ok(all)
}

/// Opens the report with this name. Neither the folder nor the file may be a link.
fn open(folder: &Path, name: &str) -> io::Result<File> {
    let mut parts = Path::new(name).components();
    let is_one = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    let below = folder.join(name);
    if !is_one || !std::fs::symlink_metadata(&below)?.is_dir() {
        return Err(ErrorKind::NotFound.into());
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(below.join(FILE))?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::NotFound.into()),
    }
}

fn one(ask: &Ask) -> HandlerResult {
    let name = ask.name("name");
    let missing = |_: io::Error| {
        Problem::not_found(format_args!("there is no report `{}`", clip(name)))
            .help("/v1/reports lists all")
    };
    let file = open(&folder(ask), name).map_err(missing)?;
    let mut text = String::new();
    let read = file.take(REPORT_BYTES_MAX + 1).read_to_string(&mut text);
    let is_whole = read.as_ref().is_ok_and(|bytes| *bytes as u64 <= REPORT_BYTES_MAX);
    match read {
        Ok(_) if is_whole => Ok(Answer::text(StatusCode::OK, HTML, text).policy(POLICY)),
        Ok(_) => {
            let limit = REPORT_BYTES_MAX >> 20;
            Err(Problem::not_found(format_args!("the report is larger than {limit} MiB"))
                .help("open its file"))
        }
        Err(error) => {
            let why = io_error_text(&error);
            Err(Problem::not_found(format_args!("the report cannot be read: {why}")))
        }
    }
}

#[cfg(test)]
mod tests;
