//! Host names of members. They are resolved, refreshed when their TTL expires, and kept while name servers fail.
//!
//! A name in `/etc/hosts` has its addresses from there, at once and without a query, until the next reload. For each other
//! name, a task queries A and AAAA records, with the search list of `/etc/resolv.conf` ([`search`]), and repeats the queries
//! when the shorter of the two TTLs expires. If one query fails, the last addresses of its family stay in use. If neither query finds
//! an address, all last addresses stay in use. Queries are then repeated after growing pauses, or earlier when the found
//! addresses expire. So a failing name server does not take members out of service, and one address family does not delay
//! the other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
#[cfg(test)]
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
#[cfg(test)]
use hickory_resolver::proto::rr::Name;
use hickory_resolver::proto::rr::RecordType;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use weir_config::{Config, Resolutions};
use weir_event_loop::random;

use crate::events::Events;

mod hosts;
mod search;

use hosts::Hosts;
use search::{FoundAddresses, QueryResult, Search};

/// The name servers and the search list of this host.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Minimum lifetime of an answer, even with a shorter TTL.
pub const TTL_MIN: Duration = Duration::from_secs(1);

/// Maximum lifetime of an answer, even with a longer TTL.
pub const TTL_MAX: Duration = Duration::from_secs(3_600);

/// Pause after the first failure. It doubles with each further failure.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Maximum pause after a failure.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The pause between queries while a name without an address is awaited.
const HURRIED_PAUSE: Duration = Duration::from_millis(500);

/// Timeout of a query to a name server, before it is repeated or another server is queried.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum number of attempts of a query.
const QUERY_ATTEMPTS: usize = 2;

/// Maximum wait of a startup or reload for the first results of new names.
pub const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of addresses per name. If there are more, the lowest ones are used.
pub const ADDRESSES_PER_NAME_MAX: usize = 256;

/// The source of addresses.
#[derive(Debug, Clone, Default)]
pub enum NameServers {
    /// `/etc/hosts` and `/etc/resolv.conf`, read at the start and at each reload.
    #[default]
    System,
    /// One server over UDP, without a hosts file.
    Udp(SocketAddr),
    /// One server over UDP, a search list, and a hosts file.
    #[cfg(test)]
    Given(SocketAddr, Vec<String>, PathBuf),
}

/// The followed names and their tasks.
#[derive(Debug)]
pub struct Names {
    servers: NameServers,
    shared: Arc<NameState>,
    tasks: Vec<Task>,
}

#[derive(Debug)]
struct NameState {
    events: Events,
    answers: Mutex<BTreeMap<String, Answer>>,
    /// Notified when the addresses of a name have changed.
    changed: Notify,
    /// Notified when a name has its first result: addresses or an error.
    answered: Notify,
    /// Whether names without an address are awaited.
    is_hurried: AtomicBool,
}

/// The results for a name.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    v4: BTreeSet<IpAddr>,
    v6: BTreeSet<IpAddr>,
    /// Whether the first queries have ended.
    asked: bool,
    /// The error of the last queries, if they failed.
    pub failure: Option<Failure>,
}

/// The error of the queries for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Neither query found an address, for this reason.
    Whole(String),
    /// The query for this record type failed for this reason, while the other query found addresses.
    Part(RecordType, String),
}

impl Answer {
    /// All addresses, lowest first.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.v4.iter().chain(&self.v6).copied().take(ADDRESSES_PER_NAME_MAX).collect()
    }
}

/// A running task. It ends on drop.
#[derive(Debug)]
struct Task {
    name: String,
    handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl Names {
    /// An instance without names.
    pub fn new(servers: NameServers, events: Events) -> Self {
        let shared = NameState {
            events,
            answers: Mutex::default(),
            changed: Notify::new(),
            answered: Notify::new(),
            is_hurried: AtomicBool::new(false),
        };
        Self { servers, shared: Arc::new(shared), tasks: Vec::new() }
    }

    /// Follows exactly these names: queries each at once, and waits for the first results of new names, at most for
    /// [`FIRST_ANSWER_TIMEOUT`].
    pub async fn follow<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.begin(names.map(str::to_owned).collect()).await;
    }

    /// As [`Self::follow`], with the wait in the returned future.
    pub fn begin(&mut self, names: BTreeSet<String>) -> impl Future<Output = ()> + use<> {
        let are_asked_for = self.start(names);
        let shared = Arc::clone(&self.shared);
        async move {
            if are_asked_for {
                shared.first_answers().await;
            }
        }
    }

