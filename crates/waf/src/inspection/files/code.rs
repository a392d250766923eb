//! Where code for a server or a browser begins among other bytes.
//!
//! Each place that is found here is a finding of a rule. So a file cannot use up the places with text that only looks like
//! code. Random bytes are code at one of 20 thousand million places, and ASCII85 (streams of PDF) at one of 100 million.

use super::program::{self, BeforeProgram, Comment, Language, ProgramReading};

/// The number of bytes behind a mark that decide whether it begins code.
pub(super) const WINDOW_BYTES: usize = 4096;

/// What begins at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeStart {
    Nothing,
    Code,
    /// A comment that does not end within the window, in code that does something before it or does not.
    Comment(Language, Comment, bool),
}

/// Words behind `<` that begin code. All are so long that random bytes do not have them.
const WORDS: [&[u8]; 25] = [
    b"?php",
    b"script",
    b"jsp:scriptlet",
    b"jsp:expression",
    b"jsp:declaration",
    b"jsp:include",
    b"jsp:forward",
    b"jsp:usebean",
    b"cfexecute",
    b"cfscript",
    b"cfoutput",
    b"cfinclude",
    b"cfquery",
    b"cffile",
    b"cfobject",
    b"cfhttp",
    b"cfinvoke",
    b"cfmodule",
    b"cfparam",
    b"cfdirectory",
    b"cfregistry",
    b"cfset ",
    b"cfset\t",
    b"cfset\n",
    b"cfset\r",
];

/// Whether a file begins like code. `start` are its first bytes.
pub(super) fn begins_file(start: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte);
    match start {
        [b'<', b'%', ..] => true,
        // An instruction of XML: a name, and an attribute or the end. A name alone is code of no effect.
        [b'<', b'?', rest @ ..] if !rest.starts_with(b"php") => {
            let name = rest.iter().take_while(|byte| is_name(byte)).count();
            let behind = rest.get(name..).unwrap_or_default();
            let blanks = behind.len() - behind.trim_ascii_start().len();
            let behind = behind.trim_ascii_start();
            let attribute = behind.iter().take_while(|byte| is_name(byte)).count();
            let equals = behind.get(attribute..).unwrap_or_default().trim_ascii_start();
            let has_attribute = blanks > 0 && attribute > 0 && equals.starts_with(b"=");
            name == 0 || !(has_attribute || behind.starts_with(b"?>"))
        }
        [b'<', rest @ ..] => is_word(rest) || is_include(rest),
        _ => false,
    }
}

/// What begins at `text`, which begins with `<` and has [`WINDOW_BYTES`], or less at the end of a file. `is_cut`: more bytes
/// follow. `work` counts the bytes that were looked at.
pub(super) fn at(text: &[u8], is_cut: bool, work: &mut u64) -> CodeStart {
    let rest = text.get(1..).unwrap_or_default();
    match rest {
        [b'?' | b's' | b'S' | b'j' | b'J' | b'c' | b'C', ..] if is_word(rest) => CodeStart::Code,
        [b'?', b'h' | b'H', b'h' | b'H', b' ' | b'\t' | b'\n' | b'\r', ..] => CodeStart::Code,
        [b'?', b'=', code @ ..] => read((Language::Php, BeforeProgram::Print), code, is_cut, work),
        [b'?', code @ ..] => read((Language::Php, BeforeProgram::Mark), code, is_cut, work),
        [b'%', code @ ..] => read((Language::Asp, BeforeProgram::Mark), code, is_cut, work),
        [b'!', ..] if is_include(rest) => CodeStart::Code,
        _ => CodeStart::Nothing,
    }
}

/// What code of a language begins at `code`. `is_cut`: more bytes follow.
pub(super) fn read(
    language: (Language, BeforeProgram),
    code: &[u8],
    is_cut: bool,
    work: &mut u64,
) -> CodeStart {
    match program::read(language, code, is_cut, work) {
        ProgramReading::Code => CodeStart::Code,
        ProgramReading::Nothing => CodeStart::Nothing,
        ProgramReading::Comment(comment, acts) => CodeStart::Comment(language.0, comment, acts),
    }
}

fn is_word(rest: &[u8]) -> bool {
    WORDS.iter().any(|word| rest.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word)))
}

/// Whether a server-side include begins here: `!--#exec`.
fn is_include(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"!--") else { return false };
    let Some(name) = rest.trim_ascii_start().strip_prefix(b"#") else { return false };
    name.trim_ascii_start().first().is_some_and(u8::is_ascii_alphabetic)
}
