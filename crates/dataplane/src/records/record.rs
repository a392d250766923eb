//! The record of a request.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use weir_config::snapshot::{RuleName, Snapshot};
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_exchange::local::client_tls::SeenTls;
use weir_exchange::local::pool::Preference;
use weir_exchange::local::stickiness::Kept;
use weir_exchange::parts::failure::MemberFailure;
use weir_exchange::termination::Termination;
use weir_http::message::Version;

/// A request that is over, and what became of it. Texts are as they were received: whoever shows them masks the secrets.
#[derive(Debug)]
pub struct Record {
    /// Its request id, as the access log has it.
    pub id: Id,
    /// When its head was here, in milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// It was chosen to be kept; others are recorded because they were slow, or because somebody follows.
    pub is_sampled: bool,
    /// It took as long as the configuration calls slow.
    pub is_slow: bool,
    /// The client, as rules and the access log see it.
    pub client: Option<SocketAddr>,
    /// The other end of the connection.
    pub peer: Option<SocketAddr>,
    /// The virtual server that decided about it.
    pub virtual_server: Box<str>,
    /// Where it came in, if that has handed it over.
    pub entered_at: Option<Box<str>>,
    /// The pool.
    pub pool: Option<Box<str>>,
    /// The member that it had last.
    pub member: Option<Box<str>>,
    /// Version and cipher of its TLS.
    pub tls: Option<(Box<str>, Box<str>)>,
    /// The status that was sent; 0: none.
    pub status: u16,
    /// Bytes, retries and times.
    pub amounts: Amounts,
    /// Marks of rules.
    pub marks: Vec<Box<[u8]>>,
    /// Rules that were followed.
    pub rules: Vec<RuleName>,
    /// The result of persistence.
    pub persistence: Option<Kept>,
    /// The authenticated user; empty: none.
    pub user: Box<[u8]>,
    /// How it ended.
    pub termination: Termination,
    /// What was noted while it was decided about; `None`: it was refused before, or is no request.
    pub notes: Option<Box<Notes>>,
}

/// Bytes, retries and times of a request. Times are those of the access log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Further members tried.
    pub retries: u32,
    /// Until the first try of a member.
    pub queue_us: u64,
    /// From there to an open connection; 0: an idle one was used.
    pub connect_us: u64,
    /// From there to the response head.
    pub first_byte_us: u64,
    /// In all.
    pub total_us: u64,
}

/// A request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Id {
    /// Made here.
    Number(u128),
    /// From a trusted proxy.
    Taken(Box<[u8]>),
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number:032x}"),
            Self::Taken(name) => formatter.write_str(&String::from_utf8_lossy(name)),
        }
    }
}

/// What was noted of a request while it was decided about.
#[derive(Debug, Default)]
pub struct Notes {
    /// It is to be kept.
    pub(super) is_sampled: bool,
    /// Its head, as HTTP/1.1 has it.
    pub head: Vec<u8>,
    /// The head was longer than what is kept of one.
    pub is_head_cut: bool,
    /// The version that it came by.
    pub version: Option<Version>,
    /// It has a body, or may have one. Bodies are not kept.
    pub has_body: bool,
    /// The other end of its connection.
    pub peer: Option<SocketAddr>,
    /// The address that it was connected to.
    pub listen: Option<SocketAddr>,
    /// The TLS of its connection.
    pub tls: Option<SeenTls>,
    /// Where it came in.
    pub entered: Option<Arc<str>>,
    /// The configuration that decided; it may be gone.
    pub snapshot: Weak<Snapshot>,
    /// What virtual servers decided.
    pub decided: Vec<Decided>,
    /// Pools, as they were when it looked for a member.
    pub sought: Vec<Sought>,
    /// Members that did not serve it.
    pub failed: Vec<Failed>,
    /// What the web application firewall found.
    pub firewall: Option<Firewall>,
}

