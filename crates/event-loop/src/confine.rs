//! Denies a thread access to the file system, by Landlock.
//!
//! A worker receives its sockets from the control plane and opens no files. The restriction limits the damage of a defect in
//! its parsers. It applies to the calling thread and to threads that it starts, and cannot be removed. Sockets, including
//! connections to unix sockets, are not restricted.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr;

/// Access rights on files and folders: ABI versions that added rights, each with the number of its last right.
const RIGHTS: [(u32, u32); 4] = [(1, 12), (2, 13), (3, 14), (5, 15)];

/// Flag that requests the ABI version.
const CREATE_RULESET_VERSION: u32 = 1;

/// The rule set attributes of the first ABI version. Later versions have more attributes, which count as zero.
#[repr(C)]
struct RulesetAttributes {
    handled_access_fs: u64,
}

/// Returns the kernel's ABI version. An error means that the kernel has no Landlock, or that this process may not use it.
pub fn version() -> io::Result<u32> {
    // SAFETY: with this flag the kernel reads no attributes, and the call accesses no memory.
    let version = unsafe {
        let none = ptr::null::<RulesetAttributes>();
        libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, CREATE_RULESET_VERSION)
    };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// All access rights of this ABI version.
fn rights(version: u32) -> u64 {
    let known = RIGHTS.iter().filter(|(since, _)| *since <= version);
    known.map(|(_, last)| (1 << (last + 1)) - 1).max().unwrap_or(0)
}

/// Whether the system call filter of this process permits Landlock. Some filters, for example `SystemCallFilter=` of
/// systemd, kill a process that makes a forbidden call, so a child process tries the calls first.
pub fn may_be_asked_for() -> bool {
    const ASKED: i32 = libc::ECANCELED;
    let mut command = Command::new("/");
    // SAFETY: between fork and exec, the closure makes two system calls, which change nothing and access no memory, and
    // creates an error without an allocation.
    unsafe {
        command.pre_exec(|| {
            // The results of the calls do not matter.
            let _ = version();
            let nothing = -1;
            libc::syscall(libc::SYS_landlock_restrict_self, nothing, 0_u32);
            Err(io::Error::from_raw_os_error(ASKED))
        });
    }
    match command.spawn() {
        Err(error) => error.raw_os_error() == Some(ASKED),
        Ok(mut child) => {
            // The child was killed before it could report an error. Its status contains no other information.
            let _ = child.wait();
            false
        }
    }
}

/// Permanently forbids the calling thread to open, create, remove or run files, and to gain privileges by running programs.
/// Returns the ABI version.
pub fn without_files() -> io::Result<u32> {
    let version = version()?;
    rustix::thread::set_no_new_privs(true)?;
    let attributes = RulesetAttributes { handled_access_fs: rights(version) };
    let size = size_of::<RulesetAttributes>();
    // SAFETY: the attributes live through the call, and `size` is their size.
    let rules = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0_u32)
    };
    let number = i32::try_from(rules).ok().filter(|number| *number >= 0);
    let number = number.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just opened this descriptor, and nothing else owns it.
    let rules = unsafe { OwnedFd::from_raw_fd(number) };
    // SAFETY: the call only reads its arguments, and accesses no memory.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    if result == 0 { Ok(version) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::ErrorKind;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn rights_of_versions() {
        assert_eq!(rights(1), 0x1fff);
        assert_eq!(rights(2), 0x3fff);
        assert_eq!([3, 4].map(rights), [0x7fff; 2]);
        assert_eq!([5, 7].map(rights), [0xffff; 2]);
    }

    /// Installs a filter for the calling thread that kills the process if it makes a Landlock call.
    fn forbid_landlock() {
        const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
        const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        let first = libc::SYS_landlock_create_ruleset as u32;
        let last = libc::SYS_landlock_restrict_self as u32;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        // The filter's input starts with the number of the system call.
        let mut steps = [
            step(LOAD, 0, 0, 0),
            step(AT_LEAST, 0, 2, first),
            step(AT_LEAST, 1, 0, last + 1),
            step(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
            step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        rustix::thread::set_no_new_privs(true).unwrap();
        // SAFETY: the program and its steps live through the call, which copies them.
        let result = unsafe {
            let mode = libc::SECCOMP_SET_MODE_FILTER;
            libc::syscall(libc::SYS_seccomp, mode, 0_u32, &raw const program)
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }

    #[test]
    fn a_filter_that_ends_processes_is_noticed() {
        assert!(may_be_asked_for());
        let filtered = || {
            forbid_landlock();
            assert!(!may_be_asked_for());
        };
        std::thread::scope(|scope| scope.spawn(filtered).join().unwrap());
    }

    #[test]
    fn a_thread_without_files_has_sockets() {
        if let Err(error) = version() {
            return weir_testing::skip(&format!("the kernel has no Landlock: {error}"));
        }
        let folder = std::env::temp_dir().join(format!("weir-confine-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let file = folder.join("file");
        fs::write(&file, "x").unwrap();
        let confined = || {
            without_files().unwrap();
            let refused = |result: io::Result<()>| {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::PermissionDenied);
            };
            refused(File::open(&file).map(drop));
            refused(fs::write(folder.join("other"), "y"));
            refused(fs::remove_file(&file));
            refused(UnixListener::bind(folder.join("another")).map(drop));
            refused(fs::read_dir("/").map(drop));
            refused(std::process::Command::new("/bin/true").status().map(drop));
            // Threads that it starts are also restricted.
            std::thread::scope(|scope| {
                scope.spawn(|| refused(File::open(&file).map(drop)));
            });
            drop(UnixStream::connect(&path).unwrap());
            std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        };
        std::thread::scope(|scope| scope.spawn(confined).join().unwrap());
        listener.accept().unwrap();
        // Other threads are not restricted.
        assert_eq!(fs::read_to_string(&file).unwrap(), "x");
        fs::remove_dir_all(&folder).unwrap();
    }
}
