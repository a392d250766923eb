//! The tokens of a value with one token of look-ahead, and the fingerprint of the tokens taken.

use super::fingerprint::Fingerprint;
use super::lexer::{Dialect, Lexer};
use super::token::{Class, Token};

/// A cursor over tokens, forwards only.
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

    /// Takes a token.
    pub(super) fn next(&mut self) -> Token {
        let token = self.ahead;
        if token.class != Class::End {
            self.last = token;
            self.ahead = self.lexer.next();
            self.fingerprint.push(token.class.letter());
        }
        token
    }

    /// Prepends a token to the fingerprint: the text that a value begins with.
    pub(super) fn begin_with(&mut self, class: Class) {
        self.fingerprint.push(class.letter());
    }

    /// The last token taken, except the end.
    pub(super) fn last(&self) -> Token {
        self.last
    }

    /// The token after the last one taken.
    pub(super) fn peek(&self) -> Token {
        self.ahead
    }

    /// Takes the next token if it is of this class.
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

    /// Whether a comment was skipped up to the look-ahead token.
    pub(super) fn commented(&self) -> bool {
        self.lexer.commented
    }

    /// Number of bytes examined.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.lexer.steps
    }
}
