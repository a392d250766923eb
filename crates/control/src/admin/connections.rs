//! The open connections of a listener: bounded in all, and for each source, so that one client cannot keep others out.
//!
//! | open connections | a further one takes the place of |
//! |---|---|
//! | of its source: [`PER_SOURCE_MAX`] | the connection of this source that has waited longest for a request |
//! | of its user, over a unix socket: [`PER_USER_MAX`] | the connection that has waited longest, of the user's source with the most waiting ones |
//! | in all: [`CONNECTIONS_MAX`] | the connection that has waited longest, of the source with the most waiting ones |
//!
//! If no such connection waits, the further one is closed at once. A connection waits until the head of a request is
//! complete, and again when its answer is handed to the system. A stream never waits.
//!
//! Over a unix socket, a source is a process: a program that leaks connections keeps neither its user's other programs out,
//! nor, with many processes, another user.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::peer::{NetworkPeer, Peer};
use super::sources::network_of;

/// Maximum number of simultaneous connections of a listener.
pub const CONNECTIONS_MAX: usize = 64;

/// Maximum number of connections of one source.
pub(super) const PER_SOURCE_MAX: usize = CONNECTIONS_MAX / 2;

/// Maximum number of connections of one user over a unix socket.
pub(super) const PER_USER_MAX: usize = CONNECTIONS_MAX - CONNECTIONS_MAX / 4;

/// The source of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// An address, or a /64 network of IPv6.
    Network(IpAddr),
    /// A process of a user; `None`: the kernel does not name it.
    Process(Option<u32>, Option<i32>),
}

impl Source {
    /// The source of a peer.
    pub(super) fn of(peer: &Peer) -> Self {
        match peer {
            Peer::Local(it) => {
                let it = it.as_ref();
                Self::Process(it.map(|it| it.user.id), it.and_then(|it| it.process))
            }
            Peer::Network(NetworkPeer { address, .. }) => Self::Network(network_of(address.ip())),
        }
    }

    /// Whether this is a process of the same user.
    fn has_user_of(self, other: Self) -> bool {
        match (self, other) {
            (Self::Process(user, _), Self::Process(of_other, _)) => user == of_other,
            _ => false,
        }
    }
}

/// The open connections of a listener. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Connections(Arc<OpenConnections>);

#[derive(Debug, Default)]
struct OpenConnections {
    open: Mutex<Open>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    connections: Vec<Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    source: Source,
    /// Requests that have begun and are not answered yet.
    requests: u32,
    /// Data for the client waits in buffers of this process.
    is_unsent: bool,
    /// Since when it waits for a request.
    since: Instant,
    end: Arc<Notify>,
}

impl Connection {
    /// Whether it waits for a request.
    fn waits(&self) -> bool {
        self.requests == 0 && !self.is_unsent
    }
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of this source; `None`: there is none.
    pub(super) fn place(&self, source: Source) -> Option<Place> {
        let mut open = self.open();
        let displaced = open.to_displace(source)?;
        if let Some(displaced) = displaced {
            open.connections.swap_remove(displaced).end.notify_one();
        }
        let (number, end) = (open.next, Arc::new(Notify::new()));
        open.next += 1;
        open.connections.push(Connection {
            number,
            source,
            requests: 0,
            is_unsent: false,
            since: Instant::now(),
            end: Arc::clone(&end),
        });
        let has_displaced = displaced.is_some();
        Some(Place { connections: self.clone(), number, has_displaced, end })
    }

    /// Returns when no connection is open.
    pub(super) async fn closed(&self) {
        loop {
            let closed = self.0.closed.notified();
            if self.open().connections.is_empty() {
                return;
            }
            closed.await;
        }
    }
}

