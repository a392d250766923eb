//! Datagrams of the kernel in memory. They may be lost, duplicated, delayed and reordered. A datagram without a receiver
//! causes an error at its sender.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustix::event::epoll;
use rustix::io::Errno;
use weir_core::datagram::Flow;

use super::end::{DescriptorKind, End};
use super::{Network, State};
use crate::datagrams::Inbox;

/// The address of sockets to members. Each has its own port.
const OWN_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 4, 1));
/// The address of a sender that is not a member.
const STRANGER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 5, 1)), 666);
const OWN_PORTS: std::ops::Range<u16> = 10_000..60_000;

/// Probabilities of network faults for datagrams.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatagramWeather {
    /// Percentage of datagrams that are lost.
    pub lost_percent: usize,
    /// Percentage of datagrams that are duplicated.
    pub doubled_percent: usize,
    /// Percentage of datagrams that are delayed, so that later ones may arrive before them.
    pub delayed_percent: usize,
    /// Percentage of new sockets that receive a datagram of another host before they are connected.
    pub strange_percent: usize,
}

/// A datagram in flight.
#[derive(Debug, Clone)]
struct Packet {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// A socket of weir.
#[derive(Debug)]
struct Socket {
    address: SocketAddr,
    /// The only accepted source of datagrams; `None`: all sources are accepted.
    connected: Option<SocketAddr>,
    queue: VecDeque<Packet>,
    /// Whether a datagram that the socket sent was refused.
    is_refused: bool,
    watch: Option<u64>,
}

/// Datagram sockets, datagrams in flight, and mailboxes of all other hosts.
#[derive(Debug)]
pub(super) struct Datagrams {
    weather: DatagramWeather,
    sockets: BTreeMap<u32, Socket>,
    next_socket: u32,
    next_port: u16,
    flight: Vec<Packet>,
    mailboxes: BTreeMap<SocketAddr, VecDeque<Packet>>,
}

impl Default for Datagrams {
    fn default() -> Self {
        Self {
            weather: DatagramWeather::default(),
            sockets: BTreeMap::new(),
            next_socket: 0,
            next_port: OWN_PORTS.start,
            flight: Vec::new(),
            mailboxes: BTreeMap::new(),
        }
    }
}

impl Datagrams {
    fn open(&mut self, address: SocketAddr, connected: Option<SocketAddr>) -> u32 {
        let id = self.next_socket;
        self.next_socket += 1;
        let socket =
            Socket { address, connected, queue: VecDeque::new(), is_refused: false, watch: None };
        self.sockets.insert(id, socket);
        id
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.flight.push(Packet { from, to, bytes: bytes.to_vec() });
    }

    /// Delivers a datagram. If it has no receiver, the sender receives an error.
    fn deliver(&mut self, packet: Packet) {
        let is_for = |socket: &&mut Socket| {
            socket.address == packet.to && socket.connected.is_none_or(|it| it == packet.from)
        };
        if let Some(socket) = self.sockets.values_mut().find(is_for) {
            return socket.queue.push_back(packet);
        }
        if let Some(mailbox) = self.mailboxes.get_mut(&packet.to) {
            return mailbox.push_back(packet);
        }
        let is_of = |socket: &&mut Socket| {
            socket.address == packet.from && socket.connected == Some(packet.to)
        };
        if let Some(socket) = self.sockets.values_mut().find(is_of) {
            socket.is_refused = true;
        }
    }

    /// Adds level-triggered events, as epoll reports them.
    pub(super) fn events(&self, events: &mut Vec<epoll::Event>) {
        for socket in self.sockets.values() {
            let mut flags = epoll::EventFlags::empty();
            flags.set(epoll::EventFlags::IN, !socket.queue.is_empty() || socket.is_refused);
            flags.set(epoll::EventFlags::ERR, socket.is_refused);
            let has_room = events.len() < events.capacity();
            if let (Some(data), false, true) = (socket.watch, flags.is_empty(), has_room) {
                events.push(epoll::Event { flags, data: epoll::EventData::new_u64(data) });
            }
        }
    }

    pub(super) fn has_events(&self) -> bool {
        let tells = |it: &Socket| it.watch.is_some() && (!it.queue.is_empty() || it.is_refused);
        self.sockets.values().any(tells)
    }

    pub(super) fn watch(&mut self, id: u32, data: Option<u64>) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.watch = data;
        }
    }

    pub(super) fn close(&mut self, id: u32) {
        self.sockets.remove(&id);
    }
}

impl State {
    /// Lets datagrams travel. Returns whether some are still in flight.
    pub(super) fn travel_datagrams(&mut self) -> bool {
        if self.datagrams.flight.is_empty() {
            return false;
        }
        let weather = self.datagrams.weather;
        let mut flight = std::mem::take(&mut self.datagrams.flight);
        while !flight.is_empty() {
            let packet = flight.swap_remove(self.random.below(flight.len()));
            if self.random.percent(weather.delayed_percent) {
                self.datagrams.flight.push(packet);
                continue;
            }
            if self.random.percent(weather.lost_percent) {
                continue;
            }
            if self.random.percent(weather.doubled_percent) {
                self.datagrams.flight.push(packet.clone());
            }
            self.datagrams.deliver(packet);
        }
        !self.datagrams.flight.is_empty()
    }
}

