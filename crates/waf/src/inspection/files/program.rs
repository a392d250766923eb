//! Reads bytes as a program of PHP, or as one of ASP or JSP, as far as that tells code from other bytes.
//!
//! PHP with `short_open_tag` takes everything behind `<?` for code, and refuses the whole file if it is none. So does a
//! page of ASP behind `<%`. Bytes are code here if brackets and strings are closed up to the end of the code, operands of
//! PHP have operators between them, and something is called, printed or included.

use memchr::memmem::find;

/// Maximum number of open brackets that are matched with their ends.
const BRACKETS_MAX: usize = 64;
/// Maximum number of tokens of a window that says nothing.
const EMPTY_TOKENS_MAX: usize = 3;
/// Minimum length of a name before `(` that makes it a call: shorter ones are frequent in random bytes.
const CALL_BYTES_MIN: usize = 2;
const CALL_BYTES_MIN_ASP: usize = 3;

/// The language of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Php,
    /// Also JSP: calls, words and brackets are the same as far as they matter here.
    Asp,
}

/// A comment, or another part of a program without effect, by its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comment {
    /// At the end of the line.
    Line,
    /// At `*/`.
    Block,
    /// At the first byte that is neither blank nor of a name: a long empty space.
    Blanks,
    /// At the next operator: many statements of no effect.
    Statements,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramReading {
    Nothing,
    Code,
    /// A comment or the like whose end was not found, and whether the program does something before it.
    Comment(Comment, bool),
}

/// The last token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastToken {
    /// Nothing that needs an operator: the beginning of a statement, or a keyword.
    Start,
    Operator,
    /// A name of this length.
    Name(usize),
    Number,
    /// Another operand: a variable, a string.
    Operand,
    /// `)`: an operand, or the end of a condition.
    Close,
}

/// What stands before a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BeforeProgram {
    /// The mark that begins it.
    Mark,
    /// A mark that prints a value: `<?=`.
    Print,
    /// A part of it that does something, or does not.
    Part(bool),
}

/// Reads a program. `is_cut`: more bytes follow. `work` counts the bytes that were looked at.
pub(super) fn read(
    (language, before): (Language, BeforeProgram),
    code: &[u8],
    is_cut: bool,
    work: &mut u64,
) -> ProgramReading {
    let last = match before {
        BeforeProgram::Mark => LastToken::Start,
        BeforeProgram::Print => LastToken::Operator,
        BeforeProgram::Part(_) => LastToken::Close,
    };
    let (prints, acts) = (before == BeforeProgram::Print, before == BeforeProgram::Part(true));
    let is_part = matches!(before, BeforeProgram::Part(_));
    let (at, open, tokens) = (0, Vec::new(), 0);
    let mut reader = Reader { language, code, at, last, open, tokens, is_part, prints, acts };
    let result = reader.run(is_cut);
    *work += reader.at.min(code.len()) as u64;
    result
}

struct Reader<'a> {
    language: Language,
    code: &'a [u8],
    at: usize,
    last: LastToken,
    /// The open brackets.
    open: Vec<u8>,
    /// The number of tokens, without blanks.
    tokens: usize,
    /// Whether brackets may be closed that were opened before.
    is_part: bool,
    /// Whether the program prints a value, whatever else it does.
    prints: bool,
    /// Whether the program does something.
    acts: bool,
}

/// What a token means for the whole.
type Step = Result<(), ProgramReading>;

