//! Messages between a process and its successor: JSON documents over a private pair of unix sockets, with listening
//! sockets as ancillary data.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_config::snapshot::{Address, ListenPoint};
use weir_exchange::shared::table_contents::TableContents;

use super::process::Process;

/// Maximum size of a message.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Maximum number of sockets in a message; the kernel permits 253.
pub(super) const SOCKETS_MAX: usize = 128;

/// Maximum wait for room in the channel, while the other process does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The version of this protocol. A process supports only its own version.
pub(super) const PROTOCOL: u32 = 1;

/// Messages to the new process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToSuccessor {
    /// The first message.
    Begin(Begin),
    /// The listeners of an address. The sockets are ancillary data.
    Listeners(ListenerPlace),
    /// An admin listener. The socket is ancillary data.
    Admin(ListenerPlace),
    /// The listeners of this address were opened by a service manager.
    OfManager(ListenerPlace),
    /// The secrets of a virtual server's session tickets.
    Tickets(Tickets),
    /// The state of a member, set by a command.
    MemberState(MemberState),
    /// The keys of cookies and persistence tables, in the format of the key file.
    Keys(String),
    /// Everything was sent: the new process may start.
    Start,
    /// The packet path was released.
    PacketsLeft,
    /// A part of a persistence table.
    Remembered(Part),
    /// The new process may serve.
    Go,
}

/// Messages of the new process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromSuccessor {
    /// Requests the release of the packet path.
    LeavePackets,
    /// The new process is ready to serve.
    Ready,
    /// The new process serves.
    Serves,
    /// The new process has failed.
    Failed(UpgradeFailure),
}

/// The start of the handover.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    pub protocol: u32,
    /// The number of the upgrade.
    pub number: u64,
    /// The name of the predecessor's packet path, if it has one.
    pub packets: Option<String>,
}

/// The place of a listener: its address and interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListenerPlace {
    address: ListenerAddress,
    interface: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ListenerAddress {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Unix(PathBuf),
}

/// Secrets of session tickets.
#[derive(Serialize, Deserialize)]
pub(super) struct Tickets {
    pub virtual_server: String,
    pub since_s: u64,
    /// The secrets in hexadecimal digits.
    pub secrets: Vec<String>,
}

impl std::fmt::Debug for Tickets {
    /// Does not show the secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = &self.virtual_server;
        formatter.debug_struct("Tickets").field("virtual_server", of).finish_non_exhaustive()
    }
}

/// The state of a member at run time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MemberState {
    pub pool: String,
    pub member: String,
    pub state: String,
}

/// A part of a persistence table. The parts of one table follow each other.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Part {
    place: [String; 3],
    labels: Vec<String>,
    /// Pairs of 64-bit words, in Base64.
    entries: String,
    lengths: u32,
    /// Whether this is the last part of the table.
    is_last: bool,
}

/// Size of a table's entry in bytes.
const ENTRY_BYTES: usize = 16;

/// Maximum number of entries in a message. Base64 increases their size by a third.
const ENTRIES_MAX: usize = 2_000;

/// Maximum number of member names in a message.
const LABELS_MAX: usize = 200;

impl Part {
    /// Splits a table into parts.
    pub fn parts(table: &TableContents) -> impl Iterator<Item = Self> {
        let begin = Self { place: table.place.clone(), lengths: table.lengths, ..Self::default() };
        let labels = table.labels.chunks(LABELS_MAX);
        let labels = labels.map(|labels| Self { labels: labels.to_vec(), ..Self::default() });
        let entries = table.entries.chunks(ENTRIES_MAX).map(|entries| {
            let words = entries.iter().flat_map(|(hash, word)| [hash, word]);
            let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
            Self { entries: data_encoding::BASE64.encode(&bytes), ..Self::default() }
        });
        let end = Self { is_last: true, ..Self::default() };
        std::iter::once(begin).chain(labels).chain(entries).chain([end])
    }

