//! Header fields of SIP messages over UDP (RFC 3261 section 7.3).
//!
//! A datagram is one message: a start line, header fields, an empty line, a body. Lines end in CRLF; a bare LF is accepted
//! too, as by common servers.

use memchr::memchr;
use weir_http::message::Span;

use super::span;

/// The value of a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// The value without surrounding white space.
    pub span: Span,
    /// Whether the value is folded over several lines; [`unfold`] joins them.
    pub is_folded: bool,
}

/// Names with a short form (IANA's registry of SIP header fields), in lower case.
const COMPACT_FORMS: [(&[u8], u8); 20] = [
    (b"accept-contact", b'a'),
    (b"allow-events", b'u'),
    (b"call-id", b'i'),
    (b"contact", b'm'),
    (b"content-encoding", b'e'),
    (b"content-length", b'l'),
    (b"content-type", b'c'),
    (b"event", b'o'),
    (b"from", b'f'),
    (b"identity", b'y'),
    (b"identity-info", b'n'),
    (b"refer-to", b'r'),
    (b"referred-by", b'b'),
    (b"reject-contact", b'j'),
    (b"request-disposition", b'd'),
    (b"session-expires", b'x'),
    (b"subject", b's'),
    (b"supported", b'k'),
    (b"to", b't'),
    (b"via", b'v'),
];

/// The value of the first field with this name. The long and the short form of a name are equivalent, and case is
/// ignored. `None`: no such field, or not a SIP message.
///
/// A field whose line does not end within the datagram is not found, because it may be truncated.
pub fn header(datagram: &[u8], name: &str) -> Option<Value> {
    let (start, mut at) = line(datagram, 0)?;
    if !is_start_line(start.of(datagram)) {
        return None;
    }
    let (wanted, compact) = forms(name.as_bytes());
    loop {
        let (first, next) = line(datagram, at)?;
        if first.is_empty() {
            return None;
        }
        at = next;
        let bytes = first.of(datagram);
        let Some(colon) = memchr(b':', bytes) else { continue };
        let found = bytes[..colon].trim_ascii_end();
        let is_wanted = found.eq_ignore_ascii_case(wanted)
            || matches!((found, compact), ([one], Some(short)) if one.to_ascii_lowercase() == short);
        if !is_wanted {
            continue;
        }
        let mut end = first.end as usize;
        let mut is_folded = false;
        while matches!(datagram.get(at), Some(b' ' | b'\t')) {
            let (continued, next) = line(datagram, at)?;
            end = continued.end as usize;
            is_folded = true;
            at = next;
        }
        // The value may continue in a truncated line.
        datagram.get(at)?;
        return Some(trimmed(datagram, first.start as usize + colon + 1, end, is_folded));
    }
}

/// Appends a value and replaces each fold by one space.
pub fn unfold(value: &[u8], out: &mut Vec<u8>) {
    let mut is_first = true;
    for line in value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() {
            continue;
        }
        if !is_first {
            out.push(b' ');
        }
        out.extend_from_slice(line);
        is_first = false;
    }
}

/// The line that begins at `at`, without its end, and the beginning of the next line.
fn line(datagram: &[u8], at: usize) -> Option<(Span, usize)> {
    let rest = datagram.get(at..)?;
    let length = memchr(b'\n', rest)?;
    let text = rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]);
    Some((span(at, at + text.len()), at + length + 1))
}

/// Whether a line is a start line: a request's ends with the version, a response's begins with it.
fn is_start_line(line: &[u8]) -> bool {
    const VERSION: &[u8] = b"SIP/2.0";
    let is_version = |part: &[u8]| part.eq_ignore_ascii_case(VERSION);
    let words = || line.split(|byte| *byte == b' ');
    let is_request = words().count() == 3 && words().next_back().is_some_and(is_version);
    is_request || (words().count() > 1 && words().next().is_some_and(is_version))
}

/// The long form of a name, in the table's spelling if it has one, and the short form.
fn forms(name: &[u8]) -> (&[u8], Option<u8>) {
    let found = COMPACT_FORMS.into_iter().find(|(long, short)| {
        name.eq_ignore_ascii_case(long) || name.eq_ignore_ascii_case(&[*short])
    });
    match found {
        Some((long, short)) => (long, Some(short)),
        None => (name, None),
    }
}

