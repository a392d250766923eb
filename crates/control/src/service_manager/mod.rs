//! Notifications to a service manager such as systemd: ready, reloading, stopping, watchdog.
//!
//! | event | message |
//! |---|---|
//! | the first configuration is active | `READY=1`, `STATUS=…` |
//! | a reload begins | `RELOADING=1`, `MONOTONIC_USEC=…` |
//! | the reload is finished, successful or not | `READY=1` |
//! | the numbers in the status change | `STATUS=2 virtual servers, 5 of 6 members up` |
//! | a start waits for first probes; weir drains | `EXTEND_TIMEOUT_USEC=…` at intervals |
//! | weir drains | `STOPPING=1` |
//! | another process has taken over | `MAINPID=…` |
//! | the control plane and all workers respond | `WATCHDOG=1` |
//!
//! All messages need `NOTIFY_SOCKET` in the environment; the watchdog also needs `WATCHDOG_USEC`.

mod notifier;
mod watchdog;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use weir_event_loop::error_text::io_error_text;

use self::notifier::Notifier;
use self::watchdog::Watchdog;
use crate::events::Events;

/// The additional time that a long start or drain requests.
const EXTENSION: Duration = Duration::from_secs(15);

/// The interval between requests for additional time.
const EXTENSION_INTERVAL: Duration = Duration::from_secs(5);

/// The subject of events.
const SUBJECT: &str = "service manager";

/// The connection to the service manager of this process, if it has one.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    events: Events,
    notifier: Option<Notifier>,
    watchdog: Option<Watchdog>,
    /// Whether a configuration is active. `READY=1` was sent then, unless messages are held.
    is_ready: bool,
    is_reloading: bool,
    /// The status that was last sent.
    status: String,
    /// The time of the last request for additional time.
    extended: Option<Instant>,
    /// Workers that did not respond at the last check.
    stuck: Vec<usize>,
    /// The service manager still follows the predecessor, so nothing is sent.
    is_held: bool,
}

impl ServiceManager {
    /// The service manager from the environment variables.
    pub(crate) fn from_environment(events: Events) -> Self {
        let text = |name| std::env::var(name).ok();
        let (usec, pid) = (text("WATCHDOG_USEC"), text("WATCHDOG_PID"));
        let time = Watchdog::time(usec.as_deref(), pid.as_deref(), std::process::id());
        let address: Option<OsString> = std::env::var_os("NOTIFY_SOCKET");
        Self::new(address.as_deref().filter(|it| !it.is_empty()), time, events)
    }

    /// The service manager at this address, with this watchdog timeout.
    fn new(address: Option<&OsStr>, watchdog: Option<Duration>, events: Events) -> Self {
        let made = address.map(|address| (address, Notifier::new(address)));
        let notifier = made.and_then(|(address, made)| match made {
            Ok(notifier) => Some(notifier),
            Err(error) => {
                let (address, error) = (address.to_string_lossy(), io_error_text(&error));
                events.warning(
                    SUBJECT,
                    format_args!("is not told: NOTIFY_SOCKET {address}: {error}"),
                );
                None
            }
        });
        let watchdog = watchdog.filter(|_| notifier.is_some());
        Self {
            events,
            notifier,
            watchdog: watchdog.map(|time| Watchdog::new(time, Instant::now())),
            is_ready: false,
            is_reloading: false,
            status: String::new(),
            extended: None,
            stuck: Vec::new(),
            is_held: false,
        }
    }