    /// Adds this part to `table`. Returns the table after its last part.
    pub fn add_to(self, table: &mut TableContents) -> Option<TableContents> {
        if self.is_last {
            return Some(std::mem::take(table));
        }
        if self.place != <[String; 3]>::default() {
            (table.place, table.lengths) = (self.place, self.lengths);
        }
        table.labels.extend(self.labels);
        // Unreadable entries are dropped.
        let bytes = data_encoding::BASE64.decode(self.entries.as_bytes()).unwrap_or_default();
        for entry in bytes.chunks_exact(ENTRY_BYTES) {
            let word =
                |at: usize| entry[at..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
            table.entries.push((word(0), word(8)));
        }
        None
    }
}

/// The reason why the new process cannot serve.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct UpgradeFailure {
    pub reason: String,
    /// Errors in the configuration file, as `weir check` shows them.
    #[serde(default)]
    pub diagnostics: String,
}

impl From<&ListenPoint> for ListenerPlace {
    fn from(point: &ListenPoint) -> Self {
        let address = match &point.address {
            Address::Socket(address) => ListenerAddress::Tcp(*address),
            Address::Udp(address) => ListenerAddress::Udp(*address),
            Address::Unix(path) => ListenerAddress::Unix(path.clone()),
        };
        Self { address, interface: point.interface.as_deref().map(str::to_owned) }
    }
}

impl From<ListenerPlace> for ListenPoint {
    fn from(at: ListenerPlace) -> Self {
        let address = match at.address {
            ListenerAddress::Tcp(address) => Address::Socket(address),
            ListenerAddress::Udp(address) => Address::Udp(address),
            ListenerAddress::Unix(path) => Address::Unix(path),
        };
        Self { address, interface: at.interface.map(Into::into) }
    }
}

/// One end of the channel.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

