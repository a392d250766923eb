//! The writer of a log: a thread that receives lines from the workers, and writes them or passes them to the writer of
//! another log with the same destination.
//!
//! Workers send batches of whole lines through a bounded channel, and never wait: if it is full, they drop the batch and
//! count its lines. Lines that cannot be written (no space, or a pipe without a reader) are counted too, and reported as an
//! event at most once a second. The writer continues with the next batch.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;
use weir_config::snapshot::LogTarget;
use weir_telemetry::reports::{Log, LogBatch};

use crate::events::Events;
use crate::firewall::recent::RecentFindings;
use crate::span_export::counters::SpanCounters;
use syslog::Sender;
use weir_event_loop::error_text::io_error_text;

/// Maximum number of batches that wait to be written, of all workers together.
pub const BATCHES_WAITING_MAX: usize = 256;

/// Minimum interval between events about failed writes.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The pause before another attempt to write to a non-blocking descriptor.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Counters for the lines of one log.
#[derive(Debug, Default)]
pub struct LogCounters {
    /// The number of written lines.
    pub lines_written: AtomicU64,
    /// The number of lines that could not be written.
    pub lines_lost: AtomicU64,
}

/// Counters for the lines of all logs.
#[derive(Debug, Default)]
pub struct AllLogCounters {
    /// Counters of the access log.
    pub access: LogCounters,
    /// Counters of the web application firewall's log.
    pub waf: LogCounters,
    /// Counters of the audit log.
    pub audit: LogCounters,
    /// Results of the export of spans.
    pub spans: SpanCounters,
}

impl AllLogCounters {
    fn of(&self, log: Log) -> &LogCounters {
        match log {
            Log::Access => &self.access,
            Log::Waf => &self.waf,
            Log::Audit => &self.audit,
        }
    }
}

/// The destination of a log's lines.
#[derive(Debug, Clone)]
pub enum LogDestination {
    /// This writer opens the target.
    To(LogTarget),
    /// The lines are sent to the writer that has opened the target.
    Through(SyncSender<LogBatch>),
    /// Each line becomes an event.
    Events,
}

/// An order to open a target.
#[derive(Debug)]
struct Order {
    way: LogDestination,
    /// Lines for the target before it.
    farewells: Vec<LogBatch>,
}

/// A running writer.
#[derive(Debug)]
pub struct LogWriter {
    batches: SyncSender<LogBatch>,
    orders: Arc<Mutex<Option<Order>>>,
    counters: Arc<AllLogCounters>,
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
            LogTarget::Syslog(syslog) => format!("the syslog server {}", syslog.server),
        };
        write!(formatter, "cannot open {target}: {}", io_error_text(&self.error))
    }
}

impl std::error::Error for OpenError {}

impl LogWriter {
    /// Opens the target and starts the thread. `name`: the log's name in events; `recent`: stores the latest lines.
    pub fn start(
        name: &'static str,
        way: &LogDestination,
        counters: Arc<AllLogCounters>,
        events: Events,
        recent: Option<Arc<RecentFindings>>,
    ) -> Result<Self, OpenError> {
        let output = Output::open(way)?;
        output.tell_if_away(name, &events);
        Self::with_output(name, output, counters, events, recent).map_err(|error| {
            let target = match way {
                LogDestination::To(target) => target.clone(),
                LogDestination::Through(_) | LogDestination::Events => LogTarget::Stdout,
            };
            OpenError { target, error }
        })
    }

