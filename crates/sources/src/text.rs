//! The texts of files.

use std::path::Path;

use weir_config::document::{DOCUMENT_BYTES_MAX, Finding, Lines, SourceId, Span};
use weir_config::file::{self, AcceptedFiles, READ_TIME_MAX, ReadError, without_number};

/// The text; or its readable part and the finding about it.
pub(crate) type DecodedText = Result<String, (String, Finding)>;

/// Reads the main file.
pub(crate) fn read(path: &Path) -> DecodedText {
    let read =
        file::read_within(path, DOCUMENT_BYTES_MAX, AcceptedFiles::RegularOrPipe, READ_TIME_MAX);
    read.map_err(|error| whole(in_words(&error))).and_then(decoded)
}

/// An error about a whole file.
fn whole(message: String) -> (String, Finding) {
    (String::new(), Finding::new(Span::whole(SourceId::MAIN), message))
}

/// Decodes bytes as text.
pub(crate) fn decoded(bytes: Vec<u8>) -> DecodedText {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let (valid_bytes, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(whole("the file is UTF-16; it must be UTF-8".to_owned()));
    }
    let before = String::from_utf8_lossy(&bytes[..valid_bytes]);
    let (index, last) = Lines::new(&before).iter().enumerate().last().unwrap_or((0, ""));
    let span = Span::at(index + 1, last.chars().count() + 1);
    let message = format!("the byte 0x{:02X} is not UTF-8", bytes[valid_bytes]);
    Err((String::from_utf8_lossy(bytes).into_owned(), Finding::new(span, message)))
}

fn in_words(error: &ReadError) -> String {
    match error {
        ReadError::Open(error) => format!("cannot open the file: {}", without_number(error)),
        ReadError::Read(error) => format!("cannot read the file: {}", without_number(error)),
        ReadError::NotAFile(what) => format!("this is {what}; name a file"),
        ReadError::TooLarge => {
            format!("the file is larger than {} MiB", DOCUMENT_BYTES_MAX >> 20)
        }
        ReadError::Endless => "this has no end, reading it waits for more; name a file".into(),
        ReadError::Late => format!("the file was not read within {READ_TIME_MAX:?}"),
    }
}
