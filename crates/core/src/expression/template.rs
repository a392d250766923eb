//! Templates: texts with expressions.

use std::ops::Range;

use super::check::Checker;
use super::error;
use super::evaluate::Evaluation;
use super::parser::{check_length, parse_braced};
use super::plan::Text;
use super::{ExpressionError, Reads, Scope};

/// A text with `${expression}` parts; `$$` is a dollar sign.
#[derive(Debug, Clone)]
pub struct Template {
    parts: Box<[Text]>,
    purpose: Purpose,
    reads: Reads,
    /// The names of the request's cookies that the template reads.
    cookies: Box<[Box<str>]>,
}

/// The use of a template's text, which decides the allowed characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The value of a header field: in interpolated values, control characters except tab become spaces, so that no value
    /// can end the line; in the template they are errors.
    HeaderValue,
    /// A URI or a part of one: bytes that RFC 3986 does not permit are percent-encoded, including a `%` that begins no
    /// escape, and a `#` in an interpolated value.
    Uri,
    /// Any other text: a body, or a text to hash.
    Plain,
}

impl Template {
    /// Compiles a template; the values that it reads are added to the scope's slots.
    ///
    /// # Errors
    /// The error and its place, in bytes of `text`.
    pub fn compile(
        text: &str,
        purpose: Purpose,
        scope: &mut Scope<'_>,
    ) -> Result<Self, ExpressionError> {
        check_length(text)?;
        let mut checker = Checker::new(scope);
        let mut parts = Parts { done: Vec::new(), literal: Vec::new(), purpose };
        let (mut at, mut values) = (0, Ok(()));
        while let Some(length) = text[at..].find('$') {
            let dollar = at + length;
            parts.literal(text, at..dollar)?;
            match text.as_bytes().get(dollar + 1) {
                Some(b'$') => {
                    parts.literal(text, dollar..dollar + 1)?;
                    at = dollar + 2;
                }
                Some(b'{') => {
                    let (node, end) = parse_braced(text, dollar + 2)?;
                    let value = checker.printable(&node).map(|value| parts.value(value));
                    values = error::both(values, value).map(|_| ());
                    if let Err(error) = &values
                        && error.is_full()
                    {
                        break;
                    }
                    at = end;
                }
                Some(b'0'..=b'9') => {
                    let help = "captures of a pattern need a map: `{ regex: '^/old/(.*)', to: '/new/$1' }`";
                    return Err(lone_dollar(dollar, help));
                }
                _ => return Err(lone_dollar(dollar, "`${…}` is an expression, `$$` a dollar")),
            }
        }
        values?;
        parts.literal(text, at..text.len())?;
        let (reads, cookies) = (checker.reads, checker.cookies.into());
        Ok(Self { parts: parts.finish(), purpose, reads, cookies })
    }

    /// The values that the template reads.
    pub fn reads(&self) -> Reads {
        self.reads
    }

    /// The names of the request's cookies that the template reads.
    pub fn cookies(&self) -> impl Iterator<Item = &str> {
        self.cookies.iter().map(|name| &**name)
    }

    /// Whether the template reads `request.*`: a relayed connection has no request.
    pub fn reads_request(&self) -> bool {
        self.reads.request
    }

    /// Whether the template reads `response.*`, so that it can be rendered only with a response.
    pub fn reads_response(&self) -> bool {
        self.reads.response
    }

    /// Whether the template reads a datagram: requests and connections have none.
    pub fn reads_datagram(&self) -> bool {
        self.reads.datagram
    }

    /// The constant text, if the template contains no expressions.
    pub fn constant(&self) -> Option<&[u8]> {
        match &*self.parts {
            [] => Some(b""),
            [Text::Constant(text)] => Some(text),
            _ => None,
        }
    }

    pub(super) fn render(&self, evaluation: &mut Evaluation<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Text::Constant(text) => out.extend_from_slice(text),
                part => evaluation.append(part, self.purpose, out),
            }
        }
    }
}

/// The parts of a template during compilation.
struct Parts {
    done: Vec<Text>,
    /// Constant text since the last expression.
    literal: Vec<u8>,
    purpose: Purpose,
}

impl Parts {
    /// Adds `text[range]`, which must be valid for the purpose, or is encoded.
    fn literal(&mut self, text: &str, range: Range<usize>) -> Result<(), ExpressionError> {
        let part = &text[range.clone()];
        let control =
            part.char_indices().find(|(_, char)| char.is_ascii_control() && *char != '\t');
        if let (Some((at, char)), Purpose::HeaderValue) = (control, self.purpose) {
            let at = range.start + at;
            let message = format!("`{}` cannot stand in a header", char.escape_default());
            return Err(ExpressionError::new(at..at + 1, message));
        }
        match self.purpose {
            Purpose::Uri => append_encoded(part.as_bytes(), may_stand_in_uri, &mut self.literal),
            purpose => purpose.append(part.as_bytes(), &mut self.literal),
        }
        Ok(())
    }

    fn value(&mut self, value: Text) {
        match value {
            Text::Constant(known) => self.purpose.append(&known, &mut self.literal),
            value => {
                self.flush();
                self.done.push(value);
            }
        }
    }

