//! The file that stores the versions of the overlay.
//!
//! Each line is an entry: a checksum, a space, JSON. Lines are appended and synced to disk before a version is put in force.
//! An incomplete last line is dropped when the file is opened, because its transaction was not acknowledged. A file that has
//! become too large is rewritten as a temporary file, which then replaces it atomically.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest;
use data_encoding::HEXLOWER;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use weir_config::file;
use weir_sources::overlay::Overlay;

use super::history::{History, VERSIONS_MAX, Version};

/// The name of the file in `state_dir`.
const FILE_NAME: &str = "overlay.journal";

/// Maximum size of the file. When it is reached, the file is rewritten with only the newest versions.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Maximum size of a file that is read. weir does not write larger files.
const READ_BYTES_MAX: u64 = 4 * FILE_BYTES_MAX;

/// Number of bytes of the SHA-256 hash in a checksum. Each byte is written as two hexadecimal digits.
const CHECKSUM_BYTES: usize = 16;

/// An entry of the journal: one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The overlay after a version, which replaces all lines before it.
    Base { version: u64, overlay: Overlay },
    /// A version was accepted.
    Version(Arc<Version>),
    /// A version was confirmed.
    Confirmed { version: u64, author: String, unix_ms: u64 },
}

/// The reason why the journal cannot be read or written.
#[derive(Debug)]
pub enum JournalError {
    /// The file cannot be read.
    Read(PathBuf, String),
    /// This line is damaged, but a later line is intact.
    Damaged(PathBuf, usize),
    /// The file cannot be written.
    Write(PathBuf, io::Error),
    /// Another process uses the file.
    Foreign(PathBuf),
}

impl fmt::Display for JournalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path, why) => {
                write!(formatter, "the overlay in {} cannot be read: {why}", path.display())
            }
            Self::Damaged(path, line) => write!(
                formatter,
                "the overlay in {} is damaged in line {line}, with whole lines behind it: \
                 restore the file, or move it away to begin without an overlay",
                path.display()
            ),
            Self::Write(path, error) => write!(
                formatter,
                "the overlay cannot be kept in {}: {}; set `state_dir` to a directory that weir may write to",
                path.display(),
                weir_event_loop::error_text::io_error_text(error)
            ),
            Self::Foreign(path) => write!(
                formatter,
                "another process has written to the overlay in {}: give each weir a `state_dir` of its own, and restart this one",
                path.display()
            ),
        }
    }
}

impl std::error::Error for JournalError {}

/// The part of the journal that was left out at the start, in words, until a version is stored in its place.
#[derive(Debug)]
pub(crate) struct LeftOut(Mutex<Option<String>>);

impl LeftOut {
    pub(super) fn of(journal: &Journal) -> Self {
        Self(Mutex::new(journal.left_out()))
    }

    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The problem; `None`: all of the journal is in use.
    pub fn told(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The journal file, as this process knows it.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// The size of all complete lines. An incomplete line may follow.
    whole_bytes: u64,
    /// The size of the file.
    bytes: u64,
    /// The number of versions in the file.
    versions: usize,
}

impl Journal {
    /// Reads the journal in this directory, if it exists.
    pub fn open(state_dir: &Path) -> Result<(Self, History), JournalError> {
        let path = state_dir.join(FILE_NAME);
        let bytes = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            // Other errors occur again at the read, which reports the reason.
            _ => file::read(&path, READ_BYTES_MAX)
                .map_err(|error| JournalError::Read(path.clone(), error.to_string()))?,
        };
        let mut history = History::default();
        let (mut whole_bytes, mut versions) = (0, 0);
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        while let Some((index, line)) = lines.next() {
            match read_line(line).map(|entry| take(&mut history, entry)) {
                Some(Some(of_version)) => versions += usize::from(of_version),
                // An incomplete last line is the result of a crash. If a complete line follows, the file is damaged.
                _ if !lines.any(|(_, line)| read_line(line).is_some()) => break,
                _ => return Err(JournalError::Damaged(path, index + 1)),
            }
            whole_bytes += line.len();
        }
        let length = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let (whole_bytes, bytes) = (length(whole_bytes), length(bytes.len()));
        Ok((Self { path, whole_bytes, bytes, versions }, history))
    }

