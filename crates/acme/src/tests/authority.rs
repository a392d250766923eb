//! A scripted authority (RFC 8555). It follows the protocol, except for one misdeed at one step. It checks no signatures.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::store::Store;

/// A step of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Directory,
    Nonce,
    Account,
    Order,
    Authorization,
    Challenge,
    Finalize,
    Poll,
    Certificate,
}

impl Step {
    pub const ALL: [Self; 9] = [
        Self::Directory,
        Self::Nonce,
        Self::Account,
        Self::Order,
        Self::Authorization,
        Self::Challenge,
        Self::Finalize,
        Self::Poll,
        Self::Certificate,
    ];

    fn of(path: &str) -> Self {
        match path {
            "/directory" => Self::Directory,
            "/nonce" => Self::Nonce,
            "/account" => Self::Account,
            "/orders" => Self::Order,
            "/authorization" => Self::Authorization,
            "/challenge" => Self::Challenge,
            "/finalize" => Self::Finalize,
            "/order" => Self::Poll,
            "/certificate" => Self::Certificate,
            other => panic!("weir asks for {other}"),
        }
    }
}

/// What the authority does wrong at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misdeed {
    /// Nothing.
    Nothing,
    /// Each nonce is called bad.
    BadNonce,
    /// 500 with a page of HTML.
    Failure,
    /// A body without an end.
    Endless,
    /// A redirect to another URL.
    Redirect,
    /// Something else than JSON.
    Garbage,
    /// JSON of another shape.
    OtherJson,
    /// The connection ends without a response.
    Hangup,
    /// A status that never changes.
    Processing,
    /// A certificate for another name.
    OtherName,
    /// A certificate for another key.
    OtherKey,
    /// A certificate that has expired.
    Expired,
    /// The account is called deactivated.
    Deactivated,
}

/// The state of the authority.
pub struct Script {
    /// The misdeed, and its step.
    pub misdeed: (Step, Misdeed),
    /// The steps that were asked for.
    pub asked: Vec<Step>,
    /// weir's files. The authority reads no signing request, and takes the key of the certificate from there.
    pub store: Option<Store>,
    /// The status of the order.
    status: &'static str,
    is_proven: bool,
}

/// A running authority.
#[derive(Clone)]
pub struct Authority {
    /// Its address.
    pub address: SocketAddr,
    /// The certificate of its listener.
    pub root: CertificateDer<'static>,
    /// Its state.
    pub script: Arc<Mutex<Script>>,
}

