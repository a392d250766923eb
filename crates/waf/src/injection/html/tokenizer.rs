//! An HTML tokenizer, as in browsers (WHATWG HTML section 13.2.5). Where older browsers differ, it uses the variant that
//! finds more injections.

use memchr::{memchr, memchr2};

/// The context in a page where a value begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Text.
    Text,
    /// Inside a tag, before the name of an attribute.
    Tag,
    /// Inside an attribute value without quotes.
    UnquotedValue,
    /// Inside an attribute value with this quote.
    QuotedValue(u8),
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// `<name`.
    TagOpen(&'a [u8]),
    /// An attribute of a tag; its value may be empty.
    Attribute(Attribute<'a>),
    /// The content of `<!-- -->`, `<! >` or `<? >`.
    Comment(&'a [u8]),
}

/// An attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a [u8],
    /// The value; `None`: no `=` follows the name.
    pub(super) value: Option<&'a [u8]>,
    /// Whether the input itself opened the tag. Otherwise the page may have opened it before.
    pub(super) in_own_tag: bool,
}

/// A tokenizer of a value.
pub(super) struct Tokenizer<'a> {
    input: &'a [u8],
    at: usize,
    in_tag: bool,
    own_tag: bool,
    /// The number of bytes inspected, for the test of linear time.
    #[cfg(test)]
    pub(super) steps: std::cell::Cell<usize>,
}

impl<'a> Tokenizer<'a> {
    pub(super) fn new(input: &'a [u8], place: Place) -> Self {
        let mut tokenizer = Self {
            input,
            at: 0,
            in_tag: place != Place::Text,
            own_tag: false,
            #[cfg(test)]
            steps: std::cell::Cell::default(),
        };
        tokenizer.at = match place {
            Place::Text | Place::Tag => 0,
            Place::UnquotedValue => tokenizer.seek(0, |byte| is_space(byte) || byte == b'>'),
            Place::QuotedValue(quote) => tokenizer.seek_byte(0, quote) + 1,
        };
        tokenizer
    }

