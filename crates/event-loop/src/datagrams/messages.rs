//! recvmmsg and sendmmsg with control messages: the destination address, and the size of joined datagrams.
//!
//! `rustix` has neither these calls nor these messages.

use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, cmsghdr, in_pktinfo, in6_pktinfo, iovec, mmsghdr, msghdr};
use rustix::io::Errno;
use weir_core::datagram::Flow;

use super::inbox::Inbox;
use super::{BATCH_MAX, OutgoingTrain};

/// Space for control messages: an address, and a size. It consists of words because of their alignment.
type Control = [u64; 12];

/// Maximum number of errors that are read at once. Further errors wake the loop again.
const ERRORS_AT_ONCE_MAX: usize = 64;

const UDP_SEGMENT: c_int = 103;
/// The option that joins datagrams of one sender, and the type of the control message with their size.
pub(crate) const UDP_GRO: c_int = 104;

/// The memory that a message header points to, except for the bytes of the message.
struct Parts {
    name: MaybeUninit<libc::sockaddr_storage>,
    vector: iovec,
    control: Control,
}

impl Parts {
    fn new() -> Self {
        let vector = iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        Self { name: MaybeUninit::uninit(), vector, control: [0; 12] }
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

fn no_message() -> mmsghdr {
    // SAFETY: all fields are numbers and pointers, for which zero is valid.
    unsafe { mem::zeroed() }
}

/// Receives a batch of up to `batch_max` messages. Returns their number.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    inbox: &mut Inbox,
    batch_max: usize,
) -> Result<usize, Errno> {
    let mut parts: [MaybeUninit<Parts>; BATCH_MAX] = [const { MaybeUninit::uninit() }; BATCH_MAX];
    let mut messages: [MaybeUninit<mmsghdr>; BATCH_MAX] =
        [const { MaybeUninit::uninit() }; BATCH_MAX];
    let count = batch_max.min(BATCH_MAX);
    let places = messages.iter_mut().zip(&mut parts).take(count);
    let mut prepared = 0;
    for ((message, parts), slot) in places.zip(inbox.slots()) {
        let parts = parts.write(Parts::new());
        parts.vector = iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() };
        let header = &mut message.write(no_message()).msg_hdr;
        header.msg_name = parts.name.as_mut_ptr().cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &raw mut parts.vector;
        header.msg_iovlen = 1;
        header.msg_control = parts.control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        prepared += 1;
    }
    // SAFETY: `prepared` messages were written above. Each points to its own memory, which lives until the end of this
    // function, or to a slot of the inbox, which is borrowed until then.
    let received = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            prepared,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    let Ok(received) = usize::try_from(received) else { return Err(last_error()) };
    for (index, message) in messages.iter().take(received).enumerate() {
        // SAFETY: the message was written above, and the kernel has filled it.
        let message = unsafe { message.assume_init_ref() };
        // SAFETY: the kernel has written a name and control messages of these lengths to memory that is still valid.
        let (client, beside) = unsafe { (name(&message.msg_hdr), beside(&message.msg_hdr)) };
        let client = client.filter(|_| !beside.is_for_many);
        let flow = client.map(|client| Flow { client, local: beside.local });
        inbox.note(index, flow, message.msg_len as usize, beside.size);
    }
    Ok(received)
}

/// Reads and drops errors of earlier datagrams (IP_RECVERR). Otherwise epoll would report them repeatedly.
pub(crate) fn forget_errors(fd: BorrowedFd<'_>) {
    for _ in 0..ERRORS_AT_ONCE_MAX {
        let mut nothing = no_message().msg_hdr;
        let flags = (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _;
        // SAFETY: the header is live, and the kernel only writes the lengths and flags in it.
        let received = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut nothing, flags) };
        if received < 0 {
            break;
        }
    }
}

/// "Time exceeded": type 11 of ICMP (RFC 792), and type 3 of ICMPv6 (RFC 4443).
const TIME_EXCEEDED: [(u8, u8); 2] = [(libc::SO_EE_ORIGIN_ICMP, 11), (libc::SO_EE_ORIGIN_ICMP6, 3)];

