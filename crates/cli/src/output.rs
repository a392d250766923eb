//! Standard output and standard error of a command whose reader may close the pipe.
//!
//! `print!` and `eprint!` panic if the stream is closed, for example by a closed terminal or by `head`. These functions
//! return the error, or ignore it as documented.

use std::fmt;
use std::io::{self, Write as _};

/// Writes all of `text` to standard output.
pub fn print(text: impl fmt::Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes `text` to standard error. Errors are ignored: the exit status shows the result too.
pub fn tell(text: impl fmt::Display) {
    let _ = write!(io::stderr().lock(), "{text}");
}
