//! The audit log: who requested which change, and with which result.
//!
//! One JSON line for each request for a change by an identified peer: a user, a process on the unix socket, or a
//! process of this host. Requests of unidentified peers could fill the disk; they are counted, and reported as events
//! at a bounded rate. A line contains only the handler's description of the change, not the request's body, so it
//! contains no secret. Lines go through a bounded queue to a writer thread ([`crate::logs`]). When the queue is full,
//! lines are dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use weir_config::snapshot::{LogSettings, LogTarget};
use weir_telemetry::reports::{Log, LogBatch};

use super::login_user::Person;
use super::peer::{Caller, Peer};
use crate::overlay::changes::AUTHOR_BYTES_MAX;
use crate::time::{rfc3339, unix_ms};

/// Maximum number of characters of a path or a reason in a line.
const TEXT_LENGTH_MAX: usize = 300;

/// The queue of the audit log.
#[derive(Debug)]
pub struct Audit {
    /// `None`: the log is closed.
    lines: Mutex<Option<SyncSender<LogBatch>>>,
    dropped: AtomicU64,
}

/// A line of the audit log.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    time: String,
    request_id: &'a str,
    /// The user of the configuration; `null`: no credentials were sent.
    user: Option<&'a str>,
    role: Option<&'static str>,
    /// The peer, for example `192.0.2.7:4711` or `unix`.
    peer: String,
    /// Who it was, as versions show it: `ann`, `root (uid 0, sudo by anna)`.
    author: String,
    /// The user id of a process on the unix socket.
    uid: Option<u32>,
    /// The id of another user who has logged in and started the process, as the kernel says.
    #[serde(skip_serializing_if = "Option::is_none")]
    login_uid: Option<u32>,
    pid: Option<i32>,
    method: &'a str,
    path: String,
    status: u16,
    /// The handler's description of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'a Value>,
    /// The reason for a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// The request that a line describes.
pub(super) struct AuditedRequest<'a> {
    pub(super) id: &'a str,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

/// The outcome of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct AuditedResult {
    /// The handler's description of the change.
    pub(super) change: Option<Value>,
    /// The reason for a refusal.
    pub(super) refused: Option<String>,
}

impl Audit {
    /// An audit log that sends its lines to `lines`; `None`: lines are counted as dropped.
    pub(super) fn new(lines: Option<SyncSender<LogBatch>>) -> Self {
        Self { lines: Mutex::new(lines), dropped: AtomicU64::new(0) }
    }

    /// The number of lines that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Closes the queue: its writer waits for no further lines. Later lines are counted as dropped.
    pub(crate) fn close(&self) {
        *self.lines() = None;
    }