/// The span `start..end` without white space and folds at its ends.
fn trimmed(datagram: &[u8], start: usize, end: usize, is_folded: bool) -> Value {
    let raw = &datagram[start..end];
    let start = start + (raw.len() - raw.trim_ascii_start().len());
    let value = raw.trim_ascii();
    let is_folded = is_folded && memchr(b'\n', value).is_some();
    Value { span: span(start, start + value.len()), is_folded }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3261 section 24.2, shortened.
    const INVITE: &str = "INVITE sip:bob@biloxi.com SIP/2.0\r\n\
        Via: SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bKnashds8\r\n\
        Via: SIP/2.0/UDP second.example\r\n\
        Max-Forwards: 70\r\n\
        To: Bob <sip:bob@biloxi.com>\r\n\
        From: Alice <sip:alice@atlanta.com>;tag=1928301774\r\n\
        Call-ID: a84b4c76e66710\r\n\
        CSeq: 314159 INVITE\r\n\
        Subject: I know\r\n \t you are there,\r\n\tpick up\r\n\
        Content-Length: 9\r\n\r\n\
        X-Body: 1";

    fn value(message: &str, name: &str) -> Option<String> {
        let value = header(message.as_bytes(), name)?;
        let raw = value.span.of(message.as_bytes());
        let mut text = Vec::new();
        unfold(raw, &mut text);
        assert_eq!(value.is_folded, text != raw, "{name} of {message:?}");
        Some(String::from_utf8(text).expect("a text"))
    }

    fn check(message: &str, name: &str, expected: Option<&str>) {
        assert_eq!(value(message, name).as_deref(), expected, "{name} of {message:?}");
    }

    #[test]
    fn fields_of_a_request() {
        for name in ["Call-ID", "call-id", "CALL-ID", "i", "I"] {
            check(INVITE, name, Some("a84b4c76e66710"));
        }
        check(INVITE, "Via", Some("SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bKnashds8"));
        check(INVITE, "v", Some("SIP/2.0/UDP pc33.atlanta.com;branch=z9hG4bKnashds8"));
        check(INVITE, "from", Some("Alice <sip:alice@atlanta.com>;tag=1928301774"));
        check(INVITE, "max-forwards", Some("70"));
        check(INVITE, "Subject", Some("I know you are there, pick up"));
        check(INVITE, "Content-Length", Some("9"));
        for absent in ["X-Body", "Call", "Call-ID2", "", "m", "Contact", "INVITE sip"] {
            check(INVITE, absent, None);
        }
    }

    #[test]
    fn short_forms_and_responses() {
        let response = "SIP/2.0 180 Ringing\nv : SIP/2.0/UDP a\nT:\t<sip:b>\ni:x@y  \r\nf:\r\n\r\n";
        for (name, expected) in
            [("Via", "SIP/2.0/UDP a"), ("to", "<sip:b>"), ("Call-ID", "x@y"), ("From", "")]
        {
            check(response, name, Some(expected));
        }
    }

    #[test]
    fn every_short_form_stands_for_its_name() {
        for (long, short) in COMPACT_FORMS {
            let long = std::str::from_utf8(long).expect("a name");
            let short = char::from(short).to_string();
            for (written, asked) in [(long, &*short), (&*short, long), (&*short, &*short)] {
                let message = format!("BYE sip:a SIP/2.0\r\n{written}: 1\r\n\r\n");
                check(&message, asked, Some("1"));
            }
        }
    }

    #[test]
    fn folds() {
        let folded = |value: &str| format!("BYE sip:a SIP/2.0\r\nCall-ID:{value}\r\n\r\n");
        for (written, expected) in [
            ("\r\n a", "a"),
            (" a\r\n ", "a"),
            ("\r\n \r\n \t", ""),
            ("a\r\n b\n\tc", "a b c"),
            ("a\r\n \r\n b", "a b"),
        ] {
            check(&folded(written), "i", Some(expected));
        }
        // A folded line of another field is not a field.
        let other = "BYE sip:a SIP/2.0\r\nSubject: a\r\n Call-ID: no\r\ni: yes\r\n\r\n";
        check(other, "x", None);
        check(other, "Subject", Some("a Call-ID: no"));
        check(other, "Call-ID", Some("yes"));
    }

    #[test]
    fn what_is_no_sip_message() {
        for text in [
            "",
            "\r\n\r\n",
            "Call-ID: a\r\n\r\n",
            "GET / HTTP/1.1\r\nCall-ID: a\r\n\r\n",
            "INVITE sip:a SIP/3.0\r\nCall-ID: a\r\n\r\n",
            "SIP/2.0\r\nCall-ID: a\r\n\r\n",
            "INVITE  sip:a SIP/2.0\r\nCall-ID: a\r\n\r\n",
            "\r\nINVITE sip:a SIP/2.0\r\nCall-ID: a\r\n\r\n",
        ] {
            check(text, "Call-ID", None);
        }
        check("invite sip:a sip/2.0\r\nCall-ID: a\r\n\r\n", "Call-ID", Some("a"));
    }

    /// A possibly truncated value counts as missing.
    #[test]
    fn cut_messages() {
        let message = "BYE sip:a SIP/2.0\r\nsense\r\nCall-ID: abc\r\n d\r\n\r\n";
        for length in 0..message.len() {
            let is_whole = length > message.len() - 2;
            check(&message[..length], "i", is_whole.then_some("abc d"));
        }
    }
}
