//! A request head with the changes of rules, for later decisions: they read the head that the member would
//! receive.

use crate::edits::RequestEdits;
use crate::fields::Kind;
use crate::h1::RequestError;
use crate::message::{Field, FieldId, RequestHead, Span};
use crate::path::TargetForm;
use crate::target::Target;

/// Whether [`edited`] would produce the head as it was received.
pub fn is_same(head: &RequestHead, edits: &RequestEdits) -> bool {
    edits.is_empty() && head.fields.iter().all(travels_or_is_known)
}

/// Writes the head after `edits` of `head` to `out`. Its spans refer to `text`, which must be empty and receives the
/// text. A replaced target is parsed in the form `form`, like the received one.
///
/// Fields about the connection and the framing of the body stay as received: edits cannot change them.
///
/// # Errors
/// The new target is not a valid target.
pub fn edited(
    (head, input): (&RequestHead, &[u8]),
    edits: &RequestEdits,
    form: TargetForm,
    out: &mut RequestHead,
    text: &mut Vec<u8>,
) -> Result<(), RequestError> {
    debug_assert!(text.is_empty(), "spans are of the text from its start");
    out.copy_from(head);
    text.extend_from_slice(input);
    out.fields.retain(|field| stays(field, input, edits));
    out.announces_trailers &= out.fields.iter().any(|field| field.id == FieldId::Trailer);
    for (name, value) in edits.fields.added() {
        let field = append_field(name, value, text);
        out.fields.push(field);
    }
    if let Some(authority) = edits.authority() {
        out.authority = append(authority, text);
        for field in out.fields.iter_mut().filter(|field| field.id == FieldId::Host) {
            (field.value, field.is_tidy) = (out.authority, false);
        }
    }
    if edits.path().is_some() || edits.query().is_some() {
        take_target((head, input), edits, form, (out, text))?;
    }
    Ok(())
}

/// Whether a received field stays. Framing and fields about the connection cannot be edited.
fn stays(field: &Field, input: &[u8], edits: &RequestEdits) -> bool {
    let is_for_edits = Kind::of(field.id).forward;
    travels_or_is_known(field) && !(is_for_edits && edits.fields.withholds(field.name.of(input)))
}

/// Other fields that are not forwarded, such as those named in `Connection`, cannot be edited. They are left out:
/// otherwise later decisions would read a value that rules have removed or replaced.
fn travels_or_is_known(field: &Field) -> bool {
    field.forward || !field.id.is_ordinary()
}

/// Parses the target that edits have produced.
fn take_target(
    (head, input): (&RequestHead, &[u8]),
    edits: &RequestEdits,
    form: TargetForm,
    (out, text): (&mut RequestHead, &mut Vec<u8>),
) -> Result<(), RequestError> {
    let path = edits.path().unwrap_or(head.member_path(input));
    let query = match edits.query() {
        Some(query) => Some(query).filter(|query| !query.is_empty()),
        None => head.query(input),
    };
    let start = text.len();
    text.extend_from_slice(path);
    if let Some(query) = query {
        text.push(b'?');
        text.extend_from_slice(query);
    }
    let end = text.len();
    out.canonical.clear();
    out.decided_path = None;
    out.query = None;
    let (target, scanned) = Target::scan(text, start);
    out.target = target.span;
    if scanned != end || text.get(start) != Some(&b'/') {
        return Err(RequestError::TargetForm);
    }
    target.set_path_and_query(text, start..end, form, out)
}

fn append(bytes: &[u8], text: &mut Vec<u8>) -> Span {
    let start = text.len();
    text.extend_from_slice(bytes);
    Span::new(start, text.len())
}