    fn flush(&mut self) {
        if !self.literal.is_empty() {
            self.done.push(Text::Constant(std::mem::take(&mut self.literal).into()));
        }
    }

    fn finish(mut self) -> Box<[Text]> {
        self.flush();
        self.done.into()
    }
}

/// The error for a dollar sign at this byte without a valid continuation.
pub(super) fn lone_dollar(at: usize, help: &str) -> ExpressionError {
    ExpressionError::new(at..at + 1, "this `$` has no meaning").help(help)
}

impl Purpose {
    /// Appends a value, encoded for the purpose.
    pub(super) fn append(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(value),
            Self::HeaderValue => out.extend(value.iter().map(|byte| match byte {
                b'\t' => b'\t',
                control if control.is_ascii_control() => b' ',
                other => *other,
            })),
            // Only the template itself may begin a fragment, not a value.
            Self::Uri => {
                append_encoded(value, |byte| may_stand_in_uri(byte) && byte != b'#', out);
            }
        }
    }
}

fn append_encoded(value: &[u8], stands: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut rest = value;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let is_fit = match byte {
            b'%' => matches!(tail, [high, low, ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()),
            other => stands(*other),
        };
        if is_fit {
            out.push(*byte);
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// `unreserved` and `reserved` (RFC 3986 sections 2.2 and 2.3).
fn may_stand_in_uri(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::testing::Sample;

    fn render(text: &str, purpose: Purpose) -> Vec<u8> {
        let mut sample = Sample::new(
            "GET /a%20b?q=1%0d%0aX:+2&u=%C3%A4%25%41&f=%23 HTTP/1.1\r\nHost: A.example:80\r\nX: a\tb\r\n\r\n",
        );
        let template = Template::compile(text, purpose, &mut sample.scope()).unwrap();
        let mut out = b">".to_vec();
        sample.evaluate(|evaluation| evaluation.render(&template, &mut out));
        out.remove(0);
        out
    }

    #[test]
    fn templates_interpolate_text_numbers_and_addresses() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$$1 costs $$", "$1 costs $"),
            (
                "https://new.example${request.target}",
                "https://new.example/a%20b?q=1%0d%0aX:+2&u=%C3%A4%25%41&f=%23",
            ),
            ("${client.ip}", "192.0.2.1"),
            ("${client.ip}:${client.port}!", "192.0.2.1:40000!"),
            ("${request.host == 'a.example' ? '}' : '{'}", "}"),
            ("${'a'}b${1}", "ab1"),
            ("${request.headers['none']}", ""),
        ] {
            assert_eq!(render(text, Purpose::Plain), expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn values_are_made_fit_for_their_purpose() {
        for (purpose, text, expected) in [
            (Purpose::Plain, "${request.query['q']}", &b"1\r\nX: 2"[..]),
            (Purpose::HeaderValue, "${request.query['q']}", b"1  X: 2"),
            (Purpose::HeaderValue, "a\t${request.headers['x']}${'\\n'}", b"a\ta\tb "),
            (Purpose::HeaderValue, "${request.query['u']}", "ä%A".as_bytes()),
            (Purpose::Uri, "/?${request.query['q']}", b"/?1%0D%0AX:%202"),
            (Purpose::Uri, "${request.query['u']}", b"%C3%A4%25A"),
            (Purpose::Uri, "#${request.query['f']}", b"#%23"),
            (Purpose::Uri, "/ä b%${request.method}%41$$", b"/%C3%A4%20b%25GET%41$"),
        ] {
            let found = render(text, purpose);
            assert_eq!(found, expected, "{text}: {}", String::from_utf8_lossy(&found));
        }
    }

    #[test]
    fn errors_have_places() {
        for (text, purpose, range, message) in [
            ("a$1", Purpose::Plain, 1..2, "this `$` has no meaning"),
            ("a$", Purpose::Plain, 1..2, "this `$` has no meaning"),
            ("ab${request.pth}", Purpose::Plain, 12..15, "request has no field `pth`"),
            ("${request.path", Purpose::Plain, 14..14, "`}` was expected, not the end"),
            ("${}", Purpose::Plain, 2..3, "a value was expected, not `}`"),
            (
                "x${true}",
                Purpose::Plain,
                3..7,
                "text, an integer or an address is wanted here, and this is a boolean",
            ),
            ("a\nb", Purpose::HeaderValue, 1..2, "`\\n` cannot stand in a header"),
        ] {
            let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let error = Template::compile(text, purpose, &mut sample.scope()).unwrap_err();
            assert_eq!((error.range, error.message), (range, message.into()), "{text}");
        }
    }

    #[test]
    fn what_a_template_needs_is_known() {
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        for (text, constant, reads_response) in [
            ("a$$${'b'}", Some(&b"a$b"[..]), false),
            ("", Some(b""), false),
            ("${request.path}", None, false),
            ("${response.status}", None, true),
        ] {
            let template = Template::compile(text, Purpose::Plain, &mut sample.scope()).unwrap();
            assert_eq!(template.constant(), constant, "{text}");
            assert_eq!(template.reads_response(), reads_response, "{text}");
        }
    }
}
