//! What weir tells of requests: records, explanations, and lines of `weir logs`.

use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use rustix::process::Signal;
use serde_json::Value;
use weir_tests::STEP_TIMEOUT;
use weir_tests::client::Client;
use weir_tests::proxy::{Proxy, weir_binary};

/// The beginning of each tag.
const START: &str = "tag-";

/// The length of each tag: `tag-000-00000`.
const LENGTH: usize = 13;

/// The tag of a request of a client.
pub fn tag(client: usize, request: usize) -> String {
    format!("{START}{client:03}-{request:05}")
}

/// The tag in the target; `None`: there is no target, or no tag in it.
pub fn tag_of_target(record: &Value) -> Option<String> {
    let target = record["target"].as_str()?;
    let start = target.find(START)?;
    target.get(start..start + LENGTH).map(str::to_owned)
}

/// Whether a text has no other tag than this one, or parts of it where a text was cut. `None`: no tag at all.
pub fn check_tags(told: &Value, own: Option<&str>) -> Result<(), String> {
    let text = told.to_string();
    for (start, _) in text.match_indices(START) {
        let rest = &text[start..text.len().min(start + LENGTH)];
        let end = rest[START.len()..].find(|it: char| !it.is_ascii_digit() && it != '-');
        let found = &rest[..end.map_or(rest.len(), |end| START.len() + end)];
        if !own.is_some_and(|own| own.starts_with(found)) {
            return Err(format!("{found} in what is told of {own:?}"));
        }
    }
    Ok(())
}

/// Reads records over the admin listener.
pub struct Reader(Client);

impl Reader {
    /// Connects.
    pub fn new(proxy: &Proxy) -> Self {
        Self(proxy.admin_client())
    }

    /// One answer.
    pub fn one(&mut self, path: &str) -> Value {
        self.0.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let response = self.0.response();
        serde_json::from_slice(&response.assert_status(200).body).expect("JSON")
    }

    /// All records.
    pub fn all(&mut self) -> Vec<Value> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let mut page = self.one(&format!("/v1/requests?limit=1000{after}"));
            if let Value::Array(items) = page["items"].take() {
                all.extend(items);
            }
            let Some(next) = page["next"].as_str() else { return all };
            after = format!("&after={next}");
        }
    }
}

/// A running `weir logs`.
pub struct Follower {
    child: Child,
    lines: JoinHandle<Vec<String>>,
}

/// Follows requests, and waits until the first one is told.
pub fn follow(proxy: &Proxy) -> Follower {
    let mut command = Command::new(weir_binary());
    command.args(["logs", "--json", "--virtual-server", "main"]);
    command.env("WEIR_ADMIN", proxy.admin_address());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the built command");
    let output = std::io::BufReader::new(child.stdout.take().expect("its output"));
    let (told, first) = std::sync::mpsc::channel();
    let lines = std::thread::spawn(move || {
        let mut lines = Vec::new();
        for line in output.lines() {
            lines.push(line.expect("text"));
            // The receiver waits for the first line only.
            let _ = told.send(());
        }
        lines
    });
    // A request in the middle of a head: it is told, and is no record.
    weir_tests::eventually("requests are followed", STEP_TIMEOUT, || {
        let mut client = proxy.client();
        client.send("GET ");
        drop(client);
        first.try_recv().is_ok()
    });
    Follower { child, lines }
}

impl Follower {
    /// Ends it. Returns its lines.
    pub fn end(mut self) -> Vec<String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::INT).expect("it runs");
        self.child.wait().expect("it ends");
        self.lines.join().expect("its lines")
    }
}

#[test]
fn foreign_tags_are_found() {
    let own = tag(1, 2);
    let check = |text: &str| check_tags(&Value::from(text), Some(&own)).is_ok();
    assert!(check("/a/tag-001-00002?q=tag-001-00002") && check("nothing") && check("tag-001-0…"));
    for foreign in ["tag-001-00003", "/a/tag-001-00002/tag-002-00002", "tag-002-…"] {
        assert!(!check(foreign), "{foreign}");
    }
    assert!(check_tags(&Value::from("tag-001-00002"), None).is_err());
    let record = serde_json::json!({ "target": "/a/tag-001-00002?q=x" });
    assert_eq!(tag_of_target(&record), Some(own));
}