impl Reader<'_> {
    fn run(&mut self, is_cut: bool) -> ProgramReading {
        while self.at < self.code.len() {
            if let Err(read) = self.token(is_cut) {
                return read;
            }
        }
        match (is_cut, self.tokens) {
            (false, _) => self.ended_by_file(),
            // Empty space and areas of one colour.
            (true, 0..=EMPTY_TOKENS_MAX) => ProgramReading::Comment(Comment::Blanks, self.acts),
            (true, _) if self.acts => ProgramReading::Code,
            // Other bytes may be a program for so long if they have many strings, or repeat a pattern.
            (true, _) => ProgramReading::Comment(Comment::Statements, false),
        }
    }

    fn rest(&self) -> &[u8] {
        self.code.get(self.at..).unwrap_or_default()
    }

    /// The end of the program.
    fn ended(&self) -> ProgramReading {
        let is_closed = self.open.iter().all(|bracket| *bracket == b'{');
        if self.acts && is_closed { ProgramReading::Code } else { ProgramReading::Nothing }
    }

    /// The end of the file, which ends a program of PHP.
    fn ended_by_file(&self) -> ProgramReading {
        if self.language == Language::Php { self.ended() } else { ProgramReading::Nothing }
    }

    fn token(&mut self, is_cut: bool) -> Step {
        let is_php = self.language == Language::Php;
        let (begin, end): (&[u8], &[u8]) = if is_php { (b"<?", b"?>") } else { (b"<%", b"%>") };
        if self.rest().starts_with(end) {
            return Err(self.ended());
        }
        if self.rest().starts_with(begin) {
            return Err(ProgramReading::Nothing);
        }
        let byte = self.code[self.at];
        if is_blank(self.language, byte) {
            // Compilers of pages refuse control characters, lenient readers skip them in front.
            let is_wrong = !is_php && self.tokens > 0 && matches!(byte, 0..=8 | 0x0e..=0x1f | 0x7f);
            return if is_wrong { Err(ProgramReading::Nothing) } else { self.skip(1, None) };
        }
        self.tokens += 1;
        match byte {
            b'#' if is_php => self.line(is_cut),
            b'\'' if !is_php => self.quote_of_asp(is_cut),
            b'/' if self.rest().starts_with(b"//") => self.line(is_cut),
            b'/' if self.rest().starts_with(b"/*") => match find(&self.rest()[2..], b"*/") {
                Some(end) => self.skip(end + 4, None),
                None => Err(self.open_comment(Comment::Block, is_cut)),
            },
            b'"' => self.text(byte, is_cut),
            b'\'' | b'`' if is_php => self.text(byte, is_cut),
            b'$' if is_php => self.variable(),
            b'.' if is_php && self.is_digit(1) && self.operand().is_ok() => self.number(),
            b'0'..=b'9' => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'\\' => self.name(),
            0x80.. => self.name(),
            b'(' | b'[' | b'{' => self.bracket(byte),
            b')' | b']' | b'}' => self.close(byte),
            b';' => self.skip(1, Some(LastToken::Start)),
            _ if is_php => self.operator(is_cut),
            _ => self.skip(1, Some(LastToken::Operator)),
        }
    }

    fn skip(&mut self, bytes: usize, last: Option<LastToken>) -> Step {
        self.at += bytes;
        self.last = last.unwrap_or(self.last);
        Ok(())
    }

    fn is_digit(&self, ahead: usize) -> bool {
        self.code.get(self.at + ahead).is_some_and(u8::is_ascii_digit)
    }

    /// A comment up to the end of the line, or of the program.
    fn line(&mut self, is_cut: bool) -> Step {
        let rest = self.rest();
        let end: &[u8] = if self.language == Language::Php { b"?>" } else { b"%>" };
        let ends = [memchr::memchr2(b'\n', b'\r', rest), find(rest, end)];
        match ends.into_iter().flatten().min() {
            Some(bytes) => self.skip(bytes, None),
            None => Err(self.open_comment(Comment::Line, is_cut)),
        }
    }

    fn open_comment(&self, comment: Comment, is_cut: bool) -> ProgramReading {
        if is_cut { ProgramReading::Comment(comment, self.acts) } else { self.ended_by_file() }
    }

    /// A string. A string in backquotes is a command.
    fn text(&mut self, quote: u8, is_cut: bool) -> Step {
        self.operand()?;
        let rest = self.rest();
        let mut at = 1;
        loop {
            match rest.get(at) {
                None if is_cut && self.acts => return Err(ProgramReading::Code),
                None if is_cut => return Err(ProgramReading::Comment(Comment::Statements, false)),
                None => return Err(ProgramReading::Nothing),
                Some(b'\\') if self.language == Language::Php => at += 2,
                Some(byte) if *byte == quote => break,
                Some(_) => at += 1,
            }
        }
        let has_variable = || {
            let is_begun = |two: &[u8]| two[0] == b'$' && (two[1] == b'{' || is_of_name(&two[1]));
            rest[1..at].windows(2).any(is_begun)
        };
        self.acts |= match quote {
            b'`' => is_command(&rest[1..at]),
            b'"' => self.prints && has_variable(),
            _ => false,
        };
        self.skip(at + 1, Some(LastToken::Operand))
    }

    /// A string of Java or JScript, or a comment of VBScript.
    fn quote_of_asp(&mut self, is_cut: bool) -> Step {
        let rest = &self.rest()[1..];
        match memchr::memchr3(b'\'', b'\n', b'\r', rest) {
            Some(end) if rest[end] == b'\'' => self.skip(end + 2, Some(LastToken::Operand)),
            _ => self.line(is_cut),
        }
    }

    /// An operand of PHP has no operand directly before it.
    fn operand(&self) -> Step {
        let is_wrong =
            matches!(self.last, LastToken::Name(_) | LastToken::Number | LastToken::Operand);
        if is_wrong && self.language == Language::Php {
            Err(ProgramReading::Nothing)
        } else {
            Ok(())
        }
    }

    fn variable(&mut self) -> Step {
        // A type before a parameter.
        if !matches!(self.last, LastToken::Name(_)) || self.open.is_empty() {
            self.operand()?;
        }
        self.acts |= self.prints;
        let name = self.rest()[1..].iter().take_while(|byte| is_of_name(byte)).count();
        match self.code.get(self.at + 1) {
            Some(b'$') => self.skip(1, Some(LastToken::Operator)),
            Some(b'{') => self.skip(1, Some(LastToken::Operator)),
            Some(first) if name > 0 && !first.is_ascii_digit() => {
                self.skip(1 + name, Some(LastToken::Operand))
            }
            _ => Err(ProgramReading::Nothing),
        }
    }

    fn number(&mut self) -> Step {
        self.operand()?;
        let rest = self.rest();
        let is_radix = matches!(rest, [b'0', b'x' | b'X' | b'b' | b'B' | b'o' | b'O', ..]);
        let is_digit = |byte: &&u8| match is_radix {
            true => byte.is_ascii_hexdigit() || **byte == b'_',
            false => byte.is_ascii_digit() || matches!(**byte, b'_' | b'.' | b'e' | b'E'),
        };
        let before = if is_radix { 2 } else { 0 };
        let digits = rest[before..].iter().take_while(is_digit).count();
        let bytes = (before + digits).max(1);
        if self.language == Language::Php && rest.get(bytes).is_some_and(is_of_name) {
            return Err(ProgramReading::Nothing);
        }
        self.skip(bytes, Some(LastToken::Number))
    }

    fn name(&mut self) -> Step {
        let is_php = self.language == Language::Php;
        let is_part = |byte: &&u8| match is_php {
            true => is_of_name(byte) || **byte == b'\\',
            false => byte.is_ascii_alphanumeric() || **byte == b'_',
        };
        let rest = self.rest();
        let bytes = rest.iter().take_while(is_part).count().max(1);
        let is_usual = is_usual_name(&rest[..bytes]);
        let word = rest[..bytes].to_ascii_lowercase();
        let is_one_of = |list: &[&str]| list.iter().any(|it| it.as_bytes() == word);
        self.acts |= self.prints && bytes >= CALL_BYTES_MIN;
        if !is_php {
            self.acts |= is_one_of(&WORDS_OF_ASP);
            return self.skip(
                bytes,
                Some(if is_usual { LastToken::Name(bytes) } else { LastToken::Number }),
            );
        }
        if word == b"__halt_compiler" {
            return Err(self.ended());
        }
        self.acts |= is_one_of(&ACTING);
        if is_one_of(&KEYWORDS) || is_one_of(&ACTING) {
            return self.skip(bytes, Some(LastToken::Start));
        }
        self.operand()?;
        self.skip(bytes, Some(LastToken::Name(bytes)))
    }

    fn bracket(&mut self, byte: u8) -> Step {
        let bytes_min = match self.language {
            Language::Php => CALL_BYTES_MIN,
            Language::Asp => CALL_BYTES_MIN_ASP,
        };
        let is_call = match self.last {
            LastToken::Name(bytes) => bytes >= bytes_min,
            LastToken::Operand | LastToken::Close => self.language == Language::Php,
            LastToken::Start | LastToken::Operator | LastToken::Number => false,
        };
        self.acts |= byte == b'(' && is_call;
        if self.open.len() == BRACKETS_MAX {
            return Err(ProgramReading::Code);
        }
        self.open.push(byte);
        self.skip(1, Some(LastToken::Start))
    }

    fn close(&mut self, byte: u8) -> Step {
        let (begin, last) = match byte {
            b')' => (b'(', LastToken::Close),
            b']' => (b'[', LastToken::Operand),
            _ => (b'{', LastToken::Start),
        };
        match self.open.pop() {
            None if self.is_part => {}
            open if open == Some(begin) => {}
            _ => return Err(ProgramReading::Nothing),
        }
        // `$x{0}` and `$a->{'b'}` are operands, blocks are not: what follows decides.
        self.skip(1, Some(if byte == b'}' { LastToken::Close } else { last }))
    }

    /// A text of several lines that ends with its name: `<<<X`.
    fn document(&mut self, is_cut: bool) -> Step {
        let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b' ' | b'\t');
        let begin = self.rest().get(3..).unwrap_or_default();
        let quotes = begin.iter().take_while(|byte| is_quote(byte)).count();
        let begin = begin.get(quotes..).unwrap_or_default();
        let letters = begin.iter().take_while(|it| it.is_ascii_alphanumeric() || **it == b'_');
        let (name, behind) = begin.split_at(letters.count());
        if name.is_empty() || behind.iter().find(|it| !is_quote(it)) != Some(&b'\n') {
            return Err(ProgramReading::Nothing);
        }
        let last_line = [b"\n", name].concat();
        match find(behind, &last_line) {
            Some(end) => {
                let bytes = 3 + quotes + name.len() + end + last_line.len();
                self.acts |= self.prints;
                self.skip(bytes, Some(LastToken::Operand))
            }
            None if is_cut => Err(ProgramReading::Code),
            None => Err(ProgramReading::Nothing),
        }
    }

    /// An operator of PHP.
    fn operator(&mut self, is_cut: bool) -> Step {
        let rest = self.rest();
        if rest.starts_with(b"<<<") {
            return self.document(is_cut);
        }
        let operator = OPERATORS.iter().find(|it| rest.starts_with(it.as_bytes()));
        let bytes = operator.map_or(1, |it| it.len());
        let is_before = bytes == 1
            && matches!(rest[0], b'+' | b'-' | b'!' | b'~' | b'@' | b'&' | b'?' | b':')
            || operator.is_some_and(|it| matches!(*it, "++" | "--" | "..." | "::"));
        let has_left = !matches!(self.last, LastToken::Start | LastToken::Operator);
        let is_only_before = bytes == 1 && matches!(rest[0], b'!' | b'~' | b'@');
        let follows_operand = has_left && self.last != LastToken::Close;
        if (!has_left && !is_before) || (follows_operand && is_only_before) {
            return Err(ProgramReading::Nothing);
        }
        // A postfix operator leaves an operand.
        let is_postfix = has_left && operator.is_some_and(|it| matches!(*it, "++" | "--"));
        self.skip(bytes, Some(if is_postfix { LastToken::Close } else { LastToken::Operator }))
    }
}

