//! External authorisation (`type: external` of `authentication`): the request to the service, and the meaning of its
//! response.

use weir_http::edits::FieldEdits;
use weir_http::fields::forwarded_values;
use weir_http::message::ResponseHead;
use weir_http::write_ip;

use crate::expression::Facts;

/// Fields that describe the request to the service. Clients cannot set them.
const TOLD: [&[u8]; 5] = [
    b"X-Forwarded-For",
    b"X-Forwarded-Method",
    b"X-Forwarded-Proto",
    b"X-Forwarded-Host",
    b"X-Forwarded-Uri",
];

/// Other fields by which proxies describe the client, its request or its user. They are removed, because a service might
/// trust them although a client could have sent them.
const OF_PROXIES: [&[u8]; 7] = [
    b"Forwarded",
    b"X-Original-Host",
    b"X-Original-Method",
    b"X-Original-URI",
    b"X-Original-URL",
    b"X-Real-IP",
    b"X-Rewrite-URL",
];

/// Fields of the client that concern only its own request: its body, and the acceptable responses. They are removed, because
/// the service's response must be complete and not encoded: the client may get it.
const ABOUT_THE_REQUEST: [&[u8]; 8] = [
    b"Accept-Encoding",
    b"Expect",
    b"If-Match",
    b"If-Modified-Since",
    b"If-None-Match",
    b"If-Range",
    b"If-Unmodified-Since",
    b"Range",
];

/// A service that decides about requests.
#[derive(Debug)]
pub struct External {
    /// The key of the authentication in the file.
    pub name: Box<str>,
    /// Index of the service's pool in the snapshot.
    pub pool: u32,
    /// The path of requests to the service.
    pub path: Box<str>,
    /// The fields of the client's request that are sent to the service; `None`: all.
    pub sent: Option<Box<[Box<str>]>>,
    /// The fields of the service's response that are sent to the member if the request is accepted.
    pub added: Box<[Box<str>]>,
    /// The fields of the service's response that are sent to the client if the request is denied.
    pub answered: Box<[Box<str>]>,
    /// The field of the service's response with the user name.
    pub user: Option<Box<str>>,
    /// Timeout of the complete response.
    pub timeout_ms: u64,
    /// Whether a request is accepted if the service cannot be asked.
    pub lets_in_on_error: bool,
}

/// The meaning of a service's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceVerdict {
    /// The request is accepted.
    LetIn,
    /// The request is denied: the client gets the service's response.
    Denied,
    /// The service has failed.
    Failed,
}

impl External {
    /// Appends the head of the request to the service. `facts` and `scheme` describe the client's request. The head is
    /// parsed like a client's request.
    pub fn write(&self, facts: &Facts<'_>, scheme: &[u8], out: &mut Vec<u8>) {
        let (head, input) = (facts.request, facts.request_input);
        let authority = head.authority(input);
        out.extend_from_slice(b"GET ");
        out.extend_from_slice(self.path.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        line(out, b"Host", |out| out.extend_from_slice(authority));
        let mut withheld = FieldEdits::default();
        TOLD.iter().chain(&ABOUT_THE_REQUEST).for_each(|name| withheld.remove(name));
        OF_PROXIES.iter().for_each(|name| withheld.remove(name));
        // Fields that the service sets for members must not reach the service from clients.
        let own = self.added.iter().chain(&self.user);
        own.for_each(|name| withheld.remove(name.as_bytes()));
        withheld.remove_prefix(b"Content-");
        for field in head.fields.iter().filter(|field| field.forward) {
            let name = field.name.of(input);
            if self.sees(name) && !withheld.withholds(name) {
                line(out, name, |out| out.extend_from_slice(field.value.of(input)));
            }
        }
        if let Some(client) = facts.client {
            line(out, b"X-Forwarded-For", |out| write_ip(client.ip().to_canonical(), out));
        }
        line(out, b"X-Forwarded-Method", |out| out.extend_from_slice(head.method_text.of(input)));
        line(out, b"X-Forwarded-Proto", |out| out.extend_from_slice(scheme));
        line(out, b"X-Forwarded-Host", |out| out.extend_from_slice(authority));
        line(out, b"X-Forwarded-Uri", |out| {
            out.extend_from_slice(head.member_path(input));
            if let Some(query) = head.query(input) {
                out.push(b'?');
                out.extend_from_slice(query);
            }
        });
        out.extend_from_slice(b"\r\n");
    }

    fn sees(&self, name: &[u8]) -> bool {
        let mut sent = self.sent.iter().flatten();
        self.sent.is_none() || sent.any(|seen| seen.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The meaning of a response.
    pub fn judge(&self, head: &ResponseHead, input: &[u8]) -> ServiceVerdict {
        let user = self.user.iter();
        let (judgement, read) = match head.status {
            200..=299 => (ServiceVerdict::LetIn, &self.added),
            300..=499 => (ServiceVerdict::Denied, &self.answered),
            _ => return ServiceVerdict::Failed,
        };
        // Control characters, which are tolerated in responses of some members, must not split the head that receives the
        // value.
        let is_sound =
            |value: &[u8]| value.iter().all(|&byte| byte == b'\t' || !byte.is_ascii_control());
        let mut read = read.iter().chain(user);
        if read.all(|name| named(head, input, name).all(is_sound)) {
            judgement
        } else {
            ServiceVerdict::Failed
        }
    }

    /// The user name in a response; empty: none.
    pub fn user<'a>(&'a self, head: &'a ResponseHead, input: &'a [u8]) -> &'a [u8] {
        let name = self.user.as_deref();
        name.and_then(|name| forwarded_values(&head.fields, input, name.as_bytes()).next())
            .unwrap_or_default()
    }
}

/// The values of the response's fields with this name.
pub fn named<'a>(
    head: &'a ResponseHead,
    input: &'a [u8],
    name: &'a str,
) -> impl Iterator<Item = &'a [u8]> {
    forwarded_values(&head.fields, input, name.as_bytes())
}

