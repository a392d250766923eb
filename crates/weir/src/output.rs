//! Standard output and standard error of a command whose reader may go away.
//!
//! `print!` and `eprint!` panic when the stream is closed: a terminal that went away, or a reader such as `head` that has
//! seen enough. These functions return an error, or ignore it where the caller says so.

use std::fmt;
use std::io::{self, Write as _};

/// Writes all of `text` to standard output.
pub fn print(text: impl fmt::Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes `text` to standard error. If that is gone, the text is lost; the exit status shows the result.
pub fn tell(text: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}
