//! The observers of weir: a scraper of its metrics, and a browser with the dashboard open.
//!
//! They observe one product during its measurement, from the load's cores.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::pinning::pin_thread;

/// Time between two scrapes of the metrics.
const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of a scrape, and of the first event of a stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The streams of an open dashboard: what all its views have, the overview, and a virtual server.
const STREAMS: [&str; 3] =
    ["/v1/dashboard", "/v1/dashboard?view=overview", "/v1/dashboard?view=server&name=server1"];
/// The beginning of a good answer.
const GOOD: &[u8] = b"HTTP/1.1 200";

/// The socket of the admin listener of an observed weir.
pub fn socket() -> PathBuf {
    std::env::temp_dir().join(format!("weir-bench-{}-admin.sock", std::process::id()))
}

/// The access log of an observed weir: in memory, if the host has a folder for that.
pub fn access_log() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
    folder.join(format!("weir-bench-{}-access.log", std::process::id()))
}

/// Empties the access log, so that a run does not fill the memory.
pub fn empty_access_log() -> std::io::Result<()> {
    match std::fs::File::options().write(true).open(access_log()) {
        Ok(file) => file.set_len(0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Running observers. Dropping them ends them.
#[derive(Debug)]
pub struct Observers {
    /// Dropped to end the scraper.
    stop: Option<Sender<()>>,
    /// Shut down to end their readers.
    streams: Vec<UnixStream>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

impl Observers {
    /// Starts the observers on these cores, and waits until each has its first answer.
    pub fn start(cores: &[usize]) -> Result<Self, String> {
        let (stop, stopped) = channel();
        let (answered, answers) = channel();
        let mut observers = Self { stop: Some(stop), streams: Vec::new(), threads: Vec::new() };
        for path in STREAMS {
            let stream = ask(path).map_err(|error| format!("{path}: {error}"))?;
            let kept = stream.try_clone().map_err(|error| format!("{path}: {error}"))?;
            observers.streams.push(kept);
            let (cores, answered) = (cores.to_vec(), answered.clone());
            let follow = move || follow(stream, &answered).map_err(|why| format!("{path}: {why}"));
            observers.spawn(cores, follow);
        }
        let scrape = move || scrape(&stopped, &answered).map_err(|why| format!("/metrics: {why}"));
        observers.spawn(cores.to_vec(), scrape);
        for _ in 0..observers.threads.len() {
            if answers.recv_timeout(ANSWER_TIMEOUT).is_err() {
                observers.finish()?;
                return Err("an observer got no answer".into());
            }
        }
        Ok(observers)
    }

    fn spawn(
        &mut self,
        cores: Vec<usize>,
        observe: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) {
        let thread = self.threads.len();
        self.threads.push(std::thread::spawn(move || {
            pin_thread(&cores, thread)
                .map_err(|error| format!("core {}: {}", error.core, error.source))?;
            observe()
        }));
    }

    /// Ends the observers; an error if one of them could not observe to the end.
    pub fn finish(mut self) -> Result<(), String> {
        self.end()
    }

    fn end(&mut self) -> Result<(), String> {
        // The streams whose reader has ended before are found by its result.
        let is_over: Vec<bool> = self.threads.iter().map(JoinHandle::is_finished).collect();
        drop(self.stop.take());
        for stream in self.streams.drain(..) {
            // A stream that weir has ended is not connected, which its reader has told.
            stream.shutdown(Shutdown::Both).ok();
        }
        let mut result = Ok(());
        for (thread, is_over) in self.threads.drain(..).zip(is_over) {
            let told = thread.join().unwrap_or_else(|_| Err("its thread has panicked".into()));
            let told = if is_over { told.and(Err("an observer ended early".into())) } else { told };
            result = result.and(told);
        }
        result
    }
}

impl Drop for Observers {
    fn drop(&mut self) {
        // A caller that needs the result calls `finish`.
        let _ = self.end();
    }
}

/// Sends a request on a connection of its own.
fn ask(path: &str) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket())?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

/// Reads events until the stream is shut down. Events come every two seconds, so a time limit for each read holds.
fn follow(mut stream: UnixStream, answered: &Sender<()>) -> Result<(), String> {
    let mut piece = vec![0; 64 * 1024];
    let (mut head, mut is_told) = (Vec::new(), false);
    loop {
        let length = stream.read(&mut piece).map_err(|error| error.to_string())?;
        if length == 0 {
            return if is_told { Ok(()) } else { Err(refused(&head)) };
        }
        if is_told {
            continue;
        }
        head.extend_from_slice(&piece[..length]);
        if head.starts_with(GOOD) && contains(&head, b"event: whole") {
            is_told = true;
            // An error means that another observer failed, so no receiver is left.
            let _ = answered.send(());
        }
    }
}

/// Scrapes each second until `stopped` is closed.
fn scrape(stopped: &Receiver<()>, answered: &Sender<()>) -> Result<(), String> {
    loop {
        let mut answer = Vec::new();
        let read = ask("/metrics").and_then(|mut stream| stream.read_to_end(&mut answer));
        read.map_err(|error| error.to_string())?;
        if !answer.starts_with(GOOD) || !contains(&answer, b"weir_virtual_server_requests_total") {
            return Err(refused(&answer));
        }
        let _ = answered.send(());
        match stopped.recv_timeout(SCRAPE_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The first line of an unexpected answer.
fn refused(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    format!("the answer was {:?}", text.lines().next().unwrap_or_default())
}
