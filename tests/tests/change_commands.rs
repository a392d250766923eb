//! Commands that change the configuration of a running weir, undo changes, and show changes.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use weir_tests::STEP_TIMEOUT;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;

/// A weir with two members and a state folder for its changes.
struct Bed {
    setup: Setup,
    proxy: Proxy,
    members: [Member; 2],
    _state: TempDir,
}

impl Bed {
    fn new() -> Self {
        let state = TempDir::new("state");
        let members = [Member::named("first"), Member::named("second")];
        let setup = Setup::new(&members.each_ref().map(Member::address))
            .top(&format!("state_dir: {}", state.path().display()))
            .admin_socket();
        Self { proxy: Proxy::start(&setup), setup, members, _state: state }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(weir_binary());
        command.args(arguments).env("WEIR_ADMIN", self.proxy.admin_address());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command. Panics unless it ends with this exit status. Returns its output.
    #[track_caller]
    fn weir(&self, status: i32, arguments: &[&str]) -> Printed {
        let output = self.command(arguments).output().expect("the built command");
        Printed::of(output, status)
    }

    /// Runs a command with a text on standard input.
    #[track_caller]
    fn weir_with(&self, status: i32, arguments: &[&str], input: &str) -> Printed {
        let mut child =
            self.command(arguments).stdin(Stdio::piped()).spawn().expect("the built command");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("the command reads");
        drop(stdin);
        Printed::of(child.wait_with_output().expect("the command ends"), status)
    }

    /// The path of a setting of the first member in the configuration.
    fn place(&self, key: &str) -> String {
        format!("/pools/members/members/{}/{key}", self.members[0].address())
    }

    /// The weight of the first member, as `weir pool` shows it.
    #[track_caller]
    fn weight(&self) -> Value {
        let pool = self.weir(0, &["pool", "members", "--json"]);
        pool.json()["members"][0]["weight"].clone()
    }
}

struct Printed {
    stdout: String,
    stderr: String,
}

impl Printed {
    #[track_caller]
    fn of(output: Output, status: i32) -> Self {
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8 output");
        Self { stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

#[test]
fn what_is_so_already_is_unchanged() {
    let bed = Bed::new();
    let weight = bed.place("weight");
    let of_file = bed.weir(
        0,
        &[
            "set",
            "/pools/members/members/ADDRESS"
                .replace("ADDRESS", &bed.members[0].address().to_string())
                .as_str(),
            "{}",
        ],
    );
    assert_eq!(of_file.stdout, "unchanged: the files say this already\n");
    bed.weir(0, &["set", &weight, "5"]);
    let told = "unchanged: version 1 stays, which says this already\n";
    for arguments in [
        &["set", &weight, "5"][..],
        &["set", &weight, "5", "--dry-run"],
        &["rollback", "1", "--yes"],
    ] {
        assert_eq!(bed.weir(0, arguments).stdout, told, "{arguments:?}");
    }
    let json = bed.weir(0, &["set", &weight, "5", "--json"]).json();
    assert_eq!((&json["state"], &json["version"]), (&"unchanged".into(), &1.into()));
    let again = bed.weir_with(
        0,
        &["apply", "-"],
        &format!("changes: [ {{ op: set, path: {weight}, value: 5 }} ]"),
    );
    assert_eq!(again.stdout, told);
    let reload = bed.weir(0, &["reload"]).stdout;
    assert_eq!(
        reload,
        "in effect: no setting has changed, and none of the files that the settings name\n"
    );
    assert_eq!(bed.weir(1, &["diff"]).stdout.lines().next(), Some("version 1: 1 change"));
}

#[test]
fn the_author_is_who_called_sudo() {
    let bed = Bed::new();
    let set = |user: Option<&str>, value: &str| {
        let mut command = bed.command(&["set", &bed.place("weight"), value]);
        command.env_remove("SUDO_USER");
        command.envs(user.map(|user| ("SUDO_USER", user)));
        Printed::of(command.output().expect("the built command"), 0);
    };
    set(None, "2");
    set(Some("anna"), "3");
    set(Some("anna, uid 7"), "4");
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let uid = status
        .lines()
        .find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next().map(str::to_owned));
    let uid = uid.expect("a user");
    let login = read("/proc/self/loginuid").trim().to_owned();
    let author = |number: &str| {
        let version = bed.weir(0, &["versions", number, "--json"]).json();
        version["author"].as_str().expect("an author").to_owned()
    };
    let authors = ["1", "2", "3"].map(author);
    for author in &authors {
        assert!(author.contains(&format!("uid {uid}")), "{author}");
    }
    // What the kernel knows comes first, and only root is believed.
    let is_unknown = login.is_empty() || login == u32::MAX.to_string() || login == uid;
    let is_believed = is_unknown && uid == "0";
    assert_eq!(authors[1].contains("sudo by anna"), is_believed, "{authors:?}");
    assert_eq!(authors[0], authors[2], "what is no name is left out");
}

#[test]
fn a_value_is_set_tried_and_taken_back() {
    let bed = Bed::new();
    let weight = bed.place("weight");
    let tried = bed.weir(0, &["set", &weight, "5", "--dry-run"]);
    let changed = "1 change\n  changed pools.members\n";
    assert_eq!(tried.stdout, format!("possible, nothing has changed yet: {changed}"));
    assert_eq!(bed.weight(), 1);
    assert_eq!(bed.weir(0, &["diff"]).stdout, "version 0: 0 changes\n");

    let set = bed.weir(0, &["set", &weight, "5", "--comment", "more"]);
    assert_eq!(set.stdout, format!("version 1 is in effect: {changed}"));
    let shown = bed.weir(0, &["pool", "members"]).stdout;
    assert!(shown.contains("    weight          5\n"), "{shown}");
    let diff = bed.weir(1, &["diff"]).stdout;
    assert!(diff.contains(&format!("\n  added {weight}\n    + 5\n")), "{diff}");
    let versions = bed.weir(0, &["versions"]).stdout;
    assert!(versions.contains(&format!("  in effect  set {weight}  more\n")), "{versions}");
    let version = bed.weir(0, &["versions", "1"]).stdout;
    assert!(version.contains(&format!("    set {weight} 5\n")), "{version}");

    let back = bed.weir(0, &["rollback", "0", "--yes", "--comment", "enough"]);
    let goes = "version 0 is followed by 1 version, the newest first:\n  1  ";
    assert!(back.stderr.starts_with(goes), "{}", back.stderr);
    assert_eq!(back.stdout, format!("version 2 is in effect: {changed}"));
    assert_eq!(bed.weight(), 1);
    assert_eq!(bed.weir(0, &["diff"]).stdout, "version 2: 0 changes\n");
    let versions = bed.weir(0, &["versions", "--limit", "1", "--json"]).json();
    let items = versions["items"].as_array().expect("a list");
    assert_eq!(
        (items.len(), &items[0]["number"], &items[0]["rolled_back_to"]),
        (1, &2.into(), &0.into())
    );
}

#[test]
fn one_version_is_undone_and_later_ones_stay() {
    let bed = Bed::new();
    let (weight, limit) = (bed.place("weight"), bed.place("connections_max"));
    bed.weir(0, &["set", &weight, "5"]);
    bed.weir(0, &["set", &limit, "7"]);
    bed.weir(0, &["set", "/pools/members/balance", "random_two"]);
    let possible = bed.weir(0, &["revert", "1", "--dry-run"]).stdout;
    assert!(possible.starts_with("possible, nothing has changed yet: 1 change\n"), "{possible}");
    assert_eq!(bed.weight(), 5);
    let undone = bed.weir(0, &["revert", "1"]).stdout;
    assert_eq!(undone, "version 4 is in effect: 1 change\n  changed pools.members\n");
    assert_eq!(bed.weight(), 1);
    let diff = bed.weir(1, &["diff"]).stdout;
    assert!(diff.contains(&limit) && diff.contains("random_two"), "{diff}");
    assert!(!diff.contains(&weight), "{diff}");
    let versions = bed.weir(0, &["versions"]).stdout;
    assert!(versions.contains("  undoes version 1"), "{versions}");
    let nothing = bed.weir(1, &["revert", "1"]).stderr;
    assert!(nothing.contains("nothing of version 1 is left to undo"), "{nothing}");

    bed.weir(0, &["set", &limit, "8"]);
    let refused = bed.weir(1, &["revert", "2"]).stderr;
    let why = format!(
        "version 2 cannot be undone by itself: {limit} was changed again by version 5; undo those first"
    );
    assert!(refused.contains(&why) && refused.ends_with("nothing has changed\n"), "{refused}");
    bed.weir(0, &["revert", "5"]);
    bed.weir(0, &["revert", "2"]);
    let missing = bed.weir(1, &["revert", "99"]).stderr;
    assert!(missing.contains("there is no version 99 to undo"), "{missing}");
    bed.weir(2, &["revert", "0"]);
}

#[test]
fn a_rollback_that_takes_versions_back_asks_first() {
    let bed = Bed::new();
    bed.weir(0, &["set", &bed.place("weight"), "5", "--comment", "first"]);
    bed.weir(0, &["set", &bed.place("weight"), "6", "--comment", "second"]);
    // Nobody can be asked: there is no terminal.
    let refused = bed.weir(1, &["rollback", "0"]).stderr;
    for expected in [
        "version 0 is followed by 2 versions, the newest first:\n  2  ",
        "(second)\n  1  ",
        "weir rollback: it needs --yes where nobody can be asked; nothing has changed\n",
    ] {
        assert!(refused.contains(expected), "{expected:?}: {refused}");
    }
    assert_eq!(bed.weight(), 6);
    bed.weir(0, &["rollback", "0", "--dry-run"]);
    assert_eq!(bed.weight(), 6);
    bed.weir(0, &["rollback", "0", "--yes"]);
    assert_eq!(bed.weight(), 1);
}

#[test]
fn mistakes_are_shown_as_of_a_file() {
    let bed = Bed::new();
    let weight = bed.place("weight");
    let refused = bed.weir(1, &["set", &weight, "5", &bed.place("connections_max"), "many"]);
    let finding = format!("overlay:{}: error: ", bed.place("connections_max"));
    assert!(refused.stderr.starts_with(&finding), "{}", refused.stderr);
    assert!(refused.stderr.ends_with("nothing has changed\n"), "{}", refused.stderr);
    assert_eq!((bed.weight(), &*refused.stdout), (1.into(), ""));

    let cases: &[(i32, &[&str], &str)] = &[
        (2, &["set", "pools", "1"], "weir set: `pools`: "),
        (2, &["set", "/pools/a", "{ members: [] }"], "begins like JSON, but is not valid JSON: "),
        (2, &["set", "/pools/a"], ""),
        (2, &["unset", "pools"], "weir unset: `pools`: "),
        (1, &["unset", "/admin"], "overlay:/admin: error: "),
        (1, &["set", &weight, "2", "--if-version", "3"], "the newest version is 0, not 3"),
        (1, &["confirm", "9"], "version 9 does not wait for a confirmation"),
        (1, &["rollback", "9"], "version 9 is not kept"),
        (1, &["versions", "9"], "there is no version 9"),
        (1, &["vs", "maim"], "did you mean `main`?"),
        (1, &["apply", "/nowhere/at-all.yaml"], "/nowhere/at-all.yaml: it cannot be opened: "),
    ];
    for (status, arguments, expected) in cases {
        let refused = bed.weir(*status, arguments);
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
    }
    assert_eq!(bed.weir(0, &["diff"]).stdout, "version 0: 0 changes\n");
}

#[test]
fn a_version_that_nobody_confirms_returns_by_itself() {
    let bed = Bed::new();
    let weight = bed.place("weight");
    bed.weir(0, &["set", &weight, "7", "--confirm", "1s"]);
    weir_tests::eventually("the weight of the file returns", STEP_TIMEOUT, || bed.weight() == 1);
    let version = bed.weir(0, &["versions", "2"]).stdout;
    assert!(version.contains("  author   weir\n  comment  not confirmed\n"), "{version}");

    let set = bed.weir(0, &["set", &weight, "8", "--confirm", "10m"]).stdout;
    assert!(set.contains("\nversion 2 returns at "), "{set}");
    assert!(set.ends_with(", unless you confirm: weir confirm 3\n"), "{set}");
    let versions = bed.weir(0, &["versions"]).stdout;
    assert!(versions.contains(", unless: weir confirm 3\n"), "{versions}");
    let refused = bed.weir(1, &["set", &weight, "9"]).stderr;
    assert!(refused.contains("version 3 waits for its confirmation"), "{refused}");
    assert_eq!(bed.weir(0, &["confirm", "3"]).stdout, "version 3 stays\n");
    assert!(!bed.weir(0, &["versions"]).stdout.contains("unless"));
    assert_eq!(bed.weight(), 8);
}

#[test]
fn a_transaction_of_a_file_is_made_as_a_whole() {
    let bed = Bed::new();
    let weight = bed.place("weight");
    let second = format!("/pools/members/members/{}", bed.members[1].address());
    let transaction = format!(
        "comment: one server\nchanges:\n- {{ op: set, path: \"{weight}\", value: 3 }}\n\
         - {{ op: remove, path: \"{second}\" }}\n"
    );
    bed.weir_with(0, &["apply", "-", "--dry-run"], &transaction);
    assert_eq!(bed.weight(), 1);
    bed.weir_with(0, &["apply", "-", "--if-version", "0"], &transaction);
    let pool = bed.weir(0, &["pool", "members", "--json"]).json();
    assert_eq!(pool["members"].as_array().map(Vec::len), Some(1));
    assert_eq!(pool["members"][0]["weight"], 3);
    let versions = bed.weir(0, &["versions"]).stdout;
    assert!(versions.contains(" and 1 more  one server\n"), "{versions}");
    let wrong = bed.weir_with(1, &["apply", "-"], "changes: [\n").stderr;
    assert!(wrong.starts_with("standard input:"), "{wrong}");
    let wrong = bed.weir_with(1, &["apply", "-"], "chances: []\n").stderr;
    assert!(wrong.contains("there are no changes in it"), "{wrong}");
}

#[test]
fn saved_changes_are_redundant_once_they_are_in_the_file() {
    let bed = Bed::new();
    bed.weir(0, &["set", &bed.place("weight"), "5"]);
    let saved = bed.weir(0, &["save"]).stdout;
    let checked = bed.weir_with(0, &["check", "-"], &saved);
    assert!(checked.stdout.starts_with("standard input: fine: 1 virtual server, 1 pool, "));

    let folder = TempDir::new("saved");
    let file = folder.path().join("weir.yaml");
    let name = file.to_str().expect("UTF-8");
    let written = bed.weir(0, &["save", name]).stdout;
    assert!(written.contains("weir rollback 0"), "{written}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), saved);
    let refused = bed.weir(1, &["save", name]).stderr;
    assert!(refused.contains("help: --force replaces it"), "{refused}");
    bed.weir(0, &["save", name, "--force"]);

    bed.proxy.reload_text(&saved);
    weir_tests::eventually("the file has the change", STEP_TIMEOUT, || {
        let diff = bed.command(&["diff"]).output().expect("the built command");
        String::from_utf8_lossy(&diff.stdout).contains("  redundant ")
    });
    bed.weir(0, &["diff"]);
    let back = bed.weir(0, &["rollback", "0", "--yes"]).stdout;
    assert_eq!(back, "version 2 is in effect: the configuration stays the same\n");
    assert_eq!(bed.weight(), 5);
}

#[test]
fn a_version_that_waits_for_first_probes_is_shown_as_such() {
    let bed = Bed::new();
    // A server that accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let pool = format!(
        "{{\"members\": [\"{}\"], \"monitors\": [{{\"type\": \"http\", \"timeout\": \"30s\", \"interval\": \"60s\"}}]}}",
        silent.local_addr().expect("its address")
    );
    let wait = ["set", "/first_probes/wait", "10m", "/pools/silent", &pool, "--wait", "300ms"];
    let waiting = bed.weir(4, &[&wait[..], &["--confirm", "10m"]].concat());
    let expected = "weir set: version 1 not in effect after 0 s: it waits for the first probes of ";
    assert!(waiting.stderr.contains(expected), "{}", waiting.stderr);
    assert!(
        waiting.stderr.ends_with(", unless you confirm: weir confirm 1\n"),
        "{}",
        waiting.stderr
    );
    let versions = bed.weir(0, &["versions"]).stdout;
    assert!(
        versions.contains("  waits for first probes  set /first_probes/wait and 1 more"),
        "{versions}"
    );
    let diff = bed.weir(1, &["diff"]).stdout;
    let heading = "version 1: 2 changes, version 0 is in effect until first probes have passed\n";
    assert!(diff.starts_with(heading), "{diff}");
    let back = bed.weir(0, &["rollback", "0", "--yes"]).stdout;
    assert!(back.starts_with("version 2 is in effect: 2 changes\n"), "{back}");
    bed.weir(1, &["pool", "silent"]);
}

#[test]
fn changes_survive_a_kill() {
    let mut bed = Bed::new();
    bed.weir(0, &["set", &bed.place("weight"), "6"]);
    bed.proxy.process().kill();
    bed.proxy = Proxy::start(&bed.setup);
    assert_eq!(bed.weight(), 6);
    bed.weir(0, &["unset", &bed.place("weight")]);
    assert_eq!(bed.weight(), 1);
    assert_eq!(bed.weir(0, &["diff"]).stdout, "version 2: 0 changes\n");
}

#[test]
fn virtual_servers_are_shown() {
    let bed = Bed::new();
    bed.proxy.client().get("/").assert_status(200);
    let address = bed.proxy.address();
    weir_tests::eventually("the request is counted", STEP_TIMEOUT, || {
        let shown = bed.weir(0, &["vs"]).stdout;
        shown.lines().any(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            cells.starts_with(&["main", "up", &address.to_string(), "members"])
                && cells.get(5) == Some(&"1")
        })
    });
    let shown = bed.weir(0, &["vs", "main"]).stdout;
    assert!(
        shown.starts_with(&format!("virtual server main\n  listen       {address}\n")),
        "{shown}"
    );
    assert_eq!(bed.weir(0, &["vs", "main", "--json"]).json()["name"], "main");
    assert_eq!(bed.weir(0, &["vs", "--json"]).json()["items"][0]["name"], "main");
}

#[test]
fn a_reload_tells_what_it_leaves_without_effect() {
    let mut bed = Bed::new();
    let [first, second] = bed.members.each_ref().map(Member::address);
    let at =
        |member: std::net::SocketAddr, key: &str| format!("/pools/members/members/{member}/{key}");
    bed.weir(0, &["set", &at(second, "weight"), "5"]);
    bed.weir(0, &["set", "/pools/members/retries", "3"]);
    bed.weir(0, &["set", "/virtual_servers/main/server_timing", "true"]);
    bed.weir(0, &["member", "members", &second.to_string(), "drain"]);
    let reload = |bed: &Bed| bed.weir(0, &["reload"]).stdout;
    let nothing =
        "in effect: no setting has changed, and none of the files that the settings name\n";
    assert_eq!(reload(&bed), nothing);

    let state = bed._state.path().display().to_string();
    let files = |members: &[std::net::SocketAddr]| {
        let top = format!("state_dir: {state}");
        Setup::new(members).pool("retries: 3").top(&top).admin_socket()
    };
    bed.proxy.write(&files(&[first]));
    let told = reload(&bed);
    let expected = [
        format!("! the change of {} has no effect any more: pool `members` has no member `{second}`", at(second, "weight")),
        "! the change of /pools/members/retries has no effect any more: the files have the same value now, at ".to_owned(),
        format!("! the state `drain` of member members/{second}, set at run time, is gone with the member"),
    ];
    for expected in &expected {
        assert!(told.lines().any(|line| line.starts_with(expected)), "{expected}: {told}");
    }
    assert_eq!(told.lines().filter(|line| line.starts_with('!')).count(), 3, "{told}");
    let events = bed.proxy.process().output();
    let event = format!("warning configuration was reloaded: {}", &expected[0][2..]);
    assert!(events.contains(&event), "{events}");
    let reports = bed.weir(0, &["reload", "--json"]).json();
    assert_eq!(reports["without_effect"], serde_json::json!([]), "each is told once");
    assert_eq!(reload(&bed), nothing);
}

#[test]
fn a_reload_prints_warnings() {
    let bed = Bed::new();
    let setup = bed.setup.clone().also_pool("spare: { members: [ 127.0.0.1:9 ] }");
    bed.proxy.write(&setup);
    let printed = bed.weir(0, &["reload"]);
    assert!(printed.stderr.contains("the pool `spare` is never used"), "{}", printed.stderr);
}

#[test]
fn a_reload_tells_of_a_state_that_the_files_have_now() {
    let bed = Bed::new();
    let second = bed.members[1].address();
    bed.weir(0, &["member", "members", &second.to_string(), "drain"]);
    let file = bed.proxy.config_path();
    let text = std::fs::read_to_string(&file).expect("the configuration");
    let quoted = [format!("\"{second}\""), second.to_string()];
    let written = quoted.iter().find(|it| text.contains(*it)).expect("the member");
    let drained = format!("{{ address: \"{second}\", state: drain }}");
    std::fs::write(&file, text.replace(written, &drained)).expect("the folder of the test");
    let told = bed.weir(0, &["reload"]).stdout;
    let expected = format!(
        "! the state `drain` of member members/{second}, set at run time, is that of the files now\n"
    );
    assert!(told.ends_with(&expected), "{told}");
    let nothing =
        "in effect: no setting has changed, and none of the files that the settings name\n";
    assert_eq!(bed.weir(0, &["reload"]).stdout, nothing);
}