/// Reads the errors of a socket. Returns whether all "host unreachable" errors mean only that a packet expired in transit or
/// during reassembly: the kernel has one error number for both.
pub(crate) fn took_too_long(fd: BorrowedFd<'_>) -> bool {
    let (mut is_late, mut is_away) = (false, false);
    for _ in 0..ERRORS_AT_ONCE_MAX {
        let mut control: Control = [0; 12];
        let mut header = no_message().msg_hdr;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        let flags = (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _;
        // SAFETY: the header is live, and points to its own space for control messages.
        let received = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) };
        if received < 0 {
            break;
        }
        for told in told_errors(&header) {
            if TIME_EXCEEDED.contains(&(told.ee_origin, told.ee_type)) {
                is_late = true;
            } else if told.ee_errno == libc::EHOSTUNREACH as u32 {
                is_away = true;
            }
        }
    }
    is_late && !is_away
}

/// The errors in a message from the error queue.
fn told_errors(header: &msghdr) -> Vec<libc::sock_extended_err> {
    let mut told = Vec::new();
    // SAFETY: the kernel has filled the space to which the header points, and has set its length.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: the message lies within that space, because the last call has checked this.
        let (level, kind, length) =
            unsafe { ((*message).cmsg_level, (*message).cmsg_type, (*message).cmsg_len as usize) };
        // SAFETY: the macro only does arithmetic.
        let wanted = unsafe { libc::CMSG_LEN(size_of::<libc::sock_extended_err>() as u32) };
        let is_error = (level, kind) == (libc::SOL_IP, libc::IP_RECVERR)
            || (level, kind) == (libc::SOL_IPV6, libc::IPV6_RECVERR);
        if is_error && length >= wanted as usize {
            // SAFETY: the message contains this many bytes, and the read needs no alignment.
            told.push(unsafe { ptr::read_unaligned(libc::CMSG_DATA(message).cast()) });
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    told
}

/// Sends a batch. On a connected socket, messages have no addresses. Returns the number of messages that were accepted.
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    batch: &[OutgoingTrain<'_>],
    is_connected: bool,
) -> Result<usize, Errno> {
    let mut parts: [MaybeUninit<Parts>; BATCH_MAX] = [const { MaybeUninit::uninit() }; BATCH_MAX];
    let mut messages: [MaybeUninit<mmsghdr>; BATCH_MAX] =
        [const { MaybeUninit::uninit() }; BATCH_MAX];
    let mut prepared = 0;
    for ((message, parts), outgoing) in messages.iter_mut().zip(&mut parts).zip(batch) {
        let parts = parts.write(Parts::new());
        let train = outgoing.train();
        let bytes = train.bytes;
        // The kernel only reads these bytes.
        parts.vector = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let header = &mut message.write(no_message()).msg_hdr;
        header.msg_iov = &raw mut parts.vector;
        header.msg_iovlen = 1;
        if !is_connected {
            header.msg_namelen = write_name(outgoing.flow.client, &mut parts.name);
            header.msg_name = parts.name.as_mut_ptr().cast();
        }
        header.msg_control = parts.control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        let local = outgoing.flow.local.filter(|_| !is_connected);
        let size = (train.count() > 1).then_some(train.size as u16);
        // SAFETY: the header points to its own zeroed space for an address and a size.
        let length = unsafe { write_beside(header, local, size) };
        header.msg_controllen = length as _;
        if length == 0 {
            header.msg_control = ptr::null_mut();
        }
        prepared += 1;
    }
    // SAFETY: `prepared` messages were written above. Their memory lives until the end of this function, or is borrowed
    // until then, and is only read.
    let sent = unsafe {
        libc::sendmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            prepared,
            (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
        )
    };
    usize::try_from(sent).map_err(|_| last_error())
}

/// The sender's address.
///
/// # Safety
/// The header points to a name of the length in the header.
unsafe fn name(header: &msghdr) -> Option<SocketAddr> {
    let length = header.msg_namelen as usize;
    if header.msg_name.is_null() || length < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: at least the bytes of the family are valid, and the family determines the length of the address.
    unsafe {
        let family = c_int::from(header.msg_name.cast::<libc::sa_family_t>().read_unaligned());
        if family == libc::AF_INET && length >= size_of::<libc::sockaddr_in>() {
            let name = header.msg_name.cast::<libc::sockaddr_in>().read_unaligned();
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            return Some(SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into());
        }
        if family == libc::AF_INET6 && length >= size_of::<libc::sockaddr_in6>() {
            let name = header.msg_name.cast::<libc::sockaddr_in6>().read_unaligned();
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            return Some(SocketAddrV6::new(ip, port, 0, name.sin6_scope_id).into());
        }
    }
    None
}

/// The contents of the control messages of a received message.
#[derive(Default)]
struct AncillaryData {
    /// The destination address.
    local: Option<IpAddr>,
    /// Whether the destination is a multicast or broadcast address, from which no response can be sent.
    is_for_many: bool,
    /// The size of each datagram, if several were joined.
    size: Option<usize>,
}

impl AncillaryData {
    /// `own`: the address of this host that a response would have.
    fn ask_v4(&mut self, asked: Ipv4Addr, own: Ipv4Addr) {
        self.local = Some(asked.into());
        self.is_for_many =
            asked.is_multicast() || asked.is_broadcast() || (asked != own && !own.is_unspecified());
    }

    fn ask_v6(&mut self, asked: Ipv6Addr) {
        self.local = Some(asked.into());
        self.is_for_many = asked.is_multicast();
    }
}

/// Reads the control messages.
///
/// # Safety
/// The header points to control messages that the kernel has written.
unsafe fn beside(header: &msghdr) -> AncillaryData {
    let mut told = AncillaryData::default();
    // SAFETY: the macros iterate over the messages within the length that the kernel has set, and each kind has the length
    // that is read.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<in_pktinfo>().read_unaligned();
                    let ip = |ip: libc::in_addr| Ipv4Addr::from(u32::from_be(ip.s_addr));
                    told.ask_v4(ip(info.ipi_addr), ip(info.ipi_spec_dst));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<in6_pktinfo>().read_unaligned();
                    told.ask_v6(Ipv6Addr::from(info.ipi6_addr.s6_addr));
                }
                (libc::SOL_UDP, UDP_GRO) => {
                    told.size = usize::try_from(data.cast::<c_int>().read_unaligned()).ok();
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    told
}

/// Writes an address in the kernel's format. Returns its length.
fn write_name(
    address: SocketAddr,
    into: &mut MaybeUninit<libc::sockaddr_storage>,
) -> libc::socklen_t {
    // SAFETY: a `sockaddr_storage` has space for both kinds, and all their fields are numbers, for which zero is valid.
    unsafe {
        match address {
            SocketAddr::V4(address) => {
                let mut name: libc::sockaddr_in = mem::zeroed();
                name.sin_family = libc::AF_INET as libc::sa_family_t;
                name.sin_port = address.port().to_be();
                name.sin_addr.s_addr = u32::from(*address.ip()).to_be();
                into.as_mut_ptr().cast::<libc::sockaddr_in>().write(name);
                size_of::<libc::sockaddr_in>() as libc::socklen_t
            }
            SocketAddr::V6(address) => {
                let mut name: libc::sockaddr_in6 = mem::zeroed();
                name.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                name.sin6_port = address.port().to_be();
                name.sin6_addr.s6_addr = address.ip().octets();
                name.sin6_scope_id = address.scope_id();
                into.as_mut_ptr().cast::<libc::sockaddr_in6>().write(name);
                size_of::<libc::sockaddr_in6>() as libc::socklen_t
            }
        }
    }
}

/// Writes the control messages of a message to send: the source address, and the size of the datagrams of a train. Returns
/// their length.
///
/// # Safety
/// The header points to zeroed space for both.
unsafe fn write_beside(header: &msghdr, local: Option<IpAddr>, size: Option<u16>) -> usize {
    let mut length = 0;
    // SAFETY: the first message is at the start of the space, and `CMSG_NXTHDR` returns the place after it, or null.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        match local {
            Some(IpAddr::V4(ip)) => {
                let mut info: in_pktinfo = mem::zeroed();
                info.ipi_spec_dst.s_addr = u32::from(ip).to_be();
                length += write_one(message, (libc::IPPROTO_IP, libc::IP_PKTINFO), info);
                message = libc::CMSG_NXTHDR(header, message);
            }
            Some(IpAddr::V6(ip)) => {
                let mut info: in6_pktinfo = mem::zeroed();
                info.ipi6_addr.s6_addr = ip.octets();
                length += write_one(message, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info);
                message = libc::CMSG_NXTHDR(header, message);
            }
            None => {}
        }
        if let (Some(size), false) = (size, message.is_null()) {
            length += write_one(message, (libc::SOL_UDP, UDP_SEGMENT), size);
        }
    }
    length
}