impl Channel {
    /// Creates a channel: the end of this process, and the end for the new process.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let kinds = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = net::socketpair(kinds.0, kinds.1, kinds.2, None)?;
        Ok((Self::of(ours)?, theirs))
    }

    /// The channel over this socket. Fails if it is not a unix socket of the right type.
    pub fn of(socket: OwnedFd) -> io::Result<Self> {
        if net::sockopt::socket_type(&socket)? != SocketType::SEQPACKET {
            return Err(Errno::PROTOTYPE.into());
        }
        set_socket_timeout(&socket, Timeout::Send, Some(SEND_TIMEOUT))?;
        Ok(Self(socket))
    }

    /// The process that created the pair of sockets.
    pub fn maker(&self) -> Option<Process> {
        Process::of(net::sockopt::socket_peercred(&self.0).ok()?.pid)
    }

    /// Another descriptor of the same end.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Closes the channel for both processes, even if duplicates of this end exist.
    pub fn close(&self) {
        // An error means that the other process has closed its end, so the channel is closed already.
        let _ = net::shutdown(&self.0, net::Shutdown::Both);
    }

    /// Sends a message with these sockets as ancillary data.
    pub fn send(&self, message: &impl Serialize, sockets: &[OwnedFd]) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        let sockets: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
            return Err(io::Error::other("too many sockets for one message"));
        }
        let parts = [IoSlice::new(&text)];
        loop {
            match net::sendmsg(&self.0, &parts, &mut ancillary, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for a message; `None`: the other process has ended, or has closed its end of the channel.
    pub fn receive<M: DeserializeOwned>(&self) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut text = vec![0; MESSAGE_BYTES_MAX];
        let message = loop {
            let parts = &mut [IoSliceMut::new(&mut text)];
            match net::recvmsg(&self.0, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message,
                // A process that ends with unread data resets the channel. The kernel reports the reset once. Then follow
                // the messages that the process had sent, and the end.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(error) => return Err(error.into()),
            }
        };
        let mut sockets = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                sockets.extend(descriptors);
            }
        }
        if message.bytes == 0 {
            return Ok(None);
        }
        if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::other("a message was cut: too few descriptors are allowed"));
        }
        let document = serde_json::from_slice(&text[..message.bytes])?;
        Ok(Some((document, sockets)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn messages_bring_sockets() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::of(theirs).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut point = ListenPoint::from(Address::Socket(address));
        point.interface = Some("lo".into());
        ours.send(&ToSuccessor::Listeners(ListenerPlace::from(&point)), &[listener.into()])
            .unwrap();
        ours.send(&ToSuccessor::Start, &[]).unwrap();
        let (message, sockets) = theirs.receive::<ToSuccessor>().unwrap().unwrap();
        let ToSuccessor::Listeners(at) = message else { panic!("{message:?}") };
        assert_eq!(ListenPoint::from(at), point);
        let [socket] = <[OwnedFd; 1]>::try_from(sockets).unwrap();
        let received = TcpListener::from(socket);
        let _client = TcpStream::connect(address).unwrap();
        received.accept().unwrap();
        let (message, sockets) = theirs.receive::<ToSuccessor>().unwrap().unwrap();
        assert!(matches!(message, ToSuccessor::Start) && sockets.is_empty());
        let duplicate = ours.try_clone().unwrap();
        ours.close();
        assert!(duplicate.receive::<FromSuccessor>().unwrap().is_none());
        assert!(theirs.receive::<ToSuccessor>().unwrap().is_none());
    }

    #[test]
    fn the_last_words_of_a_process_that_has_read_nothing_arrive() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::of(theirs).unwrap();
        ours.send(&ToSuccessor::Start, &[]).unwrap();
        let failed = UpgradeFailure { reason: "it is too old".into(), diagnostics: String::new() };
        theirs.send(&FromSuccessor::Failed(failed), &[]).unwrap();
        drop(theirs);
        let Some((FromSuccessor::Failed(failed), _)) = ours.receive().unwrap() else {
            panic!("its words are lost");
        };
        assert_eq!(failed.reason, "it is too old");
        assert!(ours.receive::<FromSuccessor>().unwrap().is_none());
    }

    #[test]
    fn addresses_of_all_kinds_arrive() {
        let addresses = [
            Address::Socket("127.0.0.1:80".parse().unwrap()),
            Address::Udp("[::1]:53".parse().unwrap()),
            Address::Unix("/run/a b.sock".into()),
        ];
        for address in addresses {
            let point = ListenPoint::from(address);
            let text = serde_json::to_string(&ListenerPlace::from(&point)).unwrap();
            let at: ListenerPlace = serde_json::from_str(&text).unwrap();
            assert_eq!(ListenPoint::from(at), point);
        }
    }

    #[test]
    fn tables_of_any_size_arrive_in_parts() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::of(theirs).unwrap();
        for count in [0, 1, 5_000] {
            let table = TableContents {
                place: ["a".into(), "b".into(), String::new()],
                labels: (0..count).map(|it| format!("unix:/{it}{}", "x".repeat(100))).collect(),
                entries: (0..count).map(|it| (it << 40, u64::MAX - it)).collect(),
                lengths: 5,
            };
            let mut received = TableContents::default();
            let mut whole = None;
            for part in Part::parts(&table) {
                ours.send(&ToSuccessor::Remembered(part), &[]).unwrap();
                let (message, _) = theirs.receive::<ToSuccessor>().unwrap().unwrap();
                let ToSuccessor::Remembered(part) = message else { panic!("{message:?}") };
                whole = part.add_to(&mut received);
            }
            assert_eq!(whole.as_ref(), Some(&table));
            assert_eq!(received, TableContents::default());
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let (ours, theirs) = Channel::pair().unwrap();
        net::send(&theirs, b"hello", SendFlags::empty()).unwrap();
        assert!(ours.receive::<FromSuccessor>().is_err());
        let stream = std::os::unix::net::UnixStream::pair().unwrap().0;
        assert!(Channel::of(stream.into()).is_err());
    }
}
