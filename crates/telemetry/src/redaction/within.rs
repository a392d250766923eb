//! Secrets within a value: a form field, a query, a header or a text may hold a document with secrets of its own.
//!
//! | text | shown as |
//! |---|---|
//! | `{"password":"x","q":1}`, also with escaped quotes | `{"password":"***","q":1}` |
//! | `login(password: "x")` of GraphQL | `login(password: "***")` |
//! | `{"name":"password","value":"x"}` | `{"name":"password","value":"***"}` |
//! | `<password>x</password>`, `<a password="x">` | `<password>***</password>`, `<a password="***">` |
//! | `<key>password</key><string>x</string>` | `<key>password</key><string>***</string>` |
//! | `http://user:x@host/` | `http://***@host/` |
//! | `a=b&password=x&c=d` | `a=b&password=***` |
//! | `password: x` | `password: ***` up to the end of the line |
//! | `a Bearer abcdefghijklmnop`, `eyJhbGciOi.eyJzdWIi.c2ln`, whatever their names | `a Bearer ***`, `***` |
//! | one of these with escapes (`%22`, `\u0022`, `&lt;`), up to [`DECODINGS_MAX`] times | `***` from there on |
//!
//! Nothing is parsed: a text may be cut, or belong to no format. In doubt more is masked. The work is in proportion to the
//! length of the text, and the length has a limit ([`TEXT_BYTES_MAX`]).

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use weir_http::secret_names::{CredentialFields, decoded};

use super::MASK;

/// Longer texts are masked completely.
const TEXT_BYTES_MAX: usize = 128 << 10;

/// Texts with more names are masked completely.
const NAMES_MAX: usize = 4_096;

/// Maximum length of a name. Of a longer name, its end counts.
const NAME_BYTES_MAX: usize = 128;

/// Maximum number of blanks between a name, its separator and its value.
const BLANKS_MAX: usize = 64;

/// Maximum distance in which the end of the user in a URL, and what an attribute names, is searched.
const DISTANCE_BYTES_MAX: usize = 512;

/// Maximum number of times that the escapes of a text are decoded.
const DECODINGS_MAX: usize = 3;

/// Names of keys, attributes and elements that hold the name of a value beside them.
const NAMERS: [&[u8]; 10] = [
    b"name",
    b"key",
    b"id",
    b"field",
    b"param",
    b"parameter",
    b"property",
    b"label",
    b"type",
    b"k",
];

/// Names of keys, attributes and elements that hold a value named beside them.
const NAMED: [&[u8]; 6] = [b"value", b"val", b"v", b"content", b"text", b"data"];

/// Schemes of `Authorization` whose credentials are one token (RFC 9110 section 11.2).
const SCHEMES: [&[u8]; 3] = [b"bearer", b"basic", b"negotiate"];

/// A shorter token behind the name of a scheme may be a word of a text.
const TOKEN_BYTES_MIN: usize = 16;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A segment of a path. A colon without quotes and brackets makes no pair: `/tokens:revoke`.
    Path,
    /// A whole request target. Its segments and arguments are searched one by one, too.
    Target,
}

/// A text whose secrets are masked; `None`: it has none. `fields`: the fields in which the configuration finds credentials.
pub fn masked(text: &[u8], fields: &CredentialFields, kind: Kind) -> Option<Vec<u8>> {
    let found = ranges(text, fields, kind);
    if kind == Kind::Target {
        return replaced(text, found.as_deref());
    }
    let mut shown = replaced(text, found.as_deref());
    let mut form = Cow::Borrowed(shown.as_deref().unwrap_or(text));
    let first = decoded(&form);
    let mut next = first.clone();
    for _ in 0..DECODINGS_MAX {
        let Some(plain) = next else { break };
        form = Cow::Owned(plain);
        if ranges(&form, fields, kind).is_none_or(|found| !found.is_empty()) {
            let written = shown.as_deref().unwrap_or(text);
            let start = escaped_from(written, first.as_deref().unwrap_or_default());
            shown = Some([&written[..start], MASK].concat());
            break;
        }
        next = decoded(&form);
    }
    shown
}

