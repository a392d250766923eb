//! Documents that a command reads from a file or from standard input.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use weir_config::document::DOCUMENT_BYTES_MAX;
use weir_config::file::read_file_or_pipe;

/// The source of a document.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// Standard input: `-`.
    Standard,
}

impl Input {
    /// The source that an argument names.
    pub fn of(argument: &Path) -> Self {
        match argument.as_os_str() == "-" {
            true => Self::Standard,
            false => Self::File(argument.to_owned()),
        }
    }

    /// The name of the source in messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Standard => "standard input".to_owned(),
        }
    }

    /// Reads everything, up to the maximum size of a configuration.
    pub fn read(&self) -> Result<Vec<u8>, String> {
        let bytes = match self {
            Self::File(path) => {
                return read_file_or_pipe(path, DOCUMENT_BYTES_MAX)
                    .map_err(|error| error.to_string());
            }
            Self::Standard => standard_input(),
        };
        let bytes = bytes.map_err(|error| format!("it cannot be read: {error}"))?;
        match u64::try_from(bytes.len()).is_ok_and(|length| length <= DOCUMENT_BYTES_MAX) {
            true => Ok(bytes),
            false => Err(format!("it is larger than {} MiB", DOCUMENT_BYTES_MAX >> 20)),
        }
    }
}

fn standard_input() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(DOCUMENT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_input() {
        assert_eq!(Input::of(Path::new("-")), Input::Standard);
        assert_eq!(Input::of(Path::new("./-")), Input::File("./-".into()));
    }

    #[test]
    fn files_that_are_not_there_or_have_no_end_are_refused() {
        for (path, expected) in [("/dev/zero", "it "), ("/nowhere/at-all", "it cannot be opened: ")]
        {
            let refused = Input::of(Path::new(path)).read().unwrap_err();
            assert!(refused.starts_with(expected), "{path}: {refused}");
        }
    }
}
