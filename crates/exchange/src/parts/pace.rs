//! The pace of bodies: steady, or with pauses.

use weir_http::fields::values;
use weir_http::message::{Field, Framing, RequestHead, ResponseHead, Version};

use crate::local::forms::Forms;
use crate::local::table::LocalServer;

/// The pace of an exchange's bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Steady: a pause longer than the timeout ends the exchange.
    Steady,
    /// Steady until the member confirms that this is a gRPC call, as the client says.
    Claimed,
    /// With pauses, such as event streams and gRPC calls: silence is not an error.
    Sparse,
}

/// How long both sides of an exchange are waited for. What is set by it: [`crate::transaction::patience`].
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Whether its bodies flow steadily or with pauses.
    pub pace: Pace,
    /// The client of HTTP/1 has ended its sending side behind its request, and has left if nothing of its response flows.
    pub is_client_leaving: bool,
}

impl Patience {
    /// At the beginning of an exchange.
    pub fn new(pace: Pace) -> Self {
        Self { pace, is_client_leaving: false }
    }
}

impl Pace {
    /// The pace of a request: gRPC calls may pause from the beginning. The type is a statement of the client, so it counts
    /// only where a call is possible: with HTTP/2 on both sides. `forms`: those of the pool.
    pub fn of_request(head: &RequestHead, input: &[u8], forms: Forms) -> Self {
        let is_call = || values(&head.fields, input, "Content-Type").any(is_grpc);
        if head.framing.is_empty() || !is_call() {
            return Self::Steady;
        }
        let is_possible = head.version == Version::Http2 && forms != Forms::Text;
        if is_possible { Self::Sparse } else { Self::Claimed }
    }

    /// The pace after this response, whose type is a statement of the member. A response with Content-Length is not an
    /// event stream.
    pub fn with_response(self, head: &ResponseHead, input: &[u8]) -> Self {
        let is_open = !matches!(head.framing, Framing::None | Framing::Length(_));
        let is_sparse = || {
            has_type(&head.fields, input, b"text/event-stream")
                || (self == Self::Claimed
                    && values(&head.fields, input, "Content-Type").any(is_grpc))
        };
        if is_open && is_sparse() { Self::Sparse } else { self }
    }

    /// The longest time without progress of the client, in either direction.
    pub fn client_timeout_ms(self, server: &LocalServer) -> u64 {
        match self {
            Self::Steady | Self::Claimed => server.http.body_timeout_ms,
            Self::Sparse => server.tunnel_timeout_ms(),
        }
    }

    /// Maximum pause of the member within the response.
    pub fn response_body_timeout_ms(self, server: &LocalServer) -> u64 {
        match self {
            Self::Steady | Self::Claimed => server.http.response_body_timeout_ms,
            Self::Sparse => server.tunnel_timeout_ms(),
        }
    }
}

/// Whether a media type means a gRPC call: `application/grpc`, `application/grpc+proto`, `application/grpc-web`. Other
/// types that begin with the same text do not.
pub fn is_grpc(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let Some((start, codec)) = essence.split_at_checked(GRPC.len()) else { return false };
    let is_document = |codec: &[u8]| {
        let suffix = codec.rsplit(|byte| *byte == b'+').next().unwrap_or_default();
        suffix.eq_ignore_ascii_case(b"json") || suffix.eq_ignore_ascii_case(b"xml")
    };
    start.eq_ignore_ascii_case(GRPC)
        && matches!(codec.first(), None | Some(b'+' | b'-'))
        && !is_document(codec)
}

const GRPC: &[u8] = b"application/grpc";

/// Whether the Content-Type begins with `start`.
fn has_type(fields: &[Field], input: &[u8], start: &[u8]) -> bool {
    let is_so =
        |value: &[u8]| value.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    values(fields, input, "Content-Type").any(is_so)
}

#[cfg(test)]
mod tests {
    use super::is_grpc;

    #[test]
    fn calls_are_known_by_their_type() {
        for (media_type, expected) in [
            ("application/grpc", true),
            ("Application/gRPC; x=y", true),
            ("application/grpc+proto", true),
            ("application/grpc-web", true),
            ("application/grpc-web-text+proto", true),
            ("application/grpc+json", false),
            ("application/grpc-web+JSON ;x", false),
            ("application/grpc-x+xml", false),
            ("application/grpcx", false),
            ("application/grp", false),
            ("text/plain", false),
        ] {
            assert_eq!(is_grpc(media_type.as_bytes()), expected, "{media_type}");
        }
    }
}
