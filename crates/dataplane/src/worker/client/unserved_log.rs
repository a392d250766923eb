//! The log lines and records of connections and requests that no transaction serves.

use weir_core::clock::Clock;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::shared::counters::WorkerCounters;
use weir_exchange::termination::Termination;
use weir_exchange::transaction::relay::count_relay;
use weir_http::message::RequestHead;
use weir_telemetry::access_log::{AccessLog, Entry, PolicyFields, RequestId};
use weir_telemetry::records::recorder::{FinishedTransaction, Recorder, RefusedRequest};

use crate::worker::client::own_response::OwnBytes;
use crate::worker::state::client::Client;
use crate::worker::transaction_end::write_down;

/// Writes log lines and records of clients that no transaction serves.
pub struct UnservedLog<'a> {
    /// The access log.
    pub log: &'a mut AccessLog,
    /// The records of requests.
    pub recorder: &'a mut Recorder,
    /// The counters of the worker.
    pub counted: &'a WorkerCounters,
}

/// The known part of a refused request.
#[derive(Clone, Copy, Default)]
pub struct RefusalFacts<'a> {
    /// Its part of the log line.
    pub line: &'a [u8],
    /// The part of its head that was read, and the bytes that it refers to.
    pub head: Option<(&'a RequestHead, &'a [u8])>,
    /// Why the handshake failed, in words; empty: it did not.
    pub tls_error: &'a str,
}

/// A request or a connection that did not get to a member.
#[derive(Clone, Copy, Default)]
pub struct UnforwardedRequest<'a> {
    /// Its part of the log line.
    pub about: &'a [u8],
    /// The part of its head that was read, and the bytes that it refers to.
    pub head: Option<(&'a RequestHead, &'a [u8])>,
    /// The status; 0: it was not answered.
    pub status: u16,
    /// The size of the response.
    pub sent: OwnBytes,
    /// Whether it is a request.
    pub is_request: bool,
    /// Why the handshake failed, in words; empty: it did not.
    pub tls_error: &'a str,
}

impl UnservedLog<'_> {
    /// Logs a connection that ends without a request; `about` is its part of the log line.
    pub fn connection(&mut self, client: &Client, clock: Clock, about: &[u8], why: Termination) {
        let of = UnforwardedRequest { about, ..UnforwardedRequest::default() };
        self.line(client, clock, of, PolicyFields::default(), why);
    }

    /// Counts and logs a connection that is not relayed. `name`: the server name.
    pub fn unrelayed(&mut self, client: &Client, clock: Clock, name: &str, why: Termination) {
        count_relay(&client.server.counters, why);
        let mut about = Vec::new();
        self.log.connection_part(name, &mut about);
        self.connection(client, clock, &about, why);
    }

    /// Logs a refused request, with its status and the size of the response.
    pub fn request(
        &mut self,
        client: &Client,
        clock: Clock,
        RefusalFacts { line, head, tls_error }: RefusalFacts<'_>,
        (status, sent): (u16, OwnBytes),
        why: Termination,
    ) {
        let of =
            UnforwardedRequest { about: line, head, status, sent, is_request: true, tls_error };
        self.line(client, clock, of, PolicyFields::default(), why);
    }

    /// Logs a request or a connection that did not get to a member, with the decisions about it.
    pub fn line(
        &mut self,
        client: &Client,
        clock: Clock,
        of: UnforwardedRequest<'_>,
        decided: PolicyFields<'_>,
        termination: Termination,
    ) {
        let logged = self.recorder.logged;
        let entry = Entry {
            format: logged.format(),
            request_id: RequestId::OfLog,
            request: of.about,
            client: client.address(),
            peer: client.peer,
            tls: match of.tls_error {
                "" => Ok(client.tls.as_deref().map(ClientTls::facts)),
                why => Err(why),
            },
            server: &client.server.live.name,
            pool: None,
            member: None,
            status: of.status,
            bytes_received: 0,
            bytes_sent: of.sent.bytes,
            head_bytes_sent: of.sent.head_bytes,
            retries: 0,
            queue_us: 0,
            connect_us: 0,
            first_byte_us: 0,
            total_us: 0,
            decided,
            termination,
        };
        let refused = RefusedRequest {
            head: of.head,
            server: &client.server,
            peer: client.peer,
            listen: client.destination.address(),
            tls: client.tls.as_deref(),
        };
        let finished = if of.is_request {
            FinishedTransaction::Refused(refused)
        } else {
            FinishedTransaction::NoRequest
        };
        write_down((self.log, self.recorder), entry, (finished, logged), (clock, self.counted));
    }
}
