//! Short texts for errors of the operating system, in common search terms.

use std::io::{self, ErrorKind};

/// The text of an error without its number: `connection refused` instead of `Connection refused (os error 111)`.
pub fn io_error_text(error: &io::Error) -> String {
    let known = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset",
        ErrorKind::ConnectionAborted => "connection aborted",
        ErrorKind::HostUnreachable => "host unreachable",
        ErrorKind::NetworkUnreachable => "network unreachable",
        ErrorKind::AddrInUse => "address in use",
        ErrorKind::AddrNotAvailable => "address not available on this host",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::NotFound => "no such file",
        ErrorKind::BrokenPipe => "closed by the other side",
        ErrorKind::UnexpectedEof => "connection closed early",
        ErrorKind::StorageFull => "no space left on the device",
        _ => {
            let text = error.to_string();
            return match text.find(" (os error") {
                Some(end) => text[..end].to_lowercase(),
                None => text,
            };
        }
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_not_numbers() {
        let check = |error: io::Error, expected: &str| assert_eq!(io_error_text(&error), expected);
        check(io::Error::from_raw_os_error(111), "connection refused");
        check(io::Error::from_raw_os_error(24), "too many open files");
        check(io::Error::other("odd"), "odd");
    }
}
