//! Folders and files that weir writes: state, logs, and sockets.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use weir_config::snapshot::{Address, Snapshot};

use super::case::Case;
use super::finding::{CheckResult, Finding};
use crate::admin::text::bytes_amount;

/// With less free space, writes of logs and configuration versions soon fail.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// The limit as a percentage of the file system; the smaller of both limits applies.
const FREE_PERCENT_MIN: u64 = 5;

/// Permission bits of other users.
const OTHERS_WRITE: u32 = 0o002;
const OTHERS_ALL: u32 = 0o007;

/// Checks `state_dir`, log folders, and unix sockets of the admin listener.
pub fn check(case: &Case<'_>) -> CheckResult {
    let mut checked = CheckResult::new("storage");
    let Some(snapshot) = case.snapshot else { return checked };
    state(snapshot, &mut checked);
    logs(snapshot, &mut checked);
    for address in &snapshot.admin.listen {
        if let Address::Unix(path) = address {
            admin_socket(path, &mut checked);
        }
    }
    checked
}

/// The folder, or its nearest existing ancestor.
fn existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = absolute.ancestors().find(|folder| folder.exists());
    found.unwrap_or(Path::new("/")).to_owned()
}

fn may_write(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn state(snapshot: &Snapshot, checked: &mut CheckResult) {
    let folder = &snapshot.state_dir;
    let shown = folder.display();
    checked.fact(format!("state in {shown}"));
    let make = format!(
        "install -d -o weir -g weir -m 0700 {shown}, or `StateDirectory=weir` in the unit, or another `state_dir`"
    );
    match folder.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if !may_write(&existing(folder)) {
                let what = format!(
                    "{shown} does not exist, and this user cannot make it: changes of the configuration and keys of cookies cannot be kept"
                );
                checked.find(Finding::warning(what, "state_dir", make));
            }
        }
        Err(error) => {
            checked.find(Finding::warning(format!("{shown}: {error}"), "state_dir", make))
        }
        Ok(metadata) if !metadata.is_dir() => {
            let what = format!("{shown} is no folder");
            checked.find(Finding::error(what, "state_dir", make));
        }
        Ok(metadata) => state_folder(folder, &metadata, checked),
    }
    space(folder, "state_dir", checked);
}

fn state_folder(folder: &Path, metadata: &Metadata, checked: &mut CheckResult) {
    let shown = folder.display();
    if !may_write(folder) {
        let what = format!(
            "{shown} belongs to user {}, and this user may not write to it",
            metadata.uid()
        );
        let mend = format!(
            "chown -R weir:weir {shown}, if weir runs as the user weir; else run this command as weir's user: `sudo -u weir weir doctor`"
        );
        checked.find(Finding::warning(what, "state_dir", mend));
    }
    if metadata.mode() & OTHERS_ALL != 0 {
        let what =
            format!("all users of this host may look into {shown}, which has keys of cookies");
        checked.find(Finding::warning(what, "state_dir", format!("chmod 0700 {shown}")));
    }
}

fn logs(snapshot: &Snapshot, checked: &mut CheckResult) {
    for (key, path) in snapshot.log.files() {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let can_be_written = match path.exists() {
            true => access(path, Access::WRITE_OK).is_ok(),
            false => may_write(folder),
        };
        if !can_be_written {
            let shown = folder.display();
            let what = format!("this user cannot write to {}", path.display());
            let mend = format!(
                "install -d -o weir -g weir {shown}, or `LogsDirectory=weir` in the unit for /var/log/weir; or run this command as weir's user: `sudo -u weir weir doctor`"
            );
            checked.find(Finding::warning(what, key, mend));
        }
        space(folder, key, checked);
    }
}

/// Checks free space and free inodes for unprivileged users.
fn space(folder: &Path, key: &str, checked: &mut CheckResult) {
    let folder = existing(folder);
    let Ok(found) = statvfs(&folder) else { return };
    let shown = folder.display();
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let size = found.f_blocks.saturating_mul(found.f_frsize);
    if let Some(what) = too_full(free, size) {
        checked.find(Finding::warning(
            format!("the file system of {shown} has {what}"),
            key,
            format!(
                "df -h {shown}; rotate logs earlier (/etc/logrotate.d/weir), or another folder"
            ),
        ));
    }
    if found.f_files > 0 && found.f_favail == 0 {
        let what = format!("the file system of {shown} has no room for another file");
        checked.find(Finding::warning(what, key, format!("df -i {shown}")));
    }
}

fn too_full(free: u64, size: u64) -> Option<String> {
    let enough = (size / 100 * FREE_PERCENT_MIN).min(FREE_BYTES_MIN);
    (free < enough)
        .then(|| format!("{} of {} left", bytes_amount(free as f64), bytes_amount(size as f64)))
}

