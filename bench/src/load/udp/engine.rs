//! One thread of a UDP load: sockets, schedule and results.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::super::fault::Fault;
use super::super::pacing::Pacer;
use super::super::plan::Extent;
use super::super::share::now_us;
use super::super::tally::Tally;
use super::{Times, UdpPlan};
use crate::datagram::{DATAGRAM_BYTES_MAX, number_answered, write_query};

/// Maximum number of events per wait.
const EVENTS_MAX: usize = 256;
/// Longest interval between two turns of the loop. Each turn checks whether the load must end.
const TURN_MAX: Duration = Duration::from_millis(50);

/// The results of one thread.
pub struct UdpThreadResult {
    pub warm_up: Tally,
    pub measured: Tally,
    /// Good answers within the measurement, whenever they were requested.
    pub completed: u64,
    pub unsent: u64,
    pub cpu_s: f64,
    pub last_done_us: u64,
    pub over_us: u64,
}

/// A client's socket and its open query.
struct Flow {
    socket: UdpSocket,
    /// Number of the open query; 0: no open query.
    number: u64,
    due_us: u64,
    sent_us: u64,
    asked: u64,
}

/// One thread's flows.
pub struct Engine {
    flows: Vec<Flow>,
    free: Vec<usize>,
    /// Deadline, flow and number of every query, including answered ones. All queries have the same time limit, so the
    /// deadlines are in order.
    deadlines: VecDeque<(u64, usize, u64)>,
    poll: OwnedFd,
    place: (usize, usize),
    pacer: Option<Pacer>,
    number: u64,
    begun: u64,
    begun_max: u64,
    query: Vec<u8>,
    begin_us: u64,
    end_us: u64,
    cpu_at_begin_s: Option<f64>,
    cpu_at_end_s: Option<f64>,
    seen: UdpThreadResult,
}

impl Engine {
    /// Opens the thread's share of the flows.
    pub fn new(plan: &UdpPlan, place: (usize, usize)) -> io::Result<Self> {
        let (thread, threads) = place;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let part = |whole: u64| {
            let (thread, threads) = (thread as u64, threads as u64);
            whole / threads + u64::from(thread < whole % threads)
        };
        let count = part(plan.flows as u64) as usize;
        let mut engine = Self {
            flows: Vec::with_capacity(count),
            free: (0..count).rev().collect(),
            deadlines: VecDeque::new(),
            poll,
            place,
            pacer: None,
            number: 0,
            begun: 0,
            begun_max: match plan.extent {
                Extent::Requests(requests) => part(requests),
                Extent::Time(_) => u64::MAX,
            },
            query: vec![0; usize::from(plan.query_bytes)],
            begin_us: u64::MAX,
            end_us: u64::MAX,
            cpu_at_begin_s: None,
            cpu_at_end_s: None,
            seen: UdpThreadResult {
                warm_up: Tally::new(),
                measured: Tally::new(),
                completed: 0,
                unsent: 0,
                cpu_s: 0.0,
                last_done_us: 0,
                over_us: 0,
            },
        };
        for index in 0..count {
            let socket = engine.open(plan, index)?;
            engine.seen.warm_up.connections_opened += 1;
            engine.flows.push(Flow { socket, number: 0, due_us: 0, sent_us: 0, asked: 0 });
        }
        Ok(engine)
    }

