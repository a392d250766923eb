//! Reasons for the end of a connection or stream. A protocol violation by the peer is a [`Misbehaviour`], an exceeded limit
//! a [`Flood`], and an invalid call a [`SendError`].

use std::fmt;

use super::error_code::ErrorCode;
use super::hpack::HpackError;

/// A violation of the standard by the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehaviour {
    /// The connection does not start with the client's preface.
    Preface,
    /// The first frame is not SETTINGS.
    FirstFrame,
    /// A frame larger than our SETTINGS_MAX_FRAME_SIZE.
    FrameTooLarge,
    /// The length is invalid for this type of frame.
    FrameSize,
    /// A frame on stream 0, although its type requires another stream.
    StreamZero,
    /// A frame on another stream than 0, although its type requires stream 0.
    StreamNotZero,
    /// Padding that is as long as its frame, or longer.
    Padding,
    /// Another frame within a header block, or CONTINUATION without a header block.
    Continuation,
    /// A frame on a stream that was never opened.
    StreamIdle,
    /// A stream id that the peer may not use, or that is not higher than the previous ids.
    StreamId,
    /// A frame on a stream that the peer has ended.
    StreamClosed,
    /// A stream, or an update, that depends on itself (RFC 7540 section 5.3.1).
    SelfDependency,
    /// PUSH_PROMISE, although server push is disabled.
    PushPromise,
    /// An invalid value of a setting.
    SettingsValue,
    /// An initial window size above the maximum, or one that makes the window of a stream too large.
    SettingsWindow,
    /// WINDOW_UPDATE with an increment of 0.
    WindowIncrement,
    /// A window beyond 2^31-1.
    WindowOverflow,
    /// More data than the window allowed.
    FlowControl,
    /// A header block that cannot be decoded.
    Compression(HpackError),
    /// A second header section without END_STREAM.
    TrailersWithoutEnd,
    /// Data before the head of a response, or an interim response that ends the stream.
    ResponseOrder,
    /// The size of the data contradicts Content-Length.
    ContentLength,
    /// PRIORITY_UPDATE from a server, or for an impossible stream.
    PriorityUpdate,
    /// A malformed message (RFC 9113 section 8), found by the caller.
    Malformed,
}

impl Misbehaviour {
    /// The error code for the peer.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::FrameTooLarge | Self::FrameSize => ErrorCode::FRAME_SIZE_ERROR,
            Self::StreamClosed => ErrorCode::STREAM_CLOSED,
            Self::SettingsWindow | Self::WindowOverflow | Self::FlowControl => {
                ErrorCode::FLOW_CONTROL_ERROR
            }
            Self::Compression(_) => ErrorCode::COMPRESSION_ERROR,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }

    /// The text of the error.
    pub fn text(self) -> &'static str {
        match self {
            Self::Preface => "no HTTP/2 connection preface",
            Self::FirstFrame => "first frame is not SETTINGS",
            Self::FrameTooLarge => "frame larger than allowed",
            Self::FrameSize => "frame of a wrong length",
            Self::StreamZero => "frame of a stream on stream 0",
            Self::StreamNotZero => "frame of the connection on a stream",
            Self::Padding => "padding not shorter than its frame",
            Self::Continuation => "header block interrupted, or continued where none is",
            Self::StreamIdle => "frame on an idle stream",
            Self::StreamId => "stream id not allowed",
            Self::StreamClosed => "frame on a closed stream",
            Self::SelfDependency => "stream depends on itself",
            Self::PushPromise => "push promised though forbidden",
            Self::SettingsValue => "setting with an invalid value",
            Self::SettingsWindow => "initial window too large",
            Self::WindowIncrement => "window update of 0",
            Self::WindowOverflow => "window too large",
            Self::FlowControl => "more data than the window allows",
            Self::Compression(error) => error.text(),
            Self::TrailersWithoutEnd => "trailers that do not end the stream",
            Self::ResponseOrder => {
                "data before a response's head, or an interim response at its end"
            }
            Self::ContentLength => "data differs from Content-Length",
            Self::PriorityUpdate => "priority update of an impossible stream",
            Self::Malformed => "malformed message",
        }
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

