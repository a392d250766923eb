//! Tokens of HTML, as browsers cut it (WHATWG HTML, section 13.2.5), where older browsers differ in the way that finds more.

use memchr::{memchr, memchr2, memmem};

/// Where in a page a value begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In text.
    Text,
    /// In a tag, where the name of an attribute may come.
    Tag,
    /// In the value of an attribute without quotes.
    UnquotedValue,
    /// In the value of an attribute within this quote.
    QuotedValue(u8),
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// `<name`.
    TagOpen(&'a [u8]),
    /// The attribute of a tag, with a value that may be empty.
    Attribute(Attribute<'a>),
    /// What stands within `<!-- -->`, `<! >` or `<? >`.
    Comment(&'a [u8]),
}

/// An attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) name: &'a [u8],
    /// None: no `=` follows the name.
    pub(super) value: Option<&'a [u8]>,
    /// Whether the value itself opened the tag. Else the tag is one that the page may have around it.
    pub(super) in_own_tag: bool,
}

/// Cuts a value into tokens.
pub(super) struct Tokenizer<'a> {
    input: &'a [u8],
    at: usize,
    in_tag: bool,
    own_tag: bool,
    /// Bytes looked at, for the test of linear time.
    #[cfg(test)]
    pub(super) steps: usize,
}

impl<'a> Tokenizer<'a> {
    pub(super) fn new(input: &'a [u8], place: Place) -> Self {
        let at = match place {
            Place::Text | Place::Tag => 0,
            Place::UnquotedValue => input
                .iter()
                .position(|byte| is_space(*byte) || *byte == b'>')
                .unwrap_or(input.len()),
            Place::QuotedValue(quote) => {
                memchr(quote, input).map_or(input.len(), |quote| quote + 1)
            }
        };
        Self {
            input,
            at,
            in_tag: place != Place::Text,
            own_tag: false,
            #[cfg(test)]
            steps: at,
        }
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
        let Some(length) = memchr(b'<', self.rest(self.at)) else {
            self.at = self.input.len();
            return None;
        };
        let name = self.at + length + 1;
        self.at = name;
        match self.byte(name) {
            Some(b'!') if self.rest(name).starts_with(b"!--") => Some(self.comment(name + 3)),
            Some(b'!' | b'?' | b'%') => Some(self.bogus_comment(name + 1)),
            // Attributes of an end tag have no effect today, and had one in old browsers.
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
        let ends = |byte: &u8| is_space(*byte) || matches!(byte, b'/' | b'>' | b'<');
        self.rest(at).iter().position(ends).map_or(self.input.len(), |length| at + length)
    }

    fn comment(&mut self, start: usize) -> Token<'a> {
        // `<!-->` and `<!--->` are whole comments.
        let rest = self.rest(start);
        if let Some(length) =
            [&b">"[..], b"->"].iter().find(|end| rest.starts_with(end)).map(|end| end.len())
        {
            self.at = start + length;
            return Token::Comment(&[]);
        }
        let bang = memmem::find(rest, b"--!>").map(|length| (length, 4));
        let plain = memmem::find(rest, b"-->").map(|length| (length, 3));
        let (length, mark) = [bang, plain].into_iter().flatten().min().unwrap_or((rest.len(), 0));
        self.at = start + length + mark;
        Token::Comment(self.slice(start, start + length))
    }

    fn bogus_comment(&mut self, start: usize) -> Token<'a> {
        let length = memchr(b'>', self.rest(start)).unwrap_or(self.rest(start).len());
        self.at = start + length + 1;
        Token::Comment(self.slice(start, start + length))
    }

    /// Reads an attribute, or the end of the tag.
    fn attribute(&mut self) -> Option<Token<'a>> {
        let skipped = |byte: &u8| !(is_space(*byte) || matches!(byte, b'/' | 0));
        let start = self
            .rest(self.at)
            .iter()
            .position(skipped)
            .map_or(self.input.len(), |length| self.at + length);
        self.at = start;
        match self.byte(start)? {
            b'>' => {
                self.at = start + 1;
                self.in_tag = false;
                self.own_tag = false;
                return None;
            }
            // A browser takes this as a name. Filters that take tags away do not.
            b'<' if self.byte(start + 1).is_some_and(|byte| byte.is_ascii_alphabetic()) => {
                return Some(self.tag(start + 1));
            }
            _ => {}
        }
        let end = self.attribute_name_end(start);
        let name = self.slice(start, end);
        let equals = self
            .rest(end)
            .iter()
            .position(|byte| !is_space(*byte))
            .map_or(self.input.len(), |length| end + length);
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

    /// The end of a name, which has one byte at least.
    fn attribute_name_end(&self, start: usize) -> usize {
        let rest = self.rest(start + 1);
        let ends = |(place, byte): (usize, &u8)| {
            is_space(*byte)
                || matches!(byte, b'/' | b'>' | b'=')
                || (*byte == b'<' && rest.get(place + 1).is_some_and(u8::is_ascii_alphabetic))
        };
        rest.iter()
            .enumerate()
            .position(|(place, byte)| ends((place, byte)))
            .map_or(self.input.len(), |length| start + 1 + length)
    }

    /// Reads the value that follows `=`.
    fn value(&mut self, at: usize) -> &'a [u8] {
        let start = self
            .rest(at)
            .iter()
            .position(|byte| !is_space(*byte))
            .map_or(self.input.len(), |length| at + length);
        if let Some(quote @ (b'"' | b'\'')) = self.byte(start) {
            let length = memchr(quote, self.rest(start + 1)).unwrap_or(self.rest(start + 1).len());
            self.at = start + length + 2;
            return self.slice(start + 1, start + 1 + length);
        }
        let ends = |byte: &u8| is_space(*byte) || *byte == b'>';
        let length = self.rest(start).iter().position(ends).unwrap_or(self.rest(start).len());
        let value = self.slice(start, start + length);
        // A backquote is a quote to Internet Explorer: what follows the second one is the next attribute.
        let quoted = value.strip_prefix(b"`").and_then(|inner| memchr(b'`', inner));
        self.at = start + quoted.map_or(length, |inner| inner + 2);
        self.slice(start, start + length)
    }
}

impl<'a> Iterator for Tokenizer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        #[cfg(test)]
        let before = self.at;
        let token = self.read();
        #[cfg(test)]
        {
            self.steps += 1 + self.at - before;
        }
        token
    }
}

/// Blanks between attributes: those of HTML, and the vertical tab, which old browsers take as one.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Whether a value has a byte without which none of the places matters.
pub(super) fn has_markup(input: &[u8]) -> bool {
    memchr2(b'<', b'=', input).is_some()
}