    /// Opens a socket with a free port for a flow.
    fn open(&self, plan: &UdpPlan, index: usize) -> io::Result<UdpSocket> {
        let (thread, threads) = self.place;
        let place = index * threads + thread;
        let target = plan.targets[place % plan.targets.len()];
        let source = match plan.sources.as_slice() {
            [] if target.is_ipv4() => [0, 0, 0, 0].into(),
            [] => [0_u16; 8].into(),
            sources => sources[place % sources.len()],
        };
        let socket = UdpSocket::bind((source, 0))?;
        socket.connect(target)?;
        socket.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&self.poll, &socket, data, epoll::EventFlags::IN)?;
        Ok(socket)
    }

    /// Sends queries until the load is over and every query is answered or lost.
    pub fn run(mut self, plan: &UdpPlan, times: &Times) -> io::Result<UdpThreadResult> {
        let start_us = times.start_us.load(Acquire);
        self.begin_us = times.begin_us.load(Acquire);
        self.end_us = times.end_us.load(Acquire);
        let (thread, threads) = self.place;
        let offset = thread as f64 / threads as f64;
        self.pacer = plan.rate.map(|rate| Pacer::new(start_us, rate / threads as f64, offset));
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            let now_us = now_us();
            self.note_cpu(now_us);
            self.give_up(plan, times, now_us);
            let is_ending =
                now_us >= self.end_us || self.begun >= self.begun_max || plan.stop.load(Relaxed);
            if is_ending && self.free.len() == self.flows.len() {
                return Ok(self.into_seen(now_us));
            }
            if !is_ending {
                self.ask_all(plan, times)?;
            }
            let wait = self.wait_at(is_ending);
            events.clear();
            match epoll::wait(&self.poll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let epoll::Event { data, .. } = *event;
                self.hear(plan, times, data.u64() as usize)?;
            }
        }
    }

    /// The results of the thread.
    pub fn into_seen(mut self, over_us: u64) -> UdpThreadResult {
        if let Some(pacer) = &self.pacer {
            self.seen.unsent = pacer.left_between(self.begin_us, self.end_us.min(over_us));
        }
        let now_s = thread_cpu_s();
        let (began, ended) = (self.cpu_at_begin_s.unwrap_or(now_s), self.cpu_at_end_s);
        self.seen.cpu_s = ended.unwrap_or(now_s) - began;
        self.seen.over_us = over_us;
        self.seen
    }

    fn note_cpu(&mut self, now_us: u64) {
        if now_us >= self.begin_us && self.cpu_at_begin_s.is_none() {
            self.cpu_at_begin_s = Some(thread_cpu_s());
        }
        if now_us >= self.end_us && self.cpu_at_end_s.is_none() {
            self.cpu_at_end_s = Some(thread_cpu_s());
        }
    }

    /// The wait until the next query is due or a deadline passes.
    fn wait_at(&self, is_ending: bool) -> Timespec {
        let now_us = now_us();
        let due = self.pacer.as_ref().filter(|_| !is_ending && !self.free.is_empty());
        let next = [due.map(Pacer::next_us), self.deadlines.front().map(|first| first.0)];
        let next_us = next.into_iter().flatten().min().unwrap_or(u64::MAX);
        let wait = Duration::from_micros(next_us.saturating_sub(now_us)).min(TURN_MAX);
        Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) }
    }

    /// Sends the due queries on free flows.
    fn ask_all(&mut self, plan: &UdpPlan, times: &Times) -> io::Result<()> {
        while self.begun < self.begun_max && !self.free.is_empty() {
            let now_us = now_us();
            if now_us >= self.end_us || plan.stop.load(Relaxed) {
                return Ok(());
            }
            let due_us = match &mut self.pacer {
                Some(pacer) => pacer.take(now_us),
                None => Some(now_us),
            };
            let Some(due_us) = due_us else { return Ok(()) };
            let Some(index) = self.free.pop() else { return Ok(()) };
            self.ask(plan, times, index, due_us)?;
        }
        Ok(())
    }

    /// Sends a query on a flow. Opens a new socket if the flow has sent its number of queries.
    fn ask(&mut self, plan: &UdpPlan, times: &Times, index: usize, due_us: u64) -> io::Result<()> {
        self.begun += 1;
        self.number += 1;
        if plan.queries_per_flow.is_some_and(|most| self.flows[index].asked >= most) {
            let socket = self.open(plan, index)?;
            self.tally(due_us).connections_opened += 1;
            // Dropping the old socket closes it.
            self.flows[index].socket = socket;
            self.flows[index].asked = 0;
        }
        write_query(&mut self.query, self.number, plan.answer_bytes);
        let flow = &mut self.flows[index];
        flow.asked += 1;
        (flow.number, flow.due_us, flow.sent_us) = (self.number, due_us, now_us());
        match flow.socket.send(&self.query) {
            Ok(_) => {
                let deadline_us = flow.sent_us + plan.timeout.as_micros() as u64;
                self.deadlines.push_back((deadline_us, index, self.number));
            }
            // The send also reports errors of earlier queries (ICMP).
            Err(error) => self.failed(times, index, &fault_of(&error)),
        }
        Ok(())
    }

    /// The tally of a query with this due time.
    fn tally(&mut self, due_us: u64) -> &mut Tally {
        if due_us >= self.begin_us { &mut self.seen.measured } else { &mut self.seen.warm_up }
    }

    /// Reads all datagrams of a flow.
    fn hear(&mut self, plan: &UdpPlan, times: &Times, index: usize) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_BYTES_MAX + 1];
        loop {
            let flow = &mut self.flows[index];
            let length = match flow.socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    if flow.number > 0 {
                        self.failed(times, index, &fault_of(&error));
                        self.ask_again(plan, times)?;
                    }
                    return Ok(());
                }
            };
            let answered = number_answered(&buffer[..length]);
            let is_whole = length == usize::from(plan.answer_bytes);
            match answered {
                Some(number) if number == flow.number && is_whole => {
                    self.good(times, index, length as u64);
                    self.ask_again(plan, times)?;
                }
                // A late answer: its query already counts as lost.
                Some(number) if number < flow.number || flow.number == 0 => {}
                _ if flow.number > 0 => {
                    self.failed(times, index, &Fault::NoAnswer);
                    self.ask_again(plan, times)?;
                }
                _ => {}
            }
            // A flow has one open query; further datagrams cause another event.
            if answered.is_some() {
                return Ok(());
            }
        }
    }

    fn ask_again(&mut self, plan: &UdpPlan, times: &Times) -> io::Result<()> {
        let is_over = now_us() >= self.end_us || plan.stop.load(Relaxed);
        if is_over { Ok(()) } else { self.ask_all(plan, times) }
    }

    fn good(&mut self, times: &Times, index: usize, bytes: u64) {
        let done_us = now_us();
        let flow = &mut self.flows[index];
        let (due_us, sent_us) = (flow.due_us, flow.sent_us);
        flow.number = 0;
        self.free.push(index);
        self.seen.last_done_us = done_us;
        if (self.begin_us..self.end_us).contains(&done_us) {
            self.seen.completed += 1;
        }
        if due_us >= self.begin_us {
            times.good.fetch_add(1, Relaxed);
        }
        let since = |from_us: u64| done_us.saturating_sub(from_us);
        self.tally(due_us).good(since(due_us), since(sent_us), bytes);
    }

    fn failed(&mut self, times: &Times, index: usize, fault: &Fault) {
        let flow = &mut self.flows[index];
        let due_us = flow.due_us;
        flow.number = 0;
        self.free.push(index);
        self.seen.last_done_us = now_us();
        if due_us >= self.begin_us {
            times.errors.fetch_add(1, Relaxed);
        }
        self.tally(due_us).error(fault);
    }

    /// Counts queries as lost when their time limit has passed.
    fn give_up(&mut self, plan: &UdpPlan, times: &Times, now_us: u64) {
        while let Some(&(deadline_us, index, number)) = self.deadlines.front() {
            let is_answered = self.flows[index].number != number;
            if deadline_us > now_us && !is_answered {
                break;
            }
            self.deadlines.pop_front();
            if !is_answered {
                self.failed(times, index, &Fault::Lost);
                if plan.queries_per_flow.is_some() {
                    // Forces a new socket for the next query, so that a late answer cannot reach it.
                    self.flows[index].asked = u64::MAX;
                }
            }
        }
    }
}

fn fault_of(error: &io::Error) -> Fault {
    let code = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    if code == Errno::CONNREFUSED { Fault::Connect(code) } else { Fault::Broken(code) }
}

fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