    fn start(&mut self, names: BTreeSet<String>) -> bool {
        self.tasks.clear();
        {
            let mut answers = lock(&self.shared.answers);
            answers.retain(|name, _| names.contains(name));
            for name in &names {
                answers.entry(name.clone()).or_default();
            }
        }
        if names.is_empty() {
            return false;
        }
        let hosts = self.hosts();
        let names = names.into_iter().filter(|name| match hosts.addresses(name) {
            Some(addresses) => {
                self.shared.take_from_hosts(name, addresses);
                false
            }
            None => true,
        });
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            return false;
        }
        let Some(search) = self.search() else {
            return false;
        };
        self.hurry(true);
        for name in names {
            let work = follow(name.clone(), Arc::clone(&search), Arc::clone(&self.shared));
            let handle = tokio::spawn(work);
            self.tasks.push(Task { name, handle });
        }
        true
    }

    /// Stops following all names except these.
    pub fn retain<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let names: BTreeSet<&str> = names.collect();
        self.tasks.retain(|task| names.contains(&*task.name));
        lock(&self.shared.answers).retain(|name, _| names.contains(&**name));
    }

    /// Sets whether names without an address are queried at short intervals.
    pub fn hurry(&self, is_hurried: bool) {
        self.shared.is_hurried.store(is_hurried, Relaxed);
    }

    /// The known addresses.
    pub fn resolutions(&self) -> Resolutions {
        let answers = lock(&self.shared.answers);
        answers.iter().map(|(name, answer)| (name.clone(), answer.addresses())).collect()
    }

    /// The results so far.
    pub fn answers(&self) -> BTreeMap<String, Answer> {
        lock(&self.shared.answers).clone()
    }

    /// Waits until addresses have changed since the last call.
    pub async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    fn hosts(&self) -> Hosts {
        let path = match &self.servers {
            NameServers::System => Path::new("/etc/hosts"),
            NameServers::Udp(_) => return Hosts::default(),
            #[cfg(test)]
            NameServers::Given(_, _, path) => path,
        };
        Hosts::read(path).unwrap_or_else(|why| {
            self.shared.events.warning(path.display(), why);
            Hosts::default()
        })
    }

    fn search(&self) -> Option<Arc<Search>> {
        let (config, mut options) = match &self.servers {
            NameServers::System => self.system(),
            NameServers::Udp(address) => (single_server(*address), ResolverOpts::default()),
            #[cfg(test)]
            NameServers::Given(address, search, _) => {
                let mut config = single_server(*address);
                for domain in search {
                    config.add_search(Name::from_ascii(domain).expect("a domain"));
                }
                (config, ResolverOpts::default())
            }
        };
        options.timeout = QUERY_TIMEOUT;
        options.attempts = QUERY_ATTEMPTS;
        // The TTL is handled here. A cache in the resolver could only prolong it.
        options.cache_size = 0;
        // The hosts file comes first, whole (`Hosts`): the resolver would ask it last, and by address family.
        options.use_hosts_file = ResolveHosts::Never;
        let (domains, ndots) = (search::domains(&config), options.ndots);
        let provider = TokioRuntimeProvider::default();
        let mut builder = TokioResolver::builder_with_config(config, provider);
        *builder.options_mut() = options;
        match builder.build() {
            Ok(resolver) => Some(Arc::new(Search { resolver, domains, ndots })),
            Err(error) => {
                self.shared.events.error("names", format_args!("cannot be resolved: {error}"));
                None
            }
        }
    }

    /// The name servers and the search list of this host. A file that is missing is like an empty one.
    fn system(&self) -> (ResolverConfig, ResolverOpts) {
        let text = std::fs::read(RESOLV_CONF).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(Vec::new()),
            _ => Err(error.to_string()),
        });
        let found =
            text.and_then(|text| search::configuration(&text).map_err(|error| error.to_string()));
        found.unwrap_or_else(|error| {
            let what = format_args!("are unknown: {RESOLV_CONF}: {error}");
            self.shared.events.warning("name servers", what);
            (ResolverConfig::default(), ResolverOpts::default())
        })
    }
}

