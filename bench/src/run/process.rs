//! Server processes of a run. They always end, also when the run fails or is killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::load::udp;

/// Start timeout of a server; under callgrind the slowest needs 25 s.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of one query while waiting for a server.
const ANSWER_WAIT: Duration = Duration::from_millis(200);
/// Interval between checks of readiness or exit.
const POLL: Duration = Duration::from_millis(5);
/// A server is killed if it has not ended this long after the request to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval for repeating the signal to end: a server under a tool may lose the signal.
const STOP_AGAIN: Duration = Duration::from_secs(5);
/// Number of log lines in an error message.
const TAIL_LINES: usize = 15;

/// The kernel's signal to the server when the run itself is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathSignal {
    /// Ends the server at once.
    Kill,
    /// Lets the server end its child processes.
    Term,
}

/// The command to start, and its environment.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The server's name in the log and in messages.
    pub name: &'a str,
    /// Command prefix: network namespace and cores.
    pub prefix: &'a [OsString],
    /// Program and arguments.
    pub command: &'a [OsString],
    /// The server's working directory.
    pub directory: &'a Path,
    /// The file for the server's output.
    pub log: &'a Path,
    /// See [`DeathSignal`].
    pub death_signal: DeathSignal,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts the server in its own process group, so that Ctrl-C at the terminal reaches only the run.
    ///
    /// The kernel sends the death signal when the calling thread ends: call this from a thread that lives as long
    /// as the run.
    pub fn start(launch: &Launch<'_>) -> Result<Self, String> {
        use std::os::unix::process::CommandExt;

        let failed = |error| format!("{} cannot be started: {error}", launch.name);
        let output = File::options().create(true).append(true).open(launch.log).map_err(failed)?;
        let words = guarded(launch.prefix, launch.command, launch.death_signal);
        let [program, arguments @ ..] = words.as_slice() else {
            return Err(format!("{} has no command", launch.name));
        };
        let child = Command::new(program)
            .args(arguments)
            .current_dir(launch.directory)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = program.to_string_lossy();
                format!("{} cannot be started: {program}: {error}", launch.name)
            })?;
        Ok(Self { name: launch.name.into(), child, log: launch.log.into() })
    }

    /// Process id of the server itself: the prefix commands replace themselves by the server.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with the server's output.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Waits until every address accepts a connection. The error describes the server's failure.
    pub fn wait_until_listening(&mut self, addresses: &[SocketAddr]) -> Result<(), String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        for address in addresses {
            while let Err(error) = TcpStream::connect_timeout(address, READY_TIMEOUT) {
                self.check()?;
                if Instant::now() > deadline {
                    return Err(format!(
                        "{} does not accept on {address}: {error}\n{}",
                        self.name,
                        self.tail()
                    ));
                }
                std::thread::sleep(POLL);
            }
        }
        // If the server has ended, another process serves on that address.
        self.check()
    }

    /// Waits until every address answers a query over UDP. The error describes the server's failure.
    pub fn wait_until_answering(&mut self, addresses: &[SocketAddr]) -> Result<(), String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        for &address in addresses {
            let asked = |error| format!("{address} cannot be asked: {error}");
            while !udp::answers(address, ANSWER_WAIT).map_err(asked)? {
                self.check()?;
                if Instant::now() > deadline {
                    let (name, tail) = (&self.name, self.tail());
                    return Err(format!("{name} does not answer on {address}\n{tail}"));
                }
                // Connection refused: the server is not ready yet.
                std::thread::sleep(POLL);
            }
        }
        self.check()
    }

    /// Waits until the server's log contains this text.
    pub fn wait_until_said(&mut self, text: &str) -> Result<(), String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        while !fs::read_to_string(&self.log).unwrap_or_default().contains(text) {
            self.check()?;
            if Instant::now() > deadline {
                return Err(format!("{} does not say {text:?}\n{}", self.name, self.tail()));
            }
            std::thread::sleep(POLL);
        }
        self.check()
    }

    /// Fails with the end of the log if the server has ended.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("{} ended ({status}):\n{}", self.name, self.tail())),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }

    /// The last lines of the server's log.
    pub fn tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Sends the signal to end and waits for the exit, so that the server can write its results.
    pub fn end(mut self, timeout: Duration) -> Result<(), String> {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            self.ask_to_end();
            if self.wait(STOP_AGAIN) {
                return Ok(());
            }
        }
        Err(format!("{} did not end within {} s:\n{}", self.name, timeout.as_secs(), self.tail()))
    }

    fn ask_to_end(&self) {
        if let Some(id) = self.pid() {
            // Fails only if the process has ended meanwhile.
            let _ = kill_process(id, Signal::TERM);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            // An error means that the child process has ended.
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(id) = self.pid() else { return };
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask_to_end();
            self.wait(STOP_TIMEOUT);
        }
        // Kills the rest of the group: the server, or children that outlived it. Fails if the group is empty.
        let _ = kill_process_group(id, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The command with all its prefixes.
fn guarded(prefix: &[OsString], command: &[OsString], signal: DeathSignal) -> Vec<OsString> {
    let signal = match signal {
        DeathSignal::Kill => "KILL",
        DeathSignal::Term => "TERM",
    };
    let guard = ["setpriv", "--pdeathsig", signal, "--"].map(OsString::from);
    guard.iter().chain(prefix).chain(command).cloned().collect()
}

/// The path of a program. The search includes folders of administration programs, even if PATH lacks them.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

/// Whether the path is an executable file.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end; returns its output, or the reason of a failure.
pub fn output_of(command: &[OsString], directory: &Path) -> Result<String, String> {
    let [program, arguments @ ..] = command else { return Err("no command".into()) };
    let shown = command.join(OsStr::new(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", shown.to_string_lossy()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("{} ({}):\n{}", shown.to_string_lossy(), output.status, text.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn start(name: &str, command: &[&str]) -> Result<Server, String> {
        let folder = std::env::temp_dir();
        let log = folder.join(format!("weir-bench-process-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&log);
        Server::start(&Launch {
            name,
            prefix: &[],
            command: &words(command),
            directory: &folder,
            log: &log,
            death_signal: DeathSignal::Kill,
        })
    }

    #[test]
    fn words_before_a_command() {
        let (prefix, command) = (words(&["taskset", "-c", "0"]), words(&["nginx", "-v"]));
        let guarded = guarded(&prefix, &command, DeathSignal::Term);
        let expected =
            words(&["setpriv", "--pdeathsig", "TERM", "--", "taskset", "-c", "0", "nginx", "-v"]);
        assert_eq!(guarded, expected);
    }

    #[test]
    fn a_server_that_dies_says_why() {
        let mut server =
            start("dying", &["sh", "-c", "echo no such pool >&2; exit 3"]).expect("sh");
        let unused = SocketAddr::from(([127, 0, 0, 1], 1));
        let error = server.wait_until_listening(&[unused]).expect_err("it ends");
        assert!(error.contains("dying ended") && error.contains("no such pool"), "{error}");
        let _ = fs::remove_file(server.log());
    }

    #[test]
    fn servers_and_their_children_end_with_their_handle() {
        let server = start("family", &["sh", "-c", "sleep 600 & wait"]).expect("sh");
        let family = loop {
            let family = super::super::accounting::family(server.id());
            if family.len() == 2 {
                break family;
            }
            std::thread::sleep(POLL);
        };
        let log = server.log().to_owned();
        drop(server);
        let deadline = Instant::now() + STOP_TIMEOUT;
        for process in family {
            let alive = || {
                let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
                // A zombie that waits for init to reap it counts as ended.
                !stat.is_empty() && !stat.contains(") Z ")
            };
            while alive() {
                assert!(Instant::now() < deadline, "process {process} is left");
                std::thread::sleep(POLL);
            }
        }
        let _ = fs::remove_file(log);
    }

    #[test]
    fn what_is_written_at_the_end_is_waited_for() {
        let script =
            "trap 'sleep 0.1; echo counted; exit' TERM; echo begun; while :; do sleep 0.01; done";
        let server = start("counting", &["sh", "-c", script]).expect("sh");
        while server.tail().is_empty() {
            std::thread::sleep(POLL);
        }
        let log = server.log().to_owned();
        server.end(STOP_TIMEOUT).expect("an end");
        assert_eq!(fs::read_to_string(&log).expect("its log"), "begun\ncounted\n");
        let _ = fs::remove_file(log);
    }

    #[test]
    fn output_and_failures() {
        let folder = std::env::temp_dir();
        assert_eq!(output_of(&words(&["echo", "x"]), &folder), Ok("x\n".into()));
        let error = output_of(&words(&["sh", "-c", "echo bad; exit 2"]), &folder).expect_err("2");
        assert!(error.contains("exit status: 2") && error.contains("bad"), "{error}");
        assert!(find_program("sh").is_some());
        assert!(find_program("no-such-program-at-all").is_none());
    }
}
