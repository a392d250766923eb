//! Files that the configuration names: pages, lists, keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::file::{self, READ_TIME_MAX, ReadError};
use crate::scalar::Text;
use crate::shapes::FilePath;
use crate::snapshot::Page;

/// Maximum size of a page, which is held in memory and sent as a whole.
const PAGE_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of a list.
pub(super) const LIST_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a file with certificates, a key or revocation lists.
pub(super) const PEM_BYTES_MAX: u64 = 16 << 20;
/// Maximum size of a key file.
pub(super) const KEYS_BYTES_MAX: u64 = 64 << 10;

/// Reads a whole file; errors are reported at the place of its path.
pub(super) fn read(
    path: &Spanned<FilePath>,
    directory: &Path,
    size_bytes_max: u64,
    context: &mut Context,
) -> Option<Vec<u8>> {
    // One late file is already an error, so no further files are read: their timeouts could add up.
    if context.is_late {
        return None;
    }
    let full: PathBuf = directory.join(&path.value.0);
    let shown = full.display();
    let error = match file::read(&full, size_bytes_max) {
        Ok(bytes) => {
            context.named_files.insert(shown.to_string(), file::fingerprint(&bytes));
            return Some(bytes);
        }
        Err(error) => error,
    };
    context.is_late = matches!(error, ReadError::Late);
    match error {
        ReadError::Open(error) => {
            let help = "a relative path starts at the configuration's directory";
            let reason = crate::file::without_number(&error);
            context.error_help(path.span, format!("cannot open {shown}: {reason}"), help);
        }
        ReadError::Read(error) => {
            let reason = crate::file::without_number(&error);
            context.error(path.span, format!("cannot read {shown}: {reason}"));
        }
        ReadError::NotAFile(what) => {
            context.error(path.span, format!("{shown} is {what}, not a file"));
        }
        ReadError::TooLarge => {
            let message = format!("{shown} is larger than {} KiB", size_bytes_max >> 10);
            context.error(path.span, message);
        }
        ReadError::Endless => {
            let help = "name a regular file";
            let message = format!("{shown} never ends: reading it would wait for more");
            context.error_help(path.span, message, help);
        }
        ReadError::Late => {
            let message = format!("{shown} was not read within {READ_TIME_MAX:?}");
            context.error_help(path.span, message, "weir did not try further files");
        }
    }
    None
}

/// Reads a whole text file with a list in it; errors are reported at the place of its path.
pub(super) fn read_text(
    path: &Spanned<FilePath>,
    directory: &Path,
    size_bytes_max: u64,
    context: &mut Context,
) -> Option<String> {
    let bytes = read(path, directory, size_bytes_max, context)?;
    text_of(bytes)
        .map_err(|why| context.error(path.span, format!("{}: {why}", path.value.0.display())))
        .ok()
}

/// The bytes of a list as text, or the reason why it would be read in part or wrongly: an item with an invisible character
/// never matches anything.
fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err("the file is UTF-16; save it as UTF-8".into());
    }
    let line =
        |at: usize, before: &[u8]| 1 + before[..at].iter().filter(|byte| **byte == b'\n').count();
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("line {}: it is not UTF-8", line(at, error.as_bytes()))
    })?;
    let is_odd = |character: char| {
        character == '\u{feff}'
            || character.is_control() && !matches!(character, '\t' | '\n' | '\r')
    };
    // A carriage return belongs to a line's end.
    let lone = text.match_indices('\r').find(|(at, _)| {
        let rest = &text[at + 1..];
        !rest.is_empty() && !rest.starts_with('\n')
    });
    let odd = text.char_indices().find(|(_, character)| is_odd(*character));
    let odd = odd.or(lone.map(|(at, _)| (at, '\r')));
    let Some((at, character)) = odd else { return Ok(text) };
    let line = line(at, text.as_bytes());
    Err(match character {
        '\u{feff}' => format!(
            "line {line}: there is a byte order mark (EF BB BF); save the file as UTF-8 without one"
        ),
        _ => format!("line {line}: there is a control character ({})", character.escape_unicode()),
    })
}

/// The source of a page's text.
pub(super) enum Source {
    Given(String),
    File(Arc<[u8]>),
}

/// The text from exactly one of `body` and `file`; `None`: neither is given, or an error.
pub(super) fn source(
    body: Option<&Spanned<Text>>,
    file: Option<&Spanned<FilePath>>,
    directory: &Path,
    context: &mut Context,
) -> Option<Source> {
    match (body, file) {
        (Some(_), Some(file)) => {
            context.error_help(file.span, "both `body` and `file` are given", "keep one of them");
            None
        }
        (Some(body), None) => Some(Source::Given(body.value.0.clone())),
        (None, Some(file)) => {
            read(file, directory, PAGE_BYTES_MAX, context).map(|bytes| Source::File(bytes.into()))
        }
        (None, None) => None,
    }
}

/// The media type for a file name.
pub(super) fn content_type_of(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "css" => "text/css",
        "js" => "text/javascript",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        _ => return None,
    })
}

/// The text of a page, a file with the text, and the media type.
pub(super) type RawPage<'a> =
    (Option<&'a Spanned<Text>>, Option<&'a Spanned<FilePath>>, Option<&'a Spanned<Text>>);

/// A page for clients.
pub(super) fn page(
    (body, file, content_type): RawPage<'_>,
    span: Span,
    directory: &Path,
    context: &mut Context,
) -> Option<Page> {
    if body.is_none() && file.is_none() {
        let message = format!("{} needs `body` or `file`", context.path());
        context.error_help(span, message, "give it a text or a file with one");
        return None;
    }
    let body: Arc<[u8]> = match source(body, file, directory, context)? {
        Source::Given(text) => text.into_bytes().into(),
        Source::File(bytes) => bytes,
    };
    let by_name = file.and_then(|file| content_type_of(&file.value.0));
    let content_type = match content_type {
        Some(given) => field_value(given, context)?,
        None => by_name.unwrap_or("text/html; charset=utf-8").to_owned(),
    };
    Some(Page { content_type: content_type.into(), body })
}

/// A text that is valid as a field value.
pub(super) fn field_value(text: &Spanned<Text>, context: &mut Context) -> Option<String> {
    let value = text.value.0.trim();
    if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        context.error(text.span, "the value of a header has no control characters");
        return None;
    }
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_text_throughout() {
        for text in ["", "a\nb", "a\r\nb\r\n", "\u{fc}\tb \n", "a\r"] {
            assert_eq!(text_of(text.into()).as_deref(), Ok(text), "{text:?}");
        }
        for (bytes, expected) in [
            (&b"\xef\xbb\xbfa\n"[..], "line 1: there is a byte order mark (EF BB BF)"),
            (b"a\n\xef\xbb\xbfb\n", "line 2: there is a byte order mark (EF BB BF)"),
            (b"\xff\xfea\0", "the file is UTF-16"),
            (b"a\n\nb\xff\n", "line 3: it is not UTF-8"),
            (b"a\nb\0\n", "line 2: there is a control character (\\u{0})"),
            (b"a\nb\rc\n", "line 2: there is a control character (\\u{d})"),
            (b"a\x1b[0m\n", "line 1: there is a control character (\\u{1b})"),
        ] {
            let error = text_of(bytes.to_vec()).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