/// Warns of names that lead to an admin listener, and so give no member.
pub(crate) fn tell_of_own_doors(config: &Config, resolutions: &Resolutions, events: &Events) {
    for member in config.led_to_own_doors(resolutions) {
        let what = format_args!(
            "{member} leads to weir's own admin listener: the member is left out; change its record, or move `admin.listen`"
        );
        events.error("names", what);
    }
}

fn single_server(address: SocketAddr) -> ResolverConfig {
    let mut connection = ConnectionConfig::udp();
    connection.port = address.port();
    let server = NameServerConfig::new(address.ip(), true, vec![connection]);
    ResolverConfig::from_name_servers(vec![server])
}

/// Follows a name forever.
async fn follow(name: String, search: Arc<Search>, shared: Arc<NameState>) {
    let mut failures_in_a_row = 0;
    loop {
        let (v4, v6) = search.look_up(&name).await;
        let outcome = shared.take(&name, &v4, &v6);
        failures_in_a_row = if outcome.failed { failures_in_a_row + 1 } else { 0 };
        let pause = match outcome.has_none && shared.is_hurried.load(Relaxed) {
            true => {
                // Queries at short intervals do not prolong the later pauses.
                failures_in_a_row = 0;
                HURRIED_PAUSE
            }
            false => pause(outcome.ttl, failures_in_a_row, random::number()),
        };
        tokio::time::sleep(pause).await;
    }
}

/// The pause until the next queries: until the found addresses expire, or until the next attempt after a failure.
fn pause(ttl: Option<Duration>, failures_in_a_row: u32, random: u64) -> Duration {
    let ttl = ttl.map(|ttl| ttl.clamp(TTL_MIN, TTL_MAX));
    match ttl {
        Some(ttl) if failures_in_a_row == 0 => ttl,
        Some(ttl) => ttl.min(retry_pause(failures_in_a_row, random)),
        None => retry_pause(failures_in_a_row, random),
    }
}

/// Doubles from [`RETRY_MIN`] to [`RETRY_MAX`], shortened at random by up to a quarter, so that names do not all query at
/// once.
fn retry_pause(failures_in_a_row: u32, random: u64) -> Duration {
    let doublings = failures_in_a_row.saturating_sub(1).min(16);
    let pause = RETRY_MIN.saturating_mul(1 << doublings).min(RETRY_MAX);
    pause - pause / 4 * (random % 256) as u32 / 256
}

/// The combined result of both queries.
struct LookupOutcome {
    /// The remaining TTL of the found addresses; `None`: no query found addresses.
    ttl: Option<Duration>,
    failed: bool,
    /// Whether no address is known.
    has_none: bool,
}

impl Failure {
    fn of(v4: &QueryResult, v6: &QueryResult) -> Option<Self> {
        let failed = |kind: RecordType, error: &NetError| format!("{kind} query failed: {error}");
        match (v4, v6) {
            (Ok(FoundAddresses::Addresses(..)), Ok(_))
            | (Ok(_), Ok(FoundAddresses::Addresses(..))) => None,
            (Ok(FoundAddresses::Nothing), Ok(FoundAddresses::Nothing)) => {
                Some(Self::Whole("it has no address".into()))
            }
            (Ok(FoundAddresses::Addresses(..)), Err(error)) => {
                Some(Self::Part(RecordType::AAAA, error.to_string()))
            }
            (Err(error), Ok(FoundAddresses::Addresses(..))) => {
                Some(Self::Part(RecordType::A, error.to_string()))
            }
            (Ok(FoundAddresses::Nothing), Err(error)) => {
                Some(Self::Whole(failed(RecordType::AAAA, error)))
            }
            (Err(error), Ok(FoundAddresses::Nothing)) => {
                Some(Self::Whole(failed(RecordType::A, error)))
            }
            (Err(v4), Err(v6)) if v4.to_string() == v6.to_string() => {
                Some(Self::Whole(format!("A and AAAA queries failed: {v4}")))
            }
            (Err(v4), Err(v6)) => {
                let (v4, v6) = (failed(RecordType::A, v4), failed(RecordType::AAAA, v6));
                Some(Self::Whole(format!("{v4}; {v6}")))
            }
        }
    }

