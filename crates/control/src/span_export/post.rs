//! One request to a collector (OTLP over HTTP, binary protobuf).

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::Error as TlsError;
use tokio_rustls::rustls::pki_types::ServerName;
use weir_config::snapshot::TraceExport;
use weir_event_loop::error_text::io_error_text;
use weir_outgoing::exchange::{self, AskError};
use weir_tls::explain;

use super::request::refused;

/// Maximum size of a response in bytes.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// Maximum size of a collector's reason in bytes.
const REASON_BYTES_MAX: usize = 200;

/// The collector has accepted a request.
#[derive(Debug)]
pub struct ExportResult {
    /// The number of refused spans.
    pub refused: u64,
    /// The reason.
    pub reason: String,
}

/// The reason why a request was not accepted.
#[derive(Debug)]
pub enum PostError {
    /// The connection failed.
    Connect(io::Error),
    /// The TLS handshake failed.
    Tls(String),
    /// The request could not be built from the settings.
    Request,
    /// The connection ended before the response.
    Ask(AskError),
    /// A status other than 200, and its `Retry-After`.
    Status(u16, Option<Duration>),
    /// The timeout is over.
    TimedOut(Duration),
}

impl PostError {
    /// Whether a repetition of the request may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Status(status, _) => matches!(status, 429 | 502 | 503 | 504),
            Self::Connect(_) | Self::Tls(_) | Self::Ask(_) | Self::TimedOut(_) => true,
            Self::Request => false,
        }
    }

    /// The pause that the collector has asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status(_, retry_after) => *retry_after,
            _ => None,
        }
    }
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "no connection: {}", io_error_text(error)),
            Self::Tls(why) => write!(f, "TLS failed: {why}"),
            Self::Request => f.write_str("the URL or a header cannot be sent"),
            Self::Ask(AskError::Http(error)) => {
                write!(f, "the collector does not answer in HTTP: {error}")
            }
            Self::Ask(AskError::Status(status)) | Self::Status(status, _) => {
                write!(f, "the collector answers {status}")?;
                match status {
                    401 | 403 => f.write_str("; look at `tracing.headers` and `headers_file`"),
                    404 | 405 => f.write_str("; look at the path of `tracing.otlp`"),
                    _ => Ok(()),
                }
            }
            Self::Ask(AskError::TooLong) => {
                write!(f, "the response is longer than {RESPONSE_BYTES_MAX} bytes")
            }
            Self::TimedOut(timeout) => {
                write!(f, "the collector did not answer in {} ms", timeout.as_millis())
            }
        }
    }
}

/// Sends a request.
pub async fn post(exporting: &TraceExport, body: Vec<u8>) -> Result<ExportResult, PostError> {
    let url = &exporting.url;
    let mut request = hyper::Request::post(&url.path)
        .header(HOST, &url.authority)
        .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/x-protobuf")
        .header(CONNECTION, "close");
    for (name, value) in &exporting.headers {
        request = request.header(&**name, value.expose());
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|_| PostError::Request)?;
    let connected = weir_outgoing::connect(&url.host, url.port).await;
    let stream = connected.map_err(PostError::Connect)?;
    let response = match &exporting.tls {
        None => exchange::exchange(stream, request, RESPONSE_BYTES_MAX).await,
        Some(tls) => {
            let name = tls.server_name.as_deref().unwrap_or(&url.host);
            let name = ServerName::try_from(name.to_owned())
                .map_err(|_| PostError::Tls(format!("{name} is not a host name")))?;
            let connector = TlsConnector::from(Arc::clone(&tls.config));
            let secured = connector.connect(name, stream).await.map_err(in_words)?;
            exchange::exchange(secured, request, RESPONSE_BYTES_MAX).await
        }
    };
    let response = response.map_err(PostError::Ask)?;
    let status = response.status().as_u16();
    if !response.status().is_success() {
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok());
        let retry_after = retry_after.and_then(|text| text.trim().parse().ok());
        return Err(PostError::Status(status, retry_after.map(Duration::from_secs)));
    }
    let (refused, reason) = refused(response.body());
    let is_short = |at: &usize| reason.is_char_boundary(*at);
    let end = (0..=reason.len().min(REASON_BYTES_MAX)).rev().find(is_short).unwrap_or(0);
    Ok(ExportResult { refused, reason: reason[..end].escape_debug().to_string() })
}

/// The error of a TLS handshake.
fn in_words(error: io::Error) -> PostError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    PostError::Tls(
        tls.map_or_else(|| io_error_text(&error).to_string(), |tls| explain(tls).to_string()),
    )
}
