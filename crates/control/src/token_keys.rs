//! Public keys of token issuers, fetched from the URLs in the configuration of authentications.
//!
//! A task per URL fetches the keys, sets them in all verifiers, and repeats this after `refresh`. A failure is reported and
//! retried after growing pauses; the previous keys stay in use. Keys survive reloads as long as their URL is in use.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use tokio::task::JoinHandle;
use weir_config::snapshot::{FetchedKeys, HttpUrl, Snapshot};
use weir_core::jwt::{JWKS_BYTES_MAX, Keys, KeysError, TokenReader};
use weir_event_loop::error_text::io_error_text;
use weir_outgoing::exchange::{self, AskError, BrokenExchange, until_retry};
use weir_outgoing::tls::{HandshakeError, TlsClients};

use crate::events::Events;
use crate::time::{monotonic_ms, rfc3339, unix_ms};

/// Timeout of a fetch, including the connection.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the first failure. It doubles with each further failure.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// Maximum pause after a failure, unless `refresh` is shorter.
const RETRY_MAX: Duration = Duration::from_secs(60);
const RETRIES: RangeInclusive<Duration> = RETRY_MIN..=RETRY_MAX;

/// The URLs from which keys are fetched.
pub struct TokenKeys {
    events: Events,
    counters: Arc<Counters>,
    tls: Arc<TlsClients>,
    tasks: BTreeMap<HttpUrl, Task>,
}

/// Keys that could not be refreshed for this long are a problem. Keys of tokens have no expiry, but their issuer may have
/// replaced them: its new tokens are then refused, and withdrawn keys are still accepted.
const STALE_AFTER: Duration = Duration::from_secs(5 * 60);

/// Counters of fetches, and their results by authentication. Names are shown, not URLs, which may have a secret.
#[derive(Debug, Default)]
pub struct Counters {
    /// The number of fetches with usable keys.
    pub succeeded: AtomicU64,
    /// The number of fetches without usable keys.
    pub failed: AtomicU64,
    results: Mutex<BTreeMap<Arc<str>, Fetches>>,
}

/// The results of fetches for one authentication.
#[derive(Debug, Clone, Default)]
pub struct Fetches {
    host: String,
    /// The time of the last fetch with usable keys, in milliseconds since 1970; `None`: there was none.
    pub succeeded_unix_ms: Option<u64>,
    /// The first failure since then: its time by the monotonic clock, and the reason of the last one.
    failing: Option<(u64, String)>,
}

impl Fetches {
    fn succeeded(&mut self) {
        (self.succeeded_unix_ms, self.failing) = (Some(unix_ms()), None);
    }

    fn failed(&mut self, now_ms: u64, reason: String) {
        let since_ms = self.failing.as_ref().map_or(now_ms, |(since_ms, _)| *since_ms);
        self.failing = Some((since_ms, reason));
    }

    /// The problem, if there is one: no keys at all, or keys that could not be refreshed for long.
    fn problem(&self, name: &str, now_ms: u64) -> Option<String> {
        let (since_ms, reason) = self.failing.as_ref()?;
        let failing = Duration::from_millis(now_ms.saturating_sub(*since_ms));
        match self.succeeded_unix_ms {
            None => Some(format!(
                "token keys of {name} cannot be fetched from {}: {reason}; `authenticate` answers 503",
                self.host
            )),
            Some(at_ms) if failing >= STALE_AFTER => Some(format!(
                "token keys of {name} cannot be refreshed from {}: {reason}; those of {} stay in use",
                self.host,
                rfc3339(at_ms)
            )),
            Some(_) => None,
        }
    }
}

impl Counters {
    fn results(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Fetches>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The authentications, each with the results of its fetches.
    pub(crate) fn fetches(&self) -> Vec<(Arc<str>, Fetches)> {
        self.results().iter().map(|(name, fetches)| (Arc::clone(name), fetches.clone())).collect()
    }

    /// The problems with keys, as sentences.
    pub(crate) fn problems(&self, now_ms: u64) -> Vec<String> {
        self.results().iter().filter_map(|(name, it)| it.problem(name, now_ms)).collect()
    }
}

/// A running task. It ends on drop.
struct Task {
    shared: Arc<Mutex<TokenKeyState>>,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

struct TokenKeyState {
    /// The verifiers with this URL in the active snapshot.
    readers: Vec<Arc<TokenReader>>,
    /// Their authentications.
    names: Vec<Arc<str>>,
    refresh: Duration,
    fetches: Fetches,
    /// The last valid response, and its keys.
    last: Option<(Bytes, Arc<Keys>)>,
}

impl TokenKeyState {
    /// Shows the results of fetches for each authentication.
    fn tell(&self, counters: &Counters) {
        let mut results = counters.results();
        for name in &self.names {
            results.insert(Arc::clone(name), self.fetches.clone());
        }
    }

