//! Changes to a response's head when its content is compressed.

use weir_http::edits::{Change, FieldEdits};
use weir_http::fields::values;
use weir_http::list;
use weir_http::message::{Framing, ResponseHead, Span, Version};

use crate::eligibility::{Decision, RequestTraits};
use crate::entity_tags::weaken_tag;

/// Edits a response's head according to the decision. Must be called after all other edits, because it changes their
/// results.
///
/// | field | change |
/// |---|---|
/// | Content-Encoding | the coding |
/// | ETag | weak; see [`crate::entity_tags`] |
/// | Vary | names Accept-Encoding, also if only other clients would get a compressed response |
/// | Accept-Ranges | removed: streamed compression has no ranges |
/// | Content-Length | set by the serialiser, see [`framing`]; for a response to HEAD it is removed from `head` |
///
/// A 304 to a client that sent a weak tag gets a weak tag, too.
pub fn edit_response(
    decision: Decision,
    request: &RequestTraits,
    head: &mut ResponseHead,
    input: &[u8],
    edits: &mut FieldEdits,
    scratch: &mut Vec<u8>,
) {
    match decision {
        Decision::Compress { coding, .. } => {
            edits.set(b"Content-Encoding", |out| out.extend_from_slice(coding.name().as_bytes()));
            edits.remove(b"Accept-Ranges");
            weaken_tag(head, input, edits, scratch);
            vary(head, input, edits, scratch);
            if head.framing == Framing::None {
                head.content_length = None;
            }
        }
        Decision::Identity { vary: is_varied } => {
            if head.status == 304 && request.revalidates_weak {
                weaken_tag(head, input, edits, scratch);
            }
            if is_varied {
                vary(head, input, edits, scratch);
            }
        }
    }
}

/// Fields that describe content, and are wrong without content.
const OF_CONTENT: [&str; 4] =
    ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"];

/// Turns a 200 into a 304 if the client has its content; see [`crate::entity_tags::is_unchanged`]. Fields about the content
/// are removed (RFC 9110 section 15.4.5).
pub fn make_unchanged(head: &mut ResponseHead, input: &[u8]) {
    head.status = 304;
    head.reason = Span::default();
    head.framing = Framing::None;
    head.content_length = None;
    for field in &mut head.fields {
        let name = field.name.of(input);
        let is_of_content =
            OF_CONTENT.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()));
        field.forward &= !is_of_content;
    }
}

/// The framing of compressed content for a client. `framing`: the received framing. The new length is unknown.
pub fn framing(framing: Framing, version: Version) -> Framing {
    match framing {
        Framing::None => Framing::None,
        Framing::Length(_) | Framing::Chunked | Framing::UntilClose => {
            Framing::Chunked.toward(version)
        }
    }
}

