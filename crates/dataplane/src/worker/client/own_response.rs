//! Responses that weir makes itself.

use std::io::IoSlice;
use std::rc::Rc;

use weir_config::snapshot::Page;
use weir_exchange::arena::ClientKey;
use weir_exchange::local::client_tls::ClientTls;
use weir_exchange::parts::messages::OwnAnswer;
use weir_exchange::shared::counters::{VirtualServerCounters, count_status};
use weir_exchange::termination::Termination;
use weir_http::edits::FieldEdits;
use weir_http::h1::{OwnResponse, Persistence, RequestError, reason_phrase, write_own_response};
use weir_http::message::{RequestHead, Version};

use crate::access_log::{Decided, Entry, RequestId};
use crate::records::recorder::{Finished, Refused};
use crate::worker::desk::Desk;
use crate::worker::finishing::write_down;
use crate::worker::world::World;

/// The size of a response of weir's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnBytes {
    /// Bytes of head and body.
    pub bytes: u64,
    /// Bytes of the head.
    pub head_bytes: u64,
}

/// The known part of a refused request.
#[derive(Clone, Copy, Default)]
pub struct About<'a> {
    /// Its part of the log line.
    pub line: &'a [u8],
    /// The part of its head that was read, and the bytes that it refers to.
    pub head: Option<(&'a RequestHead, &'a [u8])>,
}

/// A request or a connection that did not get to a member.
#[derive(Clone, Copy, Default)]
pub struct Of<'a> {
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
}

impl Desk<'_> {
    /// Answers a malformed or late request, and ends the connection.
    pub fn refuse(&mut self, key: ClientKey, status: u16, termination: Termination) {
        self.refuse_with(key, status, termination, None);
    }

    /// As [`Self::refuse`], with `line` as the body if the configuration has no page for the status.
    pub fn refuse_with(
        &mut self,
        key: ClientKey,
        status: u16,
        termination: Termination,
        line: Option<&[u8]>,
    ) {
        self.refuse_about(key, status, termination, (line, About::default()));
    }

    /// As [`Self::refuse_with`]; `about`: the known part of the request.
    fn refuse_about(
        &mut self,
        key: ClientKey,
        status: u16,
        termination: Termination,
        (line, about): (Option<&[u8]>, About<'_>),
    ) {
        let Some(client) = self.world.clients.get(key) else { return };
        let server = Rc::clone(&client.server);
        count_status!(server.counters, status);
        let page = server.settings().error_pages.of(status);
        let mut edits = std::mem::take(&mut self.world.tools.response_edits);
        self.edit_refusal(key, &server, status, &mut edits);
        add_content_type(page, &mut edits);
        let answer = OwnAnswer {
            status,
            version: Version::Http11,
            keep_alive: false,
            head_only: false,
            edits: &edits,
            body: page.map(|page| &*page.body).or(line),
        };
        let sent = self.send_own_response(key, &answer);
        self.world.tools.response_edits = edits;
        self.log_refused(key, about, status, sent, termination);
        self.leave(key, true);
    }

    /// Answers a refused request on an HTTP/2 stream.
    pub fn answer_refused(
        &mut self,
        key: ClientKey,
        stream: u32,
        status: u16,
        termination: Termination,
        about: About<'_>,
    ) {
        let Some(client) = self.world.clients.get(key) else { return };
        let server = Rc::clone(&client.server);
        let counters = &server.counters;
        count_refused(counters, termination);
        count_status!(counters, status);
        let page = server.settings().error_pages.of(status);
        let mut edits = std::mem::take(&mut self.world.tools.response_edits);
        self.edit_refusal(key, &server, status, &mut edits);
        add_content_type(page, &mut edits);
        let line = format!("{status} {}\n", reason_phrase(status));
        let mut wall = std::mem::take(&mut self.world.wall);
        let (date, _) = wall.at(self.io.clock());
        let response = OwnResponse {
            status,
            fields: &[("Date", date.http.as_bytes())],
            edits: &edits,
            body: page.map_or(line.as_bytes(), |page| &page.body),
            client_version: Version::Http2,
            persistence: Persistence::KeepAlive,
            head_only: false,
        };
        let sent = self.send_own_without_exchange(key, stream, &response);
        (self.world.wall, self.world.tools.response_edits) = (wall, edits);
        self.log_refused(key, about, status, sent, termination);
    }

    /// Logs a connection that ends without a request; `about` is its part of the log line.
    pub fn log_without_request(
        &mut self,
        key: ClientKey,
        about: &[u8],
        sent: OwnBytes,
        termination: Termination,
    ) {
        let of = Of { about, sent, is_request: false, ..Of::default() };
        log_decided(self, key, of, Decided::default(), termination);
    }

    /// Logs a refused request.
    pub fn log_refused(
        &mut self,
        key: ClientKey,
        about: About<'_>,
        status: u16,
        sent: OwnBytes,
        termination: Termination,
    ) {
        let of = Of { about: about.line, head: about.head, status, sent, is_request: true };
        log_decided(self, key, of, Decided::default(), termination);
    }

    /// Answers a malformed head, or one with a refused path. `head` contains the part that was parsed.
    pub fn refuse_malformed(
        &mut self,
        key: ClientKey,
        error: RequestError,
        (head, input): (&RequestHead, &[u8]),
    ) {
        let termination = refused_as(error);
        let Some(client) = self.world.clients.get(key) else { return };
        count_refused(&client.server.counters, termination);
        let mut about = Vec::new();
        self.world.log.refused_part(termination, head, input, &mut about);
        let about = About { line: &about, head: Some((head, input)) };
        self.refuse_about(key, error.status(), termination, (None, about));
    }

    /// Sends a response of weir's own on a client's HTTP/1 connection; returns its size.
    pub fn send_own_response(&mut self, key: ClientKey, answer: &OwnAnswer<'_>) -> OwnBytes {
        let line = format!("{} {}\n", answer.status, reason_phrase(answer.status));
        let mut wall = std::mem::take(&mut self.world.wall);
        let (date, _) = wall.at(self.io.clock());
        let fields = [("Date", date.http.as_bytes())];
        let response = answer.with(&fields, line.as_bytes());
        let mut out = self.world.tools.scratch.take();
        let head_bytes = write_own_response(&response, &mut out) as u64;
        self.world.wall = wall;
        let sent = OwnBytes { bytes: out.len() as u64, head_bytes };
        if let Some(client) = self.world.clients.get(key) {
            client.server.counters.bytes_sent.add(sent.bytes);
            let parts = [IoSlice::new(&out)];
            if answer.keep_alive {
                self.io.send(client.token, &parts);
            } else {
                self.io.send_last(client.token, &parts);
            }
        }
        self.world.tools.scratch.give(out);
        sent
    }
}

