//! Reads named files, bounded in size and time.
//!
//! A regular file may behave like a pipe: `/proc/kmsg` returns the kernel's next log lines, and blocks its reader until
//! there are some. So no read waits: a file that has neither bytes nor an end is refused at once, and an endless one at
//! its limit. Devices and named pipes are not even opened, since opening can block or have an effect.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// Maximum time to read a file.
pub const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Bytes between two checks of the time.
const STEP_BYTES: u64 = 1 << 20;

/// Pause before an empty open pipe is checked again.
const PIPE_PAUSE: Duration = Duration::from_millis(5);

/// The reason why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The file cannot be opened.
    Open(io::Error),
    /// The file cannot be read.
    Read(io::Error),
    /// The path names something other than a file.
    NotAFile(&'static str),
    /// The file exceeds the maximum size.
    TooLarge,
    /// The file provides no data now, and has no end.
    Endless,
    /// The file was not read to its end in [`READ_TIME_MAX`].
    Late,
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => {
                write!(formatter, "it cannot be opened: {}", without_number(error))
            }
            Self::Read(error) => {
                write!(formatter, "it cannot be read: {}", without_number(error))
            }
            Self::NotAFile(what) => write!(formatter, "it is {what}, not a file"),
            Self::TooLarge => formatter.write_str("it is too large"),
            Self::Endless => formatter.write_str("it never ends: reading it would wait for more"),
            Self::Late => write!(formatter, "it was not read within {READ_TIME_MAX:?}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// `Permission denied` instead of `Permission denied (os error 13)`.
pub fn without_number(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

/// Kinds of files that may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedFiles {
    /// Regular files only.
    Regular,
    /// Regular files, and pipes that a shell made (`<(…)`, `/dev/stdin`): they have no path of their own, and already
    /// have a writer.
    RegularOrPipe,
}

/// A fingerprint of a file's content, which tells whether it has changed.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Reads a whole regular file, if it has at most this many bytes.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    read_within(path, bytes_max, AcceptedFiles::Regular, READ_TIME_MAX)
}

/// Like [`read`], but also accepts a pipe.
pub fn read_file_or_pipe(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    read_within(path, bytes_max, AcceptedFiles::RegularOrPipe, READ_TIME_MAX)
}

/// Like the functions above, with other accepted kinds and another time limit.
pub fn read_within(
    path: &Path,
    bytes_max: u64,
    accepted: AcceptedFiles,
    time_max: Duration,
) -> Result<Vec<u8>, ReadError> {
    let metadata = fs::metadata(path).map_err(ReadError::Open)?;
    refuse_others(path, &metadata, accepted)?;
    // If another file takes its place in the meantime, opening it must not block either.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
        .open(path)
        .map_err(ReadError::Open)?;
    let metadata = file.metadata().map_err(ReadError::Open)?;
    refuse_others(path, &metadata, accepted)?;
    if metadata.is_file() && metadata.len() > bytes_max {
        return Err(ReadError::TooLarge);
    }
    read_to_end(&mut file, bytes_max, metadata.is_file(), Instant::now() + time_max)
}

fn read_to_end(
    file: &mut File,
    bytes_max: u64,
    is_regular: bool,
    deadline: Instant,
) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    loop {
        match file.by_ref().take(STEP_BYTES).read_to_end(&mut bytes) {
            Ok(count) if u64::try_from(count).unwrap_or(STEP_BYTES) < STEP_BYTES => {
                let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                return if count > bytes_max { Err(ReadError::TooLarge) } else { Ok(bytes) };
            }
            Ok(_) => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(ReadError::Read(error));
            }
            Err(_) if is_regular => return Err(ReadError::Endless),
            Err(_) => thread::sleep(PIPE_PAUSE),
        }
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
            return Err(ReadError::TooLarge);
        }
        if Instant::now() >= deadline {
            return Err(ReadError::Late);
        }
    }
}

fn refuse_others(
    path: &Path,
    metadata: &Metadata,
    accepted: AcceptedFiles,
) -> Result<(), ReadError> {
    let kind = metadata.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo()
        && accepted == AcceptedFiles::RegularOrPipe
        && fs::canonicalize(path).is_err()
    {
        return Ok(());
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(ReadError::NotAFile(what))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::process::Command;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn regular(path: &Path, bytes_max: u64) -> String {
        match read_within(path, bytes_max, AcceptedFiles::Regular, SOON) {
            Ok(bytes) => format!("{} bytes", bytes.len()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn sizes_are_exact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let step = usize::try_from(STEP_BYTES).unwrap();
        for size in [0, 1, 4_096, step - 1, step, step + 1, 2 * step] {
            fs::write(&path, vec![b'x'; size]).unwrap();
            let limit = size as u64;
            assert_eq!(regular(&path, limit), format!("{size} bytes"));
            if size > 0 {
                assert_eq!(regular(&path, limit - 1), "it is too large");
            }
        }
    }

    #[test]
    fn what_is_no_file_is_not_even_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let check = |path: &Path, expected: &str| {
            assert_eq!(regular(path, 1 << 20), expected, "{}", path.display());
            let either = read_within(path, 1 << 20, AcceptedFiles::RegularOrPipe, SOON);
            assert_eq!(either.unwrap_err().to_string(), expected, "{}", path.display());
        };
        check(folder.path(), "it is a directory, not a file");
        check(&pipe, "it is a named pipe, not a file");
        check(&socket, "it is a socket, not a file");
        check(Path::new("/dev/zero"), "it is a device, not a file");
        check(Path::new("/dev/null"), "it is a device, not a file");
        check(&folder.path().join("none"), "it cannot be opened: No such file or directory");
    }

    /// `/proc/kmsg` is regular by name only. A process that may not open it needs no protection
    /// from it.
    #[test]
    fn a_file_that_keeps_its_reader_waiting_is_refused() {
        let error = regular(Path::new("/proc/kmsg"), u64::MAX);
        assert!(
            error == "it never ends: reading it would wait for more" || error.contains("cannot be"),
            "{error}"
        );
    }

    #[test]
    fn a_pipe_of_a_shell_has_its_time() {
        let (reader, mut writer) = io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let path = Path::new(&path);
        assert_eq!(regular(path, 100), "it is a named pipe, not a file");
        writer.write_all(b"hello").unwrap();
        let read =
            |bytes_max, time| read_within(path, bytes_max, AcceptedFiles::RegularOrPipe, time);
        let late = read(100, Duration::from_millis(30)).unwrap_err();
        assert!(matches!(late, ReadError::Late), "{late}");
        writer.write_all(b"hello").unwrap();
        let large = read(4, SOON).unwrap_err();
        assert!(matches!(large, ReadError::TooLarge), "{large}");
        let later = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            writer.write_all(b"whole").unwrap();
        });
        assert_eq!(read(100, SOON).unwrap(), b"whole");
        later.join().unwrap();
    }
}
