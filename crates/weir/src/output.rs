//! Standard output and standard error of a command that may outlive whoever reads them.
//!
//! `print!` and `eprint!` panic when the stream is closed: a terminal that went away, a reader such as
//! `head` that has seen enough. Here the caller is told, or has said that it does not matter.

use std::fmt;
use std::io::{self, Write as _};

/// Writes all of `text` to standard output.
pub fn print(text: impl fmt::Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes `text` to standard error. If that is gone there is nobody left to tell; the exit status says
/// the rest.
pub fn tell(text: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}
