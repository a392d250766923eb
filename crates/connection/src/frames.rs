//! Outgoing HTTP/2 frames to clients and members: data within the windows, the end, and data that waits for a window.
//!
//! Short data is collected in [`Frames::out`] and sent at the end of the loop's turn, for all streams together. Long data is
//! sent immediately, after the collected data.

use std::io::IoSlice;

use weir_exchange::arena::ExchangeKey;
use weir_exchange::parts::end::End;
use weir_exchange::parts::pieces::Pieces;
use weir_http::h2::message::write_trailers;
use weir_http::h2::{Connection, SendKind, end_with_data};

use crate::backlog::Backlog;
use crate::body::COALESCE_BYTES;
use crate::wire::{Buffers, Wire};

/// Maximum number of DATA frames in one send.
const FRAMES_MAX: usize = 8;

/// The collected frames are sent before the end of the turn when they reach this size.
const GATHERED_BYTES_MAX: usize = 32 * 1024;

/// An HTTP/2 connection, and frames that wait for the end of the turn.
pub struct Frames {
    /// The state of the protocol.
    pub connection: Connection,
    /// The frames to send at the end of the turn.
    pub out: Vec<u8>,
    /// The last DATA frame in them, as its stream and the place of its header.
    last_data: Option<(u32, usize)>,
}

impl Frames {
    /// The frames of a new connection.
    pub fn new(mut connection: Connection) -> Self {
        let mut out = Vec::new();
        connection.start(&mut out);
        Self { connection, out, last_data: None }
    }

    /// Whether the collected frames must be sent before the end of the turn, because of their size.
    pub fn is_much(&self) -> bool {
        self.out.len() >= GATHERED_BYTES_MAX
    }

    /// Takes a buffer for frames, if there is none. An idle connection has no buffer.
    #[inline]
    pub fn have_buffer(&mut self, buffers: &mut impl Buffers) {
        if self.out.capacity() == 0 {
            self.out = buffers.take();
        }
    }

    /// Sends the collected frames.
    pub fn flush(&mut self, wire: &mut impl Wire) {
        if !self.out.is_empty() {
            wire.send(&[IoSlice::new(&self.out)]);
            self.out.clear();
            self.last_data = None;
            if self.connection.stream_count() == 0 {
                // An idle connection has no buffer.
                wire.give(std::mem::take(&mut self.out));
            } else {
                self.out.shrink_to(GATHERED_BYTES_MAX);
            }
        }
    }
}

/// The outgoing data of one stream. Data that exceeds a window waits here.
#[derive(Default)]
pub struct OutgoingStream {
    /// The id of the stream; 0: not open yet.
    pub id: u32,
    waiting: Backlog,
}

impl OutgoingStream {
    /// Whether data waits.
    pub fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The memory of the waiting data.
    pub fn memory(&self) -> usize {
        self.waiting.memory()
    }

    /// Drops the waiting data.
    pub fn clear(&mut self, buffers: &mut impl Buffers) {
        self.waiting.clear(buffers);
    }

    /// Sends data and its end within the windows; the rest waits. Returns the number of bytes sent.
    pub fn send(
        &mut self,
        wire: &mut impl Wire,
        frames: &mut Frames,
        (body, pieces): (&[u8], &Pieces),
        end: End<'_>,
    ) -> usize {
        let mut sent = SentBytes::default();
        if !self.is_behind() {
            let parts = pieces.of(body);
            sent = send_data(wire, frames, self.id, parts, pieces.data_bytes, end);
        }
        if sent.data_bytes < pieces.data_bytes {
            let mut skip = sent.data_bytes;
            for part in pieces.of(body) {
                let skipped = skip.min(part.len());
                self.waiting.push(wire, &part[skipped..]);
                skip -= skipped;
            }
            frames.connection.mark_stalled(self.id, wire.now_ms());
        }
        if self.is_behind() {
            self.waiting.set_end(end);
        }
        sent.bytes
    }

    /// Sends at most this many bytes of the waiting data.
    pub fn send_waiting_data(
        &mut self,
        wire: &mut impl Wire,
        frames: &mut Frames,
        bytes_max: usize,
    ) -> SentBytes {
        let (turn, end) = self.waiting.front(bytes_max);
        let parts = std::iter::once(turn);
        let sent = send_data(wire, frames, self.id, parts, turn.len(), end);
        self.waiting.pass(wire, sent.data_bytes);
        if self.is_behind() {
            frames.connection.mark_stalled(self.id, wire.now_ms());
        }
        sent
    }
}

/// The amount of data that was sent.
#[derive(Default)]
pub struct SentBytes {
    /// The number of data bytes.
    pub data_bytes: usize,
    /// The number of bytes including frame headers.
    pub bytes: usize,
}