/// Whether a byte is one that the language skips. Old versions of PHP skip control characters.
pub(super) fn is_blank(language: Language, byte: u8) -> bool {
    matches!(byte, 0..=b' ' | 0x7f) || (byte >= 0x80 && language == Language::Asp)
}

/// Whether a program can be read from this byte on, after many statements.
pub(super) fn is_between(byte: u8) -> bool {
    b";,+.-({=&|*/<>:?".contains(&byte)
}

/// Whether a byte goes on with a text that [`Comment::Blanks`] begins.
pub(super) fn is_empty(language: Language, byte: u8) -> bool {
    is_blank(language, byte) || byte == b';' || (is_of_name(&byte) && language == Language::Php)
}

fn is_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80
}

/// Whether a name is written as people write names: in one case, or with each word in it begun by a capital.
fn is_usual_name(name: &[u8]) -> bool {
    let is_upper = name.iter().all(|byte| !byte.is_ascii_lowercase());
    let mut pairs = name.windows(2);
    name.iter().all(u8::is_ascii_alphabetic)
        && (is_upper
            || !pairs.any(|two| two[0].is_ascii_uppercase() && two[1].is_ascii_uppercase()))
}

/// Whether a text in backquotes begins like a command.
fn is_command(text: &[u8]) -> bool {
    let letters = text.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    let behind = text.get(letters).copied();
    match text.first() {
        Some(byte) if byte.is_ascii_lowercase() => {
            letters > 1 && behind.is_none_or(|byte| !byte.is_ascii_alphabetic())
        }
        Some(byte) => byte.is_ascii_whitespace() || b"$/'\"\\.({~".contains(byte),
        None => false,
    }
}

