//! Received frames that control streams or the connection.

use super::discarded_requests::UNWANTED_PING;
use super::{Connection, Event, ResetBy, Role};
use crate::h2::ErrorCode;
use crate::h2::error::{ConnectionError, Flood, Misbehaviour};
use crate::h2::frame::{
    self, FrameHeader, STREAM_ID_MAX, WINDOW_SIZE_MAX, flag, kind, read_u31, read_u32,
};
use crate::h2::priority::Priority;
use crate::h2::streams::{CloseReason, Half};

/// A client that resets a stream this long after opening it counts as having waited for the response: simultaneous
/// deadlines are not a flood. At most `streams_max` of these resets can happen in this time.
const RAPID_RESET_MS_MAX: u64 = 1000;
/// A client that resets a stream earlier than this has hardly waited for its response: that is how a flood of resets
/// (CVE-2023-44487) has more requests at members than it may have streams.
const HASTY_RESET_MS_MAX: u64 = 10;
/// The cost of a reset between these times, in thousandths: calls with short deadlines are cancelled there, when responses
/// come late. A flood that waits as long gains little over requests that it does not reset.
const LATE_RESET_MILLI: u32 = 40;

impl Connection {
    /// PRIORITY (section 6.3), which is deprecated (section 5.3.2). The rule that no stream may depend on
    /// itself is from RFC 7540, and kept for clients that test it.
    pub(super) fn handle_priority(
        &mut self,
        stream: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        self.spend(Flood::Priorities)?;
        if read_u31(payload) != stream {
            return Ok(None);
        }
        if self.streams.get(stream).is_some() {
            return self.stream_error(stream, Misbehaviour::SelfDependency, out);
        }
        Err(Misbehaviour::SelfDependency.into())
    }

    /// RST_STREAM (section 6.4).
    pub(super) fn handle_reset(
        &mut self,
        stream: u32,
        payload: &[u8],
    ) -> Result<Option<Event>, ConnectionError> {
        if self.is_idle(stream) {
            return Err(Misbehaviour::StreamIdle.into());
        }
        let Some(closed) = self.streams.close(stream, CloseReason::ByPeer) else {
            self.streams.note_reset_by_peer(stream);
            self.spend(Flood::ClosedStreams)?;
            return Ok(None);
        };
        // Servers may refuse streams, and a client that has its response has caused no useless work.
        let lived_ms = self.now_ms.saturating_sub(closed.opened_ms);
        if self.role == Role::Server && closed.ours != Half::Ended && lived_ms <= RAPID_RESET_MS_MAX
        {
            let milli = if lived_ms < HASTY_RESET_MS_MAX { 1000 } else { LATE_RESET_MILLI };
            self.budgets.spend_milli(Flood::Resets, milli, &self.limits, self.now_ms)?;
        }
        let (code, tag) = (ErrorCode(read_u32(payload)), closed.tag);
        // Some servers use it to say that the rest of the request is not needed (section 8.1), without END_STREAM before.
        let is_whole = closed.is_whole();
        if self.role == Role::Client && code == ErrorCode::NO_ERROR && is_whole {
            return Ok(Some(Event::Data { stream, tag, start: 0, end: 0, end_stream: true }));
        }
        Ok(Some(Event::StreamReset { stream, tag, code, by: ResetBy::Peer, is_whole }))
    }