/// The secrets in a text, as written and decoded.
pub fn secrets_in<'t>(text: &'t [u8], fields: &CredentialFields) -> Vec<Cow<'t, [u8]>> {
    let found = ranges(text, fields, Kind::Text).unwrap_or_default();
    let mut secrets: Vec<Cow<'t, [u8]>> =
        found.into_iter().map(|range| Cow::Borrowed(&text[range])).collect();
    let mut next = decoded(text);
    for _ in 0..DECODINGS_MAX {
        let Some(plain) = next else { break };
        let found = ranges(&plain, fields, Kind::Text).unwrap_or_default();
        secrets.extend(found.into_iter().map(|range| Cow::Owned(plain[range].to_vec())));
        next = decoded(&plain);
    }
    secrets
}

/// The text with masked ranges; `None`: there are none. Without ranges everything is masked.
fn replaced(text: &[u8], ranges: Option<&[Range<usize>]>) -> Option<Vec<u8>> {
    let Some(ranges) = ranges else { return Some(MASK.to_vec()) };
    let (mut out, mut from) = (Vec::with_capacity(text.len()), 0);
    for range in ranges {
        out.extend_from_slice(&text[from..range.start]);
        out.extend_from_slice(MASK);
        from = range.end;
    }
    out.extend_from_slice(&text[from..]);
    (!ranges.is_empty()).then_some(out)
}

/// The start of the word with the first escape in a text. `plain`: the text with decoded escapes.
fn escaped_from(text: &[u8], plain: &[u8]) -> usize {
    let same = text.iter().zip(plain).take_while(|(one, other)| one == other).count();
    let is_bound = |byte: &u8| byte.is_ascii_whitespace() || b"?&;=\"'".contains(byte);
    text[..same].iter().rposition(is_bound).map_or(0, |at| at + 1)
}

/// The places of the secrets in a text, in order; `None`: it is too long, or has too many names.
fn ranges(text: &[u8], fields: &CredentialFields, kind: Kind) -> Option<Vec<Range<usize>>> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut search = Search::new(text, fields, kind, false);
    search.run()?;
    if search.is_secret_named && !search.is_named_secret {
        search = Search::new(text, fields, kind, true);
        search.run()?;
    }
    Some(search.found)
}

/// A value after a name: the value itself, and where the search goes on.
struct Value {
    range: Range<usize>,
    next: usize,
}

struct Search<'t> {
    text: &'t [u8],
    fields: &'t CredentialFields,
    kind: Kind,
    /// The secrets that are found.
    found: Vec<Range<usize>>,
    /// The end of the last secret. Names begin behind it.
    floor: usize,
    names_left: usize,
    /// The number of open brackets.
    depth: usize,
    /// Whether the search is between double quotes.
    is_in_string: bool,
    /// Where the content of a tag begins that names a secret: `<field name="password">`.
    secret_from: Option<usize>,
    /// Whether a value says that a value beside it is a secret: `"name":"password"`.
    is_secret_named: bool,
    /// Whether such values count as secrets.
    is_named_secret: bool,
}

impl<'t> Search<'t> {
    fn new(
        text: &'t [u8],
        fields: &'t CredentialFields,
        kind: Kind,
        is_named_secret: bool,
    ) -> Self {
        Self {
            text,
            fields,
            kind,
            found: Vec::new(),
            floor: 0,
            names_left: NAMES_MAX,
            depth: 0,
            is_in_string: false,
            secret_from: None,
            is_secret_named: false,
            is_named_secret,
        }
    }

    /// Searches the text; `None`: it has too many names.
    fn run(&mut self) -> Option<()> {
        let mut at = 0;
        while let Some(&byte) = self.text.get(at) {
            if self.secret_from.take_if(|from| at >= *from).is_some() {
                let end = memmem::find(&self.text[at..], b"</");
                let end = end.map_or(self.text.len(), |end| at + end);
                self.put(at..end);
                at = end;
                continue;
            }
            let next = match byte {
                b'/' => self.url(at),
                b'<' => self.element(at)?,
                b'e' | b'b' | b'B' | b'n' | b'N' => self.token(at),
                b':' => self.pair(at)?,
                b'=' if self.kind != Kind::Target => self.pair(at)?,
                b'{' | b'[' | b'(' => {
                    self.depth += 1;
                    at + 1
                }
                b'}' | b']' | b')' => {
                    self.depth = self.depth.saturating_sub(1);
                    at + 1
                }
                b'"' => {
                    let is_escaped = at > 0 && self.text[at - 1] == b'\\';
                    self.is_in_string ^= !is_escaped;
                    at + 1
                }
                _ => at + 1,
            };
            at = next.max(at + 1);
        }
        Some(())
    }

