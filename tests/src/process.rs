//! Processes of a scenario. They are killed on drop, and when the test process ends.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tools;

/// A running process whose output goes to a file.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program. Its standard output and error go to `log`.
    ///
    /// Call this from a thread that outlives the process: if `setpriv` is installed, the kernel kills the process when
    /// that thread ends. So even a killed test run leaves no process behind.
    pub fn start(program: &Path, arguments: &[&str], log: &Path) -> Self {
        let output = File::options().create(true).append(true).open(log).expect("a log file");
        let mut command = match tools::find("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL", "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        let child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second handle of the log"))
            .stderr(output)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child, log: log.to_owned() }
    }

    /// Waits until every address accepts connections. Panics if the process ends.
    #[track_caller]
    pub fn wait_until_listening(&mut self, addresses: &[SocketAddr]) {
        let deadline = Instant::now() + crate::STEP_TIMEOUT;
        for address in addresses {
            while TcpStream::connect(address).is_err() {
                if let Some(status) = self.exited() {
                    panic!("ended with {status} before it served:\n{}", self.output());
                }
                assert!(Instant::now() < deadline, "{address} does not accept:\n{}", self.output());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert!(self.exited().is_none(), "another process serves there:\n{}", self.output());
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The output so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Waits until the output has this text, and returns the output. An event is written a moment after what it tells.
    #[track_caller]
    pub fn says(&self, text: &str) -> String {
        crate::eventually(text, crate::STEP_TIMEOUT, || self.output().contains(text));
        self.output()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("signalling a child");
    }

    /// Stops the process (SIGSTOP). A thread that waits must run to take the signal, and the others go on until then.
    #[track_caller]
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        crate::eventually("the process is stopped", crate::STEP_TIMEOUT, || {
            self.threads().all(|thread| {
                let stat = std::fs::read_to_string(thread.join("stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
            })
        });
    }

    /// Stops the process while `meanwhile` runs. After SIGCONT, the process gets all pending events at once.
    #[track_caller]
    pub fn while_stopped<T>(&self, meanwhile: impl FnOnce() -> T) -> T {
        self.stop();
        let done = meanwhile();
        self.signal(Signal::CONT);
        done
    }

    /// Sends a signal to one thread. If the thread blocks the signal, another thread handles it, as with any signal to
    /// the process.
    #[track_caller]
    pub fn signal_thread(&self, name: &str, signal: Signal) {
        let named = |thread: &PathBuf| {
            std::fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim() == name)
        };
        let thread = self.threads().find(named);
        let thread = thread.unwrap_or_else(|| panic!("no thread {name}"));
        let id = thread
            .file_name()
            .and_then(|id| id.to_str()?.parse().ok())
            .and_then(Pid::from_raw)
            .expect("a thread id");
        kill_process(id, signal).expect("signalling a thread of a child");
    }

    /// The folders of the process's threads in `/proc`.
    fn threads(&self) -> impl Iterator<Item = PathBuf> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        threads.into_iter().flatten().flatten().map(|thread| thread.path())
    }

    /// The exit status; `None` while it runs.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("waiting for a child")
    }

    /// Waits for the exit; panics after `timeout`.
    #[track_caller]
    pub fn wait(&mut self, timeout: Duration) -> ExitStatus {
        let mut status = None;
        crate::eventually("the process ends", timeout, || {
            status = self.exited();
            status.is_some()
        });
        status.expect("set by the condition")
    }

    /// Kills the process (SIGKILL) and waits for its exit.
    pub fn kill(&mut self) {
        // Fails only if the process has ended already.
        let _ = self.child.kill();
        self.child.wait().expect("waiting for a child");
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib * 1024)
    }

    /// Number of open descriptors in all tables of the process.
    pub fn descriptors(&self) -> usize {
        // Workers have tables of their own. All other threads share one, and some of them come and go.
        let has_own_table = |thread: &PathBuf| {
            let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
            let number = name.trim_end().strip_prefix("weir-").unwrap_or_default();
            let is_worker = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_worker || thread.ends_with(self.pid().to_string())
        };
        self.threads()
            .filter(has_own_table)
            .filter_map(|thread| std::fs::read_dir(thread.join("fd")).ok())
            .map(Iterator::count)
            .sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let output = self.output();
            let lines: Vec<&str> = output.lines().collect();
            let last = &lines[lines.len().saturating_sub(40)..];
            eprintln!("--- end of {} ---\n{}", self.log.display(), last.join("\n"));
        }
    }
}
