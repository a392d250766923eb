//! An admin listener for tests, and clients of it over real sockets.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use weir_config::snapshot::{Address, Snapshot};
use weir_telemetry::reports::LogBatch;
use weir_tls::client::{ClientSettings, client_config};
use weir_tls::identity::{Identity, read_authorities, read_certificates, read_key};

use super::Admin;
use crate::events::Events;
use crate::events::testing::Captured;
use crate::logs::LogsView;
use crate::observed_state::ObservedState;
use crate::testing::{observed_with_logs, pool, snapshot};

/// Capacity of the audit log in tests.
const AUDIT_LINES_MAX: usize = 10_000;

/// The field that changes need.
pub(super) const JSON: &str = "Content-Type: application/json\r\n";

/// A running admin listener.
pub(super) struct Running {
    pub(super) admin: Admin,
    pub(super) observed: Arc<ObservedState>,
    pub(super) events: Events,
    pub(super) captured: Captured,
    audit: Receiver<LogBatch>,
    pub(super) directory: TempDir,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    head: String,
    pub(super) text: String,
}

impl Answered {
    fn of(answer: &str) -> Self {
        let (head, text) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{head}"));
        Self { status, head: head.to_owned(), text: text.to_owned() }
    }

    /// The value of a field; `name` is in lower case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.filter(|(other, _)| *other == name).map(|(_, value)| value).next()
    }

    /// The status, and the body as JSON or as text.
    pub(super) fn parts(&self) -> (u16, Value) {
        let body = serde_json::from_str(&self.text);
        (self.status, body.unwrap_or_else(|_| Value::from(self.text.as_str())))
    }
}

/// The authentication of a client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Login<'a> {
    Nothing,
    Token(&'a str),
    /// The name of the files with certificate and key, without their extensions.
    Certificate(&'a str),
}

impl Running {
    /// A listener on a unix socket, with a pool `web` of these members.
    pub(super) async fn on_unix(members: &[&str]) -> Self {
        let members: Vec<Address> =
            members.iter().map(|member| Address::Socket(member.parse().unwrap())).collect();
        let snapshot = snapshot(vec![pool("web", &members, &[])]);
        let directory = tempfile::tempdir().unwrap();
        let address = Address::Unix(directory.path().join("admin.sock"));
        Self::with(snapshot, &address, directory).await
    }

    /// A listener on this address, with this configuration.
    pub(super) async fn with(
        snapshot: Arc<Snapshot>,
        address: &Address,
        directory: TempDir,
    ) -> Self {
        let (lines, audit) = sync_channel(AUDIT_LINES_MAX);
        let logs = LogsView { audit: Some(lines), ..LogsView::default() };
        let observed = Arc::new(observed_with_logs(snapshot, 1, logs));
        let (events, captured) = Captured::new();
        let admin = Admin::start(address, Arc::clone(&observed), events.clone()).await.unwrap();
        Self { admin, observed, events, captured, audit, directory }
    }

    /// The lines of the audit log since the last call.
    pub(super) fn audit(&self) -> Vec<Value> {
        let batches = self.audit.try_iter();
        batches.map(|batch| serde_json::from_slice(&batch.bytes).unwrap()).collect()
    }

    /// The events so far.
    pub(super) fn lines(&self) -> Vec<String> {
        self.captured.lines(&self.events)
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "", "").await.parts()
    }

    pub(super) async fn put(&self, path: &str, body: &str) -> (u16, Value) {
        self.send("PUT", path, JSON, body).await.parts()
    }

    /// Sends a request in plain text.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        fields: &str,
        body: &str,
    ) -> Answered {
        send_to(self.admin.address(), method, path, fields, body).await
    }

    /// Sends a request over TLS, to the port of the listener on this host.
    pub(super) async fn send_by_tls(
        &self,
        login: Login<'_>,
        request: (&str, &str, &str, &str),
    ) -> std::io::Result<Answered> {
        let Address::Socket(address) = self.admin.address() else { panic!("{:?}", self.admin) };
        let read = |name: &str| std::fs::read(self.directory.path().join(name)).unwrap();
        let identity = match login {
            Login::Certificate(name) => {
                let chain = read_certificates(&read(&format!("{name}.crt"))).unwrap();
                let key = read_key(&read(&format!("{name}.key"))).unwrap();
                Some(Arc::new(Identity::new(chain, key).unwrap()))
            }
            _ => None,
        };
        let settings = ClientSettings {
            authorities: Some(read_authorities(&read("ca.crt")).unwrap()),
            identity,
            alpn: Vec::new(),
        };
        let tls = TlsConnector::from(client_config(&settings).unwrap());
        let stream = TcpStream::connect(("127.0.0.1", address.port())).await?;
        let name = weir_tls::ServerName::try_from("localhost").unwrap();
        let stream = tls.connect(name, stream).await?;
        let (method, path, fields, body) = request;
        let fields = match login {
            Login::Token(token) => format!("{fields}Authorization: Bearer {token}\r\n"),
            _ => fields.to_owned(),
        };
        try_exchange(stream, &self::request(method, path, &fields, body)).await
    }
}