    /// Notes a secret, unless it is masked already.
    fn put(&mut self, range: Range<usize>) {
        self.floor = range.end;
        let value = &self.text[range.clone()];
        if !value.trim_ascii().is_empty() && value.trim_ascii() != MASK {
            self.found.push(range);
        }
    }

    fn is_secret(&mut self, name: &[u8]) -> Option<bool> {
        if name.is_empty() {
            return Some(false);
        }
        self.names_left = self.names_left.checked_sub(1)?;
        let is_named = self.is_named_secret && is_one_of(&NAMED, name);
        Some(is_named || self.fields.is_secret(name))
    }

    /// The user and password of a URL that may begin at this slash: `//user:password@host`, also `\/\/`.
    fn url(&mut self, at: usize) -> usize {
        let rest = &self.text[at + 1..];
        let start = match rest {
            [b'/', ..] => at + 2,
            [b'\\', b'/', ..] => at + 3,
            _ => return at + 1,
        };
        let near = &self.text[start..self.text.len().min(start + DISTANCE_BYTES_MAX)];
        let is_hard = |byte: &u8| byte.is_ascii_whitespace() || b"\"<>".contains(byte);
        let is_soft = |byte: &u8| is_hard(byte) || b"/?#\\".contains(byte);
        let authority = &near[..near.iter().position(is_soft).unwrap_or(near.len())];
        let end = match memchr::memrchr(b'@', authority) {
            Some(end) => Some(end),
            // A password with a slash: what follows the colon is no port.
            None => memchr::memchr(b':', authority)
                .filter(|colon| authority[colon + 1..].iter().any(|byte| !byte.is_ascii_digit()))
                .and_then(|colon| {
                    let rest = &near[colon..];
                    let rest = &rest[..rest.iter().position(is_hard).unwrap_or(rest.len())];
                    Some(colon + memchr::memchr(b'@', rest)?)
                }),
        };
        match end {
            Some(end) if end > 0 => {
                self.put(start..start + end);
                start + end
            }
            // A host may have the name of a secret: `//auth:8080/`.
            _ if authority.iter().rev().find(|byte| !byte.is_ascii_digit()) == Some(&b':') => {
                start + authority.len()
            }
            _ => start,
        }
    }

    /// A token that shows by itself what it is: a JWT (RFC 7519), or what follows the name of a scheme. Returns where the search
    /// goes on.
    fn token(&mut self, at: usize) -> usize {
        let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if at > 0 && is_of_word(self.text[at - 1]) {
            return at + 1;
        }
        let rest = &self.text[at..];
        let is_jwt = rest.starts_with(b"eyJ");
        let start = if is_jwt {
            at
        } else {
            let is_scheme = |it: &&&[u8]| {
                rest.get(..it.len()).is_some_and(|rest| rest.eq_ignore_ascii_case(it))
            };
            let Some(scheme) = SCHEMES.iter().find(is_scheme) else { return at + 1 };
            let behind = at + scheme.len();
            match self.text.get(behind) {
                Some(b'+') => behind + 1,
                Some(byte) if byte.is_ascii_whitespace() => blanks_end(self.text, behind),
                _ => return behind,
            }
        };
        let token = &self.text[start..];
        let token = &token[..token.iter().position(|it| !is_of_token(it)).unwrap_or(token.len())];
        let is_secret = token.len() >= TOKEN_BYTES_MIN && (!is_jwt || token.contains(&b'.'));
        if is_secret {
            self.put(start..start + token.len());
        }
        start + token.len()
    }

    /// The value of a name with this separator. Returns where the search goes on.
    fn pair(&mut self, at: usize) -> Option<usize> {
        let Some((name, is_quoted)) = name_before(&self.text[self.floor..at]) else {
            return Some(at + 1);
        };
        let is_namer = is_one_of(&NAMERS, name);
        let is_secret = self.is_secret(name)?;
        let is_bare = !is_quoted && self.depth == 0 && !self.is_in_string;
        let is_of_path = self.kind != Kind::Text && self.text[at] == b':' && is_bare;
        if (!is_secret && !is_namer) || is_of_path {
            return Some(at + 1);
        }
        // `=>`, `==`, `:=`
        let is_doubled = matches!(self.text.get(at + 1), Some(b'=' | b'>'));
        let start = blanks_end(self.text, at + 1 + usize::from(is_doubled));
        // `key` is the name of a secret and of what names one.
        if is_namer && self.names_secret(start, self.text[at])? {
            return Some(self.floor.max(start));
        }
        if !is_secret {
            return Some(start);
        }
        let value = self.value(start, self.text[at], is_quoted);
        self.put(value.range);
        Some(value.next)
    }

