//! A kernel in memory, for the simulation: sockets, events and time, all derived from a seed.
//!
//! It simulates the adverse cases of Linux: sends accept less than they could, data and FIN arrive in parts and between any
//! two calls, windows are small, connections are refused, hang and break, and time passes with each reading of the clock.
//! The simulation controls the other end of each connection ([`Peer`]).
//!
//! | here | Linux |
//! |---|---|
//! | [`pipe::Pipe::flight`] | the sender's queue: sent, not acknowledged |
//! | [`pipe::Pipe::arrived`] | the receiver's queue |
//! | [`Conduit`] | a pipe for splice(2) |
//! | [`Network::travel`] | events between two calls |
//! | [`Network::wait`] | `epoll_wait`, edge-triggered for streams |

mod conduit;
mod connection;
mod datagrams;
mod end;
mod peer;
mod pipe;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;

use rustix::event::epoll;
use rustix::io::Errno;
use weir_testing::Random;

use crate::sockets::Endpoint;
pub use conduit::Conduit;
use connection::{Connection, Direction};
pub use datagrams::DatagramWeather;
use datagrams::Datagrams;
pub use end::End;
pub use peer::{Peer, Readiness};

/// The time at which simulations start: 2026-01-01 00:00:00 UTC.
pub const BEGINNING_UNIX_US: u64 = 1_767_225_600_000_000;
/// Maximum time that passes with one reading of the clock, with rare exceptions.
const LOOK_US_MAX: u64 = 8;
/// In one of this many readings, the thread was preempted for some time.
const PREEMPTED_ONE_IN: u64 = 4_096;
const PREEMPTED_US_MAX: u64 = 3_000;

thread_local! {
    static TIME_US: Cell<Option<u64>> = const { Cell::new(None) };
    static LOOKS: RefCell<Option<Random>> = const { RefCell::new(None) };
    static WORDS: RefCell<Option<Random>> = const { RefCell::new(None) };
}

/// The time of this thread's simulation, which advances with each call; `None`: no simulation.
pub fn time_us() -> Option<u64> {
    let now_us = TIME_US.get()?;
    let word = LOOKS.with_borrow_mut(|looks| looks.as_mut().map(Random::next));
    let step = word.map_or(0, |word| match word % PREEMPTED_ONE_IN {
        0 => (word >> 32) % PREEMPTED_US_MAX,
        _ => (word >> 32) % LOOK_US_MAX,
    });
    TIME_US.set(Some(now_us + step));
    Some(now_us)
}

/// The next random number; `None`: no simulation.
pub fn random_word() -> Option<u64> {
    WORDS.with_borrow_mut(|words| words.as_mut().map(Random::next))
}

/// Starts a simulation on this thread: time and random numbers then derive from the seed.
pub fn begin(seed: u64) {
    TIME_US.set(Some(1_000_000));
    LOOKS.set(Some(Random::new(seed.rotate_left(32))));
    WORDS.set(Some(Random::new(seed.rotate_left(16))));
}

/// The time. This call does not advance it.
pub fn now_us() -> u64 {
    TIME_US.get().unwrap_or(0)
}

/// Advances the time.
pub fn pass(us: u64) {
    TIME_US.set(Some(now_us() + us));
}

/// The message of a requested panic.
pub const PANIC_AS_TOLD: &str = "as told";

/// Probabilities of network faults.
#[derive(Debug, Clone, Copy)]
pub struct NetworkFaults {
    /// Percentage of sends that accept less than there is room for.
    pub short_sends_percent: usize,
    /// Percentage of calls during which data arrives.
    pub stirs_percent: usize,
    /// Percentage of cases in which data does not arrive at once.
    pub delays_percent: usize,
    /// Percentage of cases in which only a part arrives.
    pub parts_percent: usize,
    /// Percentage of directions with very small windows.
    pub narrow_percent: usize,
    /// Accepts that fail temporarily, in tenths of a percent.
    pub accept_failures_permille: usize,
}

/// The result of connecting to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reachability {
    /// Connects succeed.
    Open,
    /// Connects are refused.
    Refusing,
    /// Connects receive no reply.
    Silent,
    /// There is no route to the address.
    Unreachable,
    /// This host has no socket or port for the connection.
    Exhausted,
}