fn line(out: &mut Vec<u8>, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    write(out);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use weir_http::h1::{HeadLimits, ParseProgress, parse_response};
    use weir_http::message::Method;

    use super::*;
    use crate::expression::testing::Sample;

    fn external() -> External {
        External {
            name: "sso".into(),
            pool: 0,
            path: "/verify?by=weir".into(),
            sent: None,
            added: ["X-User".into(), "X-Groups".into()].into(),
            answered: ["Location".into()].into(),
            user: Some("X-User".into()),
            timeout_ms: 1_000,
            lets_in_on_error: false,
        }
    }

    fn asked(external: &External, request: &str) -> String {
        let mut out = Vec::new();
        external.write(&Sample::new(request).facts(), b"http", &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_service_is_told_of_the_request() {
        let request = "POST /a/../b?c=d HTTP/1.1\r\nHost: shop.example\r\nCookie: s=1\r\nX-Forwarded-Uri: /public\r\n\
            x_forwarded_method: GET\r\nX-Forwarded-For: 10.0.0.1\r\nRange: bytes=0-1\r\nIf-None-Match: \"a\"\r\n\
            Accept-Encoding: gzip\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\
            Connection: x-secret\r\nX-Secret: 1\r\nAuthorization: Bearer a\r\n\r\n";
        let head = "GET /verify?by=weir HTTP/1.1\r\nHost: shop.example\r\n";
        let told = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Method: POST\r\nX-Forwarded-Proto: http\r\n\
            X-Forwarded-Host: shop.example\r\nX-Forwarded-Uri: /b?c=d\r\n\r\n";
        let all = asked(&external(), request);
        assert_eq!(all, format!("{head}Cookie: s=1\r\nAuthorization: Bearer a\r\n{told}"));
        let sent = |names: &[&str]| Some(names.iter().map(|name| (*name).into()).collect());
        for (names, fields) in [
            (&["cookie"][..], "Cookie: s=1\r\n"),
            (&["Authorization", "Range", "X-Forwarded-Uri"], "Authorization: Bearer a\r\n"),
            (&[], ""),
        ] {
            let external = External { sent: sent(names), ..external() };
            assert_eq!(asked(&external, request), format!("{head}{fields}{told}"), "{names:?}");
        }
    }

    #[test]
    fn answers_are_judged_by_status_and_what_is_read_of_them() {
        let limits = HeadLimits { head_size_max: 65_536, headers_max: 100 };
        for (status, fields, expected, user) in [
            (200, "X-User: ann\r\n", ServiceVerdict::LetIn, "ann"),
            (204, "", ServiceVerdict::LetIn, ""),
            (299, "X-User: ann\r\nX-User: eve\r\n", ServiceVerdict::LetIn, "ann"),
            (302, "Location: /login\r\n", ServiceVerdict::Denied, ""),
            (401, "", ServiceVerdict::Denied, ""),
            (499, "", ServiceVerdict::Denied, ""),
            (500, "X-User: ann\r\n", ServiceVerdict::Failed, "ann"),
            (503, "", ServiceVerdict::Failed, ""),
            (599, "", ServiceVerdict::Failed, ""),
        ] {
            let text = format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: 0\r\n\r\n");
            let mut head = ResponseHead::new();
            let parsed = parse_response(text.as_bytes(), &limits, Method::Get, &mut head);
            assert!(matches!(parsed, Ok(ParseProgress::Complete { .. })), "{text}");
            let external = external();
            assert_eq!(external.judge(&head, text.as_bytes()), expected, "{text}");
            assert_eq!(external.user(&head, text.as_bytes()), user.as_bytes(), "{text}");
        }
    }

    #[test]
    fn a_value_that_would_split_a_head_is_a_failure() {
        let limits = HeadLimits { head_size_max: 65_536, headers_max: 100 };
        let mut text =
            b"HTTP/1.1 200 OK\r\nX-User: ann!\r\nX-Other: a\r\nContent-Length: 0\r\n\r\n".to_vec();
        let mut head = ResponseHead::new();
        parse_response(&text, &limits, Method::Get, &mut head).expect("a head");
        let at = text.iter().position(|&byte| byte == b'!').expect("it is there");
        for (byte, expected) in [
            (b'\n', ServiceVerdict::Failed),
            (b'\r', ServiceVerdict::Failed),
            (0, ServiceVerdict::Failed),
            (0x7f, ServiceVerdict::Failed),
            (b'\t', ServiceVerdict::LetIn),
            (0xc3, ServiceVerdict::LetIn),
        ] {
            text[at] = byte;
            assert_eq!(external().judge(&head, &text), expected, "{byte}");
        }
        let (other, unread) = (text.windows(7).position(|it| it == b"X-Other"), b'\n');
        text[other.expect("it is there") + 9] = unread;
        assert_eq!(external().judge(&head, &text), ServiceVerdict::LetIn, "nobody reads it");
    }
}
