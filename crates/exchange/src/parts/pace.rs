//! How steadily the bodies of an exchange come.

use weir_http::fields::values;
use weir_http::message::{Field, Framing, RequestHead, ResponseHead};

/// How steadily the bodies of an exchange come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// One that stands still for a while is given up.
    Steady,
    /// Now and then, as the events of an event stream or the messages of a gRPC call: silence is no fault.
    Sparse,
}

impl Pace {
    /// That of a request: a gRPC call may be silent from its beginning.
    pub fn of_request(head: &RequestHead, input: &[u8]) -> Self {
        let is_grpc = || has_type(&head.fields, input, b"application/grpc");
        if head.framing.is_empty() || !is_grpc() { Self::Steady } else { Self::Sparse }
    }

    /// That of an exchange with this response. What announces its length is no event stream.
    pub fn with_response(self, head: &ResponseHead, input: &[u8]) -> Self {
        let is_open = !matches!(head.framing, Framing::None | Framing::Length(_));
        let is_sparse = is_open && has_type(&head.fields, input, b"text/event-stream");
        if is_sparse { Self::Sparse } else { self }
    }
}

/// Whether the content has a media type that begins so.
fn has_type(fields: &[Field], input: &[u8], start: &[u8]) -> bool {
    let is_so =
        |value: &[u8]| value.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    values(fields, input, "Content-Type").any(is_so)
}
