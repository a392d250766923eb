//! The tokens of a value with one token of look-ahead, and the fingerprint of the consumed tokens.

use super::fingerprint::Fingerprint;
use super::lexer::{Dialect, Lexer};
use super::token::{Class, Token};

/// A forward cursor over tokens.
pub(super) struct Tokens<'a> {
    lexer: Lexer<'a>,
    ahead: Token,
    last: Token,
    pub(super) fingerprint: Fingerprint,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(input: &'a [u8], at: usize, dialect: Dialect) -> Self {
        let mut lexer = Lexer::new(input, at, dialect);
        let ahead = lexer.next();
        Self { lexer, ahead, last: ahead, fingerprint: Fingerprint::default() }
    }

    /// Consumes a token.
    pub(super) fn next(&mut self) -> Token {
        let token = self.ahead;
        if token.class != Class::End {
            self.last = token;
            self.ahead = self.lexer.next();
            self.fingerprint.push(token.class.letter());
        }
        token
    }

    /// Prepends a token to the fingerprint: the text at the beginning of a value.
    pub(super) fn begin_with(&mut self, class: Class) {
        self.fingerprint.push(class.letter());
    }

    /// The last consumed token, except the end.
    pub(super) fn last(&self) -> Token {
        self.last
    }

    /// The next token, not consumed.
    pub(super) fn peek(&self) -> Token {
        self.ahead
    }

    /// Consumes the next token if it has this class.
    pub(super) fn take(&mut self, class: Class) -> bool {
        let is = self.ahead.class == class;
        if is {
            self.next();
        }
        is
    }

    /// The bytes of a token.
    pub(super) fn bytes(&self, token: &Token) -> &'a [u8] {
        self.lexer.bytes(token)
    }

    /// Whether a comment was skipped before the look-ahead token or earlier.
    pub(super) fn commented(&self) -> bool {
        self.lexer.commented
    }

    /// The number of bytes inspected.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.lexer.steps
    }
}