    /// Sends nothing until [`Self::release`]: the service manager follows another process.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
    }

    /// Sends messages from now on: the service manager follows this process.
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.is_held) && self.is_ready {
            self.send_status("READY=1\n".to_owned(), self.status.clone());
        }
    }

    /// Reports that a configuration is active, with this status. `is_reload`: the activation was a reload, not a change of
    /// resolved addresses.
    pub(crate) fn in_force(&mut self, status: String, is_reload: bool) {
        let mut lines = String::new();
        if !self.is_ready || self.is_reloading && is_reload {
            lines.push_str("READY=1\n");
            self.is_reloading = false;
        }
        self.is_ready = true;
        self.extended = None;
        self.send_status(lines, status);
    }

    /// Sends the status if it has changed. Without a service manager, it is not computed.
    pub(crate) fn observe(&mut self, status: impl FnOnce() -> String) {
        if !self.is_ready || self.notifier.is_none() {
            return;
        }
        let status = status();
        if status != self.status {
            self.send_status(String::new(), status);
        }
    }

    /// Reports that a reload begins.
    pub(crate) fn begin_reload(&mut self) {
        // Before the first configuration is active, the service is starting, not reloading.
        if !self.is_ready {
            return;
        }
        self.is_reloading = true;
        let now = clock_gettime(ClockId::Monotonic);
        let usec = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={usec}"));
    }

    /// Reports that a reload was refused.
    pub(crate) fn refuse_reload(&mut self) {
        if std::mem::take(&mut self.is_reloading) {
            self.send("READY=1");
        }
    }

    /// Reports that the process begins to drain.
    pub(crate) fn stop(&mut self) {
        self.is_reloading = false;
        self.send("STOPPING=1\nSTATUS=drains");
        self.extended = None;
        self.extend();
    }

    /// Requests additional time for a start or drain, unless the last request is recent.
    pub(crate) fn extend(&mut self) {
        let now = Instant::now();
        if self.extended.is_none_or(|at| now.duration_since(at) >= EXTENSION_INTERVAL) {
            self.extended = Some(now);
            self.send(&format!("EXTEND_TIMEOUT_USEC={}", EXTENSION.as_micros()));
        }
    }

    /// Reports that another process has taken over, so that the service manager follows it. Sends nothing after that.
    pub(crate) fn hand_over(&mut self, pid: u32) {
        self.send(&format!("MAINPID={pid}"));
        (self.notifier, self.watchdog) = (None, None);
    }

    /// Waits until the next check of the workers; waits forever without a watchdog.
    pub(crate) async fn due(&self) {
        match &self.watchdog {
            Some(watchdog) => tokio::time::sleep_until(watchdog.next().into()).await,
            None => std::future::pending().await,
        }
    }

    /// Handles a check of the workers. `stuck`: workers that have not responded since the last check.
    pub(crate) fn look(&mut self, stuck: Vec<usize>) {
        let Some(watchdog) = &mut self.watchdog else { return };
        if watchdog.look(Instant::now(), stuck.is_empty()) {
            self.send("WATCHDOG=1");
        }
        for worker in stuck.iter().filter(|worker| !self.stuck.contains(worker)) {
            let what = "makes no turn: the watchdog is not told that weir works";
            self.events.error(format_args!("worker {worker}"), what);
        }
        self.stuck = stuck;
    }

    fn send_status(&mut self, mut lines: String, status: String) {
        // A line feed would start another variable.
        let shown = status.replace('\n', " ");
        let _ = write!(lines, "STATUS={shown}");
        self.status = status;
        self.send(&lines);
    }

    fn send(&self, lines: &str) {
        let Some(notifier) = self.notifier.as_ref().filter(|_| !self.is_held) else { return };
        if let Err(error) = notifier.send(lines) {
            let first = lines.lines().next().unwrap_or_default();
            let error = io_error_text(&error);
            self.events.warning(SUBJECT, format_args!("was not told {first}: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::events::testing::Captured;

    fn heard(socket: &UnixDatagram) -> Vec<String> {
        let mut buffer = [0; 512];
        let mut messages = Vec::new();
        while let Ok(length) = socket.recv(&mut buffer) {
            messages.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
        messages
    }

    #[test]
    fn a_life_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (events, captured) = Captured::new();
        let time = Some(Duration::from_millis(40));
        let mut manager = ServiceManager::new(Some(path.as_os_str()), time, events.clone());
        manager.begin_reload();
        manager.observe(|| "too early".into());
        manager.extend();
        manager.extend();
        assert_eq!(heard(&socket), ["EXTEND_TIMEOUT_USEC=15000000"]);
        manager.in_force("2 up".into(), false);
        manager.observe(|| "2 up".into());
        manager.observe(|| "1\nup".into());
        assert_eq!(heard(&socket), ["READY=1\nSTATUS=2 up", "STATUS=1 up"]);
        manager.begin_reload();
        manager.refuse_reload();
        manager.refuse_reload();
        let said = heard(&socket);
        assert!(said[0].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{said:?}");
        assert_eq!(said[1..], ["READY=1"]);
        manager.begin_reload();
        manager.in_force("3 up".into(), false);
        assert_eq!(heard(&socket)[1..], ["STATUS=3 up"], "names have changed meanwhile");
        manager.in_force("3 up".into(), true);
        assert_eq!(heard(&socket), ["READY=1\nSTATUS=3 up"]);
        manager.look(vec![]);
        manager.look(vec![1]);
        manager.look(vec![1]);
        assert!(heard(&socket).is_empty());
        manager.look(vec![]);
        assert_eq!(heard(&socket), ["WATCHDOG=1"]);
        let lines = captured.lines(&events);
        assert_eq!(
            lines,
            ["error worker 1 makes no turn: the watchdog is not told that weir works"]
        );
        manager.stop();
        assert_eq!(heard(&socket), ["STOPPING=1\nSTATUS=drains", "EXTEND_TIMEOUT_USEC=15000000"]);
        manager.hand_over(7);
        manager.stop();
        assert_eq!(heard(&socket), ["MAINPID=7"]);
    }

    #[test]
    fn a_process_that_replaces_another_is_silent_until_it_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (events, _) = Captured::new();
        let mut manager = ServiceManager::new(Some(path.as_os_str()), None, events);
        manager.hold();
        manager.in_force("2 up".into(), false);
        manager.observe(|| "1 up".into());
        assert!(heard(&socket).is_empty());
        manager.release();
        manager.release();
        assert_eq!(heard(&socket), ["READY=1\nSTATUS=1 up"]);
    }

    #[test]
    fn without_one_nothing_is_told_and_a_bad_one_is_an_event() {
        let (events, captured) = Captured::new();
        ServiceManager::new(None, None, events.clone()).in_force("1 up".into(), false);
        let mut bad = ServiceManager::new(Some(OsStr::new("x")), None, events.clone());
        bad.in_force("1 up".into(), false);
        let mut gone = ServiceManager::new(Some(OsStr::new("/no/where")), None, events.clone());
        gone.in_force("1 up".into(), false);
        let lines = captured.lines(&events);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("NOTIFY_SOCKET x: "), "{lines:?}");
        assert!(lines[1].contains("was not told READY=1: "), "{lines:?}");
    }
}
