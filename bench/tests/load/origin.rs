//! `weir-bench load` and `weir-bench origin`, run as a user does.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use weir_tests::client::Client;
use weir_tests::process::Process;
use weir_tests::temp::TempDir;

/// A running origin.
#[derive(Debug)]
pub struct Origin {
    process: Process,
    addresses: Vec<SocketAddr>,
    _directory: TempDir,
}

impl Origin {
    /// Starts an origin with `servers` servers on loopback, with further arguments.
    pub fn start(servers: usize, arguments: &[&str]) -> Self {
        let directory = TempDir::new("origin");
        let servers = servers.to_string();
        let mut all = vec!["origin", "--listen", "127.0.1.1:0", "--servers", &servers];
        all.extend_from_slice(arguments);
        let mut process = Process::start(program(), &all, &directory.path().join("output.log"));
        weir_tests::eventually("the origin serves", weir_tests::STEP_TIMEOUT, || {
            assert!(process.exited().is_none(), "{}", process.output());
            process.output().ends_with('\n')
        });
        let text: Value = serde_json::from_str(&process.output()).expect("a line of JSON");
        let addresses = text["listening"].as_array().expect("addresses").iter();
        let addresses =
            addresses.map(|address| address.as_str().expect("text").parse().expect("an address"));
        Self { addresses: addresses.collect(), process, _directory: directory }
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The URL of an object on server `index`.
    pub fn url(&self, index: usize, path: &str) -> String {
        format!("http://{}{path}", self.addresses[index])
    }

    /// The origin's counters.
    pub fn counts(&self) -> Value {
        let response = Client::connect(self.addresses[0]).get("/_origin/counts");
        serde_json::from_slice(&response.body).expect("counts in JSON")
    }

    /// Ends the origin with SIGTERM. Returns the last line of its output.
    pub fn end(mut self) -> Value {
        self.process.signal(rustix::process::Signal::TERM);
        assert!(self.process.wait(weir_tests::STEP_TIMEOUT).success());
        let output = self.process.output();
        serde_json::from_str(output.lines().last().expect("a line")).expect("counts in JSON")
    }
}

/// The program.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_weir-bench"))
}

/// Runs a load with `--json`. Returns the result, even with a failed exit status.
#[track_caller]
pub fn load(arguments: &[&str]) -> Value {
    let output = Command::new(program())
        .args(["load", "--json"])
        .args(arguments)
        .output()
        .expect("running weir-bench");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}

/// A number in a result; panics if it is missing.
#[track_caller]
pub fn number(result: &Value, name: &str) -> u64 {
    result[name].as_u64().unwrap_or_else(|| panic!("{name} in {result}"))
}
