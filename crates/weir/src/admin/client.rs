//! A client of the admin listener: one request per connection.

use std::fmt;
use std::io;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, IF_MATCH, USER_AGENT};
use hyper::http::request;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use weir_api::page::Page;
use weir_tls::ServerName;

use super::address::AdminAddress;
use super::credentials::Credentials;
use super::error::Error;

/// Maximum time from connecting to the end of the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of an answer: a status with 100,000 members fits.
const ANSWER_SIZE_MAX: usize = 256 * 1024 * 1024;

/// Maximum number of pages of a list.
const PAGES_MAX: usize = 1_000;

/// Number of items per page: the maximum that weir accepts.
const PAGE_ITEMS: u32 = 1_000;

/// The header that names the user who called sudo, for the author of a change.
const SUDO_USER: &str = "weir-sudo-user";

/// A client of the admin listener.
pub struct Client {
    pub(super) address: AdminAddress,
    credentials: Credentials,
    pub(super) runtime: Runtime,
    /// Maximum time without an answer.
    pub(super) patience: Duration,
}

impl Client {
    /// Prepares a client; does not connect yet.
    pub fn new(address: AdminAddress, credentials: Credentials) -> Result<Self, Error> {
        if credentials.token.is_some() && address.is_exposed() {
            let what =
                format!("a token is not sent to {address} without TLS: use https://HOST:PORT");
            return Err(Error::Credentials(what));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::System)?;
        Ok(Self { address, credentials, runtime, patience: ANSWER_TIMEOUT })
    }

    /// Requests the document at `path`.
    pub fn get(&self, path: &str) -> Result<Bytes, Error> {
        self.ask(Method::GET, path, Bytes::new(), None)
    }

    /// Posts a JSON document to `path`; returns the answer.
    pub fn post(&self, path: &str, document: &impl Serialize) -> Result<Bytes, Error> {
        self.ask(Method::POST, path, self.written(document)?, None)
    }

    /// As [`Self::post`], if this is the newest version of the configuration.
    pub fn post_if(
        &self,
        path: &str,
        document: &impl Serialize,
        version: Option<u64>,
    ) -> Result<Bytes, Error> {
        let tag = version.map(|version| format!("\"version-{version}\""));
        self.ask(Method::POST, path, self.written(document)?, tag)
    }

    /// Replaces the document at `path`; returns the answer.
    pub fn put(&self, path: &str, document: &impl Serialize) -> Result<Bytes, Error> {
        self.ask(Method::PUT, path, self.written(document)?, None)
    }

    /// A document as JSON.
    fn written(&self, document: &impl Serialize) -> Result<Bytes, Error> {
        let written = serde_json::to_vec(document).map_err(io::Error::other);
        written.map(Bytes::from).map_err(Error::System)
    }

    /// All pages of the list at `path`, as one document: `{"items": […]}`.
    pub fn list(&self, path: &str) -> Result<Bytes, Error> {
        self.list_after(path, None)
    }

    /// As [`Self::list`], for the items after `item`.
    pub fn list_after(&self, path: &str, item: Option<&str>) -> Result<Bytes, Error> {
        let mut items = Vec::new();
        let mut after = item.map_or_else(String::new, |it| format!("&after={}", segment(it)));
        let mut bytes = 0;
        for number in 1.. {
            let document = self.get(&format!("{path}?limit={PAGE_ITEMS}{after}"))?;
            let page: Page<Value> = self.read(&document)?;
            items.extend(page.items);
            bytes += document.len();
            match page.next {
                Some(_) if number == PAGES_MAX || bytes > ANSWER_SIZE_MAX => {
                    return Err(self.no_answer("a list without an end"));
                }
                Some(next) => after = format!("&after={}", segment(&next)),
                None => break,
            }
        }
        let document = serde_json::to_string_pretty(&serde_json::json!({ "items": items }));
        document.map(|text| (text + "\n").into()).map_err(|error| self.no_answer(error))
    }