/// An address to which weir connects.
#[derive(Debug)]
struct Server {
    reach: Reachability,
    /// Connections that the peer has not accepted yet.
    waiting: VecDeque<u32>,
}

/// An address on which weir listens.
#[derive(Debug, Default)]
struct Listener {
    backlog: VecDeque<u32>,
    watch: Option<u64>,
}

#[derive(Debug)]
struct State {
    random: Random,
    weather: NetworkFaults,
    connections: Vec<Option<Connection>>,
    free: Vec<u32>,
    listeners: HashMap<SocketAddr, Listener>,
    servers: HashMap<SocketAddr, Server>,
    datagrams: Datagrams,
    /// Connections with events, in the order of the events.
    ready: VecDeque<u32>,
    /// Directions with data that may travel.
    moving: Vec<(u32, Direction)>,
    /// Tasks of the simulation that can continue.
    woken: Vec<u32>,
    /// Addresses with connections that the peer has not accepted yet.
    called: Vec<SocketAddr>,
    sleeps_until_us: Option<u64>,
    descriptors_max: usize,
    open: usize,
    /// A digest of all data that peers have received, in order.
    digest: u64,
    /// The number of calls on weir's ends until one of them panics.
    calls_until_panic: Option<usize>,
    /// The log of the simulation, with one line per event, if it is recorded.
    story: Option<String>,
}

/// Connections, listeners, and the tasks that wait for them.
#[derive(Debug, Clone)]
pub struct Network(Rc<RefCell<State>>);

impl Network {
    /// A network without open descriptors, and with a maximum number of descriptors.
    pub fn new(seed: u64, weather: NetworkFaults, descriptors_max: usize) -> Self {
        Self(Rc::new(RefCell::new(State {
            random: Random::new(seed),
            weather,
            connections: Vec::new(),
            free: Vec::new(),
            listeners: HashMap::new(),
            servers: HashMap::new(),
            datagrams: Datagrams::default(),
            ready: VecDeque::new(),
            moving: Vec::new(),
            woken: Vec::new(),
            called: Vec::new(),
            sleeps_until_us: None,
            descriptors_max,
            open: 0,
            digest: 0,
            calls_until_panic: None,
            story: None,
        })))
    }

    /// Maximum number of descriptors.
    pub fn descriptors_max(&self) -> usize {
        self.0.borrow().descriptors_max
    }

    /// The number of open descriptors.
    pub fn descriptors_open(&self) -> usize {
        self.0.borrow().open
    }

    /// A digest of all data that peers have received, in order.
    pub fn digest(&self) -> u64 {
        self.0.borrow().digest
    }

    /// Makes a call on an end panic with [`PANIC_AS_TOLD`], after this many other calls; `None`: no call panics.
    pub fn panic_after(&self, calls: Option<usize>) {
        self.0.borrow_mut().calls_until_panic = calls;
    }

    /// Starts to record the log.
    pub fn tell_story(&self) {
        self.0.borrow_mut().story = Some(String::new());
    }

    /// Returns the log, and stops recording.
    pub fn take_story(&self) -> String {
        self.0.borrow_mut().story.take().unwrap_or_default()
    }

    /// Opens a listener for this address.
    pub fn listen(&self, address: SocketAddr) -> End {
        let mut state = self.0.borrow_mut();
        state.listeners.insert(address, Listener::default());
        state.open += 1;
        End::listener(self.clone(), address)
    }

    /// Sets the result of later connects to this address.
    pub fn set_reach(&self, address: SocketAddr, reach: Reachability) {
        let mut state = self.0.borrow_mut();
        let server =
            state.servers.entry(address).or_insert(Server { reach, waiting: VecDeque::new() });
        server.reach = reach;
    }

    /// Accepts the next connection of weir. Returns it with the address to which weir connected.
    pub fn take_call(&self) -> Option<(SocketAddr, Peer)> {
        let mut state = self.0.borrow_mut();
        let address = state.called.pop()?;
        let id = state.servers.get_mut(&address)?.waiting.pop_front()?;
        Some((address, Peer::new(self.clone(), id)))
    }