    fn put(&self) {
        if let Some((_, keys)) = &self.last {
            self.readers.iter().for_each(|reader| reader.set_keys(Arc::clone(keys)));
        }
    }
}

fn lock(shared: &Mutex<TokenKeyState>) -> MutexGuard<'_, TokenKeyState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TokenKeys {
    /// An instance without URLs.
    pub fn new(events: Events) -> Self {
        let tls = Arc::new(TlsClients::new());
        Self { events, counters: Arc::default(), tls, tasks: BTreeMap::new() }
    }

    /// The counters of fetches.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Begins to fetch keys for this snapshot. Known keys are set in its verifiers at once.
    pub fn apply(&mut self, snapshot: &Snapshot) {
        let mut wanted: BTreeMap<&HttpUrl, Vec<&FetchedKeys>> = BTreeMap::new();
        for fetched in &snapshot.fetched_keys {
            wanted.entry(&fetched.url).or_default().push(fetched);
        }
        self.tasks.retain(|url, _| wanted.contains_key(url));
        let names: Vec<&Arc<str>> = snapshot.fetched_keys.iter().map(|it| &it.name).collect();
        self.counters.results().retain(|name, _| names.contains(&name));
        for (url, fetched) in wanted {
            let readers = fetched.iter().map(|it| Arc::clone(&it.reader)).collect();
            let names = fetched.iter().map(|it| Arc::clone(&it.name)).collect();
            let refresh_ms = fetched.iter().map(|it| it.refresh_ms).min().unwrap_or_default();
            let refresh = Duration::from_millis(refresh_ms);
            if let Some(task) = self.tasks.get(url) {
                let mut shared = lock(&task.shared);
                (shared.readers, shared.names, shared.refresh) = (readers, names, refresh);
                shared.put();
                shared.tell(&self.counters);
                continue;
            }
            let fetches = Fetches { host: url.host.clone(), ..Fetches::default() };
            let shared = Arc::new(Mutex::new(TokenKeyState {
                readers,
                names,
                refresh,
                last: None,
                fetches,
            }));
            let fetching = TokenKeyTask {
                url: url.clone(),
                shared: Arc::clone(&shared),
                events: self.events.clone(),
                counters: Arc::clone(&self.counters),
                tls: Arc::clone(&self.tls),
            };
            let handle = tokio::spawn(fetching.run());
            self.tasks.insert(url.clone(), Task { shared, handle });
        }
    }
}

/// The task of one URL.
struct TokenKeyTask {
    url: HttpUrl,
    shared: Arc<Mutex<TokenKeyState>>,
    events: Events,
    counters: Arc<Counters>,
    tls: Arc<TlsClients>,
}

impl TokenKeyTask {
    async fn run(self) {
        let mut failures: u32 = 0;
        loop {
            let fetched = tokio::time::timeout(FETCH_TIMEOUT, self.fetch()).await;
            let pause = match fetched.unwrap_or(Err(FetchError::TimedOut)) {
                Ok(()) => {
                    self.counters.succeeded.fetch_add(1, Relaxed);
                    self.note(Fetches::succeeded);
                    if failures > 0 {
                        self.events.info(self.subject(), "can be fetched again");
                    }
                    failures = 0;
                    lock(&self.shared).refresh
                }
                Err(error) => {
                    self.counters.failed.fetch_add(1, Relaxed);
                    self.note(|of| of.failed(monotonic_ms(), error.to_string()));
                    if failures == 0 {
                        self.tell(&error);
                    }
                    failures = failures.saturating_add(1);
                    until_retry(failures, RETRIES).min(lock(&self.shared).refresh)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    fn note(&self, note: impl FnOnce(&mut Fetches)) {
        let mut shared = lock(&self.shared);
        note(&mut shared.fetches);
        shared.tell(&self.counters);
    }

    fn subject(&self) -> String {
        format!("token keys at {}", self.url.origin())
    }

    fn tell(&self, error: &FetchError) {
        let meanwhile = match lock(&self.shared).last {
            Some(_) => "those fetched before stay in use",
            None => "until they are there, `authenticate` answers 503",
        };
        let text = format_args!("cannot be fetched: {error}; {meanwhile}");
        self.events.warning(self.subject(), text);
    }

    async fn fetch(&self) -> Result<(), FetchError> {
        let text = get(&self.url, &self.tls).await?;
        let mut shared = lock(&self.shared);
        // If the response is unchanged, the same keys stay, and with them cached results of signature checks.
        if shared.last.as_ref().is_none_or(|(before, _)| *before != text) {
            let keys = Keys::parse_published(&text).map_err(FetchError::Keys)?;
            shared.last = Some((text, Arc::new(keys)));
        }
        shared.put();
        Ok(())
    }
}

/// The reason why keys could not be fetched.
#[derive(Debug)]
enum FetchError {
    Connect(io::Error),
    Tls(HandshakeError),
    Request,
    Http(BrokenExchange),
    Status(u16),
    TooLong,
    TimedOut,
    Keys(KeysError),
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
            Self::Connect(error) => write!(f, "no connection: {}", io_error_text(error)),
            Self::Tls(error) => error.fmt(f),
            Self::Request => f.write_str("the URL cannot be asked for"),
            Self::Http(error) => write!(f, "the server does not answer in HTTP: {error}"),
            Self::Status(status @ 300..=399) => {
                write!(
                    f,
                    "the server answers {status}; redirections are not followed, give the last URL"
                )
            }
            Self::Status(status) => write!(f, "the server answers {status}"),
            Self::TooLong => write!(f, "the answer is longer than {JWKS_BYTES_MAX} bytes"),
            Self::TimedOut => write!(f, "the server did not answer in {FETCH_TIMEOUT:?}"),
            Self::Keys(error) => error.fmt(f),
        }
    }
}

async fn get(url: &HttpUrl, tls: &TlsClients) -> Result<Bytes, FetchError> {
    let connected = weir_outgoing::connect(&url.host, url.port).await;
    let stream = connected.map_err(FetchError::Connect)?;
    if !url.is_secure {
        return ask(url, stream).await;
    }
    let secured = tls.connect(stream, &url.host, true, &[b"http/1.1"]).await;
    ask(url, secured.map_err(FetchError::Tls)?).await
}

async fn ask(
    url: &HttpUrl,
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
) -> Result<Bytes, FetchError> {
    let request = hyper::Request::get(&url.path)
        .header(HOST, &url.authority)
        .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/jwk-set+json, application/json")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|_| FetchError::Request)?;
    Ok(exchange::ask(stream, request, JWKS_BYTES_MAX).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_refreshed_become_a_problem() {
        let counters = Counters::default();
        let stale_ms = STALE_AFTER.as_millis() as u64;
        let none = || Fetches { host: "issuer.example".into(), ..Fetches::default() };
        let note = |note: &dyn Fn(&mut Fetches)| {
            note(counters.results().entry("portal".into()).or_insert_with(none));
        };
        let told = |now_ms: u64| counters.problems(now_ms).join("; ");
        assert_eq!(told(0), "");
        // Without any keys it is a problem at once.
        note(&|of| of.failed(1_000, "no connection: refused".into()));
        let expected = "token keys of portal cannot be fetched from issuer.example: no connection: refused; `authenticate` answers 503";
        assert_eq!(told(1_000), expected);
        note(&|of| (of.succeeded_unix_ms, of.failing) = (Some(0), None));
        assert_eq!(told(9 * stale_ms), "");
        // Old keys are a problem after a while, counted from the first failure.
        note(&|of| of.failed(10_000, "the server answers 500".into()));
        note(&|of| of.failed(10_000 + stale_ms / 2, "the server answers 502".into()));
        assert_eq!(told(9_999 + stale_ms), "");
        let expected = "token keys of portal cannot be refreshed from issuer.example: the server answers 502; those of 1970-01-01T00:00:00.000Z stay in use";
        assert_eq!(told(10_000 + stale_ms), expected);
        note(&Fetches::succeeded);
        assert_eq!(told(u64::MAX), "");
    }

    #[test]
    fn pauses_grow_and_end() {
        for failures in 1..40 {
            let pause = until_retry(failures, RETRIES);
            assert!(pause <= RETRY_MAX && pause >= RETRY_MIN * 3 / 4, "{failures}: {pause:?}");
        }
        assert!(until_retry(1, RETRIES) <= RETRY_MIN && until_retry(20, RETRIES) > RETRY_MAX / 2);
    }
}
