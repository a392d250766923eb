//! The agenda of a worker: all work that is put off, and the order in which it is done.
//!
//! Code that handles an event of one connection or transaction does not call into another one. It adds a [`Task`], which says what is
//! to be done and for whom. Keys have generations, so a task whose object is gone does nothing. [`Due`] says when tasks are due, and in
//! which order. `tasks.rs` does them.

use std::collections::VecDeque;

use weir_exchange::arena::{ClientKey, ConnectionKey, ExchangeKey};
use weir_exchange::parts::deferred_work::DeferredWork;
use weir_exchange::parts::transaction_ends::TransactionEnds;

use crate::worker::state::lost_stream::LostStream;

/// What is to be done, and for whom.
pub enum Task {
    /// Executes what a call of a transaction has ordered.
    Order(DeferredWork),
    /// Forwards the joined data of a response.
    PassResponse(ExchangeKey),
    /// Forwards the joined data of a request.
    PassRequest(ExchangeKey),
    /// Begins requests of an HTTP/2 client.
    BeginRequests(ClientKey),
    /// Sends the head of a request whose body had not begun when its head was processed: its client may wait for a response before
    /// it continues.
    SendHead(ExchangeKey),
    /// Sends data of responses that waited for the windows of an HTTP/2 client.
    SendResponses(ClientKey),
    /// Observes the load of compression and the sessions of members.
    DoChores,
    /// Begins requests of an HTTP/2 client for which a read had no time.
    BeginMoreRequests(ClientKey),
    /// Continues requests that wait for a member or for the end of a delay.
    ServeWaiting,
    /// Finds another connection for an exchange that got no stream on this one.
    LoseStream(ExchangeKey, Option<ConnectionKey>, LostStream),
    /// Goes on with the inspections that the worker keeps.
    ResumeInspections,
    /// Closes clients whose deadlines after a reload or in a drain have passed.
    EndClients,
    /// Sends the frames of a member connection.
    FlushMember(ConnectionKey),
    /// Sends the frames of an HTTP/2 client.
    FlushClient(ClientKey),
    /// Ends clients with HTTP/2 that hold too much memory.
    BoundMemory,
}

/// The kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    Order,
    PassResponse,
    PassRequest,
    BeginRequests,
    SendHead,
    SendResponses,
    DoChores,
    BeginMoreRequests,
    ServeWaiting,
    LoseStream,
    ResumeInspections,
    EndClients,
    FlushMember,
    FlushClient,
    BoundMemory,
}

const KINDS: usize = TaskKind::BoundMemory as usize + 1;

/// When tasks are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// When the call of a transaction has returned. Tasks that follow from these are done after them, not within.
    AfterCall,
    /// When all bytes of a read of an HTTP/2 connection are processed.
    EndOfRead,
    /// When all events of a turn are handled. Tasks that are added later are due at the end of the next turn.
    EndOfTurn,
}

impl Due {
    /// The bits of the kinds of tasks that are due.
    #[inline]
    const fn bits(self) -> u16 {
        match self {
            Self::AfterCall => const { TaskKind::bits(Self::AfterCall.kinds()) },
            Self::EndOfRead => const { TaskKind::bits(Self::EndOfRead.kinds()) },
            Self::EndOfTurn => const { TaskKind::bits(Self::EndOfTurn.kinds()) },
        }
    }

    /// The kinds of tasks that are due, in the order in which they are done.
    pub const fn kinds(self) -> &'static [TaskKind] {
        match self {
            Self::AfterCall => &[TaskKind::Order],
            Self::EndOfRead => &[
                TaskKind::PassResponse,
                TaskKind::PassRequest,
                TaskKind::BeginRequests,
                TaskKind::SendHead,
                TaskKind::SendResponses,
            ],
            Self::EndOfTurn => &[
                TaskKind::DoChores,
                TaskKind::BeginMoreRequests,
                TaskKind::ServeWaiting,
                TaskKind::LoseStream,
                TaskKind::ResumeInspections,
                TaskKind::EndClients,
                // What the others have written is sent together.
                TaskKind::FlushMember,
                TaskKind::FlushClient,
                // Only what sockets have not taken counts as held.
                TaskKind::BoundMemory,
            ],
        }
    }
}

