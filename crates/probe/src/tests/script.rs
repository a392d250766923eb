//! Scripts as monitors.

use std::path::Path;
use std::time::Instant as Clock;

use weir_config::snapshot::ScriptProbe;

use super::*;

/// Maximum wait for the end of a process. It is long, because a busy machine must not make a test fail.
const PATIENCE: Duration = Duration::from_secs(60);

fn shell(line: &str) -> MonitorKind {
    let command = ["/bin/sh", "-c", line].map(Into::into);
    MonitorKind::Script(ScriptProbe { command: command.into() })
}

fn member() -> Address {
    Address::Socket("127.0.0.1:5432".parse().unwrap())
}

async fn outcome(line: &str) -> String {
    result(&member(), shell(line)).await
}

#[tokio::test]
async fn the_exit_status_decides() {
    assert_eq!(outcome("exit 0").await, "passed");
    assert_eq!(outcome("exit 3").await, "the script ended with 3");
    assert_eq!(
        outcome("echo; echo ' read-only ' >&2; echo more >&2; exit 1").await,
        "the script ended with 1: read-only"
    );
    assert_eq!(outcome("kill -9 $$").await, "the script was ended by signal 9");
    let missing = ["/no/such/program"].map(Into::into);
    let missing = MonitorKind::Script(ScriptProbe { command: missing.into() });
    let told = result(&member(), missing).await;
    assert!(told.starts_with("/no/such/program cannot be started: "), "{told}");
}

#[tokio::test]
async fn it_is_told_whose_health_it_is() {
    let asks = |text: &str| {
        format!("test \"$WEIR_POOL $WEIR_MEMBER $WEIR_ADDRESS $WEIR_PORT\" = '{text}'")
    };
    assert_eq!(outcome(&asks("web app.example:80 127.0.0.1 5432")).await, "passed");
    let unix = Address::Unix("/run/app.sock".into());
    let line = asks("web app.example:80 /run/app.sock ");
    assert_eq!(result(&unix, shell(&line)).await, "passed");
}

/// Neither large output nor remaining child processes delay the result.
#[tokio::test]
async fn output_and_children_do_not_block() {
    assert_eq!(outcome("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2").await, "passed");
    let started = Clock::now();
    assert_eq!(outcome("sleep 60 & exit 0").await, "passed");
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// After the deadline, all processes of the script are killed.
#[tokio::test]
async fn the_deadline_ends_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let line = format!("sleep 300 & echo $! $$ > {}; wait", file.display());
    assert_eq!(outcome(&line).await, "no answer in 300ms (running the script)");
    let pids = std::fs::read_to_string(&file).unwrap();
    for pid in pids.split_whitespace() {
        gone(pid).await;
    }
}

/// Waits until a process has ended; a zombie counts as ended.
async fn gone(pid: &str) {
    let status = Path::new("/proc").join(pid).join("stat");
    let is_there = || std::fs::read_to_string(&status).is_ok_and(|text| !text.contains(") Z "));
    let begin = Clock::now();
    while is_there() {
        assert!(begin.elapsed() < PATIENCE, "process {pid} has not ended within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