/// Checks the permissions of the socket: users who may write to it control weir.
fn admin_socket(path: &Path, checked: &mut CheckResult) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let shown = path.display();
    if !metadata.file_type().is_socket() {
        let what = format!("{shown} is there, and is no socket: weir cannot listen on it");
        checked.find(Finding::error(what, "admin.listen", format!("rm {shown}")));
        return;
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        let what = format!(
            "every user of this host may change weir: {shown} has mode {:03o}",
            metadata.mode() & 0o777
        );
        let mend = format!("chmod 0660 {shown}, and a `UMask=0027` in the unit");
        checked.find(Finding::error(what, "admin.listen", mend));
    }
    let folder = path.parent().and_then(|folder| folder.metadata().ok());
    let is_open = |folder: &Metadata| {
        const STICKY: u32 = 0o1000;
        folder.mode() & OTHERS_WRITE != 0 && folder.mode() & STICKY == 0
    };
    if folder.as_ref().is_some_and(is_open) {
        let what = format!(
            "every user may put another socket in the place of {shown}: its folder is open to all"
        );
        let mend = format!("chmod o-w {}", path.parent().unwrap_or(path).display());
        checked.find(Finding::error(what, "admin.listen", mend));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{DirBuilder, Permissions, set_permissions};
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::super::case::tests::snapshot;
    use super::super::host::Host;
    use super::*;

    /// A temporary folder, removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name =
                format!("weir-storage-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
            let path = std::env::temp_dir().join(name);
            DirBuilder::new().mode(0o700).create(&path).unwrap();
            Self(path)
        }

        fn at(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[track_caller]
    fn check(lines: &str, expected: &[&str]) {
        let text = format!(
            "{lines}\nvirtual_servers: {{ shop: {{ listen: 127.0.0.1:1, pool: web }} }}\npools: {{ web: {{ members: [ 127.0.0.1:2 ] }} }}\n"
        );
        let (snapshot, host) = (snapshot(&text), Host::here());
        let mut found =
            super::check(&Case { host: &host, snapshot: Some(&snapshot), running: None }).findings;
        // The disk of the test machine may be full.
        found.retain(|finding| !finding.what.contains("the file system"));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (finding, expected) in found.iter().zip(expected) {
            assert!(finding.what.contains(expected), "{expected} in {finding:?}");
        }
    }

    #[test]
    fn state_folders() {
        let folder = Folder::new();
        let good = folder.at("good");
        check(&format!("state_dir: {good}"), &[]);
        let open = folder.at("open");
        fs::create_dir(&open).unwrap();
        set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        check(&format!("state_dir: {open}"), &["may look into"]);
        let file = folder.at("file");
        fs::write(&file, "").unwrap();
        check(&format!("state_dir: {file}"), &["is no folder"]);
        // No user, not even root, can create a folder there.
        check("state_dir: /proc/1/nothing/at/all", &["cannot make it"]);
    }

    #[test]
    fn logs_that_cannot_be_written() {
        let folder = Folder::new();
        let state = format!("state_dir: {}", folder.at("state"));
        let to = |path: &str| format!("{state}\nlog: {{ access: {{ to: {path} }} }}");
        check(&to(&folder.at("access.log")), &[]);
        check(&to("/nowhere/at/all/access.log"), &["cannot write to /nowhere/at/all/access.log"]);
    }

    #[test]
    fn sockets_that_all_may_use() {
        let folder = Folder::new();
        let state = format!("state_dir: {}", folder.at("state"));
        let path = folder.at("admin.sock");
        let admin = format!("{state}\nadmin: {{ listen: \"unix:{path}\" }}");
        check(&admin, &[]);
        let _listener = UnixListener::bind(&path).unwrap();
        set_permissions(&path, Permissions::from_mode(0o660)).unwrap();
        check(&admin, &[]);
        set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        check(&admin, &["every user of this host may change weir"]);
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        set_permissions(&folder.0, Permissions::from_mode(0o777)).unwrap();
        check(&admin, &["put another socket"]);
        let file = folder.at("file");
        fs::write(&file, "").unwrap();
        set_permissions(&folder.0, Permissions::from_mode(0o700)).unwrap();
        check(&format!("{state}\nadmin: {{ listen: \"unix:{file}\" }}"), &["is no socket"]);
    }

    #[test]
    fn file_systems_that_are_nearly_full() {
        assert_eq!(too_full(300 << 20, 1 << 40), None);
        assert!(too_full(200 << 20, 1 << 40).is_some());
        // A small file system is not full merely because it is small.
        assert_eq!(too_full(10 << 20, 100 << 20), None);
        assert!(too_full(4 << 20, 100 << 20).is_some());
    }
}
