//! Facts about this host, read from files of `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A host, identified by the root folder of its files.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
}

/// The limits of a process on open files (RLIMIT_NOFILE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// The soft limit.
    pub soft: u64,
    /// The hard limit.
    pub hard: u64,
}

impl Host {
    /// This host.
    pub fn here() -> Self {
        Self { root: "/".into() }
    }

    /// A host whose files are below this folder.
    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file; `None`: it does not exist, or is not readable.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    /// The entries of a folder.
    pub fn entries(&self, path: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// The value of a setting such as `net.core.somaxconn`.
    pub fn setting(&self, name: &str) -> Option<String> {
        let text = self.text(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        Some(text.trim().to_owned())
    }

    /// The value of a setting as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.setting(name)?.parse().ok()
    }

    /// The range of ports for outgoing connections.
    pub fn own_ports(&self) -> Option<(u16, u16)> {
        let text = self.setting("net.ipv4.ip_local_port_range")?;
        let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
        numbers.next().zip(numbers.next())
    }

    /// The limits of a process (`self` for this one) on open files.
    pub fn open_files(&self, process: &str) -> Option<OpenFiles> {
        let text = self.text(&format!("/proc/{process}/limits"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let mut numbers = line.split_whitespace().map(|number| match number {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        });
        Some(OpenFiles { soft: numbers.next()??, hard: numbers.next()?? })
    }

    /// The effective capabilities of a process.
    pub fn capabilities(&self, process: &str) -> Option<u64> {
        let text = self.text(&format!("/proc/{process}/status"))?;
        let mask = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    }

    /// The programs and processes that hold these sockets, by inode. Only processes whose program this accepts are looked
    /// at. The descriptors of other users' processes may be unreadable.
    pub fn holders_of(
        &self,
        inodes: &HashSet<u64>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> HashMap<u64, (String, u32)> {
        let mut holders = HashMap::new();
        for process in self.entries("/proc") {
            let id: Option<u32> =
                process.file_name().and_then(|name| name.to_str()).and_then(|it| it.parse().ok());
            let Some(id) = id else { continue };
            let Some(name) = self.text(&format!("/proc/{id}/comm")) else { continue };
            let name = name.trim();
            if !is_wanted(name) {
                continue;
            }
            for descriptor in self.entries(&format!("/proc/{id}/fd")) {
                let inode = fs::read_link(descriptor).ok().and_then(|link| socket_inode(&link));
                if let Some(inode) = inode.filter(|inode| inodes.contains(inode)) {
                    holders.entry(inode).or_insert_with(|| (name.to_owned(), id));
                }
            }
        }
        holders
    }
}

/// The inode in `socket:[4711]`.
fn socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A host with these files, which are removed when this is dropped.
    pub struct FakeHost {
        folder: PathBuf,
        pub host: Host,
    }

    impl FakeHost {
        /// Creates files, given by their paths.
        pub fn with(files: &[(&str, &str)]) -> Self {
            use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Relaxed);
            let name = format!("weir-doctor-{}-{number}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            for (path, text) in files {
                let path = folder.join(path.trim_start_matches('/'));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self { host: Host::at(&folder), folder }
        }
    }

    impl Drop for FakeHost {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    #[test]
    fn values_of_a_host() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 unlimited            files     \n";
        let fake = FakeHost::with(&[
            ("/proc/sys/net/core/somaxconn", "4096\n"),
            ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("/proc/7/limits", limits),
            ("/proc/7/status", "Name:\tweir\nCapEff:\t0000000000000400\n"),
        ]);
        let host = &fake.host;
        assert_eq!(host.number("net.core.somaxconn"), Some(4_096));
        assert_eq!(host.own_ports(), Some((32_768, 60_999)));
        assert_eq!(host.open_files("7"), Some(OpenFiles { soft: 1_024, hard: u64::MAX }));
        assert_eq!(host.capabilities("7"), Some(1 << 10));
        assert_eq!((host.number("net.core.none"), host.open_files("8")), (None, None));
    }

    #[test]
    fn the_holder_of_a_socket_is_found() {
        let fake = FakeHost::with(&[("/proc/7/comm", "nginx\n"), ("/proc/8/comm", "other\n")]);
        let folder = fake.folder.join("proc/7/fd");
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("socket:[4711]", folder.join("3")).unwrap();
        let inodes = HashSet::from([4_711, 4_712]);
        let holders = fake.host.holders_of(&inodes, |_| true);
        assert_eq!(holders, HashMap::from([(4_711, ("nginx".to_owned(), 7))]));
        assert_eq!(fake.host.holders_of(&inodes, |program| program != "nginx"), HashMap::new());
    }
}
