//! Counters and log data of a transaction.

use std::rc::Rc;

use weir_config::snapshot::AccessFormat;

use crate::local::pool::LocalMember;

/// Counters and log data of a transaction.
pub struct Account {
    /// The form of its access log line.
    pub log_format: AccessFormat,
    /// The request's part of that line.
    pub log_request: Vec<u8>,
    /// The number that logs call it by ([`super::request_ids`]); 0: the access log gives it a name.
    pub request_number: u64,
    /// Status sent to the client; 0: none yet.
    pub status: u16,
    /// How often it was tried again.
    pub retries: u32,
    /// The member that it had last.
    pub last_member: Option<Rc<LocalMember>>,
    /// Body bytes of the request.
    pub bytes_received: u64,
    /// Bytes of the response.
    pub bytes_sent: u64,
    /// Bytes of its heads, including interim ones.
    pub head_bytes_sent: u64,
    /// When it began.
    pub begun_us: u64,
    /// When it got its first member; 0: not yet.
    pub tried_us: u64,
}

impl Account {
    /// Nothing has happened.
    pub fn begin(begun_us: u64, log_format: AccessFormat, log_request: Vec<u8>) -> Self {
        Self {
            log_format,
            log_request,
            request_number: 0,
            status: 0,
            retries: 0,
            last_member: None,
            bytes_received: 0,
            bytes_sent: 0,
            head_bytes_sent: 0,
            begun_us,
            tried_us: 0,
        }
    }
}