    /// Whether a value is the name of a secret: `name="password"`. Notes where that secret is.
    fn names_secret(&mut self, start: usize, separator: u8) -> Option<bool> {
        let near = &self.text[..self.text.len().min(start + NAME_BYTES_MAX)];
        let Some(value) = quoted(near, start) else { return Some(false) };
        if !self.is_secret(&self.text[value.range.clone()])? {
            return Some(false);
        }
        self.is_secret_named = true;
        // `<field name="password">x</field>`, and parts of a multipart body.
        if separator == b'=' {
            let near = self.text.len().min(value.next + DISTANCE_BYTES_MAX);
            let near = &self.text[value.next..near];
            let bracket = near.iter().position(|byte| matches!(byte, b'<' | b'>'));
            if let Some(bracket) =
                bracket.filter(|at| near[*at] == b'>' && !near[..*at].ends_with(b"/"))
            {
                self.secret_from = Some(value.next + bracket + 1);
                return Some(true);
            }
            let blank = |line: &[u8]| memmem::find(near, line).map(|at| at + line.len());
            if let Some(blank) = blank(b"\r\n\r\n").or_else(|| blank(b"\n\n")) {
                let from = value.next + blank;
                let end = memmem::find(&self.text[from..], b"\n--");
                self.put(from..end.map_or(self.text.len(), |end| from + end));
            }
        }
        Some(true)
    }

    /// A secret value. `is_quoted`: its name is quoted.
    fn value(&self, start: usize, separator: u8, is_quoted: bool) -> Value {
        let text = self.text;
        if let Some(value) = quoted(text, start) {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",;)}]>/&|\"'\\".contains(byte);
            if separator == b':' || text.get(value.next).is_none_or(is_end) {
                return value;
            }
        }
        let rest = &text[start..];
        let end_at = |is_end: &dyn Fn(&u8) -> bool| {
            let end = rest.iter().position(is_end).map_or(text.len(), |end| start + end);
            Value { range: start..end, next: end }
        };
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        match rest.first() {
            _ if separator == b'=' => Value { range: start..text.len(), next: text.len() },
            Some(b'{' | b'[') => {
                let end = bracket_end(text, start);
                Value { range: start..end, next: end }
            }
            _ if !is_quoted && self.is_in_string => end_at(&|byte| *byte == b'"'),
            _ if is_quoted || self.depth > 0 => {
                end_at(&|byte| is_line_end(byte) || b",})]".contains(byte))
            }
            _ => end_at(&is_line_end),
        }
    }

    /// The content of an element whose tag may begin here. Returns where the search goes on.
    fn element(&mut self, at: usize) -> Option<usize> {
        let Some(name) = tag_name(&self.text[at + 1..]) else { return Some(at + 1) };
        let behind = at + 1 + name.len();
        let local = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
        if is_one_of(&NAMERS, local)
            && self.text.get(behind) == Some(&b'>')
            && let Some(next) = self.naming_element(behind + 1)?
        {
            return Some(next);
        }
        if self.is_secret(name)? {
            let content = self.content(name, behind);
            self.put(content.clone());
            return Some(content.end);
        }
        Some(behind)
    }

    /// What follows the name in a tag, up to the end of its element: the content, or attributes too where there are any.
    fn content(&self, name: &[u8], behind: usize) -> Range<usize> {
        let rest = &self.text[behind..];
        let tag_end = memchr::memchr(b'>', rest);
        match tag_end {
            Some(end) if rest[..end].ends_with(b"/") => behind..behind + end - 1,
            None => behind..self.text.len(),
            Some(end) => {
                let start = behind + usize::from(end == 0);
                let close = [b"</", name].concat();
                let end = memmem::find(&self.text[start..], &close);
                start..end.map_or(self.text.len(), |end| start + end)
            }
        }
    }