/// Tasks of these kinds do not wait for an event: if one is left at the end of a turn, the next turn starts at once.
const IN_NEXT_TURN: [TaskKind; 5] = [
    TaskKind::BeginMoreRequests,
    TaskKind::LoseStream,
    TaskKind::ResumeInspections,
    TaskKind::FlushMember,
    TaskKind::FlushClient,
];

impl TaskKind {
    /// A bit for each kind.
    const fn bit(self) -> u16 {
        1 << self as u16
    }

    const fn bits(kinds: &[Self]) -> u16 {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= kinds[at].bit();
            at += 1;
        }
        bits
    }

    /// Whether the tasks of this kind are done in the order in which they were added, so that none is late. The other way round,
    /// what was used last is used next.
    const fn is_in_order(self) -> bool {
        matches!(self, Self::BeginMoreRequests | Self::LoseStream)
    }
}

impl Task {
    /// An exchange gets no stream on its connection. At the end of the turn, it is retried or ends, unless it uses another connection
    /// by then.
    pub fn lose_stream(ends: &TransactionEnds, why: LostStream) -> Self {
        Self::LoseStream(ends.key, ends.phase.connection(), why)
    }

    fn kind(&self) -> TaskKind {
        match self {
            Self::Order(_) => TaskKind::Order,
            Self::PassResponse(_) => TaskKind::PassResponse,
            Self::PassRequest(_) => TaskKind::PassRequest,
            Self::BeginRequests(_) => TaskKind::BeginRequests,
            Self::SendHead(_) => TaskKind::SendHead,
            Self::SendResponses(_) => TaskKind::SendResponses,
            Self::DoChores => TaskKind::DoChores,
            Self::BeginMoreRequests(_) => TaskKind::BeginMoreRequests,
            Self::ServeWaiting => TaskKind::ServeWaiting,
            Self::LoseStream(..) => TaskKind::LoseStream,
            Self::ResumeInspections => TaskKind::ResumeInspections,
            Self::EndClients => TaskKind::EndClients,
            Self::FlushMember(_) => TaskKind::FlushMember,
            Self::FlushClient(_) => TaskKind::FlushClient,
            Self::BoundMemory => TaskKind::BoundMemory,
        }
    }
}

/// The tasks of a worker, and the time of its next turn.
#[derive(Default)]
pub struct Agenda {
    /// The tasks of each kind.
    tasks: [VecDeque<Task>; KINDS],
    /// The bits of the kinds that have tasks.
    present: u16,
    /// Whether tasks that are due after the call are being done.
    runs_orders: bool,
    /// The latest start of the next turn; `None`: it waits for an event.
    wake_us: Option<u64>,
}

impl Agenda {
    /// Adds a task.
    pub fn add(&mut self, task: Task) {
        let kind = task.kind();
        self.present |= kind.bit();
        self.tasks[kind as usize].push_back(task);
    }

    /// Adds a task without a key, unless it is there.
    pub fn add_once(&mut self, task: Task) {
        if self.present & task.kind().bit() == 0 {
            self.add(task);
        }
    }

    /// Whether tasks are due.
    #[inline]
    pub fn has(&self, due: Due) -> bool {
        self.present & due.bits() != 0
    }

    /// The number of tasks of a kind.
    pub fn count(&self, kind: TaskKind) -> usize {
        self.tasks[kind as usize].len()
    }

    /// Removes and returns the next task of a kind.
    pub fn take(&mut self, kind: TaskKind) -> Option<Task> {
        let tasks = &mut self.tasks[kind as usize];
        let task = if kind.is_in_order() { tasks.pop_front() } else { tasks.pop_back() };
        if tasks.is_empty() {
            self.present &= !kind.bit();
        }
        task
    }

    /// Begins to do tasks that are due after the call. False: the caller is one of these tasks, and what it has ordered is done
    /// after it.
    pub fn begin_orders(&mut self) -> bool {
        !std::mem::replace(&mut self.runs_orders, true)
    }

    /// All tasks that were due after the call are done.
    pub fn end_orders(&mut self) {
        self.runs_orders = false;
    }

    /// Has the next turn start at this time at the latest.
    pub fn wake_by(&mut self, at_us: Option<u64>) {
        self.wake_us = [self.wake_us, at_us].into_iter().flatten().min();
    }

