//! Splits SQL into tokens. Blanks and closed comments are skipped.

use super::literals;
use super::token::{Class, Token};
use super::words;

/// The dialect, for syntax on which databases disagree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// A backslash is an escape, `#` begins a comment, `--` begins a comment only before a blank, and `/*! */` is not a
    /// comment.
    MySql,
    /// The standard, as implemented by PostgreSQL, SQL Server, Oracle and SQLite.
    Ansi,
}

/// The position in a value, and the state of skipped comments.
pub(super) struct Lexer<'a> {
    input: &'a [u8],
    at: usize,
    dialect: Dialect,
    /// Whether the position is within `/*!`. The end of this comment is then skipped too.
    conditional: bool,
    /// Whether a comment was skipped.
    pub(super) commented: bool,
    /// The number of bytes inspected, for the test of linear time.
    #[cfg(test)]
    pub(super) steps: usize,
}

/// Maximum number of version digits after `/*!`.
const VERSION_DIGITS_MAX: usize = 6;

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a [u8], at: usize, dialect: Dialect) -> Self {
        Self {
            input,
            at,
            dialect,
            conditional: false,
            commented: false,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// The bytes of a token.
    pub(super) fn bytes(&self, token: &Token) -> &'a [u8] {
        self.input.get(token.start..token.end).unwrap_or_default()
    }

    /// The next token. After the end, always [`Class::End`].
    pub(super) fn next(&mut self) -> Token {
        let before = self.at;
        let comment = self.skip();
        let start = self.at;
        let (class, end, open_quote) = match (self.input.get(start), comment) {
            (None, Some(_)) => (Class::Comment, start, 0),
            (None, None) => (Class::End, start, 0),
            (Some(&byte), _) => self.token(byte),
        };
        let start = comment.filter(|_| class == Class::Comment).unwrap_or(start);
        let gap = start > before;
        self.at = end;
        #[cfg(test)]
        {
            self.steps += 1 + self.at - before;
        }
        Token { class, start, end, gap, open_quote }
    }

    fn byte(&self, at: usize) -> u8 {
        self.input.get(at).copied().unwrap_or(0)
    }

    fn rest(&self, at: usize) -> &'a [u8] {
        self.input.get(at..).unwrap_or_default()
    }

    /// Skips blanks and comments. Returns the start of a comment that ends the input: a line comment, or a comment without
    /// an end.
    fn skip(&mut self) -> Option<usize> {
        let mut comment = None;
        loop {
            let at = self.at;
            match (self.byte(at), self.byte(at + 1)) {
                _ if at >= self.input.len() => return comment,
                (b'/', b'*') => {
                    self.commented = true;
                    if !self.skip_block() {
                        comment = Some(at);
                    }
                }
                (b'*', b'/') if self.conditional => self.at = at + 2,
                (b'#', _) if self.dialect == Dialect::MySql => comment = Some(self.skip_line()),
                (b'-', b'-') if self.begins_line_comment(at) => comment = Some(self.skip_line()),
                _ => match literals::blank_length(self.input, at) {
                    0 => return comment.filter(|_| at >= self.input.len()),
                    length => self.at = at + length,
                },
            }
        }
    }

    fn begins_line_comment(&self, at: usize) -> bool {
        self.dialect == Dialect::Ansi
            || at + 2 >= self.input.len()
            || literals::blank_length(self.input, at + 2) > 0
    }

    /// Skips a comment up to the end of its line, and returns its start.
    fn skip_line(&mut self) -> usize {
        let start = self.at;
        self.commented = true;
        self.at = memchr::memchr(b'\n', self.rest(start))
            .map_or(self.input.len(), |length| start + length + 1);
        start
    }

    /// Skips `/* */`, or the beginning of `/*!` if that is not a comment. Returns false if the comment has no end.
    fn skip_block(&mut self) -> bool {
        let start = self.at;
        if self.dialect == Dialect::MySql && self.byte(start + 2) == b'!' {
            let digits = self
                .rest(start + 3)
                .iter()
                .take(VERSION_DIGITS_MAX)
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            self.at = start + 3 + digits;
            self.conditional = true;
            return true;
        }
        let length = literals::find_pair(self.rest(start + 2), *b"*/");
        self.at = length.map_or(self.input.len(), |length| start + length + 4);
        length.is_some()
    }

    /// The class of the token that begins with `byte`, its end, and its unclosed quote.
    fn token(&self, byte: u8) -> (Class, usize, u8) {
        let at = self.at;
        match byte {
            b'\'' | b'"' => self.text(byte, at + 1),
            b'`' => (Class::Name, self.after(b'`', at + 1), 0),
            b'[' => match memchr::memchr(b']', self.rest(at)) {
                Some(length) => (Class::Name, at + length + 1, 0),
                None => (Class::Other, self.input.len(), 0),
            },
            b'0'..=b'9' => (Class::Number, literals::number_end(self.input, at), 0),
            b'.' if self.byte(at + 1).is_ascii_digit() => {
                (Class::Number, literals::number_end(self.input, at), 0)
            }
            b'$' => self.dollar(at),
            b'@' => self.variable(at),
            b'\\' if self.byte(at + 1) == b'N' => (Class::Constant, at + 2, 0),
            _ if literals::is_word_start(byte) => self.word(at),
            _ => {
                let (class, length) = self.operator(byte);
                (class, at + length, 0)
            }
        }
    }

    /// The position after the next `quote`, or the end.
    fn after(&self, quote: u8, at: usize) -> usize {
        memchr::memchr(quote, self.rest(at)).map_or(self.input.len(), |length| at + length + 1)
    }

    fn text(&self, quote: u8, at: usize) -> (Class, usize, u8) {
        match literals::text_end(self.input, at, quote, self.dialect == Dialect::MySql) {
            Some(end) => (Class::Text, end, 0),
            None => (Class::Text, self.input.len(), quote),
        }
    }

    /// The class, end and unclosed quote of `$1`, an amount of money, `$$text$$`, or a name.
    fn dollar(&self, at: usize) -> (Class, usize, u8) {
        match self.byte(at + 1) {
            b'0'..=b'9' => (Class::Number, literals::number_end(self.input, at + 1), 0),
            b'$' => {
                let end = literals::find_pair(self.rest(at + 2), *b"$$")
                    .map_or(self.input.len(), |length| at + length + 4);
                (Class::Text, end, 0)
            }
            next if literals::is_word_start(next) => self.word(at + 1),
            _ => (Class::Other, at + 1, 0),
        }
    }

    fn variable(&self, at: usize) -> (Class, usize, u8) {
        let name = if self.byte(at + 1) == b'@' { at + 2 } else { at + 1 };
        match self.byte(name) {
            b'>' => (Class::Compare, name + 1, 0),
            quote @ (b'`' | b'\'' | b'"') => (Class::Variable, self.after(quote, name + 1), 0),
            _ => (Class::Variable, literals::name_end(self.input, name), 0),
        }
    }

    /// The class, end and unclosed quote of a word, or of a text with a prefix such as `N'...'`.
    fn word(&self, at: usize) -> (Class, usize, u8) {
        let end = literals::name_end(self.input, at);
        let word = self.input.get(at..end).unwrap_or_default();
        if self.byte(end) == b'\'' && literals::is_text_prefix(word) {
            return self.text(b'\'', end + 1);
        }
        (words::classify(word), end, 0)
    }

    fn operator(&self, byte: u8) -> (Class, usize) {
        let at = self.at;
        match (byte, self.byte(at + 1)) {
            (b'<', b'=') if self.byte(at + 2) == b'>' => (Class::Compare, 3),
            (b'<', b'<') | (b'>', b'>') => (Class::Arithmetic, 2),
            (b'<', b'=' | b'>' | b'@')
            | (b'>', b'=')
            | (b'!', b'=' | b'<' | b'>')
            | (b'=', b'=')
            | (b'^', b'=') => (Class::Compare, 2),
            (b'<' | b'>' | b'=', _) => (Class::Compare, 1),
            (b'!', _) => (Class::Not, 1),
            (b'&', b'&') => (Class::Logic, 2),
            (b'|', b'|') if self.dialect == Dialect::MySql => (Class::Logic, 2),
            (b'|', b'|') => (Class::Bitwise, 2),
            (b'|' | b'^' | b'~', _) => (Class::Bitwise, 1),
            (b'-', b'>') if self.byte(at + 2) == b'>' => (Class::Arithmetic, 3),
            (b'-', b'>') => (Class::Arithmetic, 2),
            (b'+' | b'-', _) => (Class::Sign, 1),
            (b'*', _) => (Class::Star, 1),
            (b'/' | b'%' | b'&' | b'#', _) => (Class::Arithmetic, 1),
            (b':', b'=') => (Class::Assign, 2),
            (b':', b':') => (Class::Cast, 2),
            (b'(' | b'{', _) => (Class::Open, 1),
            (b')' | b'}', _) => (Class::Close, 1),
            (b',', _) => (Class::Comma, 1),
            (b';', _) => (Class::Semicolon, 1),
            (b'.', _) => (Class::Dot, 1),
            _ => (Class::Other, 1),
        }
    }
}
