//! The notification socket of a service manager: the protocol of `sd_notify(3)`.
//!
//! A message is one datagram with lines `NAME=value`, sent to the unix socket in `NOTIFY_SOCKET`. A name that begins
//! with `@` is in the abstract name space.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Maximum wait for room in the socket's queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends messages to the service manager.
#[derive(Debug)]
pub(super) struct Notifier {
    socket: UnixDatagram,
    to: SocketAddr,
}

impl Notifier {
    /// A notifier for a value of `NOTIFY_SOCKET`.
    pub(super) fn new(address: &OsStr) -> io::Result<Self> {
        let to = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(address)?,
            _ => {
                let what = "it is neither an absolute path nor an abstract name (`@…`)";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self { socket, to })
    }

    /// Sends a message.
    pub(super) fn send(&self, lines: &str) -> io::Result<()> {
        self.socket.send_to_addr(lines.as_bytes(), &self.to).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_reach_paths_and_abstract_names() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let abstract_name = format!("weir-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let sockets = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{abstract_name}").into(), UnixDatagram::bind_addr(&address).unwrap()),
        ];
        for (name, socket) in sockets {
            Notifier::new(&name).unwrap().send("READY=1\nSTATUS=serves").unwrap();
            let mut buffer = [0; 64];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\nSTATUS=serves");
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for bad in ["", "notify", "vsock:2:1234"] {
            assert!(Notifier::new(OsStr::new(bad)).is_err(), "{bad}");
        }
        let long = format!("/{}", "a".repeat(200));
        assert!(Notifier::new(OsStr::new(&long)).is_err());
        let nobody = Notifier::new(OsStr::new("/nowhere/notify")).unwrap();
        assert!(nobody.send("READY=1").is_err());
    }
}