    /// Parses a document from an answer.
    pub fn read<T: DeserializeOwned>(&self, document: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(document).map_err(|error| {
            let what = format!("this version of weir does not understand its answer: {error}");
            Error::NoAnswer(self.address.clone(), what)
        })
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        if_match: Option<String>,
    ) -> Result<Bytes, Error> {
        let request = self.request(method, path);
        let request = match if_match {
            Some(tag) => request.header(IF_MATCH, tag),
            None => request,
        };
        let request = request.body(Full::new(body)).map_err(|error| self.no_answer(error))?;
        let answer = async {
            match &self.address {
                AdminAddress::Unix(path) => {
                    let stream = UnixStream::connect(path).await;
                    self.exchange(stream.map_err(|error| self.unreachable(error))?, request).await
                }
                AdminAddress::Tcp(address) => {
                    let stream = TcpStream::connect(address).await;
                    self.exchange(stream.map_err(|error| self.unreachable(error))?, request).await
                }
                AdminAddress::Tls(address) => {
                    self.exchange(self.secure(address).await?, request).await
                }
            }
        };
        let answer = async { tokio::time::timeout(self.patience, answer).await };
        let late = || self.late();
        let (status, body) = self.runtime.block_on(answer).map_err(|_| late())??;
        // 202: accepted but not finished; the document contains the state.
        match status {
            200 | 202 => Ok(body),
            _ => Err(Error::of_answer(status, &body)),
        }
    }

    /// A request with the credentials, yet without a body.
    pub(super) fn request(&self, method: Method, path: &str) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.host())
            .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json");
        let request = match self.credentials.token.as_ref() {
            Some(token) => request.header(AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        };
        match (&self.address, self.credentials.sudo_user.as_deref()) {
            (AdminAddress::Unix(_), Some(user)) => request.header(SUDO_USER, user),
            _ => request,
        }
    }

    /// Opens a connection with TLS.
    pub(super) async fn secure(&self, address: &str) -> Result<TlsStream<TcpStream>, Error> {
        let tls = TlsConnector::from(self.credentials.tls()?);
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|error| self.no_answer(error))?;
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| self.unreachable(error))?;
        let secured = tls.connect(name, stream).await;
        secured.map_err(|error| self.no_answer(format_args!("TLS: {error}")))
    }

    /// Sends a request; returns the status and body of the answer.
    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: Request<Full<Bytes>>,
    ) -> Result<(u16, Bytes), Error> {
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| self.no_answer(error))?;
        let exchange = async {
            let response = sender.send_request(request).await;
            let response = response.map_err(|error| self.no_answer(error))?;
            let status = response.status().as_u16();
            match Limited::new(response.into_body(), ANSWER_SIZE_MAX).collect().await {
                Ok(body) => Ok((status, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => {
                    Err(self.no_answer(format_args!("more than {ANSWER_SIZE_MAX} bytes")))
                }
                Err(error) => Err(self.no_answer(error)),
            }
        };
        // The connection must be polled while the exchange waits, and may end before it.
        tokio::pin!(exchange, connection);
        tokio::select! {
            biased;
            result = &mut exchange => result,
            _ = &mut connection => exchange.await,
        }
    }

    pub(super) fn late(&self) -> Error {
        self.no_answer(format_args!("no answer within {:?}", self.patience))
    }

    pub(super) fn unreachable(&self, error: io::Error) -> Error {
        Error::Unreachable(self.address.clone(), error)
    }

    pub(super) fn no_answer(&self, what: impl fmt::Display) -> Error {
        Error::NoAnswer(self.address.clone(), what.to_string())
    }
}

/// A path segment: all characters except unreserved ones (RFC 3986 section 2.3) are percent-encoded.
pub fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// The keys of a filter as parameters of a query: `&pool=web&age_seconds_min=60`.
pub fn parameters(filter: &impl Serialize) -> String {
    let filter = serde_json::to_value(filter).unwrap_or_default();
    let given = filter.as_object().into_iter().flatten();
    let parameter = |(key, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("&{key}={}", segment(&text))
    };
    given.map(parameter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments() {
        let check = |text, expected: &str| assert_eq!(segment(text), expected);
        check("web-1.a_b~c", "web-1.a_b~c");
        check("team/web", "team%2Fweb");
        check("[::1]:80", "%5B%3A%3A1%5D%3A80");
        check("unix:/run/ü.sock", "unix%3A%2Frun%2F%C3%BC.sock");
        check("a\r\nb?#%", "a%0D%0Ab%3F%23%25");
    }
}
