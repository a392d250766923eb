//! Virtual servers with a firewall, and the firewall's log.

use std::path::PathBuf;

use serde_json::Value;
use weir_tests::client::Response;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually};

/// The rules of a test in a file.
pub struct Rules {
    folder: TempDir,
}

impl Rules {
    /// Writes the rules to a file.
    pub fn new(text: &str) -> Self {
        let folder = TempDir::new("rules");
        folder.write("rules.conf", text);
        Self { folder }
    }

    /// The key `waf` of a virtual server with these rules and further keys.
    pub fn key(&self, more: &str) -> String {
        let path = self.folder.path().join("rules.conf");
        format!("waf: {{ rules: \"{}\", checks: off, {more} }}", path.display())
    }
}

/// A virtual server with this `waf` in front of a member.
pub fn guarded(member: &Member, waf: &str) -> Setup {
    Setup::new(&[member.address()]).virtual_server(waf)
}

/// The lines of the firewall's log.
pub fn lines(proxy: &mut Proxy) -> Vec<Value> {
    let output = proxy.process().output();
    let json = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    json.filter(|line| line["type"] == "waf").collect()
}

/// Waits until the firewall's log has this number of lines. Returns the lines.
#[track_caller]
pub fn wait_for_lines(proxy: &mut Proxy, count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    eventually("the firewall's log has its lines", STEP_TIMEOUT, || {
        found = lines(proxy);
        found.len() >= count
    });
    assert_eq!(found.len(), count, "{found:#?}");
    found
}

/// Waits until the firewall's log has a line that passes `is_it`. Returns the last of these lines.
#[track_caller]
pub fn wait_for_any(proxy: &mut Proxy, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut found = None;
    eventually("the firewall's log has the line", STEP_TIMEOUT, || {
        found = lines(proxy).into_iter().rfind(|line| is_it(line));
        found.is_some()
    });
    found.unwrap_or_default()
}

/// The number of requests with this outcome.
pub fn counted(proxy: &Proxy, outcome: &str) -> f64 {
    let labels = ["\"main\"", &format!("outcome=\"{outcome}\"")];
    proxy.metric("weir_virtual_server_waf_requests_total", &labels)
}

/// A POST request with a form.
pub fn form(path: &str, body: &str) -> String {
    with_type(path, "application/x-www-form-urlencoded", body)
}

/// A POST request with a body of this type.
pub fn with_type(path: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\n\
         Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// A GET request for a path.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n")
}

/// The response to a request on a new connection.
#[track_caller]
pub fn ask(proxy: &Proxy, request: impl AsRef<[u8]>) -> Response {
    let mut client = proxy.client();
    client.send(request);
    client.response()
}

/// The folder of OWASP CRS, if it is installed.
pub fn crs() -> Option<PathBuf> {
    let places = [std::env::var_os("WEIR_CRS").map(PathBuf::from)];
    let debian = Some(PathBuf::from("/usr/share/modsecurity-crs"));
    places.into_iter().chain([debian]).flatten().find(|place| place.join("rules").is_dir())
}