    /// Where the search goes on behind an element with the name of the secret in the next one; `None`: it has none.
    /// `<key>password</key><string>x</string>`
    fn naming_element(&mut self, start: usize) -> Option<Option<usize>> {
        let near = &self.text[start..self.text.len().min(start + NAME_BYTES_MAX)];
        let Some(end) = memmem::find(near, b"</") else { return Some(None) };
        if !self.is_secret(near[..end].trim_ascii())? {
            return Some(None);
        }
        self.is_secret_named = true;
        let rest = &self.text[start + end..];
        let Some(tag) = memchr::memchr(b'<', &rest[2..]).map(|at| start + end + 2 + at) else {
            return Some(Some(start + end));
        };
        let Some(name) = tag_name(&self.text[tag + 1..]) else { return Some(Some(tag)) };
        let content = self.content(name, tag + 1 + name.len());
        self.put(content.clone());
        Some(Some(content.end))
    }
}

fn is_one_of(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Whether a byte may be in a token of credentials (`token68`, RFC 9110 section 11.2).
fn is_of_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte)
}

/// The name at the end of a text, and whether it is quoted; `None`: there is none.
fn name_before(text: &[u8]) -> Option<(&[u8], bool)> {
    let text = &text[text.len().saturating_sub(NAME_BYTES_MAX + BLANKS_MAX)..];
    let text = text.trim_ascii_end();
    // `user["password"] = x`
    let inner = text.strip_suffix(b"]").unwrap_or(text).trim_ascii_end();
    if let Some((quote, name)) = inner.split_last()
        && matches!(quote, b'"' | b'\'' | b'`')
    {
        let backslashes = name.iter().rev().take_while(|byte| **byte == b'\\').count();
        let name = &name[..name.len() - backslashes];
        let start = memchr::memrchr(*quote, name).map_or(0, |at| at + 1);
        return Some((&name[start..], true));
    }
    let is_other =
        |byte: &u8| byte.is_ascii_whitespace() || b"\"'`(){}<>?&;=:,|/#!^~".contains(byte);
    let start = text.iter().rposition(is_other).map_or(0, |at| at + 1);
    let name = &text[start..];
    let start = name.iter().position(|byte| !b"[]-$@.*+".contains(byte))?;
    Some((&name[start..], false))
}

/// The name of a tag behind its bracket; `None`: no tag begins there.
fn tag_name(text: &[u8]) -> Option<&[u8]> {
    let is_start = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_' || !byte.is_ascii();
    text.first().filter(is_start)?;
    let near = &text[..text.len().min(NAME_BYTES_MAX)];
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"<>/=\"'&".contains(byte);
    Some(&near[..near.iter().position(is_end).unwrap_or(near.len())])
}

fn blanks_end(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    start.min(text.len())
        + rest.iter().take(BLANKS_MAX).take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// A quoted value, whose quotes may be escaped as in JSON within a string; `None`: there is no quote. A value without an end
/// ends with the text.
fn quoted(text: &[u8], start: usize) -> Option<Value> {
    let rest = text.get(start..)?;
    let escapes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let quote = *rest.get(escapes).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let mark = &rest[..=escapes];
    let from = start + mark.len();
    let triple = mark.repeat(3);
    if rest.starts_with(&triple) {
        let from = start + triple.len();
        let end = memmem::find(&text[from..], &triple).map(|end| from + end);
        let (end, length) = end.map_or((text.len(), 0), |end| (end, triple.len()));
        return Some(Value { range: from..end, next: end + length });
    }
    let (mut at, mut backslashes) = (from, 0);
    while let Some(&byte) = text.get(at) {
        if byte == quote {
            // A quote in a string that an outer string contains has an escape for each level.
            let is_outer = backslashes < escapes;
            let is_end = !is_outer && (backslashes - escapes) % (2 * (escapes + 1)) == 0;
            let is_doubled = quote == b'\'' && text.get(at + 1) == Some(&b'\'');
            if is_outer || (is_end && !is_doubled) {
                let end = at - backslashes.min(escapes);
                return Some(Value { range: from..end, next: if is_outer { end } else { at + 1 } });
            }
            at += usize::from(is_doubled);
        }
        backslashes = if byte == b'\\' { backslashes + 1 } else { 0 };
        at += 1;
    }
    Some(Value { range: from..text.len(), next: text.len() })
}

/// The index behind the bracket that closes the one at `start`, or the end of the text.
fn bracket_end(text: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b'"' => {
                let escapes = text[start..at].iter().rev().take_while(|it| **it == b'\\').count();
                at = quoted(text, at - escapes).map_or(text.len(), |value| value.next);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests;
