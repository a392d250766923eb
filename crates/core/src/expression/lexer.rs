//! The lexer of expressions (CEL language definition, "Syntax").

use std::ops::Range;

use super::ExpressionError;
use super::foreign;

/// A token and its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'t> {
    pub kind: TokenKind<'t>,
    pub range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind<'t> {
    Name(&'t str),
    /// The value of a text literal.
    Text(String),
    /// An integer without its sign.
    Integer(u64),
    /// An operator or a bracket, as written.
    Symbol(&'static str),
    End,
}

/// Help for the operators of other products that match a pattern.
const PATTERN_HELP: &str = "for a pattern write `a.matches('^b')`";
/// Symbols; a symbol that begins with another one is before it.
const SYMBOLS: [&str; 23] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", ".", ",", "(", ")", "[", "]", "}",
    "-", "+", "*", "/", "%",
];

pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    /// A lexer from byte `start` of the text on.
    pub fn new(text: &'t str, start: usize) -> Self {
        Self { text, at: start }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next token; after the last, always [`TokenKind::End`].
    pub fn next(&mut self) -> Result<Token<'t>, ExpressionError> {
        self.skip_blanks();
        let start = self.at;
        let Some(first) = self.rest().chars().next() else {
            return Ok(Token { kind: TokenKind::End, range: start..start });
        };
        let kind = match first {
            '"' | '\'' => self.text_literal(start, false)?,
            '0'..='9' => self.integer()?,
            '_' | 'a'..='z' | 'A'..='Z' => self.name()?,
            _ => self.symbol(first)?,
        };
        Ok(Token { kind, range: start..self.at })
    }

    /// Skips whitespace, and comments from `//` to the end of the line.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
            self.at += rest.len() - blank.len();
            if !blank.starts_with("//") {
                return;
            }
            self.at += blank.find('\n').unwrap_or(blank.len());
        }
    }

    fn symbol(&mut self, first: char) -> Result<TokenKind<'t>, ExpressionError> {
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest().starts_with(**symbol)) {
            self.at += symbol.len();
            return Ok(TokenKind::Symbol(symbol));
        }
        let error = ExpressionError::new(
            self.at..self.at + first.len_utf8(),
            format!("`{}` means nothing here", first.escape_debug()),
        );
        Err(match first {
            '&' => error.help("did you mean `&&`?"),
            '|' => error.help("did you mean `||`?"),
            '=' if self.rest()[1..].starts_with('~') => error.help(PATTERN_HELP),
            '~' => error.help(PATTERN_HELP),
            '=' => error.help("did you mean `==`?"),
            '$' => foreign::of_variable(error, &self.rest()[1..]),
            '{' => error.help("there are no maps in expressions but data sets: `data['name']`"),
            _ => error,
        })
    }

    fn name(&mut self) -> Result<TokenKind<'t>, ExpressionError> {
        let rest = self.rest();
        let length = rest
            .find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'))
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let start = self.at;
        self.at += length;
        if !after.starts_with(['"', '\'']) {
            return Ok(TokenKind::Name(name));
        }
        match name {
            "r" | "R" => self.text_literal(start, true),
            _ => Err(ExpressionError::new(
                start..self.at,
                format!("`{name}` before a quote means nothing here"),
            )
            .help("`r'…'` is text without escapes; there are no byte literals")),
        }
    }

    /// Reads an integer: decimal, or hexadecimal after `0x`.
    fn integer(&mut self) -> Result<TokenKind<'t>, ExpressionError> {
        let rest = self.rest();
        let length = rest.find(|char: char| !char.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let start = self.at;
        self.at += length;
        let is_fraction =
            after.starts_with('.') && after[1..].starts_with(|char: char| char.is_ascii_digit());
        let (digits, radix) = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => (digits, 16),
            None => (word, 10),
        };
        if is_fraction || digits.is_empty() || !digits.chars().all(|char| char.is_digit(radix)) {
            return Err(ExpressionError::new(start..self.at, format!("`{word}` is no integer"))
                .help("numbers are 64-bit integers, decimal or hexadecimal: `42`, `0x2a`"));
        }
        match u64::from_str_radix(digits, radix) {
            Ok(magnitude) => Ok(TokenKind::Integer(magnitude)),
            Err(_) => Err(too_large(start..self.at)),
        }
    }

    /// Reads a text literal whose opening quote is next. `start`: the position of the quote or its prefix.
    fn text_literal(&mut self, start: usize, raw: bool) -> Result<TokenKind<'t>, ExpressionError> {
        let rest = self.rest();
        let quote = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quote| rest.starts_with(quote))
            .unwrap_or("'");
        self.at += quote.len();
        let mut meaning = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(quote) {
                self.at += quote.len();
                return Ok(TokenKind::Text(meaning));
            }
            let Some(char) = rest.chars().next() else {
                break;
            };
            if char == '\\' && !raw {
                meaning.push(self.escape()?);
                continue;
            }
            if matches!(char, '\n' | '\r') && quote.len() == 1 {
                break;
            }
            meaning.push(char);
            self.at += char.len_utf8();
        }
        Err(ExpressionError::new(start..self.at, format!("the closing {quote} is missing")))
    }

    /// Reads an escape sequence whose backslash is next.
    fn escape(&mut self) -> Result<char, ExpressionError> {
        let start = self.at;
        let escape = &self.rest()[1..];
        let first = escape.chars().next();
        let meaning = match first {
            Some('a') => Some('\x07'),
            Some('b') => Some('\x08'),
            Some('f') => Some('\x0c'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('v') => Some('\x0b'),
            Some(same @ ('\\' | '?' | '"' | '\'' | '`')) => Some(same),
            _ => None,
        };
        if let Some(meaning) = meaning {
            self.at += 2;
            return Ok(meaning);
        }
        let (skipped, length, radix) = match first {
            Some('x' | 'X') => (1, 2, 16),
            Some('u') => (1, 4, 16),
            Some('U') => (1, 8, 16),
            Some('0'..='3') => (0, 3, 8),
            _ => (0, 0, 10),
        };
        let digits = escape.get(skipped..skipped + length).unwrap_or("");
        let meaning = (!digits.is_empty() && digits.chars().all(|char| char.is_digit(radix)))
            .then(|| u32::from_str_radix(digits, radix).ok())
            .flatten()
            .and_then(char::from_u32);
        match meaning {
            Some(meaning) => {
                self.at += 1 + skipped + length;
                Ok(meaning)
            }
            None => {
                let end = start + 1 + first.map_or(0, char::len_utf8);
                Err(ExpressionError::new(start..end, "not an escape sequence")
                    .help("`\\\\` is a backslash; in a regular expression write `r'…'`"))
            }
        }
    }
}

