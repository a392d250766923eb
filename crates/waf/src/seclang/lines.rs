//! Splits a file into logical lines: a backslash at the end continues a line, and `#` at the beginning starts a
//! comment.

use super::{SecLangProblem, wrong};

/// Maximum size of a directive, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// The text of a directive.
pub struct Line {
    /// The number of the first line in the file, starting at 1.
    pub number: u32,
    /// The text without line ends.
    pub text: Result<String, SecLangProblem>,
}

/// The directives of a file.
pub fn logical(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut open: Option<(u32, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let line = line.strip_suffix('\r').unwrap_or(line);
        // A comment within a directive does not end the directive.
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
    // A backslash at the end of the last line has no effect.
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
