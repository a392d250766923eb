//! OCSP responses for certificates with `ocsp: fetch`, requested from their authorities.
//!
//! A task per certificate requests a response, verifies it, attaches it to the certificate (`Staple`), and repeats this
//! after half of the remaining validity. Failures are retried after growing pauses. A response survives reloads as long as
//! its certificate is in use. An expired response is never sent.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use tokio::task::JoinHandle;
use weir_config::snapshot::Snapshot;
use weir_event_loop::error_text::io_error_text;
use weir_outgoing::exchange::{self, AskError, BrokenExchange, until_retry};
use weir_tls::identity::Identity;
use weir_tls::ocsp::{
    OcspError, RESPONSE_BYTES_MAX, Staple, Validity, request, responder_url, verify,
};

use crate::events::Events;
use crate::time::unix_ms;

/// Timeout of a request to a responder, including the connection.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the first failure. It doubles with each further failure.
const RETRY_MIN: Duration = Duration::from_secs(10);
/// Maximum pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(60 * 60);
const RETRIES: RangeInclusive<Duration> = RETRY_MIN..=RETRY_MAX;
/// Minimum time between a valid response and the next request.
const REFRESH_MIN: Duration = Duration::from_secs(60);
/// Maximum time between a valid response and the next request, so that a revocation becomes known.
const REFRESH_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The certificates whose OCSP responses are fetched.
#[derive(Debug)]
pub struct Ocsp {
    events: Events,
    counters: Arc<Counters>,
    /// The tasks. The key is the certificate in DER.
    tasks: BTreeMap<Vec<u8>, Task>,
}

/// Counters of OCSP requests.
#[derive(Debug, Default)]
pub struct Counters {
    /// The number of valid responses.
    pub succeeded: AtomicU64,
    /// The number of requests without a valid response.
    pub failed: AtomicU64,
}

/// A running task. It ends on drop.
#[derive(Debug)]
struct Task {
    shared: Arc<Mutex<OcspState>>,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

#[derive(Debug, Default)]
struct OcspState {
    /// The staples of the certificate in the active snapshot.
    staples: Vec<Arc<Staple>>,
    last: Option<(Vec<u8>, Validity)>,
}

impl Ocsp {
    /// An instance without certificates.
    pub fn new(events: Events) -> Self {
        Self { events, counters: Arc::default(), tasks: BTreeMap::new() }
    }

