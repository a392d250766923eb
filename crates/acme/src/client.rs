//! Requests to an authority: one TLS connection per request, with limits on time and size.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use tokio_rustls::rustls::RootCertStore;
use weir_config::snapshot::Acme;
use weir_event_loop::error_text::io_error_text;
use weir_outgoing::exchange::{self, AskError};
use weir_outgoing::tls::TlsClients;

/// Timeout of a request, including its connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest pause that an authority can ask for. instant-acme adds it to the time of day, and a larger one overflows there.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// When a renewal window without `Retry-After` is asked for again (RFC 9773 section 4.3.3).
const WINDOW_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);
/// Maximum size of a response in bytes. The longest response is a certificate chain.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A client of an authority.
#[derive(Debug, Clone)]
pub struct Authority {
    tls: Arc<TlsClients>,
    /// The latest `Retry-After` of the authority.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

/// No answer of ACME came: the connection failed, or the answer was something else.
#[derive(Debug)]
pub struct NoAnswer(String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoAnswer {}

impl Authority {
    /// The trusted roots from the settings.
    pub fn new(settings: &Acme) -> Result<Self, String> {
        let tls = match &settings.authorities {
            None => TlsClients::new(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for authority in authorities {
                    let added = roots.add(authority.clone());
                    added.map_err(|error| format!("`acme.ca` cannot be used: {error}"))?;
                }
                TlsClients::with_roots(roots)
            }
        };
        Ok(Self { tls: Arc::new(tls), retry_after: Arc::default() })
    }

    /// The same connections for one operation: a pause that the authority asks for applies to that operation alone.
    pub fn for_one(&self) -> Self {
        Self { tls: Arc::clone(&self.tls), retry_after: Arc::default() }
    }

    /// The pause that the authority has asked for (`Retry-After`) since the last call.
    pub fn take_retry_after(&self) -> Option<Duration> {
        self.retry_after.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, String> {
        let uri = request.uri().clone();
        let is_get = request.method() == Method::GET;
        let refused = || format!("the authority names a URL that is not https://: {uri}");
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("https"));
        let authority = authority.ok_or_else(refused)?;
        let (host, port) = (authority.host(), authority.port_u16().unwrap_or(443));
        let exchange = async {
            let stream = weir_outgoing::connect(host.trim_matches(['[', ']']), port).await;
            let no_connection =
                |error| format!("no connection to {authority}: {}", io_error_text(&error));
            let stream = stream.map_err(no_connection)?;
            let secured = self.tls.connect(stream, host, true, &[b"http/1.1"]).await;
            let secured = secured.map_err(|error| format!("{authority}: {error}"))?;
            let request = prepared(request, authority.as_str())?;
            let answer = exchange::exchange(secured, request, ANSWER_BYTES_MAX).await;
            answer.map_err(|error| match error {
                AskError::Http(error) => format!("{authority} does not answer in HTTP: {error}"),
                AskError::Status(status) => format!("{authority} answers {status}"),
                AskError::TooLong => {
                    format!("the answer of {authority} is longer than {ANSWER_BYTES_MAX} bytes")
                }
            })
        };
        let timed_out = |_| format!("{authority} did not answer in {REQUEST_TIMEOUT:?}");
        let mut answer =
            tokio::time::timeout(REQUEST_TIMEOUT, exchange).await.map_err(timed_out)??;
        let pause = bound_pause(&mut answer, is_get, SystemTime::now());
        self.note(&answer, pause);
        let status = answer.status();
        if status.is_redirection() {
            let to =
                answer.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            return Err(format!(
                "{authority} answers {status}, to {to}: weir follows no redirects; is `acme.directory` right?"
            ));
        }
        if (status.is_client_error() || status.is_server_error()) && !is_problem(&answer) {
            return Err(format!("{authority} answers {status} without a reason"));
        }
        Ok(BytesResponse::from(answer.map(Full::new)))
    }

    fn note(&self, answer: &Response<Bytes>, pause: Option<Duration>) {
        let is_error = answer.status().is_client_error() || answer.status().is_server_error();
        if is_error && pause.is_some() {
            *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner) = pause;
        }
    }
}

/// The pause of a `Retry-After` field: seconds, or a date (RFC 9110 section 10.2.3).
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

/// Puts the pause that an answer asks for within bounds, as a number of seconds, and returns it. An answer to GET, such as a
/// renewal window, always has one after this.
fn bound_pause(answer: &mut Response<Bytes>, is_get: bool, now: SystemTime) -> Option<Duration> {
    let value = answer.headers_mut().remove(RETRY_AFTER);
    let asked = value.and_then(|value| retry_after(value.to_str().ok()?, now));
    let default = (is_get && answer.status().is_success()).then_some(WINDOW_PAUSE);
    let pause = asked.or(default)?.min(RETRY_AFTER_MAX);
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(pause.as_secs()));
    Some(pause)
}

/// The request in origin form, for a connection that is used once.
fn prepared(
    request: Request<BodyWrapper<Bytes>>,
    authority: &str,
) -> Result<Request<BodyWrapper<Bytes>>, String> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse().map_err(|_| "a URL of the authority has no path".to_owned())?;
    let host = HeaderValue::from_str(authority);
    let host = host.map_err(|_| "a URL of the authority has no host".to_owned())?;
    let user_agent = concat!("weir/", env!("CARGO_PKG_VERSION"), " instant-acme");
    parts.headers.insert(HOST, host);
    parts.headers.insert(USER_AGENT, HeaderValue::from_static(user_agent));
    parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(Request::from_parts(parts, body))
}

/// Whether a response is a problem document (RFC 7807).
fn is_problem(answer: &Response<Bytes>) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/problem+json"))
}

impl HttpClient for Authority {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let authority = self.clone();
        Box::pin(async move {
            let answer = authority.send(request).await;
            answer.map_err(|why| Error::Other(Box::new(NoAnswer(why))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_within_bounds() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (status, is_get, value, expected) in [
            (200, false, Some("5"), Some("5")),
            (429, false, Some("18446744073709551615"), Some("86400")),
            (200, true, Some("Fri, 31 Dec 9999 23:59:59 GMT"), Some("86400")),
            (200, true, Some("Sun, 06 Nov 1994 08:50:37 GMT"), Some("60")),
            (200, true, None, Some("21600")),
            (200, true, Some("soon"), Some("21600")),
            (200, false, Some("soon"), None),
            (200, false, None, None),
            (503, true, None, None),
        ] {
            let mut answer = Response::builder().status(status);
            if let Some(value) = value {
                answer = answer.header(RETRY_AFTER, value);
            }
            let mut answer = answer.body(Bytes::new()).expect("an answer");
            let pause = bound_pause(&mut answer, is_get, now);
            let found =
                answer.headers().get(RETRY_AFTER).map(|value| value.to_str().expect("text"));
            assert_eq!(found, expected, "{status} {value:?}");
            assert_eq!(pause.map(|pause| pause.as_secs().to_string()).as_deref(), expected);
        }
    }

    #[test]
    fn pauses_are_seconds_or_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |value| retry_after(value, now).map(|pause| pause.as_secs());
        for (value, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(seconds(value), expected, "{value}");
        }
    }
}
