//! Diagnostics of a configuration file, with place and suggestion.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::quote::is_unseen;

/// Maximum width of a shown source line, in characters around the place.
const SOURCE_WINDOW_CHARS_MAX: usize = 120;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The file can be used, but probably contains a mistake.
    Warning,
}

impl Severity {
    /// The word in both output formats.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A place in a file: both counts start at 1, columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Character in the line.
    pub column: usize,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The problem, in one line.
    pub message: String,
    /// The file's name as it was given or included; `overlay` for a value of the overlay.
    pub file: String,
    /// The JSON pointer of a value of the overlay, in place of a position.
    pub pointer: Option<String>,
    /// `None`: the finding is about the whole file (for example, it cannot be read), or about a value of the overlay.
    pub position: Option<Position>,
    /// The source line at [`Self::position`].
    pub excerpt: Option<Excerpt>,
    /// The suggested fix, in one line.
    pub suggestion: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about a whole file.
    pub fn of_file(severity: Severity, message: impl Into<String>, file: &str) -> Self {
        Self {
            severity,
            message: message.into(),
            file: file.to_owned(),
            pointer: None,
            position: None,
            excerpt: None,
            suggestion: None,
        }
    }

    /// `file:line:column`, or `file:pointer`.
    pub fn place(&self) -> String {
        let file = printable(&self.file);
        match (self.position, &self.pointer) {
            (Some(Position { line, column }), _) => format!("{file}:{line}:{column}"),
            (None, Some(pointer)) => format!("{file}:{}", printable(pointer)),
            (None, None) => file,
        }
    }
}

/// The shown part of a source line, and the mark below it. The line is cut when the diagnostic is created, so that a
/// thousand findings in one long line do not store it a thousand times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    text: String,
    padding: String,
    caret: String,
}

impl Excerpt {
    pub(crate) fn cut(line: &str, column: usize, length: usize) -> Self {
        let start = column.saturating_sub(1);
        // If the line is too long, a third of the window is before the place.
        let skipped = if line.chars().nth(SOURCE_WINDOW_CHARS_MAX).is_none() {
            0
        } else {
            start.saturating_sub(SOURCE_WINDOW_CHARS_MAX / 3)
        };
        let shown: Vec<char> = line.chars().skip(skipped).take(SOURCE_WINDOW_CHARS_MAX).collect();
        let indent = start - skipped;
        // A tab stays a tab below the line, so that the caret is aligned in any terminal.
        let padding = (0..indent)
            .map(|index| match shown.get(index) {
                Some('\t') => '\t',
                _ => ' ',
            })
            .collect();
        let room = shown.len().saturating_sub(indent).max(1);
        Self {
            padding,
            caret: "^".repeat(length.clamp(1, room)),
            text: printable(&shown.iter().collect::<String>()),
        }
    }
}

/// Whether [`render_text`] uses terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Plain text.
    Never,
    /// ANSI escapes.
    Always,
}

/// ANSI sequences, all empty without colour.
struct Palette {
    error: &'static str,
    warning: &'static str,
    help: &'static str,
    bold: &'static str,
    reset: &'static str,
}

impl Palette {
    fn new(colour: Colour) -> Self {
        match colour {
            Colour::Never => Self { error: "", warning: "", help: "", bold: "", reset: "" },
            Colour::Always => Self {
                error: "\x1b[1;31m",
                warning: "\x1b[1;33m",
                help: "\x1b[1;36m",
                bold: "\x1b[1m",
                reset: "\x1b[0m",
            },
        }
    }

    fn of(&self, severity: Severity) -> &'static str {
        match severity {
            Severity::Error => self.error,
            Severity::Warning => self.warning,
        }
    }
}

/// The form for people: `file:line:column: error: message`, the line with a caret, `help: …`.
pub fn render_text(diagnostics: &[Diagnostic], colour: Colour) -> String {
    let palette = Palette::new(colour);
    let mut text = String::new();
    for diagnostic in diagnostics {
        render_one(&mut text, diagnostic, &palette);
    }
    text
}