    /// The counters of OCSP requests.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Begins to fetch responses for the certificates of this snapshot. Known responses are attached at once.
    pub fn apply(&mut self, snapshot: &Snapshot) {
        let mut wanted: BTreeMap<Vec<u8>, Vec<Arc<Identity>>> = BTreeMap::new();
        for identity in snapshot.shown().filter(|it| it.fetches_ocsp) {
            if let Some(certificate) = identity.certified.cert.first() {
                wanted.entry(certificate.to_vec()).or_default().push(identity);
            }
        }
        self.tasks.retain(|certificate, _| wanted.contains_key(certificate));
        for (certificate, identities) in wanted {
            let staples = identities.iter().filter_map(|it| it.staple.clone()).collect();
            if let Some(task) = self.tasks.get(&certificate) {
                let mut shared = lock(&task.shared);
                shared.staples = staples;
                shared.put();
                continue;
            }
            let shared = Arc::new(Mutex::new(OcspState { staples, last: None }));
            let identity = Arc::clone(&identities[0]);
            let fetching = OcspTask {
                identity,
                shared: Arc::clone(&shared),
                events: self.events.clone(),
                counters: Arc::clone(&self.counters),
            };
            let handle = tokio::spawn(fetching.run());
            self.tasks.insert(certificate, Task { shared, handle });
        }
    }
}

impl OcspState {
    fn put(&self) {
        if let Some((response, validity)) = &self.last {
            self.staples.iter().for_each(|staple| staple.set(response, *validity));
        }
    }
}

fn lock(shared: &Mutex<OcspState>) -> MutexGuard<'_, OcspState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task of one certificate.
struct OcspTask {
    identity: Arc<Identity>,
    shared: Arc<Mutex<OcspState>>,
    events: Events,
    counters: Arc<Counters>,
}

impl OcspTask {
    async fn run(self) {
        let mut failures: u32 = 0;
        loop {
            let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.fetch()).await;
            let pause = match fetched.unwrap_or(Err(FetchError::TimedOut)) {
                Ok((response, validity)) => {
                    self.counters.succeeded.fetch_add(1, Relaxed);
                    if failures > 0 {
                        self.events.info(self.subject(), "has a good response again");
                    }
                    failures = 0;
                    let mut shared = lock(&self.shared);
                    shared.last = Some((response, validity));
                    shared.put();
                    until_refresh(validity, now_unix_s())
                }
                Err(error) => {
                    self.counters.failed.fetch_add(1, Relaxed);
                    if failures == 0 {
                        self.events.warning(self.subject(), format_args!("cannot be had: {error}"));
                    }
                    failures = failures.saturating_add(1);
                    until_retry(failures, RETRIES)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn subject(&self) -> String {
        format!("OCSP response for {}", self.identity.subject)
    }

    async fn fetch(&self) -> Result<(Vec<u8>, Validity), FetchError> {
        let [certificate, issuer, ..] = &self.identity.certified.cert[..] else {
            return Err(FetchError::NotAsked("its chain has no issuer"));
        };
        let url = responder_url(certificate);
        let url = url.as_deref().ok_or(FetchError::NotAsked("it names no responder"))?;
        let question = request(certificate, issuer);
        let question = question.ok_or(FetchError::NotAsked("it cannot be asked about"))?;
        let response = post(&Responder::of(url)?, question).await?;
        let validity = verify(&response, certificate, issuer, now_unix_s());
        validity.map(|validity| (response, validity)).map_err(FetchError::Bad)
    }
}

/// The pause after a response: half of its remaining validity, within limits.
fn until_refresh(validity: Validity, now_unix_s: i64) -> Duration {
    let left_s = u64::try_from(validity.until_unix_s.saturating_sub(now_unix_s)).unwrap_or(0);
    Duration::from_secs(left_s / 2).clamp(REFRESH_MIN, REFRESH_MAX)
}

fn now_unix_s() -> i64 {
    i64::try_from(unix_ms() / 1_000).unwrap_or(i64::MAX)
}

/// The reason why a response could not be fetched.
#[derive(Debug)]
enum FetchError {
    NotAsked(&'static str),
    Url(String),
    Connect(String, io::Error),
    Http(BrokenExchange),
    Status(u16),
    TooLong,
    TimedOut,
    Bad(OcspError),
}

impl From<AskError> for FetchError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Http(error) => Self::Http(error),
            AskError::Status(status) => Self::Status(status),
            AskError::TooLong => Self::TooLong,
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked(why) => f.write_str(why),
            Self::Url(url) => write!(f, "the responder's address is {url}, which is not http://"),
            Self::Connect(host, error) => {
                write!(f, "no connection to {host}: {}", io_error_text(error))
            }
            Self::Http(error) => write!(f, "the responder does not answer in HTTP: {error}"),
            Self::Status(status) => write!(f, "the responder answers {status}"),
            Self::TooLong => write!(f, "the answer is longer than {RESPONSE_BYTES_MAX} bytes"),
            Self::TimedOut => write!(f, "the responder did not answer in {FETCH_TIMEOUT:?}"),
            Self::Bad(error) => error.fmt(f),
        }
    }
}

/// The URL of a responder.
#[derive(Debug, PartialEq, Eq)]
struct Responder {
    /// The value of the Host field.
    authority: String,
    /// The host, an IPv6 address without brackets.
    host: String,
    port: u16,
    path: String,
}

impl Responder {
    fn of(url: &str) -> Result<Self, FetchError> {
        let refused = || FetchError::Url(url.to_owned());
        let uri: hyper::Uri = url.parse().map_err(|_| refused())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"));
        let authority = authority.ok_or_else(refused)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            authority: authority.as_str().rsplit('@').next().unwrap_or_default().to_owned(),
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            path: path.to_owned(),
        })
    }
}

/// Sends a request by POST (RFC 6960 appendix A). Returns the response body.
async fn post(responder: &Responder, question: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    let connected = weir_outgoing::connect(&responder.host, responder.port).await;
    let failed = |error| {
        let address = format!("{}:{}", responder.host, responder.port);
        FetchError::Connect(address, error)
    };
    let stream = connected.map_err(failed)?;
    let request = hyper::Request::post(&responder.path)
        .header(HOST, &responder.authority)
        .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, "application/ocsp-request")
        .header(ACCEPT, "application/ocsp-response")
        .header(CONNECTION, "close")
        .body(Full::new(Bytes::from(question)))
        .map_err(|_| FetchError::Url(responder.authority.clone()))?;
    let answer = exchange::ask(stream, request, RESPONSE_BYTES_MAX).await?;
    Ok(answer.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responders() {
        let check = |url: &str, expected: Option<(&str, &str, u16, &str)>| {
            let found = Responder::of(url).ok();
            let found = found.as_ref().map(|it| (&*it.authority, &*it.host, it.port, &*it.path));
            assert_eq!(found, expected, "{url}");
        };
        check("http://ocsp.example", Some(("ocsp.example", "ocsp.example", 80, "/")));
        check("http://a.example:81/b?c", Some(("a.example:81", "a.example", 81, "/b?c")));
        check("http://[::1]:81/", Some(("[::1]:81", "::1", 81, "/")));
        check("https://ocsp.example/", None);
        check("ldap://ocsp.example/", None);
        check("", None);
        check("http://", None);
    }

    #[test]
    fn times() {
        let validity = |left_s: i64| Validity { from_unix_s: 0, until_unix_s: 1_000 + left_s };
        let check = |left_s, expected_s| {
            let pause = until_refresh(validity(left_s), 1_000);
            assert_eq!(pause, Duration::from_secs(expected_s), "{left_s}");
        };
        check(3_600, 1_800);
        check(-1, REFRESH_MIN.as_secs());
        check(7 * 24 * 3_600, REFRESH_MAX.as_secs());
        for failures in 1..40 {
            let pause = until_retry(failures, RETRIES);
            assert!(pause <= RETRY_MAX && pause >= RETRY_MIN * 3 / 4, "{failures}: {pause:?}");
        }
        assert!(until_retry(20, RETRIES) > RETRY_MAX / 2);
    }
}