    /// The latest start of the next turn, at the end of a turn; `None`: it waits for an event.
    pub fn next_turn_us(&mut self, now_us: u64) -> Option<u64> {
        let wake_us = self.wake_us.take();
        let is_left = self.present & const { TaskKind::bits(&IN_NEXT_TURN) } != 0;
        if is_left { Some(now_us) } else { wake_us }
    }

    /// The tasks for objects with keys, as their kinds and numbers. Between turns without clients, there are none.
    #[cfg(feature = "simulation")]
    pub fn remains(&self) -> impl Iterator<Item = (TaskKind, usize)> {
        let has_key = |kind: &TaskKind| {
            use TaskKind::{BoundMemory, DoChores, EndClients, ServeWaiting};
            !matches!(kind, DoChores | ServeWaiting | EndClients | BoundMemory)
        };
        let all = [Due::AfterCall, Due::EndOfRead, Due::EndOfTurn].into_iter();
        let kinds = all.flat_map(|due| due.kinds()).copied().filter(has_key);
        kinds.map(|kind| (kind, self.count(kind)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u64) -> ClientKey {
        ClientKey::from_bits(1 << 32 | number).expect("a key with a generation")
    }

    fn exchange(number: u64) -> ExchangeKey {
        ExchangeKey::from_bits(1 << 32 | number).expect("a key with a generation")
    }

    #[test]
    fn each_kind_is_due_once() {
        let all = [Due::AfterCall, Due::EndOfRead, Due::EndOfTurn];
        let kinds: Vec<TaskKind> = all.into_iter().flat_map(|due| due.kinds()).copied().collect();
        let numbers: Vec<usize> = kinds.iter().map(|kind| *kind as usize).collect();
        assert_eq!(numbers, (0..KINDS).collect::<Vec<_>>(), "in the order of their declaration");
    }

    #[test]
    fn tasks_are_taken_by_kind() {
        let mut agenda = Agenda::default();
        for number in 1..=2 {
            agenda.add(Task::FlushClient(client(number)));
            agenda.add(Task::LoseStream(exchange(number), None, LostStream::Full));
        }
        assert!(agenda.has(Due::EndOfTurn) && !agenda.has(Due::EndOfRead));
        let flushed = |agenda: &mut Agenda| match agenda.take(TaskKind::FlushClient) {
            Some(Task::FlushClient(key)) => Some(key),
            _ => None,
        };
        assert_eq!(flushed(&mut agenda), Some(client(2)), "the newest first");
        assert_eq!(flushed(&mut agenda), Some(client(1)));
        assert_eq!(flushed(&mut agenda), None);
        let lost = |agenda: &mut Agenda| match agenda.take(TaskKind::LoseStream) {
            Some(Task::LoseStream(key, ..)) => Some(key),
            _ => None,
        };
        assert_eq!(lost(&mut agenda), Some(exchange(1)), "the oldest first");
        assert!(agenda.has(Due::EndOfTurn));
        assert_eq!(lost(&mut agenda), Some(exchange(2)));
        assert!(!agenda.has(Due::EndOfTurn));
    }

    #[test]
    fn the_next_turn_starts_in_time() {
        let mut agenda = Agenda::default();
        assert_eq!(agenda.next_turn_us(5), None);
        agenda.wake_by(Some(30));
        agenda.wake_by(None);
        agenda.wake_by(Some(20));
        agenda.add_once(Task::ServeWaiting);
        agenda.add_once(Task::ServeWaiting);
        assert_eq!(agenda.count(TaskKind::ServeWaiting), 1);
        assert_eq!(agenda.next_turn_us(5), Some(20), "it does not hurry");
        assert_eq!(agenda.next_turn_us(5), None, "each turn asks anew");
        agenda.add(Task::FlushMember(ConnectionKey::NOTHING));
        agenda.wake_by(Some(20));
        assert_eq!(agenda.next_turn_us(5), Some(5));
    }

    #[test]
    fn orders_do_not_interrupt_each_other() {
        let mut agenda = Agenda::default();
        assert!(agenda.begin_orders());
        assert!(!agenda.begin_orders());
        agenda.end_orders();
        assert!(agenda.begin_orders());
    }
}
