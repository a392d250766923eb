//! The peer of an admin connection, and the user of a request.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use axum::http::HeaderMap;
use tokio::net::UnixStream;
use weir_config::snapshot::{AdminSettings, Role};

use super::login_user::{self, Person, SystemUser};

/// The peer of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Peer {
    /// A local process that has opened the unix socket.
    Local(Option<Credentials>),
    /// A client over TCP.
    Network(NetworkPeer),
}

/// A local process, as reported by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: SystemUser,
    pub(super) process: Option<i32>,
    /// The person who started the process, for texts alone; `None`: unknown, or nobody but `user`.
    pub(super) person: Option<Person>,
}

impl Credentials {
    fn of(socket: &impl AsFd, user: u32, process: Option<i32>) -> Self {
        let person = process.filter(|process| *process > 0);
        let person = person.and_then(|process| login_user::logged_in(socket, process));
        let person = person.filter(|it| !matches!(it, Person::LoggedIn(it) if it.id == user));
        Self { user: SystemUser::of(user), process, person }
    }

    /// The credentials of a process whose names nobody knows.
    #[cfg(test)]
    pub(super) fn of_user(id: u32, process: Option<i32>) -> Self {
        Self { user: SystemUser { id, name: None }, process, person: None }
    }

    /// These credentials, with what a request says of the person. Only processes of root are believed: they could change what
    /// the kernel says, too.
    fn with_statement(mut self, headers: &HeaderMap) -> Self {
        if self.user.id == 0 && self.person.is_none() {
            self.person = login_user::stated(headers);
        }
        self
    }
}

/// `root (uid 0, sudo by anna)`, `uid 1000`.
impl fmt::Display for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.user.fmt(formatter)?;
        match (&self.user.name, &self.person) {
            (Some(_), Some(person)) => write!(formatter, " (uid {}, {person})", self.user.id),
            (Some(_), None) => write!(formatter, " (uid {})", self.user.id),
            (None, Some(person)) => write!(formatter, " ({person})"),
            (None, None) => Ok(()),
        }
    }
}

/// A client over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NetworkPeer {
    pub(super) address: SocketAddr,
    /// The listener is on a loopback address, which only processes of this host reach; all of them may read.
    pub(super) is_loopback: bool,
    /// The names in the client's certificate, which was verified.
    pub(super) certificate: Option<Arc<[String]>>,
}

impl Peer {
    /// The peer of a unix socket. A peer that has disconnected is unknown but has the same rights, which follow from
    /// the socket's mode.
    pub(super) fn of_socket(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        Self::Local(credentials.map(|found| Credentials::of(stream, found.uid(), found.pid())))
    }

    /// The peer of a request, with what this says of the person who makes it.
    pub(super) fn of_request(&self, headers: &HeaderMap) -> Self {
        match self.clone() {
            Self::Local(Some(peer)) => Self::Local(Some(peer.with_statement(headers))),
            other => other,
        }
    }

    /// Whether this process has opened the connection. In unit tests, the client is this process.
    pub(super) fn is_this_process(&self) -> bool {
        let own = i32::try_from(std::process::id()).ok();
        !cfg!(test)
            && matches!(self, Self::Local(Some(peer)) if peer.process.is_some() && peer.process == own)
    }

    /// The rights of a request without credentials.
    pub(super) fn role(&self) -> Option<Role> {
        match self {
            Self::Local(_) => Some(Role::Admin),
            Self::Network(peer) if peer.is_loopback => Some(Role::Read),
            Self::Network(_) => None,
        }
    }

    /// Whether the connection uses TLS.
    pub(super) fn is_secure(&self) -> bool {
        matches!(self, Self::Network(peer) if !peer.is_loopback)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(peer) => peer.address.fmt(formatter),
            Self::Local(None) => formatter.write_str("a local process"),
            Self::Local(Some(peer)) => peer.fmt(formatter),
        }
    }
}