    /// Connects to a listener of weir from this address; `None`: there is no listener.
    pub fn dial(&self, address: SocketAddr, from: SocketAddr) -> Option<Peer> {
        let mut state = self.0.borrow_mut();
        if !state.listeners.contains_key(&address) {
            return None;
        }
        let id = state.open_connection(from);
        state.connection(id).is_in_backlog = true;
        state.listeners.get_mut(&address)?.backlog.push_back(id);
        Some(Peer::new(self.clone(), id))
    }

    /// Opens a connection of weir.
    pub fn connect(&self, to: Endpoint<'_>) -> Result<End, Errno> {
        let Endpoint::Socket(address) = to else { return Err(Errno::OPNOTSUPP) };
        let mut state = self.0.borrow_mut();
        match state.servers.get(&address).map_or(Reachability::Refusing, |server| server.reach) {
            Reachability::Unreachable => return Err(Errno::NETUNREACH),
            Reachability::Exhausted => {
                const ERRORS: [Errno; 3] = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL];
                return Err(ERRORS[state.random.below(ERRORS.len())]);
            }
            Reachability::Open | Reachability::Refusing | Reachability::Silent => {}
        }
        let id = state.open_connection(address);
        state.open += 1;
        let connection = state.connection(id);
        connection.is_connecting = true;
        connection.ours.is_open = true;
        state.set_moving(id, Direction::Out);
        Ok(End::stream(self.clone(), id))
    }

    /// Starts to report events on an end.
    pub fn watch(
        &self,
        end: &End,
        data: epoll::EventData,
        _flags: epoll::EventFlags,
    ) -> Result<(), Errno> {
        self.0.borrow_mut().watch(end, Some(data.u64()))
    }

    /// Stops reporting events on an end.
    pub fn unwatch(&self, end: &End) -> Result<(), Errno> {
        self.0.borrow_mut().watch(end, None)
    }

    /// Stores events in `events`. The call does not wait; [`Self::sleeps_until_us`] returns the end of the wait.
    pub fn wait(&self, events: &mut Vec<epoll::Event>, timeout_us: Option<u64>) {
        events.clear();
        let mut state = self.0.borrow_mut();
        state.sleeps_until_us = timeout_us.map(|timeout_us| now_us() + timeout_us);
        state.take_events(events);
    }

    /// The end of the last wait; `None`: it has no timeout.
    pub fn sleeps_until_us(&self) -> Option<u64> {
        self.0.borrow().sleeps_until_us
    }

    /// Whether a wait would return events.
    pub fn has_events(&self) -> bool {
        let state = self.0.borrow();
        let has_calls = |it: &Listener| it.watch.is_some() && !it.backlog.is_empty();
        !state.ready.is_empty()
            || state.listeners.values().any(has_calls)
            || state.datagrams.has_events()
    }

    /// Makes data in flight travel. Returns whether a task can continue, or data is still in flight.
    pub fn travel(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let mut moving = std::mem::take(&mut state.moving);
        for (id, direction) in moving.drain(..) {
            let delays = state.weather.delays_percent;
            if state.random.percent(delays) {
                state.moving.push((id, direction));
            } else {
                state.travel(id, direction);
            }
        }
        // The allocation is reused, so that it does not count for the worker under test.
        moving.append(&mut state.moving);
        state.moving = moving;
        let has_datagrams = state.travel_datagrams();
        has_datagrams || !state.moving.is_empty() || !state.woken.is_empty()
    }

    /// Takes the tasks that can continue.
    pub fn take_woken(&self, into: &mut Vec<u32>) {
        into.append(&mut self.0.borrow_mut().woken);
    }
}

impl State {
    /// Adds a line to the log.
    fn narrate(&mut self, id: u32, what: impl FnOnce(&Connection) -> String) {
        if let (Some(story), Some(Some(connection))) =
            (&mut self.story, self.connections.get(id as usize))
        {
            let what = what(connection);
            let _ = writeln!(story, "{:>10} {id:>3} {} {what}", now_us(), connection.peer);
        }
    }