    fn lines(&self) -> MutexGuard<'_, Option<SyncSender<LogBatch>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a line; never blocks.
    pub(super) fn write(
        &self,
        asked: &AuditedRequest<'_>,
        by: &Caller,
        status: u16,
        outcome: &AuditedResult,
    ) {
        let process = match &by.peer {
            Peer::Local(process) => process.as_ref(),
            Peer::Network(_) => None,
        };
        let record = Record {
            time: rfc3339(unix_ms()),
            request_id: asked.id,
            user: by.user.as_deref(),
            role: by.role.map(|role| role.as_str()),
            peer: match &by.peer {
                Peer::Local(_) => "unix".to_owned(),
                Peer::Network(peer) => peer.address.to_string(),
            },
            author: author_of(by),
            uid: process.map(|process| process.user.id),
            login_uid: process.and_then(|process| match &process.person {
                Some(Person::LoggedIn(user)) => Some(user.id),
                Some(Person::Sudo(_)) | None => None,
            }),
            pid: process.and_then(|process| process.process),
            method: asked.method,
            path: clip(asked.path),
            status,
            change: outcome.change.as_ref(),
            refused: outcome.refused.as_deref().map(clip),
        };
        let is_sent = serde_json::to_vec(&record).is_ok_and(|mut bytes| {
            bytes.push(b'\n');
            let batch = LogBatch { log: Log::Audit, bytes, lines: 1 };
            self.lines().as_ref().is_some_and(|lines| lines.try_send(batch).is_ok())
        });
        if !is_sent {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

/// The author of a change: the user of the configuration, or else the peer.
pub(super) fn author_of(caller: &Caller) -> String {
    let mut author = match &caller.user {
        Some(user) => user.to_string(),
        None => caller.peer.to_string(),
    };
    let end =
        (0..=AUTHOR_BYTES_MAX.min(author.len())).rev().find(|at| author.is_char_boundary(*at));
    author.truncate(end.unwrap_or_default());
    author
}

/// The last line for a target that the audit log leaves. `by`: what moves it, and who.
pub(crate) fn moved(by: &str, before: &LogSettings, after: &LogSettings) -> LogBatch {
    let target = |settings: &LogSettings| match &settings.audit_to {
        None => "events".to_owned(),
        Some(LogTarget::Stdout) => "stdout".to_owned(),
        Some(LogTarget::File(path)) => path.display().to_string(),
        Some(LogTarget::Syslog(syslog)) => syslog.server.to_string(),
    };
    let line = serde_json::json!({
        "time": rfc3339(unix_ms()),
        "by": by,
        "change": { "log.audit": { "before": target(before), "after": target(after) } },
    });
    LogBatch { log: Log::Audit, bytes: format!("{line}\n").into_bytes(), lines: 1 }
}

fn clip(text: &str) -> String {
    if text.chars().nth(TEXT_LENGTH_MAX).is_none() {
        return text.to_owned();
    }
    text.chars().take(TEXT_LENGTH_MAX).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use serde_json::json;
    use weir_config::snapshot::Role;

    use super::super::login_user::SystemUser;
    use super::super::peer::{Credentials, NetworkPeer};
    use super::*;

    fn ann() -> Caller {
        let peer = NetworkPeer {
            address: "192.0.2.7:4711".parse().expect("an address"),
            is_loopback: false,
            certificate: None,
        };
        Caller {
            user: Some("ann".into()),
            role: Some(Role::Operate),
            peer: Peer::Network(peer),
            token_hash: None,
            is_stranger: false,
        }
    }

    #[test]
    fn a_line_says_who_what_and_with_what_result() {
        let (lines, written) = sync_channel(8);
        let audit = Audit::new(Some(lines));
        let asked =
            AuditedRequest { id: "a-1", method: "PUT", path: "/v1/pools/web/members/x/state" };
        let change = json!({ "member": "web/x", "before": "enabled", "after": "drain" });
        audit.write(
            &asked,
            &ann(),
            200,
            &AuditedResult { change: Some(change.clone()), refused: None },
        );
        let root = Peer::Local(Some(Credentials::of_user(0, Some(4))));
        let root = Caller { user: None, role: Some(Role::Admin), peer: root, ..ann() };
        let long = "é".repeat(TEXT_LENGTH_MAX * 2);
        audit.write(&asked, &root, 404, &AuditedResult { change: None, refused: Some(long) });
        let line = || {
            let batch: LogBatch = written.try_recv().expect("a line");
            assert_eq!((batch.log, batch.lines), (Log::Audit, 1));
            assert_eq!(batch.bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
            serde_json::from_slice::<Value>(&batch.bytes).expect("JSON")
        };
        let first = line();
        assert_eq!((&first["user"], &first["role"]), (&json!("ann"), &json!("operate")));
        assert_eq!((&first["peer"], &first["uid"]), (&json!("192.0.2.7:4711"), &Value::Null));
        assert_eq!((&first["status"], &first["change"]), (&json!(200), &change));
        assert_eq!((&first["request_id"], &first["method"]), (&json!("a-1"), &json!("PUT")));
        assert!(first.get("refused").is_none());
        let second = line();
        assert_eq!((&second["peer"], &second["uid"]), (&json!("unix"), &json!(0)));
        assert_eq!((&second["user"], &second["pid"]), (&Value::Null, &json!(4)));
        assert_eq!((&first["author"], &second["author"]), (&json!("ann"), &json!("uid 0")));
        assert!(second.get("login_uid").is_none());
        assert_eq!(second["refused"].as_str().map(|it| it.chars().count()), Some(301));
        assert_eq!(audit.dropped(), 0);
    }

    #[test]
    fn the_person_stands_beside_the_user() {
        let (lines, written) = sync_channel(8);
        let audit = Audit::new(Some(lines));
        let asked = AuditedRequest { id: "a-1", method: "POST", path: "/v1/changes" };
        let anna = SystemUser { id: 1000, name: Some("anna".into()) };
        for (person, author, login) in [
            (Person::LoggedIn(anna), "uid 0 (login anna)", json!(1000)),
            (Person::Sudo("anna".into()), "uid 0 (sudo by anna)", Value::Null),
        ] {
            let root = Credentials { person: Some(person), ..Credentials::of_user(0, Some(4)) };
            let root = Caller { user: None, peer: Peer::Local(Some(root)), ..ann() };
            audit.write(&asked, &root, 200, &AuditedResult::default());
            let line: Value =
                serde_json::from_slice(&written.recv().expect("a line").bytes).expect("JSON");
            assert_eq!((&line["author"], &line["uid"]), (&json!(author), &json!(0)));
            assert_eq!(line["login_uid"], login);
        }
    }

    #[test]
    fn a_closed_log_ends_its_writer() {
        let (lines, written) = sync_channel(8);
        let audit = Audit::new(Some(lines));
        let asked = AuditedRequest { id: "a-1", method: "PUT", path: "/" };
        audit.write(&asked, &ann(), 200, &AuditedResult::default());
        audit.close();
        audit.write(&asked, &ann(), 200, &AuditedResult::default());
        assert_eq!((written.iter().count(), audit.dropped()), (1, 1));
    }

    #[test]
    fn lines_that_find_no_room_are_counted() {
        let (lines, waiting) = sync_channel(1);
        let audit = Audit::new(Some(lines));
        let asked = AuditedRequest { id: "a-1", method: "POST", path: "/v1/reload" };
        for _ in 0..3 {
            audit.write(&asked, &ann(), 200, &AuditedResult::default());
        }
        assert_eq!(audit.dropped(), 2);
        drop(waiting);
        audit.write(&asked, &ann(), 200, &AuditedResult::default());
        assert_eq!(audit.dropped(), 3);
    }
}
