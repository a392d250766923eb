//! Counters and log data of a transaction.

use std::rc::Rc;

use weir_config::snapshot::AccessFormat;

use crate::local::member::LocalMember;

/// The log output of a finished transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogOutput {
    /// No output. A transaction without output costs one comparison.
    Nothing,
    /// A line of the access log, in this format.
    Line(AccessFormat),
    /// A record, and a line in this format, which may be [`AccessFormat::Off`].
    Record(AccessFormat),
}

impl LogOutput {
    /// A line in this format, and a record if `is_recorded`.
    pub fn of(format: AccessFormat, is_recorded: bool) -> Self {
        match (format, is_recorded) {
            (format, true) => Self::Record(format),
            (AccessFormat::Off, false) => Self::Nothing,
            (format, false) => Self::Line(format),
        }
    }

    /// The format of the line.
    pub fn format(self) -> AccessFormat {
        match self {
            Self::Nothing => AccessFormat::Off,
            Self::Line(format) | Self::Record(format) => format,
        }
    }

    /// Whether there is no output.
    #[inline]
    pub fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Whether the transaction is recorded.
    pub fn is_recorded(self) -> bool {
        matches!(self, Self::Record(_))
    }
}

/// Counters and log data of a transaction.
pub struct Account {
    /// The log output of the transaction.
    pub logged: LogOutput,
    /// The request's part of the log line.
    pub log_request: Vec<u8>,
    /// The number of the request id in logs ([`super::request_ids`]); 0: from a trusted proxy or the access log.
    pub request_number: u64,
    /// Status sent to the client; 0: none yet.
    pub status: u16,
    /// The number of retries on other members.
    pub retries: u32,
    /// Whether the member connection belongs to the client, because authentication is bound to it.
    pub is_bound: bool,
    /// The last member.
    pub last_member: Option<Rc<LocalMember>>,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Bytes of the response heads, including interim ones.
    pub head_bytes_sent: u64,
    /// The time when the transaction began, in microseconds.
    pub begun_us: u64,
    /// The time of the first attempt with a member; 0: none yet.
    pub tried_us: u64,
    /// The times of the last attempt, which logs need when it is over.
    pub times: Times,
}

/// The times of an attempt with a member, in microseconds of the clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// When it began; 0: there was no attempt.
    pub try_us: u64,
    /// When the connection was ready; 0: not yet.
    pub connected_us: u64,
    /// When the whole request was sent or queued; 0: not yet.
    pub asked_us: u64,
    /// When the first byte of a response arrived; 0: not yet.
    pub first_byte_us: u64,
}

impl Times {
    /// An attempt begins.
    pub fn begin(try_us: u64) -> Self {
        Self { try_us, ..Self::default() }
    }

    /// There is a connection; `connected_us`: 0 if it is not ready yet.
    pub fn connect(&mut self, connected_us: u64) {
        (self.connected_us, self.asked_us) = (connected_us, 0);
    }

    /// Records the arrival of a byte from the member; its response may begin later.
    pub fn note_first_byte(&mut self, now_us: u64) {
        if self.first_byte_us == 0 {
            self.first_byte_us = now_us;
        }
    }
}

impl Account {
    /// The account of a new transaction.
    pub fn begin(begun_us: u64, logged: LogOutput, log_request: Vec<u8>) -> Self {
        Self {
            logged,
            log_request,
            request_number: 0,
            status: 0,
            retries: 0,
            is_bound: false,
            last_member: None,
            bytes_received: 0,
            bytes_sent: 0,
            head_bytes_sent: 0,
            begun_us,
            tried_us: 0,
            times: Times::default(),
        }
    }
    /// Microseconds until the response head: the time spent outside the member, and the member's response time.
    pub fn until_head_us(&self) -> (u64, u64) {
        let first_byte_us = self.times.first_byte_us;
        let member_us = first_byte_us.saturating_sub(self.times.connected_us);
        let all_us = first_byte_us.saturating_sub(self.begun_us);
        (all_us.saturating_sub(member_us), member_us)
    }
}