/// What a virtual server decided.
#[derive(Debug)]
pub struct Decided {
    /// The virtual server.
    pub virtual_server: Arc<str>,
    /// The client, as its rules see it.
    pub client: Option<SocketAddr>,
    /// Rules that were followed with the request, by their numbers.
    pub followed: Vec<u32>,
    /// What follows from all that.
    pub verdict: Verdict,
}

/// What became of a request at a virtual server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to a pool.
    Forward {
        /// The pool.
        pool: Arc<str>,
        /// It is held back so long by a limit.
        delay_us: u64,
    },
    /// Another virtual server decides.
    HandedOver(Arc<str>),
    /// A rule answers it, or ends its connection (0).
    Ended(u16),
    /// It is for a name with other TLS settings.
    Misdirected,
    /// It is above a limit; another would pass in so many seconds.
    Limited(u64),
    /// It is above a limit that closes connections.
    LimitClosed,
    /// Rules made something of it that cannot be sent.
    Unsendable,
}

/// A pool when a request looked for a member there.
#[derive(Debug)]
pub struct Sought {
    /// The pool.
    pub pool: Arc<str>,
    /// What leads the request.
    pub preference: Preference,
    /// Members and their states.
    pub candidates: Vec<Candidate>,
    /// Members that were not noted.
    pub left_out: usize,
}

/// A member when a request looked for one.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its address.
    pub member: Arc<str>,
    /// What its monitors say.
    pub health: Health,
    /// What people have set.
    pub state: AdminState,
    /// It is out for its failures.
    pub is_ejected: bool,
    /// Requests that it had.
    pub occupancy: u32,
    /// Whether it took new requests.
    pub is_eligible: bool,
}

/// A member that did not serve a request.
#[derive(Debug)]
pub struct Failed {
    /// Its pool.
    pub pool: Arc<str>,
    /// The member.
    pub member: Arc<str>,
    /// Why.
    pub why: MemberFailure,
    /// When it was tried, after the request's begin.
    pub after_us: u64,
    /// For so long.
    pub took_us: u64,
}

/// What the web application firewall found.
#[derive(Debug, Clone)]
pub struct Firewall {
    /// `detect` or `block`.
    pub mode: &'static str,
    /// `passed`, `detected`, `blocked`, `unjudged` or `unfinished`.
    pub outcome: &'static str,
    /// The status that it was answered with; 0: it went on.
    pub status: u16,
    /// The score.
    pub score: i64,
    /// Rules that found something, by number, and what they say.
    pub rules: Vec<(u64, Box<[u8]>)>,
    /// Checks that found something.
    pub checks: Vec<&'static str>,
}

impl Record {
    /// Its bytes in memory, about.
    pub fn bytes(&self) -> usize {
        let texts = self.marks.iter().map(|mark| mark.len() + size_of::<Box<[u8]>>());
        let rules = self.rules.len() * size_of::<RuleName>();
        let notes = self.notes.as_deref().map_or(0, Notes::bytes);
        size_of::<Self>() + self.user.len() + texts.sum::<usize>() + rules + notes + NAMES_BYTES
    }
}

/// Names of virtual server, pool and member, and what their allocations take.
const NAMES_BYTES: usize = 256;

impl Notes {
    fn bytes(&self) -> usize {
        let candidates = self.sought.iter().map(|it| it.candidates.capacity());
        let decided = self.decided.iter().map(|it| it.followed.capacity() * size_of::<u32>());
        let rules = self.firewall.iter().flat_map(|it| &it.rules);
        let rules = rules.map(|(_, text)| text.len() + size_of::<(u64, Box<[u8]>)>());
        size_of::<Self>()
            + self.head.capacity()
            + self.tls.as_ref().map_or(0, SeenTls::bytes)
            + self.decided.capacity() * size_of::<Decided>()
            + decided.sum::<usize>()
            + self.sought.capacity() * size_of::<Sought>()
            + candidates.sum::<usize>() * size_of::<Candidate>()
            + self.failed.capacity() * size_of::<Failed>()
            + rules.sum::<usize>()
    }
}