    fn with_output(
        name: &'static str,
        output: Output,
        counters: Arc<AllLogCounters>,
        events: Events,
        recent: Option<Arc<RecentFindings>>,
    ) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(BATCHES_WAITING_MAX);
        let orders = Arc::new(Mutex::new(None));
        let mut writer = Writer {
            name,
            output,
            orders: Arc::clone(&orders),
            counters: Arc::clone(&counters),
            events,
            recent,
            torn: false,
            reported: None,
            lost_unreported: 0,
        };
        let thread =
            thread::Builder::new().name("weir-log".into()).spawn(move || writer.run(&waiting))?;
        Ok(Self { batches, orders, counters, thread: Some(thread) })
    }

    /// The channel for batches of lines.
    pub fn sender(&self) -> SyncSender<LogBatch> {
        self.batches.clone()
    }

    /// Counters of written and lost lines.
    pub fn counters(&self) -> Arc<AllLogCounters> {
        Arc::clone(&self.counters)
    }

    /// Checks that the target can be opened now, so that a reload can refuse an invalid target.
    pub fn check(target: &LogTarget) -> Result<(), OpenError> {
        Output::open(&LogDestination::To(target.clone())).map(drop)
    }

    /// Writes later batches to this target. The target is opened again, so that a renamed file is closed.
    pub fn reopen(&self, way: LogDestination) {
        self.reopen_after(None, way);
    }

    /// As [`Self::reopen`], after the target before it has got these lines.
    pub fn reopen_after(&self, farewell: Option<LogBatch>, way: LogDestination) {
        let mut orders = self.orders.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The lines of an order that the writer has not seen yet are for the same target.
        let mut farewells = orders.take().map_or_else(Vec::new, |order| order.farewells);
        farewells.extend(farewell);
        *orders = Some(Order { way, farewells });
        drop(orders);
        // An empty batch wakes the writer. If the channel is full, the writer is awake.
        let wake = LogBatch { log: Log::Access, bytes: Vec::new(), lines: 0 };
        let _ = self.batches.try_send(wake);
    }

    /// Writes the waiting lines and ends, at most within `timeout`. Call this after the workers have ended. Returns whether
    /// everything was written.
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

fn open(target: &LogTarget) -> Result<Output, OpenError> {
    let stdout = || io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let opened = match target {
        LogTarget::Stdout => stdout().map(Output::File),
        LogTarget::File(path) => match open_file(path) {
            Err(error) if is_unread_pipe(path, &error) => Ok(Output::UnreadPipe(path.clone())),
            opened => opened.map(Output::File),
        },
        LogTarget::Syslog(syslog) => Ok(Output::Syslog(Sender::new(syslog))),
    };
    opened.map_err(|error| OpenError { target: target.clone(), error })
}

/// Opens a file without waiting for the reader of a named pipe. The wait would block a reload, and with it the monitors and
/// the admin listener.
fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
}

/// Whether the file is a named pipe that nothing reads.
fn is_unread_pipe(path: &Path, error: &io::Error) -> bool {
    let is_pipe = || std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    Errno::from_io_error(error) == Some(Errno::NXIO) && is_pipe()
}

/// The open form of a [`LogDestination`].
enum Output {
    File(File),
    /// A named pipe, until something reads it.
    UnreadPipe(PathBuf),
    Syslog(Sender),
    Writer(SyncSender<LogBatch>),
    Events,
}

impl Output {
    fn open(way: &LogDestination) -> Result<Self, OpenError> {
        match way {
            LogDestination::To(target) => open(target),
            LogDestination::Through(writer) => Ok(Self::Writer(writer.clone())),
            LogDestination::Events => Ok(Self::Events),
        }
    }

    /// Reports a syslog server that takes no messages yet, and a named pipe without a reader.
    fn tell_if_away(&self, name: &str, events: &Events) {
        match self {
            Self::Syslog(sender) => {
                let Some(error) = sender.why_away() else { return };
                let why = io_error_text(&error);
                let what = format_args!(
                    "the syslog server is away, its lines are lost until it is there: {why}"
                );
                events.warning(name, what);
            }
            Self::UnreadPipe(path) => {
                let path = path.display();
                let what = format_args!(
                    "nothing reads the pipe {path}, its lines are lost until something does"
                );
                events.warning(name, what);
            }
            Self::File(_) | Self::Writer(_) | Self::Events => {}
        }
    }