/// Ensures that Vary names Accept-Encoding: in the existing line, or in a new one.
fn vary(head: &ResponseHead, input: &[u8], edits: &mut FieldEdits, scratch: &mut Vec<u8>) {
    let (mut is_there, mut is_named) = (false, false);
    let received = || values(&head.fields, input, "Vary");
    edits.change_each(b"Vary", received(), scratch, |value, _| {
        is_there = true;
        is_named |=
            list(value).any(|name| name == b"*" || name.eq_ignore_ascii_case(b"Accept-Encoding"));
        Change::None
    });
    if is_named {
        return;
    }
    if !is_there {
        edits.add(b"Vary", |out| out.extend_from_slice(b"Accept-Encoding"));
        return;
    }
    let mut is_first = true;
    edits.change_each(b"Vary", received(), scratch, |value, out| {
        if !std::mem::take(&mut is_first) {
            return Change::None;
        }
        out.extend_from_slice(value);
        if !value.is_empty() {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(b"Accept-Encoding");
        Change::Changed
    });
}

#[cfg(test)]
mod tests {
    use weir_http::h1::{
        HeadLimits, Persistence, ResponseForward, parse_response, write_response_head,
    };
    use weir_http::message::Method;

    use super::*;
    use crate::coding::{Coding, Level};
    use crate::eligibility::FlushWhen;
    use crate::negotiation::Choice;

    const COMPRESS: Decision =
        Decision::Compress { coding: Coding::Brotli, level: Level::MIN, flush: FlushWhen::End };
    const VARY: Decision = Decision::Identity { vary: true };
    const PLAIN: Decision = Decision::Identity { vary: false };

    /// The head that a client gets for the member's `response`, without its status line.
    fn sent(
        decision: Decision,
        method: Method,
        response: &str,
        edits: &mut FieldEdits,
    ) -> Vec<String> {
        let limits = HeadLimits { head_size_max: 4096, headers_max: 32 };
        let received = format!("HTTP/1.1 {}\r\n\r\n", response.replace('|', "\r\n"));
        let mut head = ResponseHead::new();
        assert!(parse_response(received.as_bytes(), &limits, method, &mut head).is_ok());
        let request = RequestTraits {
            choice: Choice::Identity,
            is_head: method == Method::Head,
            version: Version::Http11,
            no_transform: false,
            revalidates_weak: true,
        };
        let mut scratch = Vec::new();
        edit_response(decision, &request, &mut head, received.as_bytes(), edits, &mut scratch);
        let is_compressed = matches!(decision, Decision::Compress { .. });
        let framing =
            if is_compressed { framing(head.framing, Version::Http11) } else { head.framing };
        let forward = ResponseForward {
            framing,
            client_version: Version::Http11,
            persistence: Persistence::KeepAlive,
            date: None,
        };
        let mut out = Vec::new();
        write_response_head(&head, received.as_bytes(), &forward, edits, &mut out);
        let text = String::from_utf8(out).unwrap();
        text.trim_end().lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn heads_as_clients_get_them() {
        let br = "Content-Encoding: br";
        let ae = "Vary: Accept-Encoding";
        let chunked = "Transfer-Encoding: chunked";
        let get = Method::Get;
        for (decision, method, response, expected) in [
            (COMPRESS, get, "200 OK|Content-Length: 9", &[br, ae, chunked][..]),
            (COMPRESS, get, "200 OK|Transfer-Encoding: chunked", &[br, ae, chunked]),
            (COMPRESS, Method::Head, "200 OK|Content-Length: 9", &[br, ae]),
            (
                COMPRESS,
                get,
                "200 OK|ETag: \"a\"|Accept-Ranges: bytes|X-A: 1|Content-Length: 9",
                &["X-A: 1", br, "ETag: W/\"a\"", ae, chunked],
            ),
            (
                COMPRESS,
                get,
                "200 OK|etag: W/\"a\"|Content-Length: 9",
                &["etag: W/\"a\"", br, ae, chunked],
            ),
            (COMPRESS, get, "200 OK|ETag: a|Content-Length: 9", &[br, ae, chunked]),
            (
                COMPRESS,
                get,
                "200 OK|Content-Encoding: identity|Content-Length: 9",
                &[br, ae, chunked],
            ),
            (
                COMPRESS,
                get,
                "200 OK|vary: Cookie|Vary: Origin|Content-Length: 9",
                &[br, "Vary: Cookie, Accept-Encoding", "Vary: Origin", chunked],
            ),
            (COMPRESS, get, "200 OK|Vary: *|Content-Length: 9", &["Vary: *", br, chunked]),
            (
                COMPRESS,
                get,
                "200 OK|Vary: a, accept-ENCODING|Content-Length: 9",
                &["Vary: a, accept-ENCODING", br, chunked],
            ),
            (COMPRESS, get, "200 OK|Vary:|Content-Length: 9", &[br, ae, chunked]),
            (
                VARY,
                get,
                "200 OK|ETag: \"a\"|Accept-Ranges: bytes|Content-Length: 9",
                &["ETag: \"a\"", "Accept-Ranges: bytes", ae, "Content-Length: 9"],
            ),
            (
                PLAIN,
                get,
                "200 OK|ETag: \"a\"|Content-Length: 9",
                &["ETag: \"a\"", "Content-Length: 9"],
            ),
            (PLAIN, get, "304 Not Modified|ETag: \"a\"", &["ETag: W/\"a\""]),
            (VARY, get, "304 Not Modified|ETag: \"a\"", &["ETag: W/\"a\"", ae]),
        ] {
            let found = sent(decision, method, response, &mut FieldEdits::default());
            assert_eq!(found, expected, "{decision:?} {response}");
        }
    }

    #[test]
    fn a_content_that_the_client_has_is_left_away() {
        let limits = HeadLimits { head_size_max: 4096, headers_max: 32 };
        let received = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\ncontent-type: text/html\r\n\
            Content-Location: /a\r\nContent-Length: 5000\r\nContent-Security-Policy: x\r\n\r\n";
        let mut head = ResponseHead::new();
        assert!(parse_response(received, &limits, Method::Get, &mut head).is_ok());
        make_unchanged(&mut head, received);
        let forward = ResponseForward {
            framing: head.framing,
            client_version: Version::Http11,
            persistence: Persistence::KeepAlive,
            date: None,
        };
        let mut out = Vec::new();
        write_response_head(&head, received, &forward, &FieldEdits::NONE, &mut out);
        let expected = "HTTP/1.1 304 \r\nETag: \"a\"\r\nContent-Location: /a\r\n\
            Content-Security-Policy: x\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn edits_made_before_are_edited() {
        let mut edits = FieldEdits::default();
        edits.set(b"ETag", |out| out.extend_from_slice(b"\"b\""));
        edits.add(b"Vary", |out| out.extend_from_slice(b"Origin"));
        edits.set(b"Accept-Ranges", |out| out.extend_from_slice(b"bytes"));
        let found = sent(COMPRESS, Method::Get, "200 OK|ETag: \"a\"|Content-Length: 9", &mut edits);
        assert_eq!(
            found,
            [
                "ETag: W/\"b\"",
                "Vary: Origin, Accept-Encoding",
                "Content-Encoding: br",
                "Transfer-Encoding: chunked"
            ]
        );
    }
}
