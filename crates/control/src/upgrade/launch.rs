//! The program and arguments of this process, with which an upgrade starts the new process.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Environment variable of a new process: the process id of its predecessor. The standard input of the new process is a
/// socket to the predecessor.
pub(super) const PREDECESSOR: &str = "WEIR_PREDECESSOR";

/// Environment variables that apply only to this process.
const NOT_INHERITED: [&str; 4] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// The program and arguments of this process.
#[derive(Debug, Clone)]
pub struct Launch {
    program: Result<PathBuf, String>,
    arguments: Vec<OsString>,
}

impl Launch {
    /// The program and arguments of this process. Call this early, because the program's file may be replaced later.
    pub fn own() -> Self {
        let mut words = std::env::args_os();
        let name = words.next().map(PathBuf::from).unwrap_or_default();
        // A path may contain a symbolic link that will change, so the path is stored. A plain name was found in PATH.
        let is_path = name.components().count() > 1;
        let program = match is_path {
            true => std::path::absolute(name),
            false => std::env::current_exe(),
        };
        Self { program: program.map_err(|error| error.to_string()), arguments: words.collect() }
    }

    /// Starts `binary`, or the program of this process, with this socket as its standard input.
    pub(super) fn start(&self, binary: Option<&Path>, channel: OwnedFd) -> Result<Child, String> {
        let program = match (binary, &self.program) {
            (Some(binary), _) => binary.to_owned(),
            (None, Ok(program)) => program.clone(),
            (None, Err(why)) => {
                return Err(format!("the program of this process is not known: {why}"));
            }
        };
        let mut command = Command::new(&program);
        command
            .arg0(&program)
            .args(&self.arguments)
            .stdin(Stdio::from(channel))
            .env(PREDECESSOR, std::process::id().to_string());
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command.spawn().map_err(|error| {
            let why = weir_event_loop::error_text::io_error_text(&error);
            format!("cannot start {}: {why}", program.display())
        })
    }
}

/// Takes the socket to the predecessor from standard input, and replaces standard input by `/dev/null`. `None`: this process
/// was not started by an upgrade.
pub(super) fn take_channel() -> io::Result<Option<OwnedFd>> {
    use std::os::fd::AsFd as _;
    let Some(predecessor) = std::env::var_os(PREDECESSOR) else { return Ok(None) };
    // Child processes of a new process inherit the variable, but not the socket.
    let is_parent = rustix::process::getppid()
        .is_some_and(|parent| predecessor == OsString::from(parent.as_raw_pid().to_string()));
    let input = io::stdin();
    let kind = rustix::net::sockopt::socket_type(input.as_fd());
    if kind != Ok(rustix::net::SocketType::SEQPACKET) {
        let what = format!("{PREDECESSOR} is set, but standard input is not the socket of a weir");
        return if is_parent { Err(io::Error::other(what)) } else { Ok(None) };
    }
    let channel = input.as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(Some(channel))
}