/// A field as a serialiser would write it. It is forwarded under any name, like fields that edits add.
fn append_field(name: &[u8], value: &[u8], text: &mut Vec<u8>) -> Field {
    let name = append(name, text);
    text.extend_from_slice(b": ");
    let value = append(value, text);
    text.extend_from_slice(b"\r\n");
    let Kind { id, .. } = crate::fields::classify(name.of(text));
    Field { name, value, id, forward: true, never_indexed: false, is_tidy: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::{HeadLimits, parse_request, write_request_head};

    const LIMITS: HeadLimits = HeadLimits { head_size_max: 65_536, headers_max: 100 };

    fn received(text: &[u8]) -> RequestHead {
        let mut head = RequestHead::new();
        parse_request(text, &LIMITS, TargetForm::default(), &mut head).expect("a head");
        head
    }

    fn written(head: &RequestHead, input: &[u8], edits: &RequestEdits) -> String {
        let mut out = Vec::new();
        write_request_head(head, input, edits, &mut out);
        String::from_utf8(out).expect("text")
    }

    fn all_edits() -> RequestEdits {
        let mut edits = RequestEdits::default();
        edits.fields.remove(b"X-Secret");
        edits.fields.remove_prefix(b"X-Internal-");
        edits.fields.set(b"X-Kind", |out| out.extend_from_slice(b"new"));
        edits.fields.add(b"X-More", |out| out.extend_from_slice(b"1"));
        edits.path_mut().extend_from_slice(b"/api/v2;x=1/a");
        edits.query_mut().extend_from_slice(b"b=2");
        edits.authority_mut().extend_from_slice(b"inner.example:81");
        edits
    }

    #[test]
    fn the_member_would_get_the_same_of_both() {
        let texts: [&[u8]; 4] = [
            b"GET /a%41?q=1 HTTP/1.1\r\nHost: outer\r\nX-Secret: s\r\nx-internal-id:7\r\nX_Kind: old\r\nAccept: */*\r\n\r\n",
            b"POST http://outer/x HTTP/1.1\r\nHost: outer\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
            b"POST /t HTTP/1.1\r\nHost: outer\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nTE: trailers\r\nConnection: TE, X-Hop\r\nX-Hop: 1\r\n\r\n",
            b"GET /ws HTTP/1.1\r\nConnection: upgrade\r\nHost: outer\r\nUpgrade: websocket\r\nX-Secret: a\r\nX-Secret: b\r\n\r\n",
        ];
        let mut path = RequestEdits::default();
        path.path_mut().extend_from_slice(b"/only/path");
        let mut query = RequestEdits::default();
        query.query_mut();
        for text in texts {
            for edits in [&all_edits(), &path, &query, &RequestEdits::NONE] {
                let head = received(text);
                let (mut out, mut buffer) = (RequestHead::new(), Vec::new());
                edited((&head, text), edits, TargetForm::default(), &mut out, &mut buffer)
                    .expect("a sound target");
                let expected = written(&head, text, edits);
                assert_eq!(written(&out, &buffer, &RequestEdits::NONE), expected);
                assert_eq!(out.framing, head.framing);
                assert_eq!(out.expect_continue, head.expect_continue);
            }
        }
    }

    #[test]
    fn decisions_read_what_was_made() {
        let text = b"GET /a?q=1 HTTP/1.1\r\nHost: outer\r\n\r\n";
        let head = received(text);
        let (mut out, mut buffer) = (RequestHead::new(), Vec::new());
        let edits = all_edits();
        edited((&head, text), &edits, TargetForm::default(), &mut out, &mut buffer).expect("sound");
        assert_eq!(out.path(&buffer), b"/api/v2/a", "without parameters");
        assert_eq!(out.member_path(&buffer), b"/api/v2;x=1/a");
        assert_eq!(out.received_path(&buffer), b"/api/v2;x=1/a");
        assert_eq!(out.query(&buffer), Some(&b"b=2"[..]));
        assert_eq!(out.host(&buffer), b"inner.example");
        let values = |name| crate::fields::values(&out.fields, &buffer, name).collect::<Vec<_>>();
        assert_eq!(values("host"), [b"inner.example:81"]);
        assert_eq!(values("x-kind"), [b"new"]);
        assert_eq!(values("x-secret"), [b""; 0]);
    }

    /// A client can name any field in `Connection`: the next virtual server must not read it as
    /// received.
    #[test]
    fn what_the_connection_names_is_not_read_past_the_edits() {
        let text = b"GET /a HTTP/1.1\r\nHost: outer\r\nConnection: X-Role, cookie, close\r\nX-Role: admin\r\nCookie: role=admin\r\nX-Kept: 1\r\nTE: trailers\r\n\r\n";
        let head = received(text);
        let mut removed = RequestEdits::default();
        removed.fields.remove(b"X-Role");
        let mut set = RequestEdits::default();
        set.fields.set(b"X-Role", |out| out.extend_from_slice(b"guest"));
        for (edits, role) in [(removed, None), (set, Some(&b"guest"[..]))] {
            let (mut out, mut buffer) = (RequestHead::new(), Vec::new());
            edited((&head, text), &edits, TargetForm::default(), &mut out, &mut buffer)
                .expect("sound");
            let values = |name| crate::fields::values(&out.fields, &buffer, name);
            assert!(values("x-role").eq(role));
            assert_eq!(values("cookie").count(), 0);
            assert!(values("x-kept").eq([b"1"]) && values("te").eq([b"trailers"]));
            assert_eq!(values("connection").count(), 1);
        }
        // An edit of a field that is not forwarded has no effect.
        assert!(!is_same(&head, &RequestEdits::NONE));
        let usual = received(
            b"GET /a HTTP/1.1\r\nHost: outer\r\nTE: trailers\r\nA: 1\r\nConnection: TE\r\n\r\n",
        );
        assert!(is_same(&usual, &RequestEdits::NONE));
    }

    #[test]
    fn a_target_that_could_not_come_is_none() {
        let text = b"GET /a HTTP/1.1\r\nHost: outer\r\n\r\n";
        let head = received(text);
        for path in [&b"a"[..], b"", b"/a b", b"/%zz", b"/a\\b"] {
            let mut edits = RequestEdits::default();
            edits.path_mut().extend_from_slice(path);
            let (mut out, mut buffer) = (RequestHead::new(), Vec::new());
            let made = edited((&head, text), &edits, TargetForm::default(), &mut out, &mut buffer);
            assert!(made.is_err(), "{path:?}");
        }
    }
}
