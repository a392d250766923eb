//! Translates PCRE patterns to the dialect of the linear regex engine.
//!
//! Rules are written for PCRE without its UTF mode, so patterns match bytes. Constructs whose notation differs in the linear
//! engine are translated. Constructs whose meaning differs are left unchanged, so that compilation fails or the backtracking
//! engine is used.

/// Translates a pattern for the linear engine.
pub fn translated(pattern: &str) -> String {
    let mut writer = Writer { out: String::with_capacity(pattern.len() + 16), repeats: false };
    let chars: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        at = match chars[at] {
            '[' => writer.class(&chars, at),
            '\\' => writer.escape(&chars, at, false),
            '(' if chars[at + 1..].starts_with(&['?', '#']) => writer.comment(&chars, at),
            '{' => writer.brace(&chars, at),
            '*' | '?' | '+' if writer.repeats => writer.behind_repetition(&chars, at),
            char => writer.plain(char, at),
        };
    }
    writer.out
}

struct Writer {
    out: String,
    /// Whether a repetition directly precedes: then `?` makes it lazy, and `+` possessive.
    repeats: bool,
}

impl Writer {
    fn plain(&mut self, char: char, at: usize) -> usize {
        self.repeats = matches!(char, '*' | '?' | '+');
        self.char(char);
        at + 1
    }