/// The user and peer of a request.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// The user of the configuration; `None`: no credentials were sent.
    pub(super) user: Option<Arc<str>>,
    /// The rights; `None`: not even reading.
    pub(super) role: Option<Role>,
    pub(super) peer: Peer,
    /// The hash of the token; `None`: the user is that of the certificate.
    pub(super) token_hash: Option<[u8; 32]>,
    /// The client certificate is that of no user. It has no rights, and is refused where some are needed.
    pub(super) is_stranger: bool,
}

impl Caller {
    /// Whether the caller may see values of the configuration, which may be secrets. Others see names and places.
    pub(super) fn sees_values(&self) -> bool {
        self.role.is_some_and(|role| role >= Role::Admin)
    }

    /// Whether the request would have this role with these settings, too.
    pub(super) fn still_has(&self, role: Role, settings: &AdminSettings) -> bool {
        let certificate = match &self.peer {
            Peer::Network(peer) => peer.certificate.as_deref().unwrap_or_default(),
            Peer::Local(_) => &[],
        };
        let user = match &self.token_hash {
            Some(hash) => settings.user_of_token(hash),
            None => settings.user_of_certificate(certificate),
        };
        let found = match &self.user {
            None => self.peer.role(),
            Some(name) => user.filter(|user| user.name == *name).map(|user| user.role),
        };
        found.is_some_and(|found| found >= role)
    }
}

/// `ann (operate) from 10.0.0.5:4711`, `root (uid 0, sudo by anna)`.
impl fmt::Display for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(user), Some(role)) = (&self.user, self.role) {
            write!(formatter, "{user} ({role}) from ")?;
        }
        self.peer.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn process(id: u32, name: Option<&str>, person: Option<Person>) -> Credentials {
        let user = SystemUser { id, name: name.map(Into::into) };
        Credentials { user, process: Some(7), person }
    }

    #[test]
    fn local_processes_have_one_form() {
        let check = |credentials: Credentials, expected: &str| {
            assert_eq!(Peer::Local(Some(credentials)).to_string(), expected);
        };
        let anna = || Some(Person::LoggedIn(SystemUser { id: 1000, name: Some("anna".into()) }));
        check(process(0, Some("root"), anna()), "root (uid 0, login anna)");
        check(process(0, Some("root"), None), "root (uid 0)");
        check(process(0, None, anna()), "uid 0 (login anna)");
        check(process(12, None, None), "uid 12");
    }

    #[test]
    fn only_root_is_believed_and_the_kernel_comes_first() {
        let mut headers = HeaderMap::new();
        headers.insert("weir-sudo-user", HeaderValue::from_static("bob"));
        let check = |credentials: Credentials, expected: &str| {
            let peer = Peer::Local(Some(credentials)).of_request(&headers);
            assert_eq!(peer.to_string(), expected);
        };
        let anna = Some(Person::LoggedIn(SystemUser { id: 1000, name: Some("anna".into()) }));
        check(process(0, Some("root"), None), "root (uid 0, sudo by bob)");
        check(process(0, Some("root"), anna), "root (uid 0, login anna)");
        check(process(1001, Some("carl"), None), "carl (uid 1001)");
    }

    #[tokio::test]
    async fn the_other_end_of_a_socket_is_this_process() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = rustix::process::getuid().as_raw();
        let Peer::Local(Some(found)) = Peer::of_socket(&one) else { panic!("a local peer") };
        let process = i32::try_from(std::process::id()).ok();
        assert_eq!((found.user.id, found.process), (own, process));
        // Who has logged in, if anybody has, is what the kernel says of this process.
        let text = std::fs::read_to_string("/proc/self/loginuid").unwrap_or_default();
        let login = text.trim().parse().ok().filter(|id| *id != u32::MAX && *id != own);
        let of_kernel = found.person.map(|person| match person {
            Person::LoggedIn(user) => user.id,
            Person::Sudo(name) => panic!("{name}"),
        });
        assert_eq!(of_kernel, login);
    }
}
