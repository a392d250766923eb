use super::*;
use crate::events::testing::Captured;
use crate::testing::PATIENCE;
use std::io::Read;
use std::path::PathBuf;

fn batch(text: &str) -> LogBatch {
    LogBatch {
        log: Log::Access,
        bytes: text.as_bytes().to_vec(),
        lines: text.lines().count() as u32,
    }
}

/// A directory of one test, removed at the end.
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

fn start(target: &LogTarget, events: Events) -> Result<LogWriter, OpenError> {
    LogWriter::start(
        "access log",
        &LogDestination::To(target.clone()),
        Arc::default(),
        events,
        None,
    )
}

fn with_pipe(pipe: std::io::PipeWriter, events: Events) -> io::Result<LogWriter> {
    let output = Output::File(File::from(std::os::fd::OwnedFd::from(pipe)));
    LogWriter::with_output("access log", output, Arc::default(), events, None)
}

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
    let writer = start(&target, events).unwrap();
    let sender = writer.sender();
    sender.send(batch("one\ntwo\n")).unwrap();
    eventually(|| writer.counters.access.lines_written.load(Relaxed) == 2);
    std::fs::rename(&path, &moved).unwrap();
    writer.reopen(LogDestination::To(target.clone()));
    // The old file is closed even if no further line is written.
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
    let error = start(&bad, events.clone()).unwrap_err().to_string();
    assert!(error.ends_with("access.log: no such file"), "{error}");
    assert!(LogWriter::check(&bad).is_err());
    let writer = start(&LogTarget::File(path.clone()), events.clone()).unwrap();
    writer.reopen(LogDestination::To(bad.clone()));
    writer.sender().send(batch("line\n")).unwrap();
    assert!(writer.finish(PATIENCE));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "line\n");
    assert!(
        captured.lines(&events)[0]
            .starts_with("error access log stays with the old target: cannot open")
    );
}

#[test]
fn a_named_pipe_is_never_waited_for() {
    let directory = Directory::new("log-pipe");
    let path = directory.file("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let target = LogTarget::File(path.clone());
    assert!(LogWriter::check(&target).is_ok(), "a reload is not refused");
    let (events, captured) = Captured::new();
    let writer = start(&target, events.clone()).unwrap();
    let told = captured.lines(&events);
    assert!(told[0].starts_with("warning access log nothing reads the pipe "), "{told:?}");
    writer.sender().send(batch("lost\n")).unwrap();
    let begin = Instant::now();
    while writer.counters().access.lines_lost.load(Relaxed) == 0 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    // The pipe is opened for reading and writing, which on Linux does not wait for the other side.
    let mut reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
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
    let writer = with_pipe(pipe, events).unwrap();
    let sender = writer.sender();
    let line = format!("{}\n", "x".repeat(64 * 1024 - 1));
    let sent =
        (0..10 * BATCHES_WAITING_MAX).filter(|_| sender.try_send(batch(&line)).is_ok()).count();
    assert!((BATCHES_WAITING_MAX..=BATCHES_WAITING_MAX + 4).contains(&sent), "{sent}");
    assert!(writer.counters.access.lines_written.load(Relaxed) <= 4);
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
    let writer = with_pipe(pipe, events).unwrap();
    writer.sender().send(batch(&"x\n".repeat(200_000))).unwrap();
    assert!(!writer.finish(Duration::from_millis(50)));
}

#[test]
fn a_closed_pipe_is_counted_and_reported_once_a_second() {
    let (reader, pipe) = std::io::pipe().unwrap();
    drop(reader);
    let (events, captured) = Captured::new();
    let writer = with_pipe(pipe, events.clone()).unwrap();
    let counters = writer.counters();
    for _ in 0..100 {
        writer.sender().send(batch("a\nb\n")).unwrap();
    }
    assert!(writer.finish(PATIENCE));
    assert_eq!(counters.access.lines_lost.load(Relaxed), 200);
    let lines = captured.lines(&events);
    assert!((1..=2).contains(&lines.len()), "{lines:?}");
    assert_eq!(lines[0], "error access log lost 2 lines: closed by the other side");
}

#[test]
fn no_space_left_is_survived() {
    let (events, captured) = Captured::new();
    let writer = start(&LogTarget::File("/dev/full".into()), events.clone()).unwrap();
    writer.sender().send(batch("a\n")).unwrap();
    let counters = writer.counters();
    eventually(|| counters.access.lines_lost.load(Relaxed) == 1);
    let directory = Directory::new("log-full");
    let path = directory.file("access.log");
    writer.reopen(LogDestination::To(LogTarget::File(path.clone())));
    writer.sender().send(batch("b\n")).unwrap();
    assert!(writer.finish(PATIENCE));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "b\n");
    assert_eq!(
        captured.lines(&events),
        ["error access log lost 1 lines: no space left on the device"]
    );
}