    /// Writes a character outside ASCII as its bytes.
    fn char(&mut self, char: char) {
        if char.is_ascii() {
            self.out.push(char);
            return;
        }
        let mut bytes = [0; 4];
        for byte in char.encode_utf8(&mut bytes).bytes() {
            self.byte(byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        self.out.push_str(&format!("\\x{byte:02x}"));
    }

    /// Drops a possessive `+`. A linear engine never backtracks, so an ordinary repetition matches the same.
    fn behind_repetition(&mut self, chars: &[char], at: usize) -> usize {
        self.repeats = false;
        if chars[at] != '+' {
            self.out.push(chars[at]);
        }
        at + 1
    }

    /// Escapes a brace that does not begin a repetition.
    fn brace(&mut self, chars: &[char], at: usize) -> usize {
        let end = chars[at..].iter().position(|char| *char == '}').map(|length| at + length);
        let inner = end.map(|end| &chars[at + 1..end]).unwrap_or_default();
        let is_repetition = inner.first().is_some_and(char::is_ascii_digit)
            && inner.iter().all(|char| char.is_ascii_digit() || *char == ',')
            && inner.iter().filter(|char| **char == ',').count() <= 1;
        match end {
            Some(end) if is_repetition => {
                self.out.extend(&chars[at..=end]);
                self.repeats = true;
                end + 1
            }
            _ => {
                self.out.push_str("\\{");
                self.repeats = false;
                at + 1
            }
        }
    }

    /// Drops a comment. A comment before a repetition is left unchanged, because engines differ in the repeated part.
    fn comment(&mut self, chars: &[char], at: usize) -> usize {
        let end = chars[at..].iter().position(|char| *char == ')').map(|length| at + length + 1);
        match end {
            Some(end) if !is_repeated(chars, end) => {
                self.repeats = false;
                end
            }
            _ => self.plain('(', at),
        }
    }

    /// Translates `\Q` and the literal text up to `\E` or the end of the pattern.
    fn quoted(&mut self, chars: &[char], at: usize) -> usize {
        let start = at + 2;
        let length = chars[start..].windows(2).position(|pair| pair == ['\\', 'E']);
        let end = length.map_or(chars.len(), |length| start + length);
        for char in &chars[start..end] {
            match u8::try_from(*char) {
                Ok(byte) if byte.is_ascii() && !byte.is_ascii_alphanumeric() => self.byte(byte),
                _ => self.char(*char),
            }
        }
        if start == end {
            // An empty quotation is left unchanged, because the operand of a following repetition or range is unclear.
            self.out.push_str("\\Q");
        }
        chars.len().min(end + 2)
    }

    /// Translates an escape. Returns the position after it.
    fn escape(&mut self, chars: &[char], at: usize, in_class: bool) -> usize {
        self.repeats = false;
        let Some(&char) = chars.get(at + 1) else {
            self.out.push('\\');
            return at + 1;
        };
        match char {
            'x' => return self.hexadecimal(chars, at),
            '0' => return self.octal(chars, at),
            'h' if in_class => self.out.push_str(" \\t"),
            'h' => self.out.push_str("[ \\t]"),
            'e' => self.out.push_str("\\x1b"),
            'b' if in_class => self.out.push_str("\\x08"),
            'c' => return self.control(chars, at),
            'Q' => return self.quoted(chars, at),
            // `\E` without `\Q` has no effect.
            'E' if !in_class && !is_repeated(chars, at + 2) => {}
            // Before a brace, `\N` may also begin the name of a character.
            'N' if !in_class && chars.get(at + 2) != Some(&'{') => self.out.push_str("[^\\n]"),
            // The end of the text, or the position before a line end at the end. This is sufficient for a test of a match.
            'Z' => self.out.push_str("\\n?\\z"),
            _ if char.is_ascii_alphanumeric() => self.out.extend(['\\', char]),
            // In the linear engine, `\<` and `\>` are word boundaries.
            '<' | '>' => self.out.push(char),
            _ if char.is_ascii_punctuation() => self.out.extend(['\\', char]),
            _ => self.char(char),
        }
        at + 2
    }

    fn hexadecimal(&mut self, chars: &[char], at: usize) -> usize {
        let is_braced = chars.get(at + 2) == Some(&'{');
        let start = at + 2 + usize::from(is_braced);
        let digits: String = chars[start.min(chars.len())..]
            .iter()
            .take(2)
            .take_while(|it| it.is_ascii_hexdigit())
            .collect();
        let end = start + digits.len();
        if is_braced && chars.get(end) != Some(&'}') {
            self.out.push_str("\\x{");
            return at + 3;
        }
        self.byte(u8::from_str_radix(&digits, 16).unwrap_or(0));
        end + usize::from(is_braced)
    }

    /// Translates `\cA`: the control character of a letter or sign.
    fn control(&mut self, chars: &[char], at: usize) -> usize {
        match chars.get(at + 2).map(|char| u8::try_from(*char)) {
            Some(Ok(byte @ b' '..=b'~')) => {
                self.byte(byte.to_ascii_uppercase() ^ 0x40);
                at + 3
            }
            _ => {
                self.out.push_str("\\c");
                at + 2
            }
        }
    }

    fn octal(&mut self, chars: &[char], at: usize) -> usize {
        let digits: String =
            chars[at + 1..].iter().take(3).take_while(|it| matches!(it, '0'..='7')).collect();
        self.byte(u8::from_str_radix(&digits, 8).unwrap_or(0));
        at + 1 + digits.len()
    }

    /// Translates a bracketed class. PCRE classes do not nest; only the caret, ranges and named classes are special.
    fn class(&mut self, chars: &[char], at: usize) -> usize {
        self.repeats = false;
        self.out.push('[');
        let mut at = at + 1;
        if chars.get(at) == Some(&'^') {
            self.out.push('^');
            at += 1;
        }
        let first = at;
        // Whether the previous item may begin a range.
        let mut may_begin = false;
        while let Some(&char) = chars.get(at) {
            match char {
                ']' if at > first => {
                    self.out.push(']');
                    return at + 1;
                }
                '[' => {
                    let name = named_class(&chars[at..]);
                    match &name {
                        Some(name) => self.out.push_str(name),
                        None => self.out.push_str("\\["),
                    }
                    at += name.as_ref().map_or(1, String::len);
                    may_begin = name.is_none();
                }
                '\\' => {
                    let is_set = chars.get(at + 1).is_some_and(|it| "dDsSwWhHvV".contains(*it));
                    at = self.escape(chars, at, true);
                    may_begin = !is_set;
                }
                '-' => {
                    let ends = chars.get(at + 1).is_none_or(|next| *next == ']');
                    let next_is_set = chars.get(at + 1) == Some(&'\\')
                        && chars.get(at + 2).is_some_and(|it| "dDsSwWhHvV".contains(*it));
                    let is_range = may_begin && !ends && !next_is_set;
                    self.out.push_str(if is_range { "-" } else { "\\-" });
                    at += 1;
                    if is_range {
                        at = self.end_of_range(chars, at);
                        may_begin = false;
                    }
                }
                '&' | '~' | ']' => {
                    self.out.extend(['\\', char]);
                    (at, may_begin) = (at + 1, true);
                }
                _ => {
                    self.char(char);
                    (at, may_begin) = (at + 1, true);
                }
            }
        }
        at
    }

    fn end_of_range(&mut self, chars: &[char], at: usize) -> usize {
        match chars.get(at) {
            // Left unchanged, so that compilation fails: a range must end at one character.
            Some('\\') if matches!(chars.get(at + 1), Some('Q' | 'E')) => {
                self.out.push_str("\\Q");
                at + 2
            }
            Some('\\') => self.escape(chars, at, true),
            Some(char @ ('[' | '&' | '~' | '-')) => {
                self.out.extend(['\\', *char]);
                at + 1
            }
            Some(char) => {
                self.char(*char);
                at + 1
            }
            None => at,
        }
    }
}

/// Whether a repetition follows.
fn is_repeated(chars: &[char], at: usize) -> bool {
    chars.get(at).is_some_and(|char| matches!(char, '*' | '+' | '?' | '{'))
}

/// Parses a named class such as `[:alpha:]`.
fn named_class(chars: &[char]) -> Option<String> {
    if chars.get(1) != Some(&':') {
        return None;
    }
    let end = chars.windows(2).position(|pair| pair == [':', ']'])?;
    let name: String = chars[..end + 2].iter().collect();
    let inner = name.get(2..name.len() - 2)?;
    inner.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_lowercase()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_written_anew() {
        for (pattern, expected) in [
            ("a{2}b{3,}c{,4}", "a{2}b{3,}c\\{,4}"),
            ("{{.*?}}", "\\{\\{.*?}}"),
            ("a++b*+c?+d{2}+e+?", "a+b*c?d{2}e+?"),
            ("a\\+\\+", "a\\+\\+"),
            ("[[a]", "[\\[a]"),
            ("[]a]", "[\\]a]"),
            ("[^]a]", "[^\\]a]"),
            ("[[:alnum:]_]", "[[:alnum:]_]"),
            ("[\\w-x]", "[\\w\\-x]"),
            ("[a-z-]", "[a-z\\-]"),
            ("[a-\\d]", "[a\\-\\d]"),
            ("[!-~]", "[!-\\~]"),
            ("[&&a]", "[\\&\\&a]"),
            ("[\\<\\>\\'\\b]", "[<>\\'\\x08]"),
            ("\\<a", "<a"),
            ("\\x{41}\\x5c\\x{1234}", "\\x41\\x5c\\x{1234}"),
            ("\\\\x{41}", "\\\\x{41}"),
            ("é[´]", "\\xc3\\xa9[\\xc2\\xb4]"),
            ("\\012", "\\x0a"),
            ("a\\", "a\\"),
            ("a\\Q.*\\d\\E+b", "a\\x2e\\x2a\\x5cd+b"),
            ("[\\Q]^-\\E-z]", "[\\x5d\\x5e\\x2d-z]"),
            ("\\Q(a", "\\x28a"),
            ("a\\Eb", "ab"),
            ("a(?#one (two)b", "ab"),
            ("\\cA\\c[[\\cz]", "\\x01\\x1b[\\x1a]"),
            ("a\\N+", "a[^\\n]+"),
            // Left unchanged, so that compilation fails.
            ("a\\Q\\E+", "a\\Q+"),
            ("a\\E+", "a\\E+"),
            ("[a-\\Qz\\E]", "[a-\\Qz\\E]"),
            ("a(?#b)+", "a(?#b)+"),
            ("a(?#b", "a(?#b"),
            ("\\N{U+41}", "\\N\\{U+41}"),
            ("[\\N]", "[\\N]"),
            ("\\c", "\\c"),
            ("\\cé", "\\c\\xc3\\xa9"),
            ("[a", "[a"),
        ] {
            assert_eq!(translated(pattern), expected, "{pattern}");
        }
    }
}