impl Open {
    /// The place in the list of the connection that ends for a further one of this source. Inner `None`: none has to; outer
    /// `None`: one has to, but all are busy.
    fn to_displace(&self, source: Source) -> Option<Option<usize>> {
        let is_same = |it: Source| it == source;
        let is_of_user = |it: Source| it.has_user_of(source);
        if self.count(is_same) >= PER_SOURCE_MAX {
            return self.longest_waiting(source).map(Some);
        }
        if self.count(is_of_user) >= PER_USER_MAX {
            return self.longest_waiting(self.largest(is_of_user)?).map(Some);
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            return self.longest_waiting(self.largest(|_| true)?).map(Some);
        }
        Some(None)
    }

    fn count(&self, is_meant: impl Fn(Source) -> bool) -> usize {
        self.connections.iter().filter(|it| is_meant(it.source)).count()
    }

    /// The place in the list of the connection of this source that has waited longest.
    fn longest_waiting(&self, source: Source) -> Option<usize> {
        let all = self.connections.iter().enumerate();
        let waiting = all.filter(|(_, it)| it.source == source && it.waits());
        waiting.min_by_key(|(_, it)| (it.since, it.number)).map(|(place, _)| place)
    }

    /// Of these sources, the one with the most waiting connections. Of several, the one whose connection has waited longest:
    /// so a newcomer does not lose its place to the next one.
    fn largest(&self, is_meant: impl Fn(Source) -> bool) -> Option<Source> {
        let waiting = || self.connections.iter().filter(|it| it.waits() && is_meant(it.source));
        let count = |source: Source| waiting().filter(|it| it.source == source).count();
        let first = waiting().min_by_key(|it| (Reverse(count(it.source)), it.since, it.number));
        first.map(|it| it.source)
    }

    fn find(&mut self, number: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|it| it.number == number)
    }
}

/// The place of an open connection. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    connections: Connections,
    number: u64,
    has_displaced: bool,
    end: Arc<Notify>,
}

impl Place {
    /// Whether another connection has ended for this one.
    pub(super) fn has_displaced(&self) -> bool {
        self.has_displaced
    }

    /// Returns when another connection takes the place.
    pub(super) async fn taken(&self) {
        self.end.notified().await;
    }

    /// Notes whether data for the client waits in buffers of this process.
    pub(super) fn note_unsent(&self, is_unsent: bool) {
        if let Some(connection) = self.connections.open().find(self.number) {
            connection.is_unsent = is_unsent;
            connection.since = Instant::now();
        }
    }