    /// Adds data that a peer has received to the digest.
    fn note(&mut self, id: u32, bytes: &[u8]) {
        let mut digest = self.digest ^ u64::from(id) ^ (bytes.len() as u64) << 32;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest = (digest ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            digest ^= digest >> 32;
        }
        self.digest = digest;
    }

    fn connection(&mut self, id: u32) -> &mut Connection {
        self.connections[id as usize].as_mut().expect("an end holds it")
    }

    /// Opens a connection with a peer at this address. Its windows are random.
    fn open_connection(&mut self, peer: SocketAddr) -> u32 {
        let windows = [(); 2].map(|()| self.window());
        let connection = Connection::new(peer, windows);
        match self.free.pop() {
            Some(id) => {
                self.connections[id as usize] = Some(connection);
                id
            }
            None => {
                self.connections.push(Some(connection));
                (self.connections.len() - 1) as u32
            }
        }
    }

    /// The window of a receiver and the room of its sender, in bytes.
    fn window(&mut self) -> (usize, usize) {
        const USUAL: [usize; 4] = [8_000, 30_000, 70_000, 200_000];
        const NARROW: [usize; 4] = [60, 300, 900, 3_000];
        let narrow = self.weather.narrow_percent;
        let of = if self.random.percent(narrow) { NARROW } else { USUAL };
        [(); 2].map(|()| of[self.random.below(of.len())]).into()
    }

    fn set_moving(&mut self, id: u32, direction: Direction) {
        let pipe = self.connection(id).pipe(direction);
        if !std::mem::replace(&mut pipe.is_moving, true) {
            self.moving.push((id, direction));
        }
    }

    /// Adds an event for weir's end.
    fn tell(&mut self, id: u32) {
        let connection = self.connection(id);
        if connection.watch.is_some() && !std::mem::replace(&mut connection.in_ready, true) {
            self.ready.push_back(id);
        }
    }

    /// Wakes the task that waits at the peer's end.
    fn wake(&mut self, id: u32) {
        if let Some(task) = self.connection(id).waiter.take() {
            self.woken.push(task);
        }
    }

    fn watch(&mut self, end: &End, data: Option<u64>) -> Result<(), Errno> {
        match end.what() {
            end::DescriptorKind::Listener(address) => {
                self.listeners.get_mut(&address).ok_or(Errno::NOENT)?.watch = data;
            }
            end::DescriptorKind::Stream(id) => {
                self.connection(id).watch = data;
                self.tell(id);
            }
            end::DescriptorKind::Datagrams(id) => self.datagrams.watch(id, data),
        }
        Ok(())
    }

    fn take_events(&mut self, events: &mut Vec<epoll::Event>) {
        let calling = self.listeners.values().filter(|it| !it.backlog.is_empty());
        let mut calls: Vec<u64> = calling.filter_map(|it| it.watch).collect();
        // The order of the hash table does not derive from the seed.
        calls.sort_unstable();
        while let Some(id) = self.ready.pop_front() {
            let Some(Some(connection)) = self.connections.get_mut(id as usize) else { continue };
            connection.in_ready = false;
            let flags = connection.events();
            if let (Some(data), false) = (connection.watch, flags.is_empty()) {
                events.push(epoll::Event { flags, data: epoll::EventData::new_u64(data) });
                self.narrate(id, |_| format!("event {flags:?}"));
            }
            if !calls.is_empty() && self.random.percent(20) {
                let call = calls.swap_remove(self.random.below(calls.len()));
                events.push(call_event(call));
            }
            if events.len() + calls.len() >= events.capacity() {
                break;
            }
        }
        events.extend(calls.into_iter().map(call_event));
        self.datagrams.events(events);
    }

    /// Whether this call must panic.
    fn is_time_to_panic(&mut self) -> bool {
        match self.calls_until_panic.take() {
            Some(0) => true,
            calls => {
                self.calls_until_panic = calls.map(|calls| calls - 1);
                false
            }
        }
    }
}

fn call_event(data: u64) -> epoll::Event {
    epoll::Event { flags: epoll::EventFlags::IN, data: epoll::EventData::new_u64(data) }
}