    /// SETTINGS (section 6.5).
    pub(super) fn handle_settings(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        if header.has(flag::ACK) {
            return self.handle_settings_ack(out);
        }
        self.spend(Flood::Settings)?;
        self.peer_settings_seen = true;
        let before = i64::from(self.peer.stream_window_size);
        self.peer.take_in(payload, self.role == Role::Client)?;
        self.encoder.set_peer_table_size(self.peer.header_table_size);
        let change = i64::from(self.peer.stream_window_size) - before;
        if change != 0 {
            // Section 6.9.2: this changes the windows of all open streams, possibly to below 0.
            for stream in self.streams.iter_mut() {
                if stream.send_window + change > i64::from(WINDOW_SIZE_MAX) {
                    return Err(Misbehaviour::SettingsWindow.into());
                }
                stream.send_window += change;
            }
        }
        FrameHeader { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(out);
        Ok(Some(Event::SettingsChanged))
    }

    /// From here on our settings apply at the peer.
    fn handle_settings_ack(&mut self, out: &mut Vec<u8>) -> Result<Option<Event>, ConnectionError> {
        let Some(settings) = self.unacknowledged.pop_front() else {
            self.spend(Flood::Settings)?;
            return Ok(None);
        };
        if let Some(size) = settings.decoder_table_size {
            self.decoder.set_table_size_bound(size);
        }
        self.stream_window_size = settings.stream_window_size;
        for stream in self.streams.iter_mut() {
            let increment = stream.receive.resize(settings.stream_window_size);
            if let Some(increment) = increment.filter(|_| stream.peer != Half::Ended) {
                frame::write_window_update(stream.id, increment, out);
            }
        }
        Ok(Some(Event::SettingsAcknowledged))
    }

    /// PING (section 6.7).
    pub(super) fn handle_ping(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        let payload = payload.first_chunk().copied().unwrap_or_default();
        if !header.has(flag::ACK) {
            self.spend(Flood::Pings)?;
            frame::write_ping(payload, true, out);
            return Ok(None);
        }
        if self.pings_unanswered == 0 {
            self.spend(Flood::Pings)?;
            return Ok(None);
        }
        self.pings_unanswered -= 1;
        Ok((payload != UNWANTED_PING).then_some(Event::Pong { payload }))
    }

    /// GOAWAY (section 6.8).
    pub(super) fn handle_goaway(
        &mut self,
        payload: &[u8],
    ) -> Result<Option<Event>, ConnectionError> {
        self.spend(Flood::Settings)?;
        // The value must not increase; an increased one is ignored.
        let last_stream = read_u31(payload).min(self.goaway_received.unwrap_or(STREAM_ID_MAX));
        let code = ErrorCode(read_u32(&payload[4..]));
        self.goaway_received = Some(last_stream);
        if self.role == Role::Client {
            self.streams.close_above(last_stream, CloseReason::ByUs);
        }
        Ok(Some(Event::Goaway { last_stream, code }))
    }

    /// WINDOW_UPDATE (section 6.9).
    pub(super) fn handle_window_update(
        &mut self,
        stream: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, ConnectionError> {
        self.spend(Flood::WindowUpdates)?;
        let increment = i64::from(read_u31(payload));
        if stream == 0 {
            if increment == 0 {
                return Err(Misbehaviour::WindowIncrement.into());
            }
            let was_shut = self.is_send_window_shut();
            self.send_window += increment;
            if self.send_window > i64::from(WINDOW_SIZE_MAX) {
                self.send_window -= increment;
                return Err(Misbehaviour::WindowOverflow.into());
            }
            return Ok(was_shut.then_some(Event::WindowOpened { stream: None }));
        }
        if self.is_idle(stream) {
            return Err(Misbehaviour::StreamIdle.into());
        }
        let Some(found) = self.streams.get_mut(stream) else {
            // The frame may have been in transit when the stream closed.
            return Ok(None);
        };
        if increment == 0 {
            return self.stream_error(stream, Misbehaviour::WindowIncrement, out);
        }
        let was_shut = found.send_window <= 0;
        if found.send_window + increment > i64::from(WINDOW_SIZE_MAX) {
            return self.stream_error(stream, Misbehaviour::WindowOverflow, out);
        }
        found.send_window += increment;
        let opened = was_shut && found.send_window > 0 && found.ours != Half::Ended;
        Ok(opened.then_some(Event::WindowOpened { stream: Some(stream) }))
    }

    /// PRIORITY_UPDATE (RFC 9218 section 7.1). For a stream that is not open it is ignored, because it is
    /// only advice.
    pub(super) fn handle_priority_update(
        &mut self,
        payload: &[u8],
    ) -> Result<Option<Event>, ConnectionError> {
        self.spend(Flood::Priorities)?;
        let stream = read_u31(payload);
        if self.role == Role::Client || stream.is_multiple_of(2) {
            return Err(Misbehaviour::PriorityUpdate.into());
        }
        let priority = Priority::parse(&payload[4..]);
        let is_alive = self.streams.get(stream).is_some();
        Ok(is_alive.then_some(Event::Priority { stream, priority }))
    }
}
