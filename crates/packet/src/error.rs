//! Errors, and their fixes.

use std::fmt;

/// An error of the packet path.
#[derive(Debug)]
pub enum Error {
    /// This process is not permitted to load programs.
    NotPermitted {
        /// The refused operation.
        what: String,
    },
    /// This kernel lacks a required feature.
    Unsupported {
        /// The missing requirement.
        what: String,
    },
    /// An invalid name or path.
    Name {
        /// The mistake.
        what: String,
    },
    /// An invalid plan.
    Plan {
        /// The mistake, and its place.
        what: String,
    },
    /// The object does not exist.
    Unknown {
        /// The object.
        what: String,
    },
    /// The kernel refused a call.
    Kernel {
        /// The failed operation.
        doing: String,
        /// The error.
        error: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { what } => write!(
                formatter,
                "{what}: not permitted; the packet path needs CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW and CAP_PERFMON, or root"
            ),
            Self::Unsupported { what } => write!(formatter, "this kernel does not support {what}"),
            Self::Name { what } | Self::Plan { what } | Self::Unknown { what } => {
                formatter.write_str(what)
            }
            Self::Kernel { doing, error } => write!(formatter, "{doing}: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// A call that the kernel refused.
pub(crate) fn kernel(doing: &str, error: impl Into<String>) -> Error {
    Error::Kernel { doing: doing.to_owned(), error: error.into() }
}
