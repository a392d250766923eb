//! Lines as the language sees them: a backslash at the end goes on in the next line, and `#` at the beginning makes a comment.

use super::{Wrong, wrong};

/// Longest directive, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A directive's text.
pub struct Line {
    /// Of its first line in the file, from 1 on.
    pub number: u32,
    /// Without the line ends.
    pub text: Result<String, Wrong>,
}

/// The directives of a file, one by one.
pub fn logical(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut open: Option<(u32, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let line = line.strip_suffix('\r').unwrap_or(line);
        // A comment within a directive does not end it.
        let is_comment = line.trim_start().starts_with('#');
        if is_comment || (open.is_none() && line.trim().is_empty()) {
            continue;
        }
        let (first, mut so_far) = open.take().unwrap_or((number, String::new()));
        match line.strip_suffix('\\') {
            Some(part) => {
                so_far.push_str(part);
                open = Some((first, so_far));
            }
            None => {
                so_far.push_str(line);
                found.push(whole(first, so_far));
            }
        }
    }
    // A backslash in the last line goes on to nothing.
    found.extend(open.map(|(number, text)| whole(number, text)));
    found
}

fn whole(number: u32, text: String) -> Line {
    let text = if text.len() > LINE_BYTES_MAX {
        Err(wrong(format!("the directive is longer than {LINE_BYTES_MAX} bytes")))
    } else {
        Ok(text)
    };
    Line { number, text }
}
