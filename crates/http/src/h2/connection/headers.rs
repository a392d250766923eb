//! Received HEADERS and CONTINUATION (RFC 9113 sections 6.2, 6.10 and 8.1).

use super::{Connection, Event, HeadersKind, Role};
use crate::facts::parse_content_length;
use crate::h2::ErrorCode;
use crate::h2::error::{ConnectionError, Flood, Misbehaviour};
use crate::h2::frame::{self, FrameHeader, flag, read_u31};
use crate::h2::hpack::{HeaderBlock, HpackError};
use crate::h2::streams::{Answer, CloseReason, Half, Stream};
use crate::h2::window::ReceiveWindow;

/// The contents of a HEADERS frame besides its block.
#[derive(Debug, Clone, Copy)]
struct Headers {
    stream: u32,
    end_stream: bool,
    depends_on_itself: bool,
}

/// An incomplete header block.
#[derive(Debug)]
pub(super) struct IncompleteHeaders {
    headers: Headers,
    /// The number of CONTINUATION frames so far.
    pub(super) frames: u16,
    /// The received part of the block.
    pub(super) fragments: Vec<u8>,
}

impl IncompleteHeaders {
    /// The stream.
    pub(super) fn stream(&self) -> u32 {
        self.headers.stream
    }
}

impl Connection {
    /// Checks whether HEADERS may arrive on a stream. A connection error is found before the block is decoded.
    pub(super) fn check_headers_stream(&mut self, stream: u32) -> Result<(), ConnectionError> {
        if self.streams.get(stream).is_some() {
            return Ok(());
        }
        match self.role {
            // Section 5.1.1: a client's stream ids are odd.
            Role::Server if stream.is_multiple_of(2) => Err(Misbehaviour::StreamId.into()),
            Role::Server if stream > self.peer_highest => Ok(()),
            Role::Client if self.is_idle(stream) => Err(Misbehaviour::StreamIdle.into()),
            _ => match self.streams.closed(stream) {
                Some(CloseReason::ByUs | CloseReason::ByPeer) => Ok(()),
                Some(CloseReason::Ended) => Err(Misbehaviour::StreamClosed.into()),
                None if self.goaway_sent.is_some_and(|last| stream > last) => Ok(()),
                None if self.role == Role::Client => Err(Misbehaviour::StreamClosed.into()),
                None => Err(Misbehaviour::StreamId.into()),
            },
        }
    }