impl Authority {
    /// Starts an authority.
    pub async fn start() -> Self {
        let (certificate, acceptor) = listener_certificate();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (misdeed, asked) = ((Step::Directory, Misdeed::Nothing), Vec::new());
        let (store, status) = (None, "pending");
        let script = Script { misdeed, asked, store, status, is_proven: false };
        let own = Self { address, root: certificate, script: Arc::new(Mutex::new(script)) };
        let shared = own.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (own, acceptor) = (shared.clone(), acceptor.clone());
                // An error means that weir has ended the connection.
                tokio::spawn(async move { own.serve(acceptor.accept(stream).await?).await });
            }
        });
        own
    }

    /// Sets the misdeed, and forgets what was asked for.
    pub fn behave(&self, step: Step, misdeed: Misdeed) {
        let mut script = self.script.lock().expect("no test has failed");
        script.misdeed = (step, misdeed);
        script.asked.clear();
    }

    /// How often each step was asked for.
    pub fn asked(&self) -> Vec<Step> {
        self.script.lock().expect("no test has failed").asked.clone()
    }

    async fn serve(self, stream: TlsStream<TcpStream>) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let before = head.len();
            stream.read_line(&mut head).await?;
            let line = head[before..].trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line.is_empty() {
                break;
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        let path = head.split(' ').nth(1).expect("a path");
        let step = Step::of(path);
        let misdeed = {
            let mut script = self.script.lock().expect("no test has failed");
            script.asked.push(step);
            if script.misdeed.0 == step { script.misdeed.1 } else { Misdeed::Nothing }
        };
        if misdeed == Misdeed::Hangup {
            return Ok(());
        }
        let response = match self.refusal(misdeed) {
            Some(response) => response,
            None => self.response(step, misdeed),
        };
        stream.write_all(response.as_bytes()).await?;
        if misdeed == Misdeed::Endless && step != Step::Nonce {
            let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
            loop {
                stream.write_all(chunk.as_bytes()).await?;
            }
        }
        stream.shutdown().await
    }

    /// The response of a misdeed that is the same at each step.
    fn refusal(&self, misdeed: Misdeed) -> Option<String> {
        let problem = |status, kind: &str, detail: &str| {
            let body =
                json!({ "type": format!("urn:ietf:params:acme:error:{kind}"), "detail": detail });
            respond(status, "Content-Type: application/problem+json\r\n", &body.to_string())
        };
        let location = format!("Location: https://{}/order\r\n", self.address);
        Some(match misdeed {
            Misdeed::BadNonce => problem("400 Bad Request", "badNonce", "this nonce is bad"),
            Misdeed::Deactivated => {
                let detail = "account is not valid, has status \"deactivated\"";
                problem("401 Unauthorized", "unauthorized", detail)
            }
            Misdeed::Failure => respond("500 Internal Server Error", "", "<html>sorry</html>"),
            Misdeed::Redirect => {
                respond("302 Found", "Location: https://elsewhere.example/\r\n", "")
            }
            Misdeed::Garbage => respond("200 OK", &location, "{\"status\": <html>"),
            Misdeed::OtherJson => respond("200 OK", &location, "[1, 2]"),
            Misdeed::Endless => {
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nReplay-Nonce: n\r\n\r\n".into()
            }
            _ => return None,
        })
    }

    fn response(&self, step: Step, misdeed: Misdeed) -> String {
        let url = |path: &str| format!("https://{}/{path}", self.address);
        let json = |body: Value| respond("200 OK", "", &body.to_string());
        let mut script = self.script.lock().expect("no test has failed");
        match step {
            Step::Directory => json(json!({
                "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("orders"),
                "revokeCert": url("revoke"), "keyChange": url("key"),
            })),
            Step::Nonce => respond("200 OK", "", ""),
            Step::Account => {
                let location = format!("Location: {}\r\n", url("account"));
                respond("201 Created", &location, r#"{"status":"valid"}"#)
            }
            Step::Order => {
                (script.status, script.is_proven) = ("pending", false);
                let location = format!("Location: {}\r\n", url("order"));
                respond("201 Created", &location, &self.order(script.status).to_string())
            }
            Step::Authorization | Step::Challenge => {
                if step == Step::Challenge && misdeed != Misdeed::Processing {
                    (script.status, script.is_proven) = ("ready", true);
                }
                let status = if script.is_proven { "valid" } else { "pending" };
                let challenge = json!({ "type": "http-01", "url": url("challenge"), "token": "t", "status": status });
                match step {
                    Step::Challenge => json(challenge),
                    _ => json(json!({
                        "identifier": { "type": "dns", "value": super::NAME },
                        "status": status, "challenges": [challenge],
                    })),
                }
            }
            Step::Finalize => {
                script.status = if misdeed == Misdeed::Processing { "processing" } else { "valid" };
                json(self.order(script.status))
            }
            Step::Poll => json(self.order(script.status)),
            Step::Certificate => {
                respond("200 OK", "", &certificate(misdeed, script.store.as_ref()))
            }
        }
    }

    fn order(&self, status: &str) -> Value {
        let url = |path: &str| format!("https://{}/{path}", self.address);
        json!({
            "status": status,
            "identifiers": [{ "type": "dns", "value": super::NAME }],
            "authorizations": [url("authorization")],
            "finalize": url("finalize"),
            "certificate": (status == "valid").then(|| url("certificate")),
        })
    }
}

/// A response; each one has a nonce.
fn respond(status: &str, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{fields}Replay-Nonce: n\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The certificate chain that is issued, in PEM.
fn certificate(misdeed: Misdeed, store: Option<&Store>) -> String {
    let name = if misdeed == Misdeed::OtherName { "other.example" } else { super::NAME };
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
    if misdeed == Misdeed::Expired {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 4, 1);
    }
    let progress = store.expect("weir's files").progress(&super::names()).expect("it is kept");
    let key = match progress.order.filter(|_| misdeed != Misdeed::OtherKey) {
        Some(order) => rcgen::KeyPair::from_pem(&order.key_pem).expect("a key"),
        None => rcgen::KeyPair::generate().expect("a key"),
    };
    params.self_signed(&key).expect("a certificate").pem()
}

fn listener_certificate() -> (CertificateDer<'static>, TlsAcceptor) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate").der().clone();
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        );
    (certificate, TlsAcceptor::from(Arc::new(config.expect("a pair"))))
}
