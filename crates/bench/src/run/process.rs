//! Servers that a run starts: always ended, also when the run fails or is killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::load::udp;

/// A server that does not accept within this time will not; under callgrind the slowest takes 25 s.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// How long one query may take while a server is looked for.
const ANSWER_WAIT: Duration = Duration::from_millis(200);
/// How often readiness and the end are looked at.
const POLL: Duration = Duration::from_millis(5);
/// A server that did not end this long after being asked to is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// A server under a tool may lose the signal to end; it is sent again this often.
const STOP_AGAIN: Duration = Duration::from_secs(5);
/// Lines of a log that an error message shows.
const TAIL_LINES: usize = 15;

/// The kernel's signal to the server when the run itself is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathSignal {
    /// Ends it at once.
    Kill,
    /// Lets it end its own children; for servers that have some.
    Term,
}

/// The command to start, and its environment.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Its name in the log and in messages.
    pub name: &'a str,
    /// Words before the program: network namespace, cores.
    pub prefix: &'a [OsString],
    /// Program and arguments.
    pub command: &'a [OsString],
    /// Its current directory.
    pub directory: &'a Path,
    /// Where its output goes.
    pub log: &'a Path,
    /// See there.
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
    /// Starts it in a process group of its own, so that Ctrl-C at the terminal reaches the run alone.
    ///
    /// The kernel sends the death signal when the calling thread ends: call it from the one that lives as
    /// long as the run.
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

    /// Process id; of the server itself, since the words before it replace themselves by it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where its output goes.
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
        // Otherwise another process serves there.
        self.check()
    }

    /// Waits until every address answers a query over UDP, likewise.
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
                // Refused at once: it is about to serve.
                std::thread::sleep(POLL);
            }
        }
        self.check()
    }

    /// Waits until its log has this.
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

    /// Fails with the end of its log when it has ended.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("{} ended ({status}):\n{}", self.name, self.tail())),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }

    /// The last lines of its log.
    pub fn tail(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// Ends it and waits for its end, so that it can write its results.
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
            // Fails only for a process that has ended meanwhile.
            let _ = kill_process(id, Signal::TERM);
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            // An error means that the child is gone.
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
        // The rest of it: the server itself, or children that outlived it. Fails if there is none.
        let _ = kill_process_group(id, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The command with all the words before it.
fn guarded(prefix: &[OsString], command: &[OsString], signal: DeathSignal) -> Vec<OsString> {
    let signal = match signal {
        DeathSignal::Kill => "KILL",
        DeathSignal::Term => "TERM",
    };
    let guard = ["setpriv", "--pdeathsig", signal, "--"].map(OsString::from);
    guard.iter().chain(prefix).chain(command).cloned().collect()
}

/// Where a program is; folders of administration programs are searched even if PATH lacks them.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| is_executable(candidate))
}

/// Whether it is a file that may be executed.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end; its output, or why it failed.
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
                // A zombie that waits for init to collect it has ended.
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