    /// Whether two failures affect the same queries. The reasons may differ.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(_), Self::Whole(_)) => true,
            (Self::Part(kind, _), Self::Part(other_kind, _)) => kind == other_kind,
            _ => false,
        }
    }

    /// The event text about a name with this failure.
    fn text(&self, answer: &Answer) -> String {
        match self {
            Self::Whole(reason) => {
                let kept = match answer.addresses().len() {
                    0 => "no address is known".to_owned(),
                    1 => "its address stays in use".to_owned(),
                    kept => format!("its {kept} addresses stay in use"),
                };
                format!("cannot be resolved, {kept}: {reason}")
            }
            Self::Part(kind, reason) => {
                let (family, kept) = match kind {
                    RecordType::A => ("IPv4", answer.v4.len()),
                    _ => ("IPv6", answer.v6.len()),
                };
                let kept = match kept {
                    0 => format!("it has no {family} address"),
                    1 => format!("its {family} address stays in use"),
                    kept => format!("its {kept} {family} addresses stay in use"),
                };
                format!("is resolved in part, {kind} query failed, {kept}: {reason}")
            }
        }
    }
}

impl NameState {
    async fn first_answers(&self) {
        let first_answers = async {
            while !lock(&self.answers).values().all(|answer| answer.asked) {
                self.answered.notified().await;
            }
        };
        if tokio::time::timeout(FIRST_ANSWER_TIMEOUT, first_answers).await.is_err() {
            let answers = lock(&self.answers);
            for (name, _) in answers.iter().filter(|(_, answer)| !answer.asked) {
                let waited = format_args!(
                    "has no answer within {FIRST_ANSWER_TIMEOUT:?}; going on without it"
                );
                self.events.warning(format_args!("name {name}"), waited);
            }
        }
    }

    /// Records the addresses of a name in the hosts file.
    fn take_from_hosts(&self, name: &str, addresses: BTreeSet<IpAddr>) {
        let (v4, v6) = addresses.into_iter().partition(IpAddr::is_ipv4);
        let found = |addresses: BTreeSet<IpAddr>| match addresses.is_empty() {
            true => Ok(FoundAddresses::Nothing),
            false => Ok(FoundAddresses::Addresses(addresses, TTL_MAX)),
        };
        self.take(name, &found(v4), &found(v6));
    }

    /// Records the results of both queries. A result without records counts only if the other query found addresses, so a
    /// name never loses its last addresses.
    fn take(&self, name: &str, v4: &QueryResult, v6: &QueryResult) -> LookupOutcome {
        let mut answers = lock(&self.answers);
        let Some(answer) = answers.get_mut(name) else {
            return LookupOutcome { ttl: None, failed: true, has_none: false };
        };
        let before = (answer.v4.clone(), answer.v6.clone());
        let failure = Failure::of(v4, v6);
        let mut ttl: Option<Duration> = None;
        for (addresses, result) in [(&mut answer.v4, v4), (&mut answer.v6, v6)] {
            match result {
                Ok(FoundAddresses::Addresses(found, holds)) => {
                    addresses.clone_from(found);
                    ttl = Some(ttl.map_or(*holds, |ttl| ttl.min(*holds)));
                }
                Ok(FoundAddresses::Nothing) if failure.is_none() => addresses.clear(),
                Ok(FoundAddresses::Nothing) | Err(_) => {}
            }
        }
        let failed = failure.is_some();
        let first = !std::mem::replace(&mut answer.asked, true);
        self.tell(name, answer, &before, first, failure.as_ref());
        answer.failure = failure;
        if (&answer.v4, &answer.v6) != (&before.0, &before.1) {
            self.changed.notify_one();
        }
        if first {
            self.answered.notify_one();
        }
        LookupOutcome { ttl, failed, has_none: answer.addresses().is_empty() }
    }

    /// Reports changed addresses, the first of consecutive failures, and the end of failures.
    fn tell(
        &self,
        name: &str,
        answer: &Answer,
        before: &(BTreeSet<IpAddr>, BTreeSet<IpAddr>),
        first: bool,
        failure: Option<&Failure>,
    ) {
        let subject = format_args!("name {name}");
        match (failure, &answer.failure) {
            (Some(failure), Some(told)) if failure.is_like(told) => {}
            (Some(failure), _) => self.events.warning(subject, failure.text(answer)),
            (None, Some(_)) => self.events.info(subject, "is resolved again"),
            (None, None) => {}
        }
        if !first && (&answer.v4, &answer.v6) != (&before.0, &before.1) {
            let list: Vec<String> = answer.addresses().iter().map(IpAddr::to_string).collect();
            self.events.info(subject, format_args!("has other addresses: {}", list.join(", ")));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(crate) mod tests;