/// Sends `parts` (`data_bytes` in total) within the windows, and the end after the last part. Short data is collected, and
/// long data is sent immediately.
fn send_data<'p>(
    wire: &mut impl Wire,
    to: &mut Frames,
    stream: u32,
    parts: impl Iterator<Item = &'p [u8]>,
    data_bytes: usize,
    end: End<'_>,
) -> SentBytes {
    let mut sent = SentBytes::default();
    let mut parts = Parts { parts, rest: b"" };
    let ends_with_data = matches!(end, End::Data);
    let is_short = data_bytes <= COALESCE_BYTES;
    while sent.data_bytes < data_bytes {
        let mut frames = [(0, 0); FRAMES_MAX];
        let mut count = 0;
        let gathered = to.out.len();
        while count < FRAMES_MAX && sent.data_bytes < data_bytes {
            let left = data_bytes - sent.data_bytes;
            let length = to.connection.data_allowance(stream).min(left);
            let is_last = length == left;
            let (connection, out) = (&mut to.connection, &mut to.out);
            let at = out.len();
            let end_stream = is_last && ends_with_data;
            if length == 0 || connection.write_data_header(stream, length, end_stream, out).is_err()
            {
                break;
            }
            sent.data_bytes += length;
            if is_short {
                to.last_data = Some((stream, at));
                parts.take(length, |part| out.extend_from_slice(part));
            } else {
                frames[count] = (out.len(), length);
                count += 1;
            }
        }
        if is_short {
            sent.bytes += to.out.len() - gathered;
            break;
        }
        if count == 0 {
            break;
        }
        let mut slices = Slices::new(wire);
        let mut at = 0;
        for (headers_end, length) in frames[..count].iter().copied() {
            slices.add(&to.out[at..headers_end]);
            at = headers_end;
            sent.bytes += length;
            parts.take(length, |part| slices.add(part));
        }
        slices.flush();
        sent.bytes += to.out.len() - gathered;
        to.out.clear();
        to.last_data = None;
    }
    if sent.data_bytes == data_bytes {
        sent.bytes += send_end(to, stream, data_bytes, end);
    }
    sent
}

/// Ends a stream, if its last DATA frame has not ended it. Returns the number of bytes written.
fn send_end(to: &mut Frames, stream: u32, data_bytes: usize, end: End<'_>) -> usize {
    if data_bytes == 0 && matches!(end, End::Data) && ends_with_last_data(to, stream) {
        return 0;
    }
    let (connection, out) = (&mut to.connection, &mut to.out);
    let before = out.len();
    let ended = match end {
        End::Trailers(fields, text) if fields.iter().any(|field| field.forward) => connection
            .send_headers(stream, SendKind::Trailers, true, out, |lines| {
                write_trailers(fields, text, lines);
            }),
        End::Trailers(..) => connection.write_data_header(stream, 0, true, out),
        End::Data if data_bytes == 0 => connection.write_data_header(stream, 0, true, out),
        End::Data | End::No => Ok(()),
    };
    debug_assert_eq!(ended, Ok(()));
    out.len() - before
}

/// Ends a stream with its last DATA frame, if that was not sent yet. Some clients of WebSockets take an empty frame behind the
/// last one for a connection that was not closed cleanly.
fn ends_with_last_data(to: &mut Frames, stream: u32) -> bool {
    let Some((_, at)) = to.last_data.filter(|(last, _)| *last == stream) else { return false };
    end_with_data(&mut to.connection, stream, &mut to.out[at..]).is_ok()
}

/// Divides a sequence of slices into slices of given lengths.
struct Parts<'p, I> {
    parts: I,
    rest: &'p [u8],
}

impl<'p, I: Iterator<Item = &'p [u8]>> Parts<'p, I> {
    /// Calls `each` with the slices of the next `length` bytes, which must exist.
    fn take(&mut self, mut length: usize, mut each: impl FnMut(&'p [u8])) {
        while length > 0 {
            if self.rest.is_empty() {
                match self.parts.next() {
                    Some(part) => self.rest = part,
                    None => return,
                }
                continue;
            }
            let (part, rest) = self.rest.split_at(length.min(self.rest.len()));
            length -= part.len();
            self.rest = rest;
            each(part);
        }
    }
}

/// The slices of one vectored send. If there are too many, the first ones are sent separately.
struct Slices<'a, 'w, W> {
    wire: &'w mut W,
    slices: [IoSlice<'a>; SLICES_MAX],
    count: usize,
}

const SLICES_MAX: usize = 3 * FRAMES_MAX;

impl<'a, 'w, W: Wire> Slices<'a, 'w, W> {
    fn new(wire: &'w mut W) -> Self {
        Self { wire, slices: [IoSlice::new(b""); SLICES_MAX], count: 0 }
    }

    fn add(&mut self, slice: &'a [u8]) {
        if slice.is_empty() {
            return;
        }
        if self.count == SLICES_MAX {
            self.flush();
        }
        self.slices[self.count] = IoSlice::new(slice);
        self.count += 1;
    }

    fn flush(&mut self) {
        if self.count > 0 {
            self.wire.send(&self.slices[..self.count]);
            self.count = 0;
        }
    }
}

/// The exchange in the tag of a stream; `None`: the stream has no exchange yet.
pub fn exchange_of(tag: u64) -> Option<ExchangeKey> {
    ExchangeKey::from_bits(tag)
}