    /// The input that is not read yet.
    pub(super) fn not_read(&self) -> &'a [u8] {
        self.rest(self.at)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.input.get(at).copied()
    }

    fn rest(&self, at: usize) -> &'a [u8] {
        self.input.get(at..).unwrap_or_default()
    }

    fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.input.get(from..to).unwrap_or_default()
    }

    /// The position of the first wanted byte from `at` on, or the end.
    fn seek(&self, at: usize, is_wanted: impl Fn(u8) -> bool) -> usize {
        let rest = self.rest(at);
        let length = rest.iter().position(|byte| is_wanted(*byte)).unwrap_or(rest.len());
        self.count(length);
        at + length
    }

    /// The position of the next `byte` from `at` on, or the end.
    fn seek_byte(&self, at: usize, byte: u8) -> usize {
        let rest = self.rest(at);
        let length = memchr(byte, rest).unwrap_or(rest.len());
        self.count(length);
        at + length
    }

    #[cfg(test)]
    fn count(&self, length: usize) {
        self.steps.set(self.steps.get() + length + 1);
    }

    #[cfg(not(test))]
    fn count(&self, _length: usize) {}

    fn read(&mut self) -> Option<Token<'a>> {
        loop {
            let token = if self.in_tag { self.attribute() } else { self.text() };
            if token.is_some() || self.at >= self.input.len() {
                return token;
            }
        }
    }

    /// Reads text up to the next tag or comment.
    fn text(&mut self) -> Option<Token<'a>> {
        let name = self.seek_byte(self.at, b'<') + 1;
        self.at = name;
        match self.byte(name) {
            Some(b'!') if self.rest(name).starts_with(b"!--") => Some(self.comment(name + 3)),
            Some(b'!' | b'?' | b'%') => Some(self.bogus_comment(name + 1)),
            // Current browsers ignore attributes of end tags, but old browsers did not.
            Some(b'/') if self.byte(name + 1).is_some_and(|byte| byte.is_ascii_alphabetic()) => {
                let end = self.name_end(name + 1);
                self.enter_tag(end);
                None
            }
            Some(byte) if byte.is_ascii_alphabetic() => Some(self.tag(name)),
            _ => None,
        }
    }

    fn tag(&mut self, name: usize) -> Token<'a> {
        let end = self.name_end(name);
        self.enter_tag(end);
        Token::TagOpen(self.slice(name, end))
    }

    fn enter_tag(&mut self, at: usize) {
        self.at = at;
        self.in_tag = true;
        self.own_tag = true;
    }

    fn name_end(&self, at: usize) -> usize {
        self.seek(at, |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'<'))
    }

    fn comment(&mut self, start: usize) -> Token<'a> {
        // `<!-->` and `<!--->` are complete comments.
        let rest = self.rest(start);
        if let Some(length) =
            [&b">"[..], b"->"].iter().find(|end| rest.starts_with(end)).map(|end| end.len())
        {
            self.at = start + length;
            return Token::Comment(&[]);
        }
        let mut dashes = start;
        loop {
            dashes = self.seek(dashes, |byte| byte == b'-');
            let rest = self.rest(dashes);
            let mark = [&b"-->"[..], b"--!>"]
                .iter()
                .find(|mark| rest.starts_with(mark))
                .map(|mark| mark.len());
            if mark.is_some() || rest.is_empty() {
                self.at = dashes + mark.unwrap_or(0);
                return Token::Comment(self.slice(start, dashes));
            }
            dashes += 1;
        }
    }

    fn bogus_comment(&mut self, start: usize) -> Token<'a> {
        let end = self.seek_byte(start, b'>');
        self.at = end + 1;
        Token::Comment(self.slice(start, end))
    }

    /// Reads an attribute or the end of the tag.
    fn attribute(&mut self) -> Option<Token<'a>> {
        let start = self.seek(self.at, |byte| !(is_space(byte) || matches!(byte, b'/' | 0)));
        self.at = start;
        match self.byte(start)? {
            b'>' => {
                self.at = start + 1;
                self.in_tag = false;
                self.own_tag = false;
                return None;
            }
            // Browsers parse this as the name of an attribute; filters that remove tags do not.
            b'<' if self.byte(start + 1).is_some_and(|byte| byte.is_ascii_alphabetic()) => {
                return Some(self.tag(start + 1));
            }
            _ => {}
        }
        let end = self.attribute_name_end(start);
        let name = self.slice(start, end);
        let equals = self.seek(end, |byte| !is_space(byte));
        if self.byte(equals) != Some(b'=') {
            self.at = end;
            return Some(self.make(name, None));
        }
        let value = self.value(equals + 1);
        Some(self.make(name, Some(value)))
    }

    fn make(&self, name: &'a [u8], value: Option<&'a [u8]>) -> Token<'a> {
        Token::Attribute(Attribute { name, value, in_own_tag: self.own_tag })
    }

    /// The end of a name, which has at least one byte.
    fn attribute_name_end(&self, start: usize) -> usize {
        let mut end = start + 1;
        loop {
            end =
                self.seek(end, |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'=' | b'<'));
            let begins_tag = self.byte(end + 1).is_some_and(|byte| byte.is_ascii_alphabetic());
            if self.byte(end) != Some(b'<') || begins_tag {
                return end;
            }
            end += 1;
        }
    }

    /// Reads the value after `=`.
    fn value(&mut self, at: usize) -> &'a [u8] {
        let start = self.seek(at, |byte| !is_space(byte));
        if let Some(quote @ (b'"' | b'\'')) = self.byte(start) {
            let end = self.seek_byte(start + 1, quote);
            self.at = end + 1;
            return self.slice(start + 1, end);
        }
        // Internet Explorer treats a backquote as a quote, so the next attribute begins after the second backquote.
        let is_backquoted = self.byte(start) == Some(b'`');
        let end = self.seek(start + usize::from(is_backquoted), |byte| {
            is_space(byte) || byte == b'>' || (is_backquoted && byte == b'`')
        });
        self.at = if self.byte(end) == Some(b'`') { end + 1 } else { end };
        self.slice(start, end)
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.read()
    }
}

/// Whether the byte is whitespace between attributes: the whitespace of HTML, and the vertical tab, which old browsers
/// accept.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Whether a value has a byte that every injection needs, in any context.
pub(super) fn has_markup(input: &[u8]) -> bool {
    memchr2(b'<', b'=', input).is_some()
}
