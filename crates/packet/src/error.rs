//! What can go wrong, and how to mend it.

use std::fmt;

/// Why the packet path could not do something.
#[derive(Debug)]
pub enum Error {
    /// This process may not load programs.
    NotPermitted {
        /// What was refused.
        what: String,
    },
    /// This kernel lacks something.
    Unsupported {
        /// What it lacks.
        what: String,
    },
    /// A name or a path that cannot be used.
    Name {
        /// What is wrong with it.
        what: String,
    },
    /// A plan that is not sound.
    Plan {
        /// What is wrong with it, and where.
        what: String,
    },
    /// There is no such thing.
    Unknown {
        /// What.
        what: String,
    },
    /// The kernel refused a call.
    Kernel {
        /// What was to be done.
        doing: String,
        /// What it said.
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
