//! Listening sockets that a service manager passes to this process: `sd_listen_fds(3)`.

use std::os::fd::OwnedFd;

use weir_config::snapshot::{Address, ListenPoint};
use weir_event_loop::adopted_sockets::{self, Place};
use weir_event_loop::descriptors;
use weir_event_loop::error_text::io_error_text;

use super::predecessor::Sockets;
use crate::events::Events;

/// Maximum number of sockets that are accepted.
const SOCKETS_MAX: u32 = 4_096;

/// Takes the sockets passed to this process. Call this first: their descriptors have fixed numbers.
pub(crate) fn from_environment() -> PassedSockets {
    let variable = |name| std::env::var(name).ok();
    let count = count(variable("LISTEN_PID"), variable("LISTEN_FDS"), std::process::id());
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(str::to_owned).chain(std::iter::repeat(String::new()));
    PassedSockets(descriptors::take_inherited(count).into_iter().zip(names).collect())
}

/// The number of sockets passed to the process `own`.
fn count(pid: Option<String>, count: Option<String>, own: u32) -> u32 {
    let is_ours = pid.is_some_and(|pid| pid.parse() == Ok(own));
    let count = count.filter(|_| is_ours).and_then(|count| count.parse::<u32>().ok());
    count.unwrap_or(0).min(SOCKETS_MAX)
}

/// The passed sockets with their names.
#[derive(Debug, Default)]
pub(crate) struct PassedSockets(Vec<(OwnedFd, String)>);

impl PassedSockets {
    /// The listening sockets. Others are reported and closed.
    pub(crate) fn listeners(self, events: &Events) -> Sockets {
        let mut sockets = Sockets::default();
        for (socket, name) in self.0 {
            let address = match adopted_sockets::place(&socket) {
                Ok(Place::Stream(address)) => Address::Socket(address),
                Ok(Place::Datagrams(address)) => Address::Udp(address),
                Ok(Place::Unix(path)) => Address::Unix(path),
                Err(error) => {
                    let why = io_error_text(&error);
                    let what = format_args!("{name} of the service manager is closed: {why}");
                    events.warning("socket", what);
                    continue;
                }
            };
            let point = ListenPoint::from(address);
            sockets.of_manager.insert(point.clone());
            sockets.listeners.entry(point).or_default().push(socket);
        }
        sockets
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;
    use crate::events::testing::Captured;

    #[test]
    fn sockets_are_those_of_this_process() {
        let check = |pid: Option<&str>, number: Option<&str>, expected| {
            let found = count(pid.map(str::to_owned), number.map(str::to_owned), 7);
            assert_eq!(found, expected, "{pid:?} {number:?}");
        };
        check(Some("7"), Some("2"), 2);
        check(Some("8"), Some("2"), 0);
        check(None, Some("2"), 0);
        check(Some("7"), None, 0);
        check(Some("7"), Some("-1"), 0);
        check(Some("7"), Some("4000000000"), SOCKETS_MAX);
    }

    #[test]
    fn listeners_are_found_by_address_and_others_are_closed() {
        let (events, captured) = Captured::new();
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (first, second) = (stream.local_addr().unwrap(), datagrams.local_addr().unwrap());
        let client = TcpStream::connect(first).unwrap();
        let passed: [(OwnedFd, &str); 3] =
            [(stream.into(), "web"), (datagrams.into(), "dns"), (client.into(), "odd")];
        let passed = passed.into_iter().map(|(socket, name)| (socket, name.to_owned()));
        let sockets = PassedSockets(passed.collect()).listeners(&events);
        for address in [Address::Socket(first), Address::Udp(second)] {
            let point = ListenPoint::from(address);
            assert_eq!(sockets.listeners[&point].len(), 1);
            assert!(sockets.of_manager.contains(&point));
        }
        assert_eq!(sockets.listeners.len(), 2);
        let lines = captured.lines(&events);
        assert_eq!(
            lines,
            ["warning socket odd of the service manager is closed: it does not listen"]
        );
    }
}
