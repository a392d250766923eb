//! `weir save`: the configuration of a running weir, including its changes, as one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use weir_cli::output;

use crate::admin::{self, Connection, EXIT_REFUSED};

const COMMAND: &str = "weir save";

/// A new file contains passwords and keys, so only its owner may read it.
const MODE: u32 = 0o600;

/// Print or write the configuration in effect as one file
///
/// The files of a running weir with its changes in front of them, as one file in YAML without comments and `include`.
/// Relative paths in it are those of the main file, so it belongs into the same folder. It contains passwords and
/// shared keys as the files do.
///
/// With FILE, writes it there in one step. A new file can be read by you only; an existing one is replaced only with
/// --force, and keeps its owner and mode.
///
/// The changes stay in front of the files, where they then have no effect. To end them, once weir's file is replaced:
/// `weir reload`, `weir diff` (all is redundant), `weir rollback 0 --yes`.
///
/// Needs the unix socket of the admin listener, or a token with the role admin.
///
/// Exit status: 0 done; 1 refused, FILE exists, or it cannot be written; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir save | diff -u /etc/weir/weir.yaml -\n  \
                        weir save /etc/weir/weir.yaml --force && weir reload && weir diff && weir rollback 0 --yes")]
pub struct Arguments {
    /// The file to write [default: standard output]
    file: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long, requires = "file")]
    force: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let merged = arguments.connection.client().and_then(|client| client.get("/v1/configuration"));
    let merged = match merged {
        Ok(merged) => merged,
        Err(error) => return admin::refuse(COMMAND, &error),
    };
    let Some(file) = &arguments.file else {
        return admin::print_exactly(COMMAND, &String::from_utf8_lossy(&merged));
    };
    match write(file, &merged, arguments.force) {
        Ok(()) => {
            let text = format!(
                "{}: written. The changes stay in front of weir's files. To end them, once this is its file:\n  \
                 weir reload && weir diff && weir rollback 0 --yes\n",
                file.display()
            );
            admin::print(COMMAND, &text)
        }
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::AlreadyExists => "it exists\nhelp: --force replaces it".to_owned(),
                _ => error.to_string(),
            };
            output::tell(format_args!("{COMMAND}: cannot write {}: {why}\n", file.display()));
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

/// Replaces or creates a file atomically: it contains either all of `bytes` or its old content.
fn write(file: &Path, bytes: &[u8], replaces: bool) -> io::Result<()> {
    let before = match fs::symlink_metadata(file) {
        Ok(_) if !replaces => return Err(io::ErrorKind::AlreadyExists.into()),
        // A symbolic link is followed, and remains.
        Ok(_) => Some(fs::canonicalize(file)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let target = before.as_deref().unwrap_or(file);
    let fresh = fresh_name(target)?;
    let written = write_fresh(&fresh, bytes, before.as_deref());
    let done = written.and_then(|()| match &before {
        Some(target) => fs::rename(&fresh, target),
        // Unlike `rename`, this fails if the file exists.
        None => fs::hard_link(&fresh, file).and_then(|()| fs::remove_file(&fresh)),
    });
    if done.is_err() {
        // The temporary file may not exist. The original error is reported.
        let _ = fs::remove_file(&fresh);
    }
    done.and_then(|()| sync_folder(target))
}

/// A name for a temporary file in the same directory.
fn fresh_name(file: &Path) -> io::Result<PathBuf> {
    let name = file.file_name().ok_or_else(|| io::Error::other("this is no name of a file"))?;
    let mut fresh = std::ffi::OsString::from(".");
    fresh.push(name);
    fresh.push(format!(".{}", std::process::id()));
    Ok(file.with_file_name(fresh))
}

/// Creates a file with the owner and mode of the old one.
fn write_fresh(fresh: &Path, bytes: &[u8], before: Option<&Path>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(fresh)?;
    if let Some(before) = before.map(fs::metadata).transpose()? {
        if !before.is_file() {
            return Err(io::Error::other("this is not a regular file"));
        }
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
            let owner = (Some(before.uid()), Some(before.gid()));
            std::os::unix::fs::fchown(&file, owner.0, owner.1).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot keep its owner: {error}"))
            })?;
        }
        file.set_permissions(before.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Syncs the directory entry to disk.
fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_replaced_only_if_asked_for() {
        let folder = std::env::temp_dir().join(format!("weir-save-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        let (file, link) = (folder.join("weir.yaml"), folder.join("link"));
        write(&file, b"first", false).unwrap();
        assert_eq!(mode(&file), 0o600);
        let kind = |result: io::Result<()>| result.unwrap_err().kind();
        assert_eq!(kind(write(&file, b"second", false)), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"first");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(kind(write(&link, b"second", false)), io::ErrorKind::AlreadyExists);
        write(&link, b"second", true).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"second".to_vec(), 0o640));
        assert!(write(&folder, b"third", true).is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }
}
