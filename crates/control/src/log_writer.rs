//! The access log's writer: a thread that takes finished lines from the workers and writes them.
//!
//! Workers hand over batches of whole lines through a bounded channel and never wait: when it is full
//! they drop the batch and count its lines. What cannot be written here (no space, the reader of the
//! pipe is gone) is counted too and told as an event at most once a second; the writer goes on and
//! tries the next batch.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use weir_config::snapshot::LogTarget;
use weir_dataplane::reports::LogBatch;

use crate::events::Events;
use weir_dataplane::error_text::io_error_text;

/// Batches that may wait to be written, of all workers together.
pub const BATCHES_WAITING_MAX: usize = 256;

/// Events about what could not be written come at most this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// A descriptor that was handed to us non-blocking is tried again after this time.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// What the writer did.
#[derive(Debug, Default)]
pub struct LogCounters {
    /// Lines written.
    pub lines_written: AtomicU64,
    /// Lines lost because writing failed.
    pub lines_lost: AtomicU64,
}

/// The running writer.
#[derive(Debug)]
pub struct LogWriter {
    batches: SyncSender<LogBatch>,
    orders: Arc<Mutex<Option<LogTarget>>>,
    counters: Arc<LogCounters>,
    thread: Option<JoinHandle<()>>,
}

/// A log file could not be opened.
#[derive(Debug)]
pub struct OpenError {
    target: LogTarget,
    error: io::Error,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let target = match &self.target {
            LogTarget::Stdout => "standard output".into(),
            LogTarget::File(path) => path.display().to_string(),
        };
        write!(formatter, "cannot open {target}: {}", io_error_text(&self.error))
    }
}

impl std::error::Error for OpenError {}

impl LogWriter {
    /// Opens the target and starts the thread.
    pub fn start(target: &LogTarget, events: Events) -> Result<Self, OpenError> {
        let output = open(target)?;
        Self::with_output(output, events)
            .map_err(|error| OpenError { target: target.clone(), error })
    }

    fn with_output(output: File, events: Events) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(BATCHES_WAITING_MAX);
        let orders = Arc::new(Mutex::new(None));
        let counters = Arc::new(LogCounters::default());
        let mut writer = Writer {
            output,
            orders: Arc::clone(&orders),
            counters: Arc::clone(&counters),
            events,
            torn: false,
            reported: None,
            lost_unreported: 0,
        };
        let thread =
            thread::Builder::new().name("weir-log".into()).spawn(move || writer.run(&waiting))?;
        Ok(Self { batches, orders, counters, thread: Some(thread) })
    }

    /// Where workers send their batches.
    pub fn sender(&self) -> SyncSender<LogBatch> {
        self.batches.clone()
    }

    /// What was written and lost.
    pub fn counters(&self) -> Arc<LogCounters> {
        Arc::clone(&self.counters)
    }

    /// Checks that the target can be opened now, so that a reload can refuse a bad one.
    pub fn check(target: &LogTarget) -> Result<(), OpenError> {
        open(target).map(drop)
    }

    /// From the next batch on, lines go to `target`, opened anew: a file that was moved away is let go.
    pub fn reopen(&self, target: &LogTarget) {
        *self.orders.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(target.clone());
        // An empty batch wakes the writer. A full channel is awake already.
        let _ = self.batches.try_send(LogBatch { bytes: Vec::new(), lines: 0 });
    }

    /// Writes what waits and ends, if that takes no longer than `timeout`; call it when the workers
    /// have ended. Returns whether everything was written.
    pub fn finish(mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let (closed, _) = sync_channel(1);
        drop(std::mem::replace(&mut self.batches, closed));
        let Some(thread) = self.thread.take() else {
            return true;
        };
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(RETRY_INTERVAL);
        }
        thread.join().is_ok()
    }
}

fn open(target: &LogTarget) -> Result<File, OpenError> {
    let opened = match target {
        LogTarget::Stdout => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        LogTarget::File(path) => open_file(path),
    };
    opened.map_err(|error| OpenError { target: target.clone(), error })
}

