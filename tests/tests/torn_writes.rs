//! Writes of weir that end in the middle, because the process is killed or the disk is full: what was acknowledged is kept, and
//! no file is left in a state that weir cannot use. `acme/torn_writes.rs` does the same for files of ACME.
//!
//! `WEIR_TEST_TORN_WRITES=all` cuts each write at every byte; by default there are a few cuts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use weir_tests::member::Member;
use weir_tests::process::Process;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::torn::{self, AtLimit};
use weir_tests::{STEP_TIMEOUT, require, tools};

/// Cuts of a write, by default.
const CUTS: usize = 6;

/// A weir whose overlay sets the weight of a member, and the journal with that version.
struct Bed {
    state: TempDir,
    member: Member,
    /// The journal with the weight 2.
    before: Vec<u8>,
    /// The size of the journal with another version behind it.
    after_bytes: usize,
}

impl Bed {
    fn new() -> Self {
        let (state, member) = (TempDir::new("torn"), Member::named("hello"));
        let mut bed = Self { state, member, before: Vec::new(), after_bytes: 0 };
        let proxy = bed.start(AtLimit::Ends);
        assert!(bed.set(&proxy, 2).status.success());
        bed.before = fs::read(bed.journal()).expect("a journal");
        assert!(bed.set(&proxy, 3).status.success());
        bed.after_bytes = fs::read(bed.journal()).expect("a journal").len();
        bed
    }

    fn journal(&self) -> PathBuf {
        self.state.path().join("overlay.journal")
    }

    fn start(&self, at_limit: AtLimit) -> Proxy {
        let setup = Setup::new(&[self.member.address()])
            .top(&format!("state_dir: {}", self.state.path().display()))
            .admin_socket();
        Proxy::start(&torn::limitable(setup, at_limit))
    }

    fn set(&self, proxy: &Proxy, weight: u64) -> Output {
        let place = format!("/pools/members/members/{}/weight", self.member.address());
        let mut command = Command::new(weir_binary());
        command.args(["set", &place, &weight.to_string(), "--admin", &proxy.admin_address()]);
        command.output().expect("weir set runs")
    }

    fn weight(proxy: &Proxy) -> u64 {
        let mut command = Command::new(weir_binary());
        command.args(["pool", "members", "--json", "--admin", &proxy.admin_address()]);
        let pool: serde_json::Value =
            serde_json::from_str(&tools::run(&mut command)).expect("a pool");
        pool["members"][0]["weight"].as_u64().expect("a weight")
    }

    /// The sizes at which the write of the next version is cut.
    fn cuts(&self) -> Vec<usize> {
        let before = self.before.len();
        torn::cuts(self.after_bytes - before, CUTS).into_iter().map(|cut| before + cut).collect()
    }
}

#[test]
fn a_kill_in_the_write_of_a_version_loses_no_other() {
    require!("setpriv");
    let bed = Bed::new();
    for bytes in bed.cuts().into_iter().chain([bed.after_bytes]) {
        fs::write(bed.journal(), &bed.before).expect("a journal");
        let mut proxy = bed.start(AtLimit::Ends);
        torn::limit(&proxy, Some(bytes));
        let is_acknowledged = bed.set(&proxy, 3).status.success();
        assert_eq!(is_acknowledged, bytes == bed.after_bytes, "cut at {bytes}");
        if !is_acknowledged {
            proxy.process().wait(STEP_TIMEOUT);
            assert_eq!(fs::read(bed.journal()).expect("a journal").len(), bytes);
        }
        drop(proxy);
        let proxy = bed.start(AtLimit::Ends);
        assert_eq!(Bed::weight(&proxy), if is_acknowledged { 3 } else { 2 }, "cut at {bytes}");
        assert!(bed.set(&proxy, 4).status.success(), "cut at {bytes}");
        drop(proxy);
        assert_eq!(Bed::weight(&bed.start(AtLimit::Ends)), 4, "cut at {bytes}");
    }
}