/// Sends a request in plain text to a listener.
pub(super) async fn send_to(
    address: &Address,
    method: &str,
    path: &str,
    fields: &str,
    body: &str,
) -> Answered {
    let request = request(method, path, fields, body);
    match address {
        Address::Unix(path) => exchange(UnixStream::connect(path).await.unwrap(), &request).await,
        Address::Socket(address) | Address::Udp(address) => {
            exchange(TcpStream::connect(address).await.unwrap(), &request).await
        }
    }
}

impl Running {
    /// Speaks plain HTTP to a port with TLS. Returns everything that the client receives.
    pub(super) async fn send_plainly_to_tls(&self) -> String {
        let Address::Socket(address) = self.admin.address() else { panic!("{:?}", self.admin) };
        let mut stream = TcpStream::connect(("127.0.0.1", address.port())).await.unwrap();
        let request = request("GET", "/v1/status", "", "");
        let mut answer = Vec::new();
        if stream.write_all(request.as_bytes()).await.is_ok() {
            // A reset counts as an answer, too.
            let _ = stream.read_to_end(&mut answer).await;
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn request(method: &str, path: &str, fields: &str, body: &str) -> String {
    let length = match body.is_empty() && method == "GET" {
        true => String::new(),
        false => format!("Content-Length: {}\r\n", body.len()),
    };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}{length}\r\n{body}"
    )
}

async fn exchange(stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> Answered {
    try_exchange(stream, request).await.unwrap()
}

async fn try_exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> std::io::Result<Answered> {
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    while !is_stream(&answer) {
        match stream.read_buf(&mut answer).await {
            // A connection that is closed with unread bytes may be reset; data received before counts.
            Err(error) if answer.is_empty() => return Err(error),
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    Ok(Answered::of(std::str::from_utf8(&answer).unwrap()))
}

/// Whether the whole head of a stream has arrived.
fn is_stream(answer: &[u8]) -> bool {
    let head = answer.windows(4).position(|end| end == b"\r\n\r\n");
    head.is_some_and(|end| {
        String::from_utf8_lossy(&answer[..end]).contains("content-type: text/event-stream")
    })
}

/// Writes an authority (`ca.crt`), a certificate for `localhost` (`server.crt`, `server.key`), and one for each name of
/// a client.
pub(super) fn write_certificates(directory: &Path, clients: &[&str]) {
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let write = |name: String, text: String| std::fs::write(directory.join(name), text).unwrap();
    write("ca.crt".into(), certificate.pem());
    for name in clients.iter().chain(&["server"]) {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = if *name == "server" { vec!["localhost".to_owned()] } else { Vec::new() };
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, *name);
        let signed = params.signed_by(&key, &issuer).unwrap();
        write(format!("{name}.crt"), signed.pem());
        write(format!("{name}.key"), key.serialize_pem());
    }
}