    /// What the file has behind its last whole line, in words; `None`: nothing. The next version overwrites it.
    pub fn left_out(&self) -> Option<String> {
        let bytes = self.bytes.checked_sub(self.whole_bytes).filter(|bytes| *bytes > 0)?;
        Some(format!(
            "the last {bytes} bytes of {} are no whole version, and are left out: a write that a crash has cut off, or damage. \
             If a version is missing, restore the file and restart; the next change overwrites them",
            self.path.display()
        ))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends all entries or none. They survive a crash once this returns. `history` must contain them already.
    pub fn append(&mut self, entries: &[Entry], history: &History) -> Result<(), JournalError> {
        let mut text = Vec::new();
        for entry in entries {
            text.extend(line(entry));
        }
        let failed = |error| JournalError::Write(self.path.clone(), error);
        let file = self.locked().map_err(failed)?;
        let Some(file) = file else { return Err(JournalError::Foreign(self.path.clone())) };
        let length = file.metadata().map_err(failed)?.len();
        if length != self.bytes {
            return Err(JournalError::Foreign(self.path.clone()));
        }
        let added = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let is_large = self.whole_bytes.saturating_add(added) > FILE_BYTES_MAX;
        if is_large || self.versions > 2 * VERSIONS_MAX {
            return self
                .rewrite(history)
                .map_err(|error| JournalError::Write(self.path.clone(), error));
        }
        if let Err(error) = self.write(&file, &text) {
            // A partly written entry follows the complete lines. If it cannot be removed here, the next write removes it.
            let _ = file.set_len(self.whole_bytes);
            self.bytes = file.metadata().map_or(self.bytes, |it| it.len());
            return Err(JournalError::Write(self.path.clone(), error));
        }
        let of_version = |entry: &&Entry| matches!(entry, Entry::Version(_));
        self.versions += entries.iter().filter(of_version).count();
        self.whole_bytes += added;
        self.bytes = self.whole_bytes;
        Ok(())
    }

    /// Opens the file with an exclusive lock. `None`: another process has locked it.
    fn locked(&self) -> io::Result<Option<File>> {
        let is_new = self.bytes == 0;
        if is_new && let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(is_new).mode(0o600);
        let file = options.open(&self.path)?;
        // A process-owned lock: a forked child does not inherit it.
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, mut file: &File, text: &[u8]) -> io::Result<()> {
        if self.bytes != self.whole_bytes {
            file.set_len(self.whole_bytes)?;
        }
        file.write_all(text)?;
        file.sync_all()?;
        // The directory entry of a new file must survive a crash, too.
        if self.bytes == 0 { sync_folder(&self.path) } else { Ok(()) }
    }

    /// Rewrites the file from `history`, with as many of the newest versions as fit in half of [`FILE_BYTES_MAX`].
    fn rewrite(&mut self, history: &History) -> io::Result<()> {
        let mut kept = history.clone();
        let lines_of = |history: &History| {
            let (overlay, version) = history.base();
            let base = Entry::Base { version, overlay: overlay.clone() };
            let versions = history.versions().map(|version| Entry::Version(Arc::clone(version)));
            let confirmed = newest_confirmed(history);
            std::iter::once(base)
                .chain(versions)
                .chain(confirmed)
                .map(|entry| line(&entry))
                .collect()
        };
        let mut lines: Vec<Vec<u8>> = lines_of(&kept);
        let length = |lines: &[Vec<u8>]| lines.iter().map(Vec::len).sum::<usize>();
        let bytes_max = usize::try_from(FILE_BYTES_MAX / 2).unwrap_or(usize::MAX);
        while length(&lines) > bytes_max && kept.versions().len() > 1 {
            let goes = kept.versions().len().div_ceil(2).min(kept.versions().len() - 1);
            (0..goes).for_each(|_| kept.forget_oldest());
            lines = lines_of(&kept);
        }
        let temporary = self.path.with_extension("journal.new");
        // A crash may have left this temporary file.
        let _ = fs::remove_file(&temporary);
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let text = lines.concat();
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        sync_folder(&self.path)?;
        self.whole_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.bytes = self.whole_bytes;
        self.versions = kept.versions().len();
        Ok(())
    }
}

/// The entry that confirms the newest version, if it was confirmed.
fn newest_confirmed(history: &History) -> Option<Entry> {
    let newest = history.versions().next_back()?;
    let is_confirmed = newest.confirm_until_unix_ms.is_some() && history.unconfirmed().is_none();
    is_confirmed.then(|| Entry::Confirmed {
        version: newest.number,
        author: newest.author.clone(),
        unix_ms: newest.unix_ms,
    })
}

/// Adds an entry to the history. Returns whether the entry is a version; `None`: the entry does not fit the history.
fn take(history: &mut History, entry: Entry) -> Option<bool> {
    match entry {
        Entry::Base { version, overlay } => {
            let is_first = history.version() == 0 && history.versions().len() == 0;
            is_first.then(|| *history = History::beginning_with(overlay, version))?;
            Some(false)
        }
        Entry::Version(version) => history.push(version).ok().map(|()| true),
        Entry::Confirmed { version, .. } => {
            history.confirm(version);
            Some(false)
        }
    }
}

fn line(entry: &Entry) -> Vec<u8> {
    let json = serde_json::to_vec(entry).expect("entries have no keys that are not text");
    let mut line = checksum(&json).into_bytes();
    line.push(b' ');
    line.extend(json);
    line.push(b'\n');
    line
}

/// The entry of a line; `None`: the line is damaged or incomplete.
fn read_line(line: &[u8]) -> Option<Entry> {
    let line = line.strip_suffix(b"\n")?;
    let (sum, json) = line.split_at_checked(2 * CHECKSUM_BYTES)?;
    let json = json.strip_prefix(b" ")?;
    if sum != checksum(json).as_bytes() {
        return None;
    }
    serde_json::from_slice(json).ok()
}

fn checksum(bytes: &[u8]) -> String {
    let sum = digest::digest(&digest::SHA256, bytes);
    HEXLOWER.encode(&sum.as_ref()[..CHECKSUM_BYTES])
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests;
