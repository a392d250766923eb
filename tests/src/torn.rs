//! Writes that end in the middle, at any byte: a limit of the size of files cuts them. The process then ends (SIGXFSZ), or the
//! write fails as on a full disk.

use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::proxy::{Proxy, Setup};

/// What happens to a process at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    /// It ends in the middle of the write.
    Ends,
    /// The write fails; the process goes on.
    Fails,
}

/// Runs a program whose output goes through a pipe, so that the limit does not apply to it.
const PIPED: &str = r#"exec setpriv --pdeathsig KILL -- "$@" 2>&1 | cat"#;

/// The same, without the signal at the limit.
const PIPED_WITHOUT_SIGNAL: &str =
    r#"trap '' XFSZ; exec setpriv --pdeathsig KILL -- "$@" 2>&1 | cat"#;

/// A weir that can be limited. Requires `setpriv`.
#[must_use]
pub fn limitable(setup: Setup, at_limit: AtLimit) -> Setup {
    let script = match at_limit {
        AtLimit::Ends => PIPED,
        AtLimit::Fails => PIPED_WITHOUT_SIGNAL,
    };
    setup.started_by("sh", &["-c", script, "sh"])
}

/// The process of a limitable weir, which is not the one that the test started.
#[track_caller]
pub fn pid(proxy: &Proxy) -> Pid {
    let status: serde_json::Value =
        serde_json::from_str(&proxy.admin_get("/v1/status")).expect("a status");
    let pid = status["pid"].as_i64().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    pid.expect("a process id")
}

/// From now on, weir's files can have at most this many bytes; `None`: any number.
#[track_caller]
pub fn limit(proxy: &Proxy, bytes: Option<usize>) {
    let current = bytes.map(|bytes| bytes.try_into().expect("a size"));
    prlimit(Some(pid(proxy)), Resource::Fsize, Rlimit { current, maximum: None }).expect("a limit");
}

/// Runs a program that ends in the middle of a write at this size of its file. Requires `prlimit`.
pub fn cut(program: &Path, arguments: &[&str], bytes: usize) {
    let script = format!(r#"prlimit --fsize={bytes} -- "$@" 2>&1 | cat"#);
    let mut command = Command::new("sh");
    let output = command.args(["-c", &script, "sh"]).arg(program).args(arguments).output();
    output.expect("sh runs");
}

/// The sizes at which writes of `bytes` bytes are cut: all of them with `WEIR_TEST_TORN_WRITES=all`, else about `count`.
/// The first and the last byte are among them.
pub fn cuts(bytes: usize, count: usize) -> Vec<usize> {
    let is_full = std::env::var("WEIR_TEST_TORN_WRITES").is_ok_and(|value| value == "all");
    let step = if is_full { 1 } else { bytes.div_ceil(count).max(1) };
    let mut cuts: Vec<usize> = (0..bytes).step_by(step).collect();
    if !cuts.ends_with(&[bytes - 1]) {
        cuts.push(bytes - 1);
    }
    cuts
}