    /// Opens a named pipe that something reads by now.
    fn open_pipe(&mut self) -> io::Result<()> {
        let Self::UnreadPipe(path) = self else { return Ok(()) };
        match open_file(path) {
            Ok(file) => *self = Self::File(file),
            Err(error) if is_unread_pipe(path, &error) => {
                let what = format!("nothing reads the pipe {}", path.display());
                return Err(io::Error::other(what));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The state of the writer's thread.
struct Writer {
    name: &'static str,
    output: Output,
    orders: Arc<Mutex<Option<Order>>>,
    counters: Arc<AllLogCounters>,
    events: Events,
    /// The store of the latest lines for the admin API.
    recent: Option<Arc<RecentFindings>>,
    /// Whether the last write ended in the middle of a line.
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
            if let Some(recent) = &self.recent {
                recent.keep(&batch.bytes);
            }
            self.put(batch);
        }
    }

    fn put(&mut self, batch: LogBatch) {
        if let Err(error) = self.output.open_pipe() {
            return self.lose(batch.log, batch.lines, &error);
        }
        match &mut self.output {
            Output::UnreadPipe(_) => {}
            // Only this thread waits for the other writer. If the other writer has ended, the lines are lost.
            Output::Writer(writer) => {
                if let Err(SendError(batch)) = writer.send(batch) {
                    self.lose(batch.log, batch.lines, &ErrorKind::BrokenPipe.into());
                }
            }
            Output::Syslog(sender) => {
                let sent = sender.send(&batch);
                let written = &self.counters.of(batch.log).lines_written;
                written.fetch_add(u64::from(sent.lines), Relaxed);
                if let Some(error) = sent.error {
                    self.lose(batch.log, batch.lines - sent.lines, &error);
                }
            }
            Output::Events => {
                for line in String::from_utf8_lossy(&batch.bytes).lines() {
                    self.events.info("audit", line);
                }
                let written = &self.counters.of(batch.log).lines_written;
                written.fetch_add(u64::from(batch.lines), Relaxed);
            }
            Output::File(file) => match write(file, &mut self.torn, &batch.bytes) {
                Ok(()) => {
                    let written = &self.counters.of(batch.log).lines_written;
                    written.fetch_add(u64::from(batch.lines), Relaxed);
                }
                Err(error) => self.lose(batch.log, batch.lines, &error),
            },
        }
    }

    /// Opens a newly requested target. After an error, the current target stays in use.
    fn obey(&mut self) {
        let order = self.orders.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Some(Order { way, farewells }) = order else { return };
        for farewell in farewells {
            self.put(farewell);
        }
        match Output::open(&way) {
            Ok(output) => {
                output.tell_if_away(self.name, &self.events);
                self.output = output;
                self.torn = false;
            }
            Err(error) => {
                self.events.error(self.name, format_args!("stays with the old target: {error}"))
            }
        }
    }

    fn lose(&mut self, log: Log, lines: u32, error: &io::Error) {
        let lines = u64::from(lines);
        self.counters.of(log).lines_lost.fetch_add(lines, Relaxed);
        self.lost_unreported += lines;
        if self.reported.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL) {
            let lost = std::mem::take(&mut self.lost_unreported);
            self.reported = Some(Instant::now());
            self.events
                .error(self.name, format_args!("lost {lost} lines: {}", io_error_text(error)));
        }
    }
}

/// Writes whole lines. `torn`: whether the last write ended in the middle of a line.
fn write(file: &mut File, torn: &mut bool, mut bytes: &[u8]) -> io::Result<()> {
    if *torn {
        write_all(file, &mut &b"\n"[..])?;
        *torn = false;
    }
    let length = bytes.len();
    let result = write_all(file, &mut bytes);
    *torn = result.is_err() && bytes.len() < length;
    result
}

/// Writes until `bytes` is empty. After an error, `bytes` contains the rest.
fn write_all(file: &mut File, bytes: &mut &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => *bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The output is a pipe, or was passed to weir as non-blocking. This thread may wait.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_INTERVAL),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

mod syslog;
#[cfg(test)]
mod tests;