fn render_one(text: &mut String, diagnostic: &Diagnostic, palette: &Palette) {
    let Palette { help, bold, reset, .. } = palette;
    let accent = palette.of(diagnostic.severity);
    let place = diagnostic.place();
    let word = diagnostic.severity.word();
    let message = printable(&diagnostic.message);
    put(
        text,
        format_args!("{bold}{place}:{reset} {accent}{word}:{reset} {bold}{message}{reset}\n"),
    );
    if let (Some(position), Some(excerpt)) = (diagnostic.position, &diagnostic.excerpt) {
        let margin = position.line.to_string();
        let blank = " ".repeat(margin.len());
        put(text, format_args!(" {margin} | {}\n", excerpt.text));
        put(text, format_args!(" {blank} | {}{accent}{}{reset}\n", excerpt.padding, excerpt.caret));
    }
    if let Some(suggestion) = &diagnostic.suggestion {
        put(text, format_args!("{help}help:{reset} {}\n", printable(suggestion)));
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a String cannot fail");
}

/// The JSON form: `{"diagnostics":[{"severity","message","file","line","column","suggestion"}]}`.
///
/// `line` and `column` are null if the message concerns the whole file; `suggestion` is null if there is no suggestion.
/// For a value in the overlay, `file` is `overlay`, and `pointer` follows `column`; diagnostics of files have no
/// `pointer`.
pub fn render_json(diagnostics: &[Diagnostic]) -> Value {
    let list: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| {
            let mut shown = json!({
                "severity": diagnostic.severity.word(),
                "message": diagnostic.message,
                "file": diagnostic.file,
                "line": diagnostic.position.map(|position| position.line),
                "column": diagnostic.position.map(|position| position.column),
            });
            if let Some(pointer) = &diagnostic.pointer {
                shown["pointer"] = json!(pointer);
            }
            shown["suggestion"] = json!(diagnostic.suggestion);
            shown
        })
        .collect();
    json!({ "diagnostics": list })
}

/// Replaces characters in a file's text that could control the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\t' => '\t',
            // Bidirectional overrides would change the visual order of a line.
            _ if is_unseen(character) => char::REPLACEMENT_CHARACTER,
            _ => character,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic() -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: "unknown key `lisen`".into(),
            file: "weir.yaml".into(),
            pointer: None,
            position: Some(Position { line: 3, column: 5 }),
            excerpt: Some(Excerpt::cut("    lisen: 127.0.0.1:80", 5, 5)),
            suggestion: Some("did you mean `listen`?".into()),
        }
    }

    #[test]
    fn text_has_place_line_caret_and_help() {
        let expected = "weir.yaml:3:5: error: unknown key `lisen`\n \
                        3 |     lisen: 127.0.0.1:80\n   \
                        |     ^^^^^\n\
                        help: did you mean `listen`?\n";
        assert_eq!(render_text(&[diagnostic()], Colour::Never), expected);
    }

    #[test]
    fn colour_only_adds_escapes() {
        let coloured = render_text(&[diagnostic()], Colour::Always);
        let plain = render_text(&[diagnostic()], Colour::Never);
        let stripped = regex::Regex::new("\x1b\\[[0-9;]*m")
            .expect("a valid expression")
            .replace_all(&coloured, "")
            .into_owned();
        assert_ne!(coloured, plain);
        assert_eq!(stripped, plain);
    }

    #[test]
    fn json_has_the_contract_s_keys_in_order() {
        let whole_file = Diagnostic {
            position: None,
            suggestion: None,
            excerpt: None,
            severity: Severity::Warning,
            ..diagnostic()
        };
        let overlaid = Diagnostic {
            pointer: Some("/pools/web".into()),
            file: "overlay".into(),
            ..whole_file.clone()
        };
        let told = render_text(std::slice::from_ref(&overlaid), Colour::Never);
        assert_eq!(told, "overlay:/pools/web: warning: unknown key `lisen`\n");
        assert_eq!(
            render_json(&[diagnostic(), whole_file, overlaid]).to_string(),
            concat!(
                r#"{"diagnostics":[{"severity":"error","message":"unknown key `lisen`","#,
                r#""file":"weir.yaml","line":3,"column":5,"suggestion":"did you mean `listen`?"},"#,
                r#"{"severity":"warning","message":"unknown key `lisen`","file":"weir.yaml","#,
                r#""line":null,"column":null,"suggestion":null},"#,
                r#"{"severity":"warning","message":"unknown key `lisen`","file":"overlay","#,
                r#""line":null,"column":null,"pointer":"/pools/web","suggestion":null}]}"#
            )
        );
    }

    #[test]
    fn long_lines_tabs_and_control_characters() {
        let cases = [
            // (line, column, length, text starts with, caret line)
            ("\ta: \x1b[2J".to_owned(), 5, 9, "\ta: ", "\t   ^^^^"),
            (
                format!("{}here", "x".repeat(1000)),
                1001,
                4,
                "xxx",
                &format!("{}^^^^", " ".repeat(40)),
            ),
            ("ab".to_owned(), 3, 7, "ab", "  ^"),
        ];
        for (line, column, length, start, below) in cases {
            let excerpt = Excerpt::cut(&line, column, length);
            assert!(excerpt.text.starts_with(start), "{:?}", excerpt.text);
            assert!(!excerpt.text.contains('\x1b'));
            assert!(excerpt.text.chars().count() <= SOURCE_WINDOW_CHARS_MAX);
            assert_eq!(format!("{}{}", excerpt.padding, excerpt.caret), below);
        }
    }
}
