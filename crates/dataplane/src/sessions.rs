//! Requests of operators about sessions: relayed connections, tunnels and sessions of datagrams, by filter.
//!
//! Each worker looks through its own sessions, a part per turn of its loop, and answers when it has seen all. Sessions that
//! begin meanwhile may be missing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use weir_config::snapshot::Address;
use weir_core::expression::AddressSet;
use weir_exchange::shared::live::LiveMember;

/// Maximum number of sessions in a list.
pub const LISTED_SESSIONS_MAX: usize = 10_000;

/// The kind of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// A connection of a virtual server of `type: tcp`.
    Tcp,
    /// A tunnel after a request: a WebSocket, or CONNECT.
    Tunnel,
    /// A session of a virtual server of `type: udp`.
    Udp,
}

impl SessionKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Tunnel, Self::Udp];

    /// The name for operators.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tunnel => "tunnel",
            Self::Udp => "udp",
        }
    }
}

/// Selects sessions. A field without a value matches all.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// The kind.
    pub kind: Option<SessionKind>,
    /// The name of the virtual server.
    pub virtual_server: Option<String>,
    /// The name of the pool.
    pub pool: Option<String>,
    /// The member: its name in lists, or its address with or without port.
    pub member: Option<String>,
    /// The addresses of clients.
    pub clients: Option<AddressSet>,
    /// The minimum age in milliseconds.
    pub age_ms_min: u64,
}

/// A session, as the filter and lists see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionView<'a> {
    pub kind: SessionKind,
    pub virtual_server: &'a Arc<str>,
    pub pool: &'a Arc<str>,
    /// `None`: no member yet.
    pub member: Option<&'a Arc<LiveMember>>,
    /// `None`: a unix socket.
    pub client: Option<SocketAddr>,
    pub age_ms: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
}

impl SessionFilter {
    /// Whether a session is selected.
    pub(crate) fn selects(&self, seen: &SessionView<'_>) -> bool {
        let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|it| it == name);
        self.kind.is_none_or(|kind| kind == seen.kind)
            && is(&self.virtual_server, seen.virtual_server)
            && is(&self.pool, seen.pool)
            && self.age_ms_min <= seen.age_ms
            && self.member.as_ref().is_none_or(|wanted| {
                seen.member.is_some_and(|live| is_member(wanted, &live.label, &live.address))
            })
            && self.clients.as_ref().is_none_or(|clients| {
                seen.client.is_some_and(|client| clients.contains(client.ip()))
            })
    }
}

/// Whether these words name a member: its name in lists, or its address with or without port.
pub fn is_member(wanted: &str, label: &str, address: &Address) -> bool {
    wanted == label
        || address
            .socket()
            .is_some_and(|socket| wanted.parse() == Ok(socket) || wanted.parse() == Ok(socket.ip()))
}

/// A session in a list.
#[derive(Debug, Clone)]
pub struct ListedSession {
    /// The kind.
    pub kind: SessionKind,
    /// The virtual server.
    pub virtual_server: Arc<str>,
    /// The pool.
    pub pool: Arc<str>,
    /// The member; `None`: none yet.
    pub member: Option<Arc<str>>,
    /// The client; `None`: it came by a unix socket.
    pub client: Option<SocketAddr>,
    /// The age in milliseconds.
    pub age_ms: u64,
    /// Bytes from the client.
    pub bytes_received: u64,
    /// Bytes to the client.
    pub bytes_sent: u64,
    /// The worker.
    pub worker: usize,
}

/// What becomes of the selected sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsDeed {
    /// At most this many are listed.
    List(usize),
    /// All are ended.
    End,
}

/// The sessions of one or all workers that were listed or ended.
#[derive(Debug, Default)]
pub struct SessionsAnswer {
    /// The listed sessions.
    pub listed: Vec<ListedSession>,
    /// Whether there are more than were listed.
    pub more: bool,
    /// The number of sessions that were ended.
    pub ended: u64,
}

/// A request to one worker.
#[derive(Debug)]
pub struct AskedSessions {
    pub(crate) filter: Arc<SessionFilter>,
    pub(crate) deed: SessionsDeed,
    pub(crate) answer: SyncSender<SessionsAnswer>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_as_in_lists_or_by_address() {
        let address = Address::Socket("10.0.0.11:80".parse().unwrap());
        for (wanted, expected) in [
            ("10.0.0.11:80", true),
            ("10.0.0.11", true),
            ("app.example:80", true),
            ("10.0.0.1", false),
            ("10.0.0.11:81", false),
            ("app.example", false),
            ("", false),
        ] {
            assert_eq!(is_member(wanted, "app.example:80", &address), expected, "{wanted}");
        }
        let unix = Address::Unix("/run/a.sock".into());
        assert!(is_member("unix:/run/a.sock", "unix:/run/a.sock", &unix));
        assert!(!is_member("10.0.0.11", "unix:/run/a.sock", &unix));
    }

    #[test]
    fn each_field_of_a_filter_must_match() {
        let (shop, web): (Arc<str>, Arc<str>) = ("shop".into(), "web".into());
        let seen = SessionView {
            kind: SessionKind::Tcp,
            virtual_server: &shop,
            pool: &web,
            member: None,
            client: Some("[::ffff:192.0.2.7]:4000".parse().unwrap()),
            age_ms: 5_000,
            bytes_received: 0,
            bytes_sent: 0,
        };
        let clients = |text| Some(AddressSet::new(weir_core::expression::Network::parse(text)));
        let all = SessionFilter::default();
        let name = |name: &str| Some(name.to_owned());
        for (filter, expected) in [
            (all.clone(), true),
            (SessionFilter { kind: Some(SessionKind::Tcp), ..all.clone() }, true),
            (SessionFilter { kind: Some(SessionKind::Udp), ..all.clone() }, false),
            (SessionFilter { virtual_server: name("shop"), ..all.clone() }, true),
            (SessionFilter { virtual_server: name("web"), ..all.clone() }, false),
            (SessionFilter { pool: name("web"), ..all.clone() }, true),
            (SessionFilter { pool: name("shop"), ..all.clone() }, false),
            (SessionFilter { member: name("10.0.0.1"), ..all.clone() }, false),
            (SessionFilter { clients: clients("192.0.2.0/24"), ..all.clone() }, true),
            (SessionFilter { clients: clients("192.0.3.0/24"), ..all.clone() }, false),
            (SessionFilter { age_ms_min: 5_000, ..all.clone() }, true),
            (SessionFilter { age_ms_min: 5_001, ..all.clone() }, false),
        ] {
            assert_eq!(filter.selects(&seen), expected, "{filter:?}");
        }
        let by_unix_socket = SessionView { client: None, ..seen };
        assert!(all.selects(&by_unix_socket));
        let filter = SessionFilter { clients: clients("0.0.0.0/0"), ..all };
        assert!(!filter.selects(&by_unix_socket));
    }
}
