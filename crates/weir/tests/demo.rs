//! Tests of the command `weir demo` without a terminal.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The demo ends after this time, even if the test fails.
const DURATION_MAX: &str = "300s";

/// Maximum time for the demo to end after a signal.
const END_MAX: Duration = Duration::from_secs(60);

/// A free port, because tests run at the same time.
const LISTEN: &str = "127.0.0.1:0";

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("demo").args(arguments);
    command
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8 output");
    (text(&output.stdout), text(&output.stderr))
}

/// The rest of the line that begins with this text.
fn after<'a>(text: &'a str, start: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(start));
    line.unwrap_or_else(|| panic!("no line {start:?} in\n{text}")).trim()
}

/// The numbers in a text with thousands separators.
fn numbers(text: &str) -> Vec<u64> {
    text.replace(',', "")
        .split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[test]
fn no_request_fails_while_a_member_does() {
    // The member stops after 2 seconds, and starts again no earlier than after 6 seconds.
    let output = demo(&["--plain", "--duration", "5s", "--listen", LISTEN])
        .output()
        .expect("the built command");
    let (stdout, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "");
    assert!(stdout.starts_with("weir demo serves http://127.0.0.1:"));
    for expected in [
        "# also /metrics for Prometheus",
        " check /",
        "  failed 0  members up ",
        "info: demo stops the flapping member for 4s",
        "warning: member flapping is down: ",
        "members up 3 of 4 (flapping down)",
        "weir demo ran for 0:05.",
    ] {
        assert!(stdout.contains(expected), "{expected:?} is not in\n{stdout}");
    }
    let clients = numbers(after(&stdout, "  Demo clients"));
    let [requests, answered, failed] = clients[..] else {
        panic!("{stdout}");
    };
    assert_eq!((answered, failed), (requests, 0), "{stdout}");
    // 80 requests per second for 5 seconds; the start and delays of a busy machine change the number.
    assert!((60..=450).contains(&requests), "{stdout}");
    let server = numbers(after(&stdout, "  Virtual server"));
    assert_eq!(server[0], requests, "{stdout}");
    // Requests that failed while the member stopped were retried: each failure is a retry.
    let flapping = numbers(after(&stdout, "  flapping"));
    let retries = after(&stdout, "  Retries");
    let retried = numbers(retries).first().copied().unwrap_or(0);
    assert!(flapping[1] <= retried, "{stdout}");
}

#[test]
fn without_traffic_there_is_only_that_of_others() {
    let arguments = ["--duration", "1s", "--no-traffic", "--listen", LISTEN];
    let output = demo(&arguments).output().expect("the built command");
    let (stdout, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(!stdout.contains("Demo clients") && !stdout.contains("failed"));
    assert_eq!(numbers(after(&stdout, "  Virtual server"))[0], 0);
    assert_eq!(after(&stdout, "  Retries"), "none was needed");
}

/// A running demo, ended on drop.
struct Running {
    child: Child,
    /// The output of the demo; `None`: the test has stopped reading.
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Running {
    fn start() -> Self {
        let mut child = demo(&["--duration", DURATION_MAX, "--listen", LISTEN])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the built command");
        let stdout = child.stdout.take().expect("a pipe");
        let lines = Some(BufReader::new(stdout).lines());
        Self { child, lines }
    }

    /// Reads lines until one contains `text`.
    fn line_with(&mut self, text: &str) -> String {
        let found = self
            .lines
            .as_mut()
            .expect("somebody who reads")
            .map(|line| line.expect("a line"))
            .find(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("the demo ended without {text:?}"))
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.expect("a shell").success());
    }

    /// Waits for the end. Returns the exit status, and the output to standard error.
    fn wait(&mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("a child");
        let mut stderr = String::new();
        let pipe = self.child.stderr.as_mut().expect("a pipe");
        pipe.read_to_string(&mut stderr).expect("UTF-8 output");
        (status.code(), stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The demo may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn its_file_can_be_edited_and_reloaded() {
    let mut running = Running::start();
    let line = running.line_with(" check /");
    let file = line.split_whitespace().find(|word| word.ends_with("demo.yaml"));
    let file = file.expect("the file's path");
    running.line_with("requests/s");
    let text = std::fs::read_to_string(file).expect("the file");
    std::fs::write(file, text.replace("connections: 1000", "connections: 1001")).expect("written");
    running.signal("HUP");
    running.line_with("info: configuration was reloaded");
    running.signal("INT");
    let told = Instant::now();
    let clients = running.line_with("  Demo clients");
    assert!(clients.ends_with(" 0 failed"), "{clients}");
    assert_eq!(running.wait(), (Some(0), String::new()));
    assert!(told.elapsed() < END_MAX);
    assert!(!std::path::Path::new(file).exists());
}

#[test]
fn it_ends_when_nobody_reads_its_lines() {
    let mut running = Running::start();
    running.line_with("weir demo serves");
    running.lines = None;
    let closed = Instant::now();
    assert_eq!(running.wait(), (Some(0), String::new()));
    assert!(closed.elapsed() < END_MAX);
}

/// A pseudoterminal: the test's end, and the end for programs.
fn terminal() -> (File, File) {
    // If another program held a descriptor, the terminal would never hang up.
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let own = openpt(flags).expect("a terminal");
    grantpt(&own).and_then(|()| unlockpt(&own)).expect("a terminal to open");
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&own, size).expect("a size");
    let path = ptsname(&own, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let programs = OpenOptions::new().read(true).write(true).open(path).expect("its other end");
    (own.into(), programs)
}

/// A broken ssh connection, or a closed window: standard error is gone, too.
#[test]
fn it_ends_when_its_terminal_goes_away() {
    // The view has hidden the cursor at its first drawing, or a line was written.
    for (arguments, sign) in [(&[][..], "\x1b[?25l"), (&["--plain"], "requests/s")] {
        let (mut own, programs) = terminal();
        let stream = || Stdio::from(programs.try_clone().expect("a descriptor"));
        let mut command = demo(&["--duration", DURATION_MAX, "--listen", LISTEN]);
        command.args(arguments).env("TERM", "xterm");
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().expect("the built command");
        let mut running = Running { child, lines: None };
        drop((command, programs));
        let (mut shown, mut bytes) = (Vec::new(), [0; 4_096]);
        while !String::from_utf8_lossy(&shown).contains(sign) {
            let length = own.read(&mut bytes).expect("a running demo");
            shown.extend_from_slice(&bytes[..length]);
        }
        drop(own);
        let gone = Instant::now();
        let status = running.child.wait().expect("a child");
        assert_eq!(status.code(), Some(0), "{arguments:?}");
        assert!(gone.elapsed() < END_MAX);
    }
}

#[test]
fn its_configuration_may_go_unread() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = demo(&["--config"]).stdout(writer).status().expect("the built command");
    assert_eq!(status.code(), Some(0));
    for arguments in [&["--config"][..], &["--listen", "192.0.2.1:1"]] {
        let full = || File::create("/dev/full").expect("a device that is always full");
        let status = demo(arguments).stdout(full()).stderr(full()).status();
        assert_eq!(status.expect("the built command").code(), Some(1), "{arguments:?}");
    }
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let taken = TcpListener::bind(LISTEN).expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = demo(&["--listen", &address]).output().expect("the built command");
    let (stdout, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout, "");
    let start = format!("weir demo: cannot listen on {address}: ");
    assert!(stderr.starts_with(&start), "{stderr}");
}

#[test]
fn its_configuration_is_the_example() {
    let output = demo(&["--config"]).output().expect("the built command");
    let (stdout, stderr) = text(&output);
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
    assert_eq!(stdout, include_str!("../../../examples/demo.yaml"));
}

#[test]
fn wrong_usage_gives_2() {
    for arguments in [
        &["--rate", "0"][..],
        &["--rate", "1001"],
        &["--rate", "50", "--no-traffic"],
        &["--duration", "3"],
        &["--listen", "localhost:80"],
        &["--config", "--plain"],
    ] {
        let output = demo(arguments).output().expect("the built command");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
