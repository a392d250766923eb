//! Handles clients that no transaction serves: what they are refused with, and what the log says about them.

use std::rc::Rc;

use weir_config::snapshot::Page;
use weir_event_loop::EventLoop;
use weir_event_loop::wall_clock::WallClock;
use weir_exchange::arena::ClientKey;
use weir_exchange::parts::messages::OwnAnswer;
use weir_exchange::parts::tools::Tools;
use weir_exchange::shared::counters::{VirtualServerCounters, count_status};
use weir_exchange::termination::Termination;
use weir_http::edits::FieldEdits;
use weir_http::h1::{OwnResponse, Persistence, RequestError, reason_phrase};
use weir_http::message::{RequestHead, Version};

use crate::worker::agenda::Agenda;
use crate::worker::client::own_response::OwnBytes;
use crate::worker::client::unserved_log::{RefusalFacts, UnservedLog};
use crate::worker::notices::Notices;
use crate::worker::state::client::Client;
use crate::worker::state::client_end::ClientEnd;
use crate::worker::world::World;

/// Handles a client where no transaction does: with the parts of a worker that are needed to admit or refuse it, and to decide what
/// becomes of its connection. The caller does what the functions return.
pub struct ClientHandler<'a> {
    /// The sockets.
    pub io: &'a mut EventLoop,
    /// The key of the client.
    pub key: ClientKey,
    /// The client.
    pub client: &'a mut Client,
    /// The agenda, on which frames of HTTP/2 are put.
    pub agenda: &'a mut Agenda,
    /// Memory for decisions and heads.
    pub tools: &'a mut Tools,
    /// The date for responses.
    pub wall: &'a mut WallClock,
    /// The log lines of clients that no transaction serves.
    pub log: UnservedLog<'a>,
    /// Lines of policies.
    pub notices: &'a mut Notices,
    /// The number of the worker.
    pub worker: usize,
}

impl World {
    /// The handler of a client.
    pub fn client_handler<'a>(
        &'a mut self,
        io: &'a mut EventLoop,
        key: ClientKey,
    ) -> Option<ClientHandler<'a>> {
        Some(ClientHandler {
            io,
            key,
            client: self.clients.all.get_mut(key)?,
            agenda: &mut self.agenda,
            tools: &mut self.tools,
            wall: &mut self.wall,
            log: UnservedLog {
                log: &mut self.log,
                recorder: &mut self.recorder,
                counted: &self.counted,
            },
            notices: &mut self.notices,
            worker: self.id,
        })
    }
}

impl ClientHandler<'_> {
    /// Answers a late or malformed request, or one of a client that is not admitted. `line`: the body, if the configuration has no
    /// error page for the status. `about`: the known part of the request.
    pub fn refuse(
        &mut self,
        status: u16,
        termination: Termination,
        line: Option<&[u8]>,
        about: RefusalFacts<'_>,
    ) -> ClientEnd {
        let server = Rc::clone(&self.client.server);
        count_status!(server.counters, status);
        let page = server.settings().error_pages.of(status);
        let mut edits = std::mem::take(&mut self.tools.response_edits);
        self.edit_refusal(&server, status, &mut edits);
        add_content_type(page, &mut edits);
        let answer = OwnAnswer {
            status,
            version: Version::Http11,
            keep_alive: false,
            head_only: false,
            edits: &edits,
            body: page.map(|page| &*page.body).or(line),
        };
        let sent = self.client.send_own((self.io, self.wall), &mut self.tools.scratch, &answer);
        self.tools.response_edits = edits;
        self.log.request(self.client, self.io.clock(), about, (status, sent), termination);
        ClientEnd::ORDERLY
    }

    /// Answers a malformed head, or one with a refused path. `head` contains the parsed part.
    pub fn refuse_malformed(
        &mut self,
        error: RequestError,
        head: &RequestHead,
        input: &[u8],
    ) -> ClientEnd {
        let termination = refused_as(error);
        count_refused(&self.client.server.counters, termination);
        let mut about = Vec::new();
        self.log.log.refused_part(termination, head, input, &mut about);
        let about = RefusalFacts { line: &about, head: Some((head, input)), tls_error: "" };
        self.refuse(error.status(), termination, None, about)
    }

    /// Answers a request with a refused head on an HTTP/2 stream.
    pub fn refuse_head_on_stream(
        &mut self,
        stream: u32,
        error: RequestError,
        head: &RequestHead,
        input: &[u8],
    ) {
        let termination = refused_as(error);
        let mut about = Vec::new();
        self.log.log.refused_part(termination, head, input, &mut about);
        let about = RefusalFacts { line: &about, head: Some((head, input)), tls_error: "" };
        self.refuse_on_stream(stream, error.status(), termination, about);
    }

    /// Answers a refused request on an HTTP/2 stream.
    pub fn refuse_on_stream(
        &mut self,
        stream: u32,
        status: u16,
        termination: Termination,
        about: RefusalFacts<'_>,
    ) {
        let server = Rc::clone(&self.client.server);
        let counters = &server.counters;
        count_refused(counters, termination);
        count_status!(counters, status);
        let page = server.settings().error_pages.of(status);
        let mut edits = std::mem::take(&mut self.tools.response_edits);
        self.edit_refusal(&server, status, &mut edits);
        add_content_type(page, &mut edits);
        let line = format!("{status} {}\n", reason_phrase(status));
        let (date, _) = self.wall.at(self.io.clock());
        let response = OwnResponse {
            status,
            fields: &[("Date", date.http.as_bytes())],
            edits: &edits,
            body: page.map_or(line.as_bytes(), |page| &page.body),
            client_version: Version::Http2,
            persistence: Persistence::KeepAlive,
            head_only: false,
        };
        let mut sent = OwnBytes::default();
        if let Some(http2) = &mut self.client.http2 {
            let answered = http2.answer(stream, &response, self.io.now_ms());
            sent.bytes = answered.bytes as u64;
            sent.head_bytes = answered.head_bytes as u64;
            counters.bytes_sent.add(sent.bytes);
            self.client.arm(self.io, answered.until_ms);
            self.client.list_for_flush(self.agenda, self.key);
        }
        self.tools.response_edits = edits;
        self.log.request(self.client, self.io.clock(), about, (status, sent), termination);
    }

    /// The client has closed the connection during a request head.
    pub fn end_in_head(&mut self) -> ClientEnd {
        // An empty line after a request (RFC 9112 section 2.2) does not start another one.
        if matches!(self.client.http1.input(), b"\r" | b"\r\n") {
            return ClientEnd::Close;
        }
        self.client.server.counters.client_aborts.add(1);
        self.log.connection(self.client, self.io.clock(), b"", Termination::ClientAbort);
        ClientEnd::Close
    }
}

/// Adds the Content-Type of an error page, unless a rule sets or removes this field.
fn add_content_type(page: Option<&Page>, edits: &mut FieldEdits) {
    if let Some(page) = page.filter(|_| !edits.withholds(b"Content-Type")) {
        let content_type = page.content_type.as_bytes();
        edits.add(b"Content-Type", |out| out.extend_from_slice(content_type));
    }
}

/// The termination reason of a request that the parser refuses.
fn refused_as(error: RequestError) -> Termination {
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