impl Network {
    /// Sets the network faults for datagrams.
    pub fn set_datagram_weather(&self, weather: DatagramWeather) {
        self.0.borrow_mut().datagrams.weather = weather;
    }

    /// A datagram listener for this address.
    pub fn listen_datagrams(&self, address: SocketAddr) -> End {
        let mut state = self.0.borrow_mut();
        state.open += 1;
        let id = state.datagrams.open(address, None);
        End::datagrams(self.clone(), id)
    }

    /// Opens a socket that exchanges datagrams with this address.
    pub(crate) fn connect_datagrams(&self, to: SocketAddr) -> Result<End, Errno> {
        let mut state = self.0.borrow_mut();
        if state.open >= state.descriptors_max {
            return Err(Errno::MFILE);
        }
        let port = state.datagrams.next_port;
        let next = port + 1;
        state.datagrams.next_port = if next < OWN_PORTS.end { next } else { OWN_PORTS.start };
        state.open += 1;
        let address = SocketAddr::new(OWN_IP, port);
        let id = state.datagrams.open(address, Some(to));
        let is_strange = state.datagrams.weather.strange_percent;
        if state.random.percent(is_strange)
            && let Some(socket) = state.datagrams.sockets.get_mut(&id)
        {
            let packet = Packet { from: STRANGER, to: address, bytes: b"from a stranger".to_vec() };
            socket.queue.push_back(packet);
        }
        Ok(End::datagrams(self.clone(), id))
    }

    /// Opens a mailbox, which receives the datagrams for this address.
    pub fn open_mailbox(&self, address: SocketAddr) {
        self.0.borrow_mut().datagrams.mailboxes.entry(address).or_default();
    }

    /// Closes the mailbox of an address.
    pub fn close_mailbox(&self, address: SocketAddr) {
        self.0.borrow_mut().datagrams.mailboxes.remove(&address);
    }

    /// Sends a datagram from another host's address.
    pub fn post(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.0.borrow_mut().datagrams.send(from, to, bytes);
    }

    /// Takes the next datagram for another host's address, with its sender.
    pub fn collect(&self, address: SocketAddr) -> Option<(SocketAddr, Vec<u8>)> {
        let mut state = self.0.borrow_mut();
        let packet = state.datagrams.mailboxes.get_mut(&address)?.pop_front()?;
        state.note(u32::from(address.port()), &packet.bytes);
        Some((packet.from, packet.bytes))
    }
}

impl End {
    fn datagram_socket<T>(
        &self,
        call: impl FnOnce(&mut Datagrams, u32) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let DescriptorKind::Datagrams(id) = self.what() else { return Err(Errno::OPNOTSUPP) };
        let mut state = self.network().0.borrow_mut();
        if state.is_time_to_panic() {
            drop(state);
            std::panic::panic_any(super::PANIC_AS_TOLD);
        }
        call(&mut state.datagrams, id)
    }

    /// Receives a batch of datagrams. Returns their number.
    pub(crate) fn receive_datagrams(
        &self,
        inbox: &mut Inbox,
        batch_max: usize,
    ) -> Result<usize, Errno> {
        self.datagram_socket(|datagrams, id| {
            let socket = datagrams.sockets.get_mut(&id).ok_or(Errno::BADF)?;
            if std::mem::take(&mut socket.is_refused) {
                return Err(Errno::CONNREFUSED);
            }
            let mut received = Vec::new();
            for slot in inbox.slots().take(batch_max) {
                let Some(packet) = socket.queue.pop_front() else { break };
                let length = packet.bytes.len().min(slot.len());
                slot[..length].copy_from_slice(&packet.bytes[..length]);
                received.push((packet.from, length));
            }
            for (slot, (client, length)) in received.iter().enumerate() {
                inbox.note(slot, Some(Flow { client: *client, local: None }), *length, None);
            }
            if received.is_empty() { Err(Errno::AGAIN) } else { Ok(received.len()) }
        })
    }

    /// Whether a datagram has arrived that was not received.
    pub(crate) fn has_datagram(&self) -> bool {
        self.datagram_socket(|datagrams, id| {
            let socket = datagrams.sockets.get(&id).ok_or(Errno::BADF)?;
            Ok(socket.is_refused || !socket.queue.is_empty())
        })
        .unwrap_or(true)
    }

    /// Sends to the connected address.
    pub(crate) fn send_datagram(&self, bytes: &[u8]) -> Result<(), Errno> {
        self.datagram_socket(|datagrams, id| {
            let socket = datagrams.sockets.get_mut(&id).ok_or(Errno::BADF)?;
            if std::mem::take(&mut socket.is_refused) {
                return Err(Errno::CONNREFUSED);
            }
            let (from, to) = (socket.address, socket.connected.ok_or(Errno::DESTADDRREQ)?);
            datagrams.send(from, to, bytes);
            Ok(())
        })
    }

    /// Sends to a client.
    pub(crate) fn answer_datagram(&self, flow: Flow, bytes: &[u8]) -> Result<(), Errno> {
        self.datagram_socket(|datagrams, id| {
            let from = datagrams.sockets.get(&id).ok_or(Errno::BADF)?.address;
            datagrams.send(from, flow.client, bytes);
            Ok(())
        })
    }
}