    /// A request begins; it is over when the result is dropped.
    pub(super) fn request(self: &Arc<Self>) -> Busy {
        if let Some(connection) = self.connections.open().find(self.number) {
            connection.requests += 1;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().connections.retain(|it| it.number != self.number);
        self.connections.0.closed.notify_waiters();
    }
}

/// A request that is not over.
#[derive(Debug)]
pub(super) struct Busy(Arc<Place>);

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(connection) = self.0.connections.open().find(self.0.number) {
            connection.requests = connection.requests.saturating_sub(1);
            connection.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> Source {
        Source::Network(IpAddr::from([192, 0, 2, last]))
    }

    fn process(user: u32, process: i32) -> Source {
        Source::Process(Some(user), Some(process))
    }

    fn is_taken(place: &Place) -> bool {
        let numbers = place.connections.open();
        !numbers.connections.iter().any(|it| it.number == place.number)
    }

    #[test]
    fn a_source_takes_places_only_from_itself() {
        let connections = Connections::default();
        let other = connections.place(source(2)).expect("a place");
        let held: Vec<_> = (0..PER_SOURCE_MAX)
            .map(|_| Arc::new(connections.place(source(1)).expect("a place")))
            .collect();
        let busy = held[0].request();
        let _further = connections.place(source(1)).expect("the place of one that waits");
        assert!(is_taken(&held[1]) && !is_taken(&held[0]) && !is_taken(&held[2]));
        assert!(!is_taken(&other));
        drop(busy);
        let requests: Vec<_> = held.iter().map(Place::request).collect();
        let _again = connections.place(source(1)).expect("the place of the further one");
        let third = connections.place(source(1));
        assert!(third.is_some(), "the newest waits, too");
        let _busy = Arc::new(third.expect("a place")).request();
        assert!(connections.place(source(1)).is_none(), "all are busy");
        assert!(connections.place(source(3)).is_some());
        drop(requests);
    }

    #[test]
    fn a_full_listener_takes_from_the_largest_source() {
        let connections = Connections::default();
        let of = |last| Arc::new(connections.place(source(last)).expect("a place"));
        let few: Vec<_> = (0..2).map(|_| of(9)).collect();
        let many: Vec<_> = (0..PER_SOURCE_MAX).map(|_| of(1)).collect();
        let rest: Vec<_> = (0..CONNECTIONS_MAX - PER_SOURCE_MAX - 2).map(|_| of(2)).collect();
        let _newcomer = of(3);
        assert!(is_taken(&many[0]));
        assert!(!few.iter().chain(&rest).chain(&many[1..]).any(|place| is_taken(place)));
        assert_eq!(connections.open().connections.len(), CONNECTIONS_MAX);
    }

    #[test]
    fn a_process_does_not_keep_others_out() {
        let connections = Connections::default();
        let of = |source| connections.place(source).map(Arc::new);
        let bad: Vec<_> = (0..PER_SOURCE_MAX).filter_map(|_| of(process(1, 7))).collect();
        let requests: Vec<_> = bad.iter().map(Place::request).collect();
        assert!(of(process(1, 7)).is_none(), "all of its own are busy");
        let other = of(process(1, 8)).expect("another process of the user");
        assert!(!other.has_displaced());
        drop((requests, bad, other));
        assert!(connections.open().connections.is_empty());
    }

    #[test]
    fn processes_of_a_user_do_not_keep_another_user_out() {
        let connections = Connections::default();
        let of = |source| connections.place(source).map(Arc::new);
        let many: Vec<_> = (0..PER_USER_MAX)
            .filter_map(|number| of(process(1, i32::try_from(number).ok()?)))
            .collect();
        let further = of(process(1, 1_000)).expect("the place of one that waits");
        assert!(further.has_displaced() && is_taken(&many[0]) && !is_taken(&many[1]));
        let requests: Vec<_> = many.iter().chain([&further]).map(Place::request).collect();
        assert!(of(process(1, 1_001)).is_none(), "all of the user are busy");
        let root: Vec<_> = (0..CONNECTIONS_MAX - PER_USER_MAX)
            .map(|_| of(process(0, 1)).expect("another user has places"))
            .collect();
        assert!(!root.iter().any(|place| place.has_displaced()));
        assert!(of(source(1)).is_some_and(|place| place.has_displaced()), "one of root waits");
        drop(requests);
    }

    #[test]
    fn a_newcomer_keeps_its_place() {
        let connections = Connections::default();
        let place = |last: usize| {
            let last = u8::try_from(last).expect("a small number");
            connections.place(source(last)).expect("a place")
        };
        let first: Vec<_> = (0..CONNECTIONS_MAX).map(place).collect();
        let newcomers: Vec<_> = (100..110).map(place).collect();
        assert!(first[..10].iter().all(is_taken));
        assert!(!first[10..].iter().chain(&newcomers).any(is_taken));
    }

    #[test]
    fn an_answer_that_is_not_sent_keeps_its_place() {
        let connections = Connections::default();
        let held: Vec<_> = (0..PER_SOURCE_MAX)
            .map(|_| Arc::new(connections.place(source(1)).expect("a place")))
            .collect();
        held[0].note_unsent(true);
        let _further = connections.place(source(1)).expect("the place of one that waits");
        assert!(!is_taken(&held[0]) && is_taken(&held[1]));
    }

    #[tokio::test]
    async fn the_last_one_is_waited_for() {
        let connections = Connections::default();
        let place = connections.place(source(1)).expect("a place");
        let closed = tokio::spawn({
            let connections = connections.clone();
            async move { connections.closed().await }
        });
        tokio::task::yield_now().await;
        assert!(!closed.is_finished());
        drop(place);
        closed.await.expect("no panic");
    }
}