/// Operators of several characters, the longest first.
const OPERATORS: [&str; 35] = [
    "<=>", "===", "!==", "<<=", ">>=", "**=", "??=", "...", "?->", "==", "!=", "<>", "<=", ">=",
    "=>", "->", "::", "&&", "||", "??", "**", "<<", ">>", "+=", "-=", "*=", "/=", ".=", "%=", "&=",
    "|=", "^=", "++", "--", "|>",
];

/// Words of PHP that do something alone.
const ACTING: [&str; 8] =
    ["echo", "print", "include", "include_once", "require", "require_once", "eval", "exit"];

/// Words of PHP behind which an operand may follow.
const KEYWORDS: [&str; 66] = [
    "abstract",
    "and",
    "array",
    "as",
    "break",
    "callable",
    "case",
    "catch",
    "class",
    "clone",
    "const",
    "continue",
    "declare",
    "default",
    "die",
    "do",
    "else",
    "elseif",
    "empty",
    "enddeclare",
    "endfor",
    "endforeach",
    "endif",
    "endswitch",
    "endwhile",
    "enum",
    "extends",
    "final",
    "finally",
    "fn",
    "for",
    "foreach",
    "function",
    "global",
    "goto",
    "if",
    "implements",
    "instanceof",
    "insteadof",
    "interface",
    "isset",
    "list",
    "match",
    "namespace",
    "new",
    "or",
    "private",
    "protected",
    "public",
    "readonly",
    "return",
    "static",
    "switch",
    "throw",
    "trait",
    "try",
    "unset",
    "use",
    "var",
    "while",
    "xor",
    "yield",
    "from",
    "self",
    "parent",
    "strict_types",
];

/// Words of pages that do something.
const WORDS_OF_ASP: [&str; 25] = [
    "application",
    "createobject",
    "eval",
    "exec",
    "execute",
    "executeglobal",
    "getparameter",
    "getruntime",
    "import",
    "include",
    "language",
    "namespace",
    "page",
    "pagecontext",
    "process",
    "processbuilder",
    "request",
    "response",
    "runtime",
    "server",
    "session",
    "shell",
    "system",
    "taglib",
    "wscript",
];

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
