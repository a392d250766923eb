//! Upgrades of a running weir: by `weir upgrade`, and by SIGUSR2.
//!
//! `WEIR_UPGRADES=20` sets the number of upgrades under load. The default is small.

mod failures;
mod handed_over;
mod manager;
mod under_load;

use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use weir_tests::proxy::{Proxy, Setup, weir_binary};

/// A running weir, and the processes that have replaced it.
struct Line {
    proxy: Proxy,
    /// The ids of all started processes. They are killed on drop.
    pids: Vec<u32>,
}

impl Line {
    fn start(setup: &Setup) -> Self {
        Self { proxy: Proxy::start(&setup.clone().admin_socket()), pids: Vec::new() }
    }

    /// Runs `weir upgrade` with these arguments.
    fn command(&mut self, arguments: &[&str]) -> Output {
        let output = Command::new(weir_binary())
            .args(["upgrade", "--json", "--admin", &self.proxy.admin_address()])
            .args(arguments)
            .output()
            .expect("weir upgrade runs");
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_default();
        let pid = document["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        self.pids.extend(pid.filter(|pid| !self.pids.contains(pid)));
        output
    }

    /// Upgrades weir. Returns the id of the new process.
    #[track_caller]
    fn upgrade(&mut self) -> u32 {
        let output = self.command(&[]);
        assert!(output.status.success(), "{output:?}\n{}", self.proxy.process().output());
        let pid = *self.pids.last().expect("a process id");
        assert_eq!(self.serving(), pid);
        pid
    }

    /// Runs an upgrade that must fail. Returns its report.
    #[track_caller]
    fn fail(&mut self, arguments: &[&str]) -> serde_json::Value {
        let output = self.command(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["state"], "failed", "{report}");
        report
    }

    /// The id of the process that responds on the admin listener.
    #[track_caller]
    fn serving(&self) -> u32 {
        let status = self.status();
        status["pid"].as_u64().and_then(|pid| pid.try_into().ok()).expect("a process id")
    }

    #[track_caller]
    fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.proxy.admin_get("/v1/status")).expect("a status")
    }

    /// All processes with this test's configuration file in their arguments, including those of a failed test.
    fn with_its_file(&self) -> Vec<u32> {
        let file = self.proxy.config_path();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
        let serves_it = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == file.as_os_str().as_encoded_bytes())
        };
        pids.filter(serves_it).collect()
    }

    /// Sends a signal to a process.
    fn signal(pid: u32, signal: Signal) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
        // The process may have ended already.
        let _ = kill_process(pid, signal);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for pid in self.pids.iter().copied().chain(self.with_its_file()) {
            Self::signal(pid, Signal::KILL);
        }
    }
}