/// Permitted frames that exceeded a limit. Each kind has its own limit in [`Limits`](super::Limits); its name is a metric
/// label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flood {
    /// Streams that a client reset soon after it opened them (CVE-2023-44487).
    Resets,
    /// Streams that were reset because of a client's errors (CVE-2025-8671).
    StreamErrors,
    /// Frames on closed streams.
    ClosedStreams,
    /// Streams beyond SETTINGS_MAX_CONCURRENT_STREAMS.
    RefusedStreams,
    /// SETTINGS frames.
    Settings,
    /// PING frames.
    Pings,
    /// PRIORITY, PRIORITY_UPDATE and frames of unknown types.
    Priorities,
    /// WINDOW_UPDATE frames.
    WindowUpdates,
    /// DATA frames without data.
    EmptyData,
    /// DATA frames with only a few bytes of data.
    TinyData,
    /// Interim responses to one request.
    InterimResponses,
    /// CONTINUATION frames of one header block (CVE-2024-27316).
    Continuations,
    /// The size of one encoded header block.
    HeaderBlock,
    /// The size of one decoded header list.
    HeaderList,
}

impl Flood {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Resets,
        Self::StreamErrors,
        Self::ClosedStreams,
        Self::RefusedStreams,
        Self::Settings,
        Self::Pings,
        Self::Priorities,
        Self::WindowUpdates,
        Self::EmptyData,
        Self::TinyData,
        Self::InterimResponses,
        Self::Continuations,
        Self::HeaderBlock,
        Self::HeaderList,
    ];

    /// The name for a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Resets => "resets",
            Self::StreamErrors => "stream_errors",
            Self::ClosedStreams => "closed_streams",
            Self::RefusedStreams => "refused_streams",
            Self::Settings => "settings",
            Self::Pings => "pings",
            Self::Priorities => "priorities",
            Self::WindowUpdates => "window_updates",
            Self::EmptyData => "empty_data",
            Self::TinyData => "tiny_data",
            Self::InterimResponses => "interim_responses",
            Self::Continuations => "continuations",
            Self::HeaderBlock => "header_block",
            Self::HeaderList => "header_list",
        }
    }
}

/// The reason for the end of a connection. The output already contains a GOAWAY frame with the error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionError {
    /// The peer violated the protocol.
    Misbehaved(Misbehaviour),
    /// The peer exceeded a limit.
    Flooded(Flood),
}

impl ConnectionError {
    /// The error code in GOAWAY.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Misbehaved(error) => error.code(),
            Self::Flooded(_) => ErrorCode::ENHANCE_YOUR_CALM,
        }
    }

    /// The text of the error, for GOAWAY.
    pub fn text(self) -> &'static str {
        match self {
            Self::Misbehaved(error) => error.text(),
            Self::Flooded(flood) => flood.label(),
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misbehaved(error) => error.fmt(formatter),
            Self::Flooded(flood) => write!(formatter, "flood of {}", flood.label()),
        }
    }
}

impl std::error::Error for ConnectionError {}

impl From<Misbehaviour> for ConnectionError {
    fn from(error: Misbehaviour) -> Self {
        Self::Misbehaved(error)
    }
}

impl From<Flood> for ConnectionError {
    fn from(flood: Flood) -> Self {
        Self::Flooded(flood)
    }
}

/// The reason why a frame was not sent. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The stream has ended or was reset. The caller may not have read this event yet.
    Gone,
    /// The state of the stream does not permit the frame.
    State,
    /// More data than [`data_allowance`](super::Connection::data_allowance) permits.
    Window,
    /// The connection has failed.
    Failed,
}

impl fmt::Display for SendError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gone => "the stream is gone",
            Self::State => "not in this state of the stream",
            Self::Window => "more than the window allows",
            Self::Failed => "the connection has failed",
        })
    }
}

impl std::error::Error for SendError {}

/// The reason why no stream can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// The peer's limit on open streams is reached.
    Full,
    /// The connection accepts no new streams: either side has sent GOAWAY, the ids are used up, or the connection has
    /// failed.
    Closing,
}

impl fmt::Display for OpenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full => "as many streams as allowed are open",
            Self::Closing => "the connection opens no more streams",
        })
    }
}

impl std::error::Error for OpenError {}
