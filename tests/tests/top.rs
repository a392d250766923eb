//! `weir top` in scripts and in a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup, weir_binary};

const SOON: Duration = weir_tests::STEP_TIMEOUT;

fn top(proxy: &Proxy, arguments: &[&str]) -> Command {
    let mut command = Command::new(weir_binary());
    command.arg("top").args(arguments).env("WEIR_ADMIN", proxy.admin_address());
    command
}

/// Sends requests until drop.
struct Traffic(Arc<Mutex<bool>>, Option<thread::JoinHandle<()>>);

impl Traffic {
    fn to(proxy: &Proxy) -> Self {
        let mut client = proxy.client();
        let is_over = Arc::<Mutex<bool>>::default();
        let told = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            while !*told.lock().unwrap() {
                client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
                client.response().assert_status(200);
            }
        });
        Self(is_over, Some(thread))
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = true;
        let ended = self.1.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|it| it.is_ok()), "the traffic failed");
    }
}

#[test]
fn one_document_for_scripts() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).admin_socket();
    let proxy = Proxy::start(&setup.top("metrics: { latency_histograms: member }\n"));
    let _traffic = Traffic::to(&proxy);
    let output = top(&proxy, &["--once", "--json", "--interval", "500ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let server = &found["virtual_servers"][0];
    assert_eq!((&server["name"], &server["is_wrong"]), (&"main".into(), &false.into()));
    assert!(server["rate"].as_f64().unwrap() > 1.0, "{server}");
    assert!(server["p99_ms"].as_f64().unwrap() > 0.0, "{server}");
    assert_eq!(found["members"][0]["name"], member.address().to_string());
    assert!(found["members"][0]["p50_ms"].as_f64().is_some(), "{found}");
    let output = top(&proxy, &["--once", "--filter", "nothing-like-this"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("main") && text.contains("Members"), "{text}");
    let mut nowhere = top(&proxy, &["--once"]);
    let output = nowhere.env("WEIR_ADMIN", "unix:/nowhere/admin.sock").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

/// `weir top` in a terminal with 100 columns and 30 lines.
struct InTerminal {
    child: Child,
    controller: File,
    /// The terminal's end of the pair, kept open so that its modes can be read.
    terminal: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl InTerminal {
    fn start(proxy: &Proxy) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&controller).expect("granting");
        unlockpt(&controller).expect("unlocking");
        let name = ptsname(&controller, Vec::new()).expect("a name").into_string().unwrap();
        let open = || File::options().read(true).write(true).open(&name).expect("the terminal");
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(open(), size).expect("a size");
        let child = top(proxy, &["--interval", "200ms"])
            .env("TERM", "xterm")
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .expect("the built command");
        let controller = File::from(controller);
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let (mut reader, to) = (controller.try_clone().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                to.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, controller, terminal: open().into(), shown }
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        weir_tests::eventually(text, SOON, || {
            let shown = self.shown.lock().unwrap();
            String::from_utf8_lossy(&shown).contains(text)
        });
    }

    fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).expect("signalling a child");
    }

    /// Waits for the end of the process, and checks that the modes of the terminal are restored.
    #[track_caller]
    fn expect_end(&mut self) {
        let mut status = None;
        weir_tests::eventually("the view ends", SOON, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.and_then(|status| status.code()), Some(0));
        let modes = tcgetattr(&self.terminal).expect("the modes").local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON), "{modes:?}");
        // The sequences that leave the alternate screen and show the cursor.
        self.wait_for("\x1b[?1049l");
        self.wait_for("\x1b[?25h");
    }
}

impl Drop for InTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_follows_a_restart_and_gives_the_terminal_back() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).admin_socket();
    let mut proxy = Proxy::start(&setup);
    let mut view = InTerminal::start(&proxy);
    view.wait_for("Virtual servers");
    view.wait_for("main");
    view.press("3");
    view.wait_for(&member.address().to_string());
    proxy.process().signal(Signal::KILL);
    view.wait_for("trying again");
    proxy.restart(&setup);
    view.wait_for("weir was restarted at");
    view.press("q");
    view.expect_end();
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let member = Member::echo();
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut view = InTerminal::start(&proxy);
        view.wait_for("Virtual servers");
        view.signal(signal);
        view.expect_end();
    }
    let mut view = InTerminal::start(&proxy);
    view.wait_for("Virtual servers");
    view.press("\x03");
    view.expect_end();
}
