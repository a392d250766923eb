//! Why a request to the admin listener failed.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use weir_api::finding::Finding;
use weir_api::problem::Problem;

use super::address::{self, AdminAddress};
use super::text::printable;

/// The reason for a failed request.
#[derive(Debug)]
pub enum Error {
    /// The connection failed.
    Unreachable(AdminAddress, io::Error),
    /// A connection, but no answer in time, or a malformed one.
    NoAnswer(AdminAddress, String),
    /// weir refused the request.
    Refused {
        /// The status of the response.
        status: u16,
        /// The reason.
        error: String,
        /// A suggested solution.
        help: Option<String>,
        /// Errors in a configuration.
        findings: Vec<Finding>,
    },
    /// A token, certificate or authority is not usable.
    Credentials(String),
    /// A resource of this system is missing.
    System(io::Error),
}

impl Error {
    /// Whether weir itself refused the request.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Whether the requested object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// The errors in a configuration that made weir refuse.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Refused { findings, .. } => findings,
            _ => &[],
        }
    }

    pub(super) fn of_answer(status: u16, body: &[u8]) -> Self {
        match serde_json::from_slice::<Problem>(body) {
            Ok(Problem { detail, help, diagnostics: findings, .. }) => {
                Self::Refused { status, error: detail, help, findings }
            }
            Err(_) => Self::Refused {
                status,
                error: format!("weir answers {status}"),
                help: Some("is the weir that runs there of an older version?".into()),
                findings: Vec::new(),
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(address, error) => {
                write!(formatter, "cannot reach weir at {address}: {}", reason(error))?;
                write!(formatter, "\nhelp: {}", help_to_reach(address, error))
            }
            Self::NoAnswer(address, what) => {
                write!(formatter, "no answer of weir at {address}: {}", printable(what))?;
                formatter.write_str(
                    "\nhelp: is that the admin listener? It answers at most 64 connections at a time",
                )
            }
            Self::Refused { error, help, .. } => {
                formatter.write_str(&printable(error))?;
                help.iter().try_for_each(|help| write!(formatter, "\nhelp: {}", printable(help)))
            }
            Self::Credentials(what) => formatter.write_str(&printable(what)),
            Self::System(error) => write!(formatter, "cannot start: {error}"),
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such socket".into(),
        io::ErrorKind::ConnectionRefused => "nothing listens there".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

fn help_to_reach(address: &AdminAddress, error: &io::Error) -> String {
    let other = "another place is given with --admin ADDRESS or WEIR_ADMIN";
    match (address, error.kind()) {
        (AdminAddress::Unix(path), io::ErrorKind::PermissionDenied) => match owner(path) {
            Some(0) => "the socket belongs to root: use sudo".into(),
            Some(user) => format!("the socket belongs to user {user}: be that user, or use sudo"),
            None => "be the user that weir runs as, or use sudo".into(),
        },
        (AdminAddress::Unix(path), _) => {
            let path = path.display();
            format!(
                "is weir running, with `admin: {{ listen: unix:{path} }}` in its configuration? \
                 If it listens elsewhere: {other}"
            )
        }
        (AdminAddress::Tcp(address) | AdminAddress::Tls(address), _) => format!(
            "is weir running, with `admin: {{ listen: {address} }}` in its configuration? \
             The default is {}; {other}",
            address::DEFAULT
        ),
    }
}

/// The owner of a file, if it can be determined.
fn owner(path: &Path) -> Option<u32> {
    path.metadata().ok().map(|metadata| metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_refuse() {
        let check = |body: &str, expected: &str| {
            assert_eq!(Error::of_answer(404, body.as_bytes()).to_string(), expected);
        };
        check(
            r#"{"status": 404, "detail": "there is no pool `wep`", "help": "did you mean `web`?"}"#,
            "there is no pool `wep`\nhelp: did you mean `web`?",
        );
        check(r#"{"detail": "no\u001b[2J"}"#, "no\u{fffd}[2J");
        check(
            "There is nothing at this path.",
            "weir answers 404\nhelp: is the weir that runs there of an older version?",
        );
    }

    #[test]
    fn what_to_do_when_weir_is_not_there() {
        let check = |address: &str, kind: io::ErrorKind, expected: &str| {
            let address = address::parse(address).unwrap();
            let text = Error::Unreachable(address, kind.into()).to_string();
            assert!(text.contains(expected), "{text}");
        };
        let missing = "/nowhere/admin.sock";
        check(missing, io::ErrorKind::NotFound, "unix:/nowhere/admin.sock: no such socket");
        check(missing, io::ErrorKind::NotFound, "`admin: { listen: unix:/nowhere/admin.sock }`");
        check(missing, io::ErrorKind::NotFound, "--admin ADDRESS or WEIR_ADMIN");
        check(missing, io::ErrorKind::ConnectionRefused, "nothing listens there");
        check(missing, io::ErrorKind::PermissionDenied, "be the user that weir runs as");
        check("/", io::ErrorKind::PermissionDenied, "the socket belongs to root: use sudo");
        check("127.0.0.1:9900", io::ErrorKind::ConnectionRefused, "{ listen: 127.0.0.1:9900 }");
    }
}