    pub(super) fn handle_headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let prefix = header.headers_prefix_size();
        let padding = if header.has(flag::PADDED) { usize::from(payload[0]) } else { 0 };
        let end = payload.len().checked_sub(padding).filter(|end| *end >= prefix);
        let fragment = &payload[prefix..end.ok_or(Misbehaviour::Padding)?];
        let depends_on_itself = header.has(flag::PRIORITY)
            && read_u31(&payload[usize::from(header.has(flag::PADDED))..]) == header.stream;
        let headers = Headers {
            stream: header.stream,
            end_stream: header.has(flag::END_STREAM),
            depends_on_itself,
        };
        if header.has(flag::END_HEADERS) {
            return self.finish_headers(headers, fragment, block, out);
        }
        // Large blocks are rare: an idle connection has no room for one.
        let continuing = IncompleteHeaders { headers, frames: 0, fragments: fragment.to_vec() };
        self.continuing = Some(Box::new(continuing));
        Ok(None)
    }

    pub(super) fn handle_continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let Some(continuing) = &mut self.continuing else { return Ok(None) };
        continuing.fragments.extend_from_slice(payload);
        if !header.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let Some(continuing) = self.continuing.take() else { return Ok(None) };
        self.finish_headers(continuing.headers, &continuing.fragments, block, out)
    }

    /// A header block is complete. It is always decoded, to keep the table in step.
    fn finish_headers(
        &mut self,
        headers: Headers,
        fragment: &[u8],
        block: &mut HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        self.decoder.decode(fragment, &self.limits.list(), block).map_err(|error| match error {
            HpackError::ListTooLarge => Flood::HeaderList.into(),
            error => ConnectionError::Misbehaved(Misbehaviour::Compression(error)),
        })?;
        let stream = headers.stream;
        let Some(found) = self.streams.get(stream) else {
            let is_new = self.role == Role::Server && stream > self.peer_highest;
            return if is_new {
                self.accept_stream(headers, block, out)
            } else {
                match self.judge_closed(stream)? {
                    Some(error) => self.stream_error(stream, error, out),
                    None => Ok(None),
                }
            };
        };
        let (peer, answer, tag) = (found.peer, found.answer, found.tag);
        let (is_unwanted, is_short) =
            (found.unwanted.is_some(), found.body_left.is_some_and(|left| left > 0));
        let is_answered = self.role == Role::Server && found.ours != Half::Head;
        let error = match (peer, headers.end_stream) {
            _ if headers.depends_on_itself => Some(Misbehaviour::SelfDependency),
            (Half::Ended, _) => Some(Misbehaviour::StreamClosed),
            (Half::Head, _) => return self.take_response(headers, (answer, tag), block, out),
            (Half::Body, false) => Some(Misbehaviour::TrailersWithoutEnd),
            (Half::Body, true) if is_short && !is_answered => Some(Misbehaviour::ContentLength),
            (Half::Body, true) => None,
        };
        if let Some(error) = error {
            return self.stream_error(stream, error, out);
        }
        if is_unwanted {
            self.end_of_unwanted(stream, out);
            return Ok(None);
        }
        self.peer_ended(stream);
        let trailers =
            Event::Headers { stream, tag, kind: HeadersKind::Trailers, end_stream: true };
        Ok(Some(if is_short { Event::RequestCut { stream, tag } } else { trailers }))
    }

    /// A client opens a stream.
    fn accept_stream(
        &mut self,
        headers: Headers,
        block: &HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let Headers { stream, end_stream, .. } = headers;
        self.peer_highest = stream;
        if self.goaway_sent.is_some_and(|last| stream > last) {
            // Section 6.8: GOAWAY tells the client that the stream was not accepted.
            self.spend(Flood::ClosedStreams)?;
            self.streams.remember_reset(stream);
            return Ok(None);
        }
        if self.streams.len() >= self.limits.streams_max as usize {
            self.spend(Flood::RefusedStreams)?;
            frame::write_reset(stream, ErrorCode::REFUSED_STREAM, out);
            self.streams.remember_reset(stream);
            return Ok(None);
        }
        if headers.depends_on_itself {
            return self.stream_error(stream, Misbehaviour::SelfDependency, out);
        }
        let body_left = announced_length(block);
        if end_stream && body_left.is_some_and(|left| left > 0) {
            return self.stream_error(stream, Misbehaviour::ContentLength, out);
        }
        let peer = if end_stream { Half::Ended } else { Half::Body };
        let mut opened = self.new_stream(stream, peer, Half::Head, Answer::Usual);
        opened.body_left = body_left;
        self.streams.insert(opened);
        self.earn(Flood::Priorities, 4);
        self.earn(Flood::WindowUpdates, 2);
        Ok(Some(Event::Headers { stream, tag: 0, kind: HeadersKind::Request, end_stream }))
    }

    pub(super) fn new_stream(&self, id: u32, peer: Half, ours: Half, answer: Answer) -> Stream {
        Stream {
            id,
            tag: 0,
            opened_ms: self.now_ms,
            peer,
            ours,
            answer,
            send_window: i64::from(self.peer.stream_window_size),
            receive: ReceiveWindow::new(self.stream_window_size),
            body_left: None,
            interim_responses: 0,
            stall: None,
            unwanted: None,
        }
    }

    /// A response head for our request.
    fn take_response(
        &mut self,
        headers: Headers,
        (answer, tag): (Answer, u64),
        block: &HeaderBlock,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let Headers { stream, end_stream, .. } = headers;
        // The reader of the head checks whether this is a valid status.
        let status = block.find(b":status").unwrap_or_default();
        if status.len() == 3 && status[0] == b'1' {
            let Some(found) = self.streams.get_mut(stream) else { return Ok(None) };
            found.interim_responses += 1;
            if end_stream {
                return self.stream_error(stream, Misbehaviour::ResponseOrder, out);
            }
            if found.interim_responses > self.limits.interim_responses_max {
                return Err(Flood::InterimResponses.into());
            }
            return Ok(Some(Event::Headers {
                stream,
                tag,
                kind: HeadersKind::Interim,
                end_stream,
            }));
        }
        let body_left = match (answer, status) {
            (Answer::Tunnel, [b'2', ..]) => None,
            // Section 8.1.1: these have no body; Content-Length describes the body of another response.
            (Answer::HeadOnly, _) | (_, b"204" | b"304") => Some(0),
            _ => announced_length(block),
        };
        if end_stream && body_left.is_some_and(|left| left > 0) {
            return self.stream_error(stream, Misbehaviour::ContentLength, out);
        }
        if let Some(found) = self.streams.get_mut(stream) {
            found.peer = Half::Body;
            found.body_left = body_left;
        }
        if end_stream {
            self.peer_ended(stream);
        }
        Ok(Some(Event::Headers { stream, tag, kind: HeadersKind::Response, end_stream }))
    }
}

/// The value of Content-Length. The reader of the head judges whether it is valid.
fn announced_length(block: &HeaderBlock) -> Option<u64> {
    parse_content_length(block.find(b"content-length")?)
}