pub(super) fn too_large(range: Range<usize>) -> ExpressionError {
    ExpressionError::new(range, "the number does not fit into 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<TokenKind<'_>>, ExpressionError> {
        let mut lexer = Lexer::new(text, 0);
        let mut words = Vec::new();
        loop {
            match lexer.next()?.kind {
                TokenKind::End => return Ok(words),
                kind => words.push(kind),
            }
        }
    }

    #[test]
    fn text_literals() {
        for (literal, expected) in [
            (r#""a'b""#, "a'b"),
            (r#"'a"b'"#, "a\"b"),
            (r"'\a\b\f\n\r\t\v\\\?\'\`'", "\x07\x08\x0c\n\r\t\x0b\\?'`"),
            (r#"'\"'"#, "\""),
            (r"'\x41\X7e\u00e9\U0001F600\101\000'", "A~é😀A\0"),
            (r"'\xff'", "ÿ"),
            (r"r'\d+\.'", r"\d+\."),
            (r#"R"a\""#, r"a\"),
            ("'''a\n'b'\n'''", "a\n'b'\n"),
            ("\"\"\"a\"b\"\"\"", "a\"b"),
            ("r'''\\\n'''", "\\\n"),
            ("''", ""),
            ("'ä€'", "ä€"),
        ] {
            assert_eq!(words(literal), Ok(vec![TokenKind::Text(expected.into())]), "{literal}");
        }
    }

    #[test]
    fn other_words() {
        use TokenKind::{Integer, Name, Symbol};
        assert_eq!(
            words("a.b_1 // comment\n<= 0x2A&&!42"),
            Ok(vec![
                Name("a"),
                Symbol("."),
                Name("b_1"),
                Symbol("<="),
                Integer(42),
                Symbol("&&"),
                Symbol("!"),
                Integer(42)
            ])
        );
        assert_eq!(words(" // nothing"), Ok(vec![]));
        assert_eq!(words("18446744073709551615"), Ok(vec![Integer(u64::MAX)]));
    }

    #[test]
    fn errors_have_places() {
        for (text, range, message) in [
            ("a & b", 2..3, "`&` means nothing here; did you mean `&&`?"),
            ("a = b", 2..3, "`=` means nothing here; did you mean `==`?"),
            ("a =~ 'b'", 2..3, "`=` means nothing here; for a pattern write `a.matches('^b')`"),
            ("a ~ 'b'", 2..3, "`~` means nothing here; for a pattern write `a.matches('^b')`"),
            ("a ä", 2..4, "`ä` means nothing here"),
            ("'abc", 0..4, "the closing ' is missing"),
            ("'ab\nc'", 0..3, "the closing ' is missing"),
            ("x r'''a'", 2..8, "the closing ''' is missing"),
            (r"'a\'", 0..4, "the closing ' is missing"),
            ("18446744073709551616", 0..20, "the number does not fit into 64 bits"),
        ] {
            let error = words(text).unwrap_err();
            assert_eq!((error.range.clone(), error.to_string()), (range, message.into()), "{text}");
        }
        for (text, range) in [
            (r"'a\d'", 2..4),
            (r"'\", 1..2),
            (r"'\u12'", 1..3),
            (r"'\ud800'", 1..3),
            (r"'\8'", 1..3),
            (r"'\400'", 1..3),
            (r"'\€'", 1..5),
            ("1.5", 0..1),
            ("12ab", 0..4),
            ("0x", 0..2),
            ("1u", 0..2),
            ("b'a'", 0..1),
        ] {
            let error = words(text).unwrap_err();
            assert_eq!(error.range, range, "{text}: {error}");
        }
    }
}
