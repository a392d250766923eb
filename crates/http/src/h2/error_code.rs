//! Error codes of RST_STREAM and GOAWAY.

use std::fmt;

/// An error code (RFC 9113 section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// No error.
    pub const NO_ERROR: Self = Self(0x0);
    /// A protocol violation without a code of its own.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// An internal error of the endpoint.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// More data than the window allows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame on a stream that is closed in this direction.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame with an invalid size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// The stream was not processed and may be tried again.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is not needed any more.
    pub const CANCEL: Self = Self(0x8);
    /// A header block that cannot be decoded.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// The connection of the tunnel to the destination failed.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The security of the transport is insufficient.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// The endpoint requires HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// The name in the standard.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
