//! The content of a line, and how its parts are written in every format.

use std::net::SocketAddr;

use weir_config::snapshot::{AccessFormat, RuleName};
use weir_core::expression::TlsFacts;
use weir_core::policy::Lines;
use weir_exchange::local::stickiness::PersistenceResult;
use weir_exchange::termination::Termination;
use weir_http::message::{FieldId, RequestHead, Version};
use weir_http::write_ip;

use crate::json::{SHOWN_BYTES_MAX, plain_length, put, put_json_string, put_number};

/// The fields of a line that are not from the request head.
pub struct Entry<'a> {
    /// The format that was active when the request arrived. `request` is in this format.
    pub format: AccessFormat,
    /// The id of the request.
    pub request_id: RequestId<'a>,
    /// The output of [`AccessLog::request_part`](super::AccessLog::request_part) for the request head; empty without a valid head.
    pub request: &'a [u8],
    /// The client's address by its connection. `request` may contain another one, from a trusted proxy.
    pub client: Option<SocketAddr>,
    /// The address of the connection's peer.
    pub peer: Option<SocketAddr>,
    /// The results of the TLS handshake; `None`: no TLS. An error: why it failed, in words.
    pub tls: Result<Option<TlsFacts<'a>>, &'a str>,
    /// The virtual server.
    pub server: &'a str,
    /// The pool.
    pub pool: Option<&'a str>,
    /// The address of the last member.
    pub member: Option<&'a str>,
    /// The status that was sent to the client; 0: no response.
    pub status: u16,
    /// The number of body bytes in the request.
    pub bytes_received: u64,
    /// The number of bytes in the response, including its heads.
    pub bytes_sent: u64,
    /// The number of bytes in the heads of the response.
    pub head_bytes_sent: u64,
    /// The number of retries on other members.
    pub retries: u32,
    /// Microseconds from the complete request head to the first attempt with a member.
    pub queue_us: u64,
    /// Microseconds from the first attempt to an open connection; 0: an idle connection was reused.
    pub connect_us: u64,
    /// Microseconds from the open connection to the response head.
    pub first_byte_us: u64,
    /// Microseconds from the complete request head to the end.
    pub total_us: u64,
    /// The decisions of policies and persistence.
    pub decided: PolicyFields<'a>,
    /// The termination reason.
    pub termination: Termination,
}

/// The id of a request.
#[derive(Debug, Clone, Copy)]
pub enum RequestId<'a> {
    /// The log assigns the next number.
    OfLog,
    /// A number that this process has already assigned.
    Made(u128),
    /// An id received from a trusted proxy.
    Taken(&'a [u8]),
}

/// The decisions of policies and persistence about a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicyFields<'a> {
    /// Marks set by policies.
    pub marks: Option<&'a Lines>,
    /// The numbers of the rules that were applied.
    pub rules: &'a [u32],
    /// The names of rules.
    pub rule_names: &'a [RuleName],
    /// The result of persistence.
    pub persistence: Option<PersistenceResult>,
    /// The authenticated user; empty: not authenticated.
    pub user: &'a [u8],
    /// The virtual server that received the request, if it handed the request over to another one.
    pub entered_at: Option<&'a str>,
    /// Whether the member connection belongs to the client, because authentication is bound to it.
    pub is_bound: bool,
    /// The trace id and the span id of the request.
    pub trace: Option<(u128, u64)>,
}

impl PolicyFields<'_> {
    /// The marks, if there are any.
    pub(super) fn shown_marks(&self) -> Option<&Lines> {
        self.marks.filter(|marks| !marks.is_empty())
    }

    /// Whether a rule was applied.
    pub(super) fn has_rules(&self) -> bool {
        self.followed().next().is_some()
    }

    pub(super) fn followed(&self) -> impl Iterator<Item = &RuleName> {
        self.rules.iter().filter_map(|rule| self.rule_names.get(*rule as usize))
    }
}

/// The fields of a request head that appear in lines; empty if the head lacks them.
#[derive(Default)]
pub(super) struct HeadFieldValues<'a> {
    pub(super) referer: &'a [u8],
    pub(super) user_agent: &'a [u8],
}

impl<'a> HeadFieldValues<'a> {
    pub(super) fn of(head: &RequestHead, input: &'a [u8]) -> Self {
        let mut shown = Self::default();
        for field in head.fields.iter().rev().filter(|field| field.id == FieldId::Other) {
            let name = field.name.of(input);
            // The length rules out nearly all other fields.
            let place = match name.len() {
                7 if name.eq_ignore_ascii_case(b"referer") => &mut shown.referer,
                10 if name.eq_ignore_ascii_case(b"user-agent") => &mut shown.user_agent,
                _ => continue,
            };
            *place = field.value.of(input);
        }
        shown
    }
}

/// Writes the marks of rules; there must be at least one.
pub(super) fn put_marks(out: &mut Vec<u8>, marks: &Lines) {
    for (index, mark) in marks.iter().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        put_json_string(out, mark);
    }
    out.push(b']');
}

/// Writes the applied rules; there must be at least one: `["shop/no-admin"]`.
pub(super) fn put_rules(out: &mut Vec<u8>, decided: &PolicyFields<'_>) {
    for (index, name) in decided.followed().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        put_json_string(out, format!("{}/{}", name.policy, name.rule).as_bytes());
    }
    out.push(b']');
}

/// The HTTP version of a request.
pub(super) fn version_of(head: &RequestHead) -> &'static str {
    match head.version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
        Version::Http2 => "HTTP/2.0",
    }
}

pub(super) fn put_address_text(out: &mut Vec<u8>, address: SocketAddr) {
    match address {
        SocketAddr::V6(_) if address.port() != 0 => put(out, format_args!("{address}")),
        _ => {
            write_ip(address.ip(), out);
            if address.port() != 0 {
                out.push(b':');
                put_number(out, address.port().into());
            }
        }
    }
}

/// Writes a value with the escapes of nginx and Apache: `\xhh`.
pub(super) fn put_quoted(out: &mut Vec<u8>, value: &[u8]) {
    let value = &value[..value.len().min(SHOWN_BYTES_MAX)];
    let (plain, mut rest) = value.split_at(plain_length(value));
    out.extend_from_slice(plain);
    while let [byte, behind @ ..] = rest {
        put(out, format_args!("\\x{byte:02X}"));
        let (plain, next) = behind.split_at(plain_length(behind));
        out.extend_from_slice(plain);
        rest = next;
    }
}
