//! The key for inserted and sealed cookies that have no key file. weir creates the key once and stores it in `state_dir`, so
//! that cookies remain valid after a restart.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_config::file::{self, ReadError};
use weir_config::snapshot::{PersistenceKind, Snapshot};
use weir_core::persistence::keys::{KEY_BYTES, Key, KeyFileError, Keys};
use weir_event_loop::error_text::io_error_text;

/// The name of the file in `state_dir`.
const FILE_NAME: &str = "persistence.keys";
/// Maximum size of a key file in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The reason why the key is not available.
#[derive(Debug)]
pub enum OwnKeysError {
    /// The file cannot be read or created.
    File(PathBuf, io::Error),
    /// The file does not contain a valid key.
    Malformed(PathBuf, KeyFileError),
}

impl fmt::Display for OwnKeysError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => {
                let (path, why) = (path.display(), io_error_text(error));
                write!(
                    formatter,
                    "the key of cookies cannot be kept in {path}: {why}; set `state_dir` to a directory \
                     that weir may write to, or give the persistence (or `waf.cookies`) a `key_file`"
                )
            }
            Self::Malformed(path, error) => {
                write!(formatter, "the keys of cookies in {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for OwnKeysError {}

/// Sets the key in the snapshot, if the snapshot needs it.
pub fn provide(snapshot: &mut Snapshot) -> Result<(), OwnKeysError> {
    let needs_one = |kind: &PersistenceKind| match kind {
        PersistenceKind::Insert(cookie) => cookie.keys.is_none(),
        _ => false,
    };
    let wafs = snapshot.virtual_servers.iter().filter_map(|server| server.waf.as_ref());
    let mut cookies = wafs.filter_map(|waf| waf.cookies.as_ref());
    let is_sealed = cookies.any(|it| it.keys.is_none() && !it.terms.sealed.is_empty());
    if is_sealed || snapshot.persistence.iter().any(|persistence| needs_one(&persistence.kind)) {
        snapshot.own_keys = Some(Arc::new(load_or_make(&snapshot.state_dir)?));
    }
    Ok(())
}

fn load_or_make(state_dir: &Path) -> Result<Keys, OwnKeysError> {
    let path = state_dir.join(FILE_NAME);
    let failed = |error| OwnKeysError::File(path.clone(), error);
    match read(&path) {
        Ok(text) => Keys::parse(&text).map_err(|error| OwnKeysError::Malformed(path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let keys = Keys::single(Key::new(random().map_err(failed)?));
            match write(state_dir, &path, &keys) {
                // Another process has created the key in the meantime. Both use this key.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let text = read(&path).map_err(failed)?;
                    Keys::parse(&text).map_err(|error| OwnKeysError::Malformed(path, error))
                }
                written => written.map(|()| keys).map_err(failed),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let bytes = file::read(path, FILE_BYTES_MAX).map_err(|error| match error {
        ReadError::Open(error) | ReadError::Read(error) => error,
        other => io::Error::other(other),
    })?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text"))
}

/// Creates the file atomically, readable only by its owner. Fails if it exists.
fn write(state_dir: &Path, path: &Path, keys: &Keys) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
    let temporary = state_dir.join(format!("{FILE_NAME}.{}", std::process::id()));
    // An earlier process with the same id may have left this file.
    let _ = std::fs::remove_file(&temporary);
    let written = write_new(&temporary, keys);
    // A hard link, unlike a rename, does not replace an existing file.
    let linked = written.and_then(|()| std::fs::hard_link(&temporary, path));
    // The file may not exist. Its error matters only if nothing else has failed.
    let removed = std::fs::remove_file(&temporary);
    linked.and(removed)?;
    // Cookies have the key from now on: its name must survive a crash, too.
    File::open(state_dir)?.sync_all()
}

fn write_new(path: &Path, keys: &Keys) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(keys.to_file().as_bytes())?;
    file.sync_all()
}

fn random() -> io::Result<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_kept_to_oneself() {
        let directory = tempfile::tempdir().unwrap();
        let state_dir = directory.path().join("a/b");
        let first = load_or_make(&state_dir).unwrap();
        let again = load_or_make(&state_dir).unwrap();
        assert_eq!(first.to_file(), again.to_file());
        let path = state_dir.join(FILE_NAME);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&state_dir).unwrap().count(), 1);
        std::fs::write(&path, "no key\n").unwrap();
        let error = load_or_make(&state_dir).unwrap_err().to_string();
        assert!(error.contains("persistence.keys"), "{error}");
    }

    #[test]
    fn what_is_no_file_of_keys_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join(FILE_NAME);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = load_or_make(directory.path()).unwrap_err().to_string();
        assert!(error.contains("persistence.keys: it is a named pipe, not a file"), "{error}");
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = load_or_make(&file.join("state")).unwrap_err().to_string();
        assert!(error.contains("state_dir") && error.contains("key_file"), "{error}");
    }
}