/// Writes one control message. Returns the space that it uses.
///
/// # Safety
/// `message` points to enough space.
unsafe fn write_one<T>(message: *mut cmsghdr, (level, kind): (c_int, c_int), content: T) -> usize {
    let bytes = size_of::<T>() as libc::c_uint;
    // SAFETY: the caller guarantees the space.
    unsafe {
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(bytes) as _;
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(content);
        libc::CMSG_SPACE(bytes) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use weir_core::datagram::Train;

    use super::*;
    use crate::sockets::{Endpoint, ListenOptions, connect_datagrams, listen};

    /// A listener for this address, with its actual address.
    fn listener(address: &str) -> (UdpSocket, SocketAddr) {
        let address = Endpoint::Datagrams(address.parse().unwrap());
        let mut sockets = listen(address, 1, ListenOptions::default()).unwrap();
        let socket = UdpSocket::from(sockets.remove(0));
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// All received datagrams, with their senders.
    fn received(socket: &UdpSocket, count: usize) -> Vec<(Option<Flow>, Vec<u8>)> {
        let (mut inbox, mut all) = (Inbox::new(), Vec::new());
        while all.len() < count {
            let messages = receive(socket.as_fd(), &mut inbox, BATCH_MAX).expect("it has come");
            for (flow, train) in inbox.trains(messages) {
                all.extend(train.iter().map(|bytes| (flow, bytes.to_vec())));
            }
        }
        all
    }

    #[test]
    fn trains_arrive_as_they_were_sent() {
        for host in ["127.0.0.1", "[::1]"] {
            let Ok(probe) = UdpSocket::bind(format!("{host}:0")) else { continue };
            drop(probe);
            let (socket, address) = listener(&format!("{host}:0"));
            let member = UdpSocket::from(connect_datagrams(address, None).unwrap());
            let bytes: Vec<u8> = (0..2_950_usize).map(|at| (at / 100) as u8).collect();
            let train = Train { bytes: &bytes, size: 100 };
            assert_eq!(send(member.as_fd(), &[OutgoingTrain::to_member(train)], true), Ok(1));
            let all = received(&socket, 30);
            let sent: Vec<Vec<u8>> = train.iter().map(<[u8]>::to_vec).collect();
            assert_eq!(all.iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>(), sent);
            let client = member.local_addr().unwrap();
            assert!(all.iter().all(|(flow, _)| *flow == Some(Flow { client, local: None })));
            // The replies to the sender are also trains.
            let mut outbox = crate::datagrams::Outbox::default();
            let token = crate::token::Token::from_data(rustix::event::epoll::EventData::new_u64(7));
            outbox.push(token, Flow { client, local: None }, train);
            let mut batch = [OutgoingTrain::NOTHING; BATCH_MAX];
            let (_, count) = outbox.batch(0, &mut batch).expect("something");
            assert_eq!(send(socket.as_fd(), &batch[..count], false), Ok(1));
            assert_eq!(received(&member, 30).len(), 30);
        }
    }

    #[test]
    fn a_listener_for_all_addresses_knows_which_was_asked() {
        let (socket, address) = listener("0.0.0.0:0");
        for host in [1, 2] {
            let asked = Ipv4Addr::new(127, 0, 0, host);
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect((asked, address.port())).unwrap();
            client.send(b"").unwrap();
            let (flow, bytes) = received(&socket, 1).remove(0);
            let flow = flow.expect("a client");
            assert_eq!((flow.local, bytes.len()), (Some(asked.into()), 0));
            let mut outbox = crate::datagrams::Outbox::default();
            let token = crate::token::Token::from_data(rustix::event::epoll::EventData::new_u64(7));
            outbox.push(token, flow, Train::one(b"answer"));
            let mut batch = [OutgoingTrain::NOTHING; BATCH_MAX];
            let (_, count) = outbox.batch(0, &mut batch).expect("something");
            assert_eq!(send(socket.as_fd(), &batch[..count], false), Ok(1));
            // A connected socket accepts the response only from the address to which it sent.
            client.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            assert_eq!(client.recv(&mut [0; 16]).unwrap(), 6);
        }
    }
}