#[test]
fn a_full_disk_refuses_a_version_and_weir_serves_on() {
    require!("setpriv");
    let bed = Bed::new();
    for bytes in bed.cuts() {
        fs::write(bed.journal(), &bed.before).expect("a journal");
        let proxy = bed.start(AtLimit::Fails);
        torn::limit(&proxy, Some(bytes));
        let refused = bed.set(&proxy, 3);
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success(), "cut at {bytes}");
        assert!(told.contains("cannot be kept in") && told.contains("overlay.journal"), "{told}");
        assert_eq!(Bed::weight(&proxy), 2, "cut at {bytes}");
        proxy.client().get("/").assert_status(200);
        // With room on the disk, changes are possible again.
        torn::limit(&proxy, None);
        assert!(bed.set(&proxy, 4).status.success(), "cut at {bytes}");
        drop(proxy);
        assert_eq!(Bed::weight(&bed.start(AtLimit::Ends)), 4, "cut at {bytes}");
    }
}

/// Runs weir with this file until it serves.
fn serve(file: &Path, log: &Path) {
    let words = ["run", file.to_str().expect("a path")];
    let process = Process::start(weir_binary(), &words, log);
    weir_tests::eventually("weir serves", STEP_TIMEOUT, || process.output().contains(" serves "));
}

#[test]
fn a_kill_in_the_write_of_the_key_of_cookies_leaves_none() {
    require!("prlimit");
    let folder = TempDir::new("torn-keys");
    let at = |name: &str| folder.path().join(name);
    let file = folder.write(
        "weir.yaml",
        format!(
            "state_dir: {}\nvirtual_servers:\n  web: {{ listen: \"unix:{}\", pool: web, persistence: by-cookie }}\n\
             pools:\n  web: {{ members: [ 127.0.0.1:9 ] }}\npersistence:\n  by-cookie: {{ type: cookie }}\n",
            at("state").display(),
            at("web.sock").display()
        ),
    );
    let key = at("state").join("persistence.keys");
    serve(&file, &at("log"));
    let bytes = fs::read(&key).expect("a key").len();
    for cut in torn::cuts(bytes, CUTS) {
        fs::remove_dir_all(at("state")).expect("the state");
        torn::cut(weir_binary(), &["run", file.to_str().expect("a path")], cut);
        assert!(at("state").exists() && !key.exists(), "cut at {cut}");
        let log = at(&format!("log.{cut}"));
        serve(&file, &log);
        let made = fs::read(&key).expect("a key");
        assert_eq!(made.len(), bytes, "cut at {cut}");
        serve(&file, &at(&format!("log.{cut}.again")));
        assert_eq!(fs::read(&key).expect("a key"), made, "cut at {cut}");
    }
}

#[test]
fn a_kill_in_the_write_of_a_saved_file_leaves_the_old_one() {
    require!("prlimit");
    let member = Member::named("hello");
    let proxy = Proxy::start(&Setup::new(&[member.address()]).admin_socket());
    let folder = TempDir::new("torn-save");
    let file = folder.write("weir.yaml", "old");
    let admin = proxy.admin_address();
    let words = ["save", file.to_str().expect("a path"), "--force", "--admin", &admin];
    let merged = proxy.admin_get("/v1/configuration");
    for cut in torn::cuts(merged.len(), CUTS) {
        torn::cut(weir_binary(), &words, cut);
        assert_eq!(fs::read(&file).expect("a file"), b"old", "cut at {cut}");
    }
    tools::run(Command::new(weir_binary()).args(words));
    assert_eq!(fs::read_to_string(&file).expect("a file"), merged);
}

/// Kills of a weir that is being changed. `WEIR_KILLS` sets their number.
#[test]
fn kills_at_any_time_lose_no_acknowledged_version() {
    require!("setpriv");
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let bed = Bed::new();
    let (mut weight, mut changes) = (3, 0);
    // The version whose answer the kill cut off may be kept, too.
    let check = |acknowledged: u64, proxy: &Proxy| {
        let kept = Bed::weight(proxy);
        assert!((acknowledged..=acknowledged + 1).contains(&kept), "{kept}, {acknowledged}");
        kept
    };
    for kill in 0..kills {
        let mut proxy = bed.start(AtLimit::Ends);
        weight = check(weight, &proxy);
        let pid = torn::pid(&proxy);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(40 + 7 * (kill % 20)));
            kill_process(pid, Signal::KILL).expect("weir runs");
        });
        while bed.set(&proxy, weight + 1).status.success() {
            weight += 1;
            changes += 1;
        }
        killer.join().expect("the thread that kills");
        proxy.process().wait(STEP_TIMEOUT);
    }
    check(weight, &bed.start(AtLimit::Ends));
    println!("{kills} kills, {changes} acknowledged changes, 0 lost");
}
