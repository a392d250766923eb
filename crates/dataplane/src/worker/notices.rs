//! Events of a worker for operators. They are sent through channels for which the worker never waits, at a limited rate. If
//! a channel is full, the event is dropped. Counters and the access log contain the same facts.

use std::sync::mpsc::SyncSender;

use weir_core::policy::Decision;
use weir_exchange::local::member::LocalMember;
use weir_exchange::parts::notice::Notice;
use weir_exchange::shared::counters::{Own, WorkerCounters};
use weir_telemetry::reports::Event;
use weir_tls::TlsError;

/// Interval in which at most one event of each frequent kind is sent.
const INTERVAL_MS: u64 = 1_000;

/// The earliest time of the next event of a kind.
#[derive(Debug, Default)]
struct Throttle {
    next_ms: u64,
}

impl Throttle {
    /// Whether an event may be sent. If so, the next one must wait for the interval.
    fn is_due(&mut self, now_ms: u64) -> bool {
        let is_due = now_ms >= self.next_ms;
        if is_due {
            self.next_ms = now_ms + INTERVAL_MS;
        }
        is_due
    }
}

/// Events of a worker for operators.
pub struct Notices {
    counters: Own<WorkerCounters>,
    events: SyncSender<Event>,
    policy_lines: SyncSender<Event>,
    of_sockets: Throttle,
    of_udp_share: Throttle,
    of_rewrites: Throttle,
    of_member_tls: Throttle,
    of_tunnels: Throttle,
}

impl Notices {
    /// Creates the sender of events for these channels.
    pub fn new(
        events: SyncSender<Event>,
        policy_lines: SyncSender<Event>,
        counters: Own<WorkerCounters>,
    ) -> Self {
        Self {
            counters,
            events,
            policy_lines,
            of_sockets: Throttle::default(),
            of_udp_share: Throttle::default(),
            of_rewrites: Throttle::default(),
            of_member_tls: Throttle::default(),
            of_tunnels: Throttle::default(),
        }
    }

    /// Reports a notice of a transaction.
    pub fn tell(&mut self, notice: Notice<'_>, now_ms: u64) {
        let event = match notice {
            Notice::PolicyLine(line) => {
                let text = String::from_utf8_lossy(line).into_owned();
                if self.policy_lines.try_send(Event::Policy { text }).is_err() {
                    self.counters.policy_lines_dropped.add(1);
                }
                return;
            }
            // These notices are written to their own logs.
            Notice::Inspected(_) | Notice::Traced { .. } => return,
            // Every request may cause this notice, so the rate is limited.
            Notice::Unsendable { .. } if !self.of_rewrites.is_due(now_ms) => return,
            Notice::Unsendable { server, why } => Event::Policy {
                text: format!(
                    "a rewritten request of the virtual server {server} cannot be sent: {why}"
                ),
            },
            Notice::Ejected { pool, member, until_ms, why } => Event::MemberEjected {
                pool: pool.live.name.clone(),
                member: member.live.label.clone(),
                eject_ms: until_ms.saturating_sub(now_ms) as u32,
                why,
            },
            Notice::NoTunnel(_) if !self.of_tunnels.is_due(now_ms) => return,
            Notice::NoTunnel(member) => Event::MemberTakesNoTunnel {
                pool: member.live.pool.name.clone(),
                member: member.live.label.clone(),
            },
        };
        self.send(event);
    }

    /// Reports the lines that rules of policies have written.
    pub fn tell_policy_lines(&mut self, decision: &Decision, now_ms: u64) {
        for line in decision.messages.iter() {
            self.tell(Notice::PolicyLine(line), now_ms);
        }
    }

    /// Reports that this host could not provide a socket.
    pub fn tell_of_socket(&mut self, now_ms: u64, error: &str) {
        self.counters.socket_failures.add(1);
        if self.of_sockets.is_due(now_ms) {
            self.send(Event::SocketFailed { error: error.to_owned() });
        }
    }

    /// Reports that UDP sessions are refused, because they use all `max` descriptors of their share.
    pub fn tell_of_udp_share(&mut self, now_ms: u64, max: usize) {
        if self.of_udp_share.is_due(now_ms) {
            self.send(Event::UdpShareUsed { max });
        }
    }

    /// Reports a TLS failure of a member.
    pub fn tell_of_member_tls(&mut self, member: &LocalMember, error: &TlsError, now_ms: u64) {
        if self.of_member_tls.is_due(now_ms) {
            self.send(Event::MemberInsecure {
                pool: member.live.pool.name.clone(),
                member: member.live.label.clone(),
                error: error.to_string(),
            });
        }
    }

    /// Reports a panic of the worker.
    pub fn tell_of_panic(&self, worker: usize, message: &str) {
        self.send(Event::WorkerPanicked { worker, message: message.to_owned() });
    }

    /// Reports a panic of an inspection on the worker.
    pub fn tell_of_panicked_inspection(&self, worker: usize, message: String) {
        self.send(Event::InspectionPanicked { worker, message });
    }

    fn send(&self, event: Event) {
        let _ = self.events.try_send(event);
    }
}