/// A named pipe is opened without waiting for its reader: a reload would stand still, and with it the
/// monitors and the admin listener.
fn open_file(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    opened.map_err(|error| {
        let is_pipe = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
        if Errno::from_io_error(&error) == Some(Errno::NXIO) && is_pipe() {
            io::Error::other("nothing reads this pipe")
        } else {
            error
        }
    })
}

/// The state of the writer's thread.
struct Writer {
    output: File,
    orders: Arc<Mutex<Option<LogTarget>>>,
    counters: Arc<LogCounters>,
    events: Events,
    /// A write ended inside a line.
    torn: bool,
    reported: Option<Instant>,
    lost_unreported: u64,
}

impl Writer {
    fn run(&mut self, waiting: &Receiver<LogBatch>) {
        for batch in waiting {
            self.obey();
            if batch.bytes.is_empty() {
                continue;
            }
            let lines = u64::from(batch.lines);
            match self.write(&batch.bytes) {
                Ok(()) => {
                    self.counters.lines_written.fetch_add(lines, Relaxed);
                }
                Err(error) => self.lose(lines, &error),
            }
        }
    }

    /// Opens a new target if one was ordered; on failure stays with the one it has.
    fn obey(&mut self) {
        let order = self.orders.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(target) = order else { return };
        match open(&target) {
            Ok(output) => {
                self.output = output;
                self.torn = false;
            }
            Err(error) => {
                self.events.error("access log", format_args!("stays with the old target: {error}"))
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.write_all(&mut &b"\n"[..])?;
            self.torn = false;
        }
        let length = bytes.len();
        let result = self.write_all(&mut bytes);
        self.torn = result.is_err() && bytes.len() < length;
        result
    }

    /// Writes until `bytes` is empty; on error `bytes` is what was not written.
    fn write_all(&mut self, bytes: &mut &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.output.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => *bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A pipe, or whoever started weir made its output non-blocking: waiting is this
                // thread's job.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(RETRY_INTERVAL)
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn lose(&mut self, lines: u64, error: &io::Error) {
        self.counters.lines_lost.fetch_add(lines, Relaxed);
        self.lost_unreported += lines;
        if self.reported.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL) {
            let lost = std::mem::take(&mut self.lost_unreported);
            self.reported = Some(Instant::now());
            self.events
                .error("access log", format_args!("lost {lost} lines: {}", io_error_text(error)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::testing::Captured;
    use std::io::Read;
    use std::path::PathBuf;

    fn batch(text: &str) -> LogBatch {
        LogBatch { bytes: text.as_bytes().to_vec(), lines: text.lines().count() as u32 }
    }

    /// A directory of this test, removed at its end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const PATIENCE: Duration = Duration::from_secs(10);

    fn eventually(condition: impl Fn() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn writes_and_follows_a_rotated_file() {
        let directory = Directory::new("log-rotate");
        let (path, moved) = (directory.file("access.log"), directory.file("access.log.1"));
        let target = LogTarget::File(path.clone());
        let (events, _) = Captured::new();
        let writer = LogWriter::start(&target, events).unwrap();
        let sender = writer.sender();
        sender.send(batch("one\ntwo\n")).unwrap();
        eventually(|| writer.counters.lines_written.load(Relaxed) == 2);
        std::fs::rename(&path, &moved).unwrap();
        writer.reopen(&target);
        // Even without a further line the old file is let go.
        eventually(|| path.exists());
        sender.send(batch("three\n")).unwrap();
        drop(sender);
        assert!(writer.finish(PATIENCE));
        assert_eq!(std::fs::read_to_string(moved).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "three\n");
    }

    #[test]
    fn a_target_that_cannot_be_opened_is_refused_or_leaves_the_old_one() {
        let directory = Directory::new("log-open");
        let path = directory.file("access.log");
        let bad = LogTarget::File(directory.file("missing/access.log"));
        let (events, captured) = Captured::new();
        let error = LogWriter::start(&bad, events.clone()).unwrap_err().to_string();
        assert!(error.ends_with("access.log: no such file"), "{error}");
        assert!(LogWriter::check(&bad).is_err());
        let writer = LogWriter::start(&LogTarget::File(path.clone()), events.clone()).unwrap();
        writer.reopen(&bad);
        writer.sender().send(batch("line\n")).unwrap();
        assert!(writer.finish(PATIENCE));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "line\n");
        assert!(
            captured.lines(&events)[0]
                .starts_with("error access log stays with the old target: cannot open")
        );
    }

    #[test]
    fn a_named_pipe_needs_a_reader_and_is_never_waited_for() {
        let directory = Directory::new("log-pipe");
        let path = directory.file("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let target = LogTarget::File(path.clone());
        let error = LogWriter::check(&target).unwrap_err().to_string();
        assert!(error.ends_with("pipe: nothing reads this pipe"), "{error}");
        // For reading and writing: on Linux that does not wait for the other side.
        let mut reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (events, _) = Captured::new();
        let writer = LogWriter::start(&target, events).unwrap();
        writer.sender().send(batch("line\n")).unwrap();
        assert!(writer.finish(PATIENCE));
        let mut line = [0; 5];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"line\n");
    }

    #[test]
    fn a_full_pipe_blocks_the_writer_only() {
        let (mut reader, pipe) = std::io::pipe().unwrap();
        let (events, _) = Captured::new();
        let writer =
            LogWriter::with_output(File::from(std::os::fd::OwnedFd::from(pipe)), events).unwrap();
        let sender = writer.sender();
        let line = format!("{}\n", "x".repeat(64 * 1024 - 1));
        let sent =
            (0..10 * BATCHES_WAITING_MAX).filter(|_| sender.try_send(batch(&line)).is_ok()).count();
        assert!((BATCHES_WAITING_MAX..=BATCHES_WAITING_MAX + 4).contains(&sent), "{sent}");
        assert!(writer.counters.lines_written.load(Relaxed) <= 4);
        drop(sender);
        let drain = thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        assert!(writer.finish(PATIENCE));
        assert_eq!(drain.join().unwrap(), sent * line.len());
    }

    #[test]
    fn a_stuck_writer_does_not_hold_up_the_end() {
        let (_reader, pipe) = std::io::pipe().unwrap();
        let (events, _) = Captured::new();
        let writer =
            LogWriter::with_output(File::from(std::os::fd::OwnedFd::from(pipe)), events).unwrap();
        writer.sender().send(batch(&"x\n".repeat(200_000))).unwrap();
        assert!(!writer.finish(Duration::from_millis(50)));
    }

    #[test]
    fn a_closed_pipe_is_counted_and_reported_once_a_second() {
        let (reader, pipe) = std::io::pipe().unwrap();
        drop(reader);
        let (events, captured) = Captured::new();
        let writer =
            LogWriter::with_output(File::from(std::os::fd::OwnedFd::from(pipe)), events.clone())
                .unwrap();
        let counters = writer.counters();
        for _ in 0..100 {
            writer.sender().send(batch("a\nb\n")).unwrap();
        }
        assert!(writer.finish(PATIENCE));
        assert_eq!(counters.lines_lost.load(Relaxed), 200);
        let lines = captured.lines(&events);
        assert!((1..=2).contains(&lines.len()), "{lines:?}");
        assert_eq!(lines[0], "error access log lost 2 lines: closed by the other side");
    }

    #[test]
    fn no_space_left_is_survived() {
        let (events, captured) = Captured::new();
        let writer =
            LogWriter::start(&LogTarget::File("/dev/full".into()), events.clone()).unwrap();
        writer.sender().send(batch("a\n")).unwrap();
        let counters = writer.counters();
        eventually(|| counters.lines_lost.load(Relaxed) == 1);
        let directory = Directory::new("log-full");
        let path = directory.file("access.log");
        writer.reopen(&LogTarget::File(path.clone()));
        writer.sender().send(batch("b\n")).unwrap();
        assert!(writer.finish(PATIENCE));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "b\n");
        assert_eq!(
            captured.lines(&events),
            ["error access log lost 1 lines: no space left on the device"]
        );
    }
}