/// Logs a request or a connection that did not get to a member, with the decisions about it.
pub fn log_decided(
    desk: &mut Desk<'_>,
    key: ClientKey,
    of: Of<'_>,
    decided: Decided<'_>,
    termination: Termination,
) {
    let World { clients, log, recorder, counted, .. } = &mut *desk.world;
    let logged = recorder.logged;
    let Some(client) = clients.get(key) else { return };
    let entry = Entry {
        format: logged.format(),
        request_id: RequestId::OfLog,
        request: of.about,
        client: client.address(),
        peer: client.peer,
        tls: client.tls.as_deref().map(ClientTls::facts),
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
    let refused = Refused {
        head: of.head,
        server: &client.server,
        peer: client.peer,
        listen: client.destination.address(),
        tls: client.tls.as_deref(),
    };
    let finished = if of.is_request { Finished::Refused(refused) } else { Finished::NoRequest };
    write_down((log, recorder), entry, (finished, logged), (desk.io.clock(), counted));
}

/// Adds the Content-Type of an error page, unless a rule removes or sets the field.
fn add_content_type(page: Option<&Page>, edits: &mut FieldEdits) {
    if let Some(page) = page.filter(|_| !edits.withholds(b"Content-Type")) {
        let content_type = page.content_type.as_bytes();
        edits.add(b"Content-Type", |out| out.extend_from_slice(content_type));
    }
}

/// The termination reason of a request that the parser refuses.
pub fn refused_as(error: RequestError) -> Termination {
    match (error, error.status()) {
        (RequestError::Path(error), _) if error.is_by_form() => Termination::PathRefused,
        (_, 414 | 431) => Termination::ClientLimit,
        _ => Termination::ClientMalformed,
    }
}

fn count_refused(counters: &VirtualServerCounters, termination: Termination) {
    match termination {
        Termination::TooEarly => {}
        Termination::PathRefused => counters.requests_path_refused.add(1),
        _ => counters.requests_malformed.add(1),
    }
}
