//! Reasons for a failed run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a run failed. The text has the error, its place and a fix.
#[derive(Debug)]
pub enum RunError {
    /// The order is impossible: it needs another command line, user or machine.
    Input(String),
    /// Making the test bed failed, or the bed broke.
    Bed(String),
    /// A system call on a file or counter failed.
    Io {
        /// The failed action.
        action: &'static str,
        /// The file or counter.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The run failed later; its measurements are kept.
    Broken {
        /// The run's folder.
        folder: PathBuf,
        /// The reason.
        source: Box<RunError>,
    },
    /// SIGINT or SIGTERM; the measurements are kept.
    Interrupted {
        /// The run's folder.
        folder: PathBuf,
    },
}

impl RunError {
    /// For `map_err`: a system error with the file or counter.
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { action, path, source }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Bed(text) => out.write_str(text),
            Self::Io { action, path, source } => {
                write!(out, "cannot {action} {}: {source}", path.display())
            }
            Self::Broken { folder, source } => {
                write!(out, "{source}; the measurements so far are in {}", folder.display())
            }
            Self::Interrupted { folder } => {
                write!(out, "interrupted; the measurements so far are in {}", folder.display())
            }
        }
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Broken { source, .. } => Some(source),
            _ => None,
        }
    }
}
