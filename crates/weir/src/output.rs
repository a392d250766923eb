//! Standard output and standard error of a command whose reader may go away.
//!
//! `print!` and `eprint!` panic if the stream is closed, for example because the terminal is gone or `head` has stopped
//! reading. These functions return an error, or ignore it if they say so.

use std::fmt;
use std::io::{self, Write as _};

/// Writes all of `text` to standard output.
pub fn print(text: impl fmt::Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes `text` to standard error. If that is closed, the text is lost; the exit status still shows the result.
pub fn tell(text: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}
