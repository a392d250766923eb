//! Network namespaces of a test, and packets whose every checksum is computed from scratch.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod bed;
pub mod net;
pub mod packet;

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weir_packet::{Attachment, Options, PacketPath, Rung, RungsAllowed};

/// Distinguishes tests of one process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Whether the test can run: root, iproute2 and a kernel that lets it load programs. Otherwise it
/// prints the reason.
pub fn is_possible() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let Some(reason) = WHY_NOT.get_or_init(why_not) else { return true };
    weir_testing::skip(reason);
    false
}

fn why_not() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("the packet path needs root".to_owned());
    }
    if Command::new("ip").arg("-V").output().is_err() {
        return Some("ip is not installed".to_owned());
    }
    let name = unique("probe");
    if !Command::new("ip")
        .args(["netns", "add", &name])
        .output()
        .is_ok_and(|it| it.status.success())
    {
        return Some("network namespaces are not permitted here".to_owned());
    }
    let _ = Command::new("ip").args(["netns", "del", &name]).output();
    let options = options(&unique("probe"));
    let result = PacketPath::open(&options).and_then(PacketPath::detach);
    let _ = std::fs::remove_dir(&options.pins);
    result.err().map(|error| error.to_string())
}

fn unique(what: &str) -> String {
    format!("weir-packet-{}-{}-{what}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Room for flows, unless a test asks for another.
pub const FLOWS_MAX: u32 = 65_536;

/// Options with a folder of pins of its own.
pub fn options(name: &str) -> Options {
    Options {
        pins: PathBuf::from(format!("/sys/fs/bpf/{name}")),
        flows_max: FLOWS_MAX,
        remembered_max: 1_024,
        ..Options::new("test")
    }
}

/// A network namespace, removed when dropped.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    pub fn new(what: &str) -> Self {
        let name = unique(what);
        succeed(Command::new("ip").args(["netns", "add", &name]));
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    /// Moves this thread there.
    pub fn enter(&self) {
        let file = File::open(format!("/var/run/netns/{}", self.name)).expect("the namespace");
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("entering");
    }

    /// Runs a closure there, in a thread of its own.
    pub fn within<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    self.enter();
                    run()
                })
                .join()
                .expect("no panic")
        })
    }

    /// `ip` with these arguments, in the namespace.
    #[track_caller]
    pub fn ip(&self, words: &str) {
        succeed(Command::new("ip").args(["-n", &self.name]).args(words.split_whitespace()));
    }

    /// A program with these arguments, in the namespace.
    #[track_caller]
    pub fn run(&self, words: &str) -> String {
        let output = succeed(&mut self.command(words));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// As above, but not started yet.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).args(words.split_whitespace());
        command
    }

    /// Settings of the kernel, there.
    #[track_caller]
    pub fn set(&self, settings: &[&str]) {
        for setting in settings {
            self.run(&format!("sysctl -qw {setting}"));
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

#[track_caller]
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// A packet path of a test, with its own pins; detached when dropped.
pub struct Path {
    pub path: Option<PacketPath>,
    pub options: Options,
}

impl Path {
    pub fn open() -> Self {
        Self::with(options(&unique("pins")))
    }

    /// A packet path with room for this many flows.
    pub fn sized(flows_max: u32) -> Self {
        Self::with(Options { flows_max, ..options(&unique("pins")) })
    }

    pub fn with(options: Options) -> Self {
        let path = PacketPath::open(&options).expect("opening the packet path");
        Self { path: Some(path), options }
    }

    pub fn get(&mut self) -> &mut PacketPath {
        self.path.as_mut().expect("it is open")
    }

    pub fn read(&self) -> &PacketPath {
        self.path.as_ref().expect("it is open")
    }

    /// Attaches, and expects one rung for all.
    #[track_caller]
    pub fn attach(&mut self, interfaces: &[&str], rung: Rung) -> Vec<Attachment> {
        let interfaces: Vec<String> = interfaces.iter().map(|name| (*name).to_owned()).collect();
        let allowed = RungsAllowed { xdp: rung == Rung::Xdp, tcx: true };
        let attachments = self.get().attach(&interfaces, allowed).expect("attaching");
        for attachment in &attachments {
            assert_eq!(attachment.rung, Some(rung), "{attachment:?}");
        }
        attachments
    }

    /// State that the process would leave behind, and that the next one finds.
    pub fn restart(&mut self) {
        self.path.take().expect("it is open").release();
        self.path = Some(PacketPath::open(&self.options).expect("taking over"));
        assert!(self.get().taken_over());
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            let _ = path.detach();
        }
        let _ = std::fs::remove_dir(&self.options.pins);
    }
}
