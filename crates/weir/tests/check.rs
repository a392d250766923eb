//! Tests of the command `weir check`: exit status and streams.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).output().expect("the built command")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8 output")
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    path.to_str().expect("a UTF-8 path").to_owned()
}

/// A temporary file, removed on drop.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-check-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a writable temporary directory");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a UTF-8 path")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The file may not exist; errors cannot be reported here.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_sound_file_gives_a_summary_and_0() {
    let file = example("minimal.yaml");
    let output = weir(&["check", &file]);
    assert_eq!(output.status.code(), Some(0));
    // Another process of this host may have the port of the example.
    let taken = text(&output.stderr).lines().filter(|line| line.contains(" is in use by ")).count();
    let plural = if taken == 1 { "" } else { "s" };
    let expected =
        format!("{file}: fine: 1 virtual server, 1 pool, 1 member; {taken} warning{plural}\n");
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(text(&output.stderr).lines().count(), taken);
}

/// What `weir check` says on standard error about these virtual servers and other keys, and its exit status.
fn said(name: &str, servers: &str, keys: &str) -> (String, Option<i32>) {
    let content = format!(
        "{keys}virtual_servers: {{ {servers} }}\npools: {{ p: {{ members: [ 127.0.0.1:1 ] }} }}\n"
    );
    let file = Temporary::new(name, &content);
    let output = weir(&["check", file.path()]);
    (text(&output.stderr).replace(file.path(), "F"), output.status.code())
}

/// The holder is this test, which is no weir.
#[test]
fn a_port_of_another_process_is_a_warning() {
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let at = tcp.local_addr().expect("its address");
    let datagrams = udp.local_addr().expect("its address");
    let process = std::process::id();
    let check = |servers: &str, keys: &str, expected: &str| {
        let (found, status) = said("taken.yaml", servers, keys);
        let expected = format!("F: warning: {expected} is in use by ");
        assert!(found.starts_with(&expected), "{found}");
        let by = format!(
            " (process {process}) now: while it is, a start, or a reload that adds it, is refused\n"
        );
        assert!(found.ends_with(&by), "{found}");
        assert_eq!((found.lines().count(), status), (1, Some(0)), "{found}");
    };
    let port = at.port();
    let server = format!("a: {{ listen: \"{at}\", pool: p }}");
    check(&server, "", &format!("virtual server `a`: {at}"));
    let everywhere = format!("a: {{ listen: \"0.0.0.0:{port}\", pool: p }}");
    check(&everywhere, "", &format!("virtual server `a`: 0.0.0.0:{port}"));
    let sessions = format!("u: {{ type: udp, listen: \"{datagrams}\", pool: p }}");
    check(&sessions, "", &format!("virtual server `u`: udp:{datagrams}"));
    let admin = format!("admin: {{ listen: \"{at}\" }}\n");
    let free = format!("{}/weir-check.sock", std::env::temp_dir().display());
    let free = format!("b: {{ listen: \"unix:{free}\", pool: p }}");
    check(&free, &admin, &format!("`admin.listen`: {at}"));
    let disabled =
        format!("{server}, {free}").replace("pool: p }, b", "pool: p, state: disabled }, b");
    assert_eq!(said("disabled.yaml", &disabled, ""), (String::new(), Some(0)));
}

#[test]
fn a_file_in_the_place_of_a_socket_is_an_error() {
    let file = Temporary::new("no-socket", "");
    let at = file.path();
    let (found, status) =
        said("path.yaml", &format!("a: {{ listen: \"unix:{at}\", pool: p }}"), "");
    let expected = format!("F: error: virtual server `a`: {at} is there, and is no socket: ");
    assert!(found.starts_with(&expected), "{found}");
    assert!(found.ends_with("F: 1 error, 0 warnings\n"), "{found}");
    assert_eq!(status, Some(1));
}

#[test]
fn an_interface_of_the_packet_path_that_is_not_there_is_a_warning() {
    let server = "a: { type: fast_l4, listen: 192.0.2.1:80, pool: p }";
    let keys = "packet_path: { interfaces: [ lo, weir-none-0 ] }\n";
    let (found, status) = said("packets.yaml", server, keys);
    let expected = "warning: `packet_path.interfaces`: this host has no network interface `weir-none-0` now: \
                    a start goes on without its packets";
    assert!(found.contains(expected) && !found.contains("`lo`"), "{found}");
    assert_eq!(status, Some(0));
}

#[test]
fn an_error_gives_1_and_its_place() {
    let file = Temporary::new("error.yaml", "virtual_servers: { a: { lisen: 1, pool: p } }\n");
    let output = weir(&["check", file.path()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    let expected = format!(
        "{0}:1:25: error: unknown key `lisen` in `virtual_servers.a`\n \
         1 | virtual_servers: {{ a: {{ lisen: 1, pool: p }} }}\n   \
         |                         ^^^^^\n\
         help: did you mean `listen`?\n\
         {0}:1:32: error: `virtual_servers.a.lisen` must be an address to listen on (`ip:port`, \
         `ip:port-port`, `[v6]:port` or `unix:/path`), found the number 1\n \
         1 | virtual_servers: {{ a: {{ lisen: 1, pool: p }} }}\n   \
         |                                ^\n\
         help: for all addresses write 0.0.0.0:1 or \"[::]:1\", with fast_l4 0.0.0.0/0:1\n\
         {0}:1:41: error: pool `p` is not defined\n \
         1 | virtual_servers: {{ a: {{ lisen: 1, pool: p }} }}\n   \
         |                                         ^\n\
         help: no pool is defined at all\n\
         {0}: 3 errors, 0 warnings\n",
        file.path()
    );
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_warning_gives_0() {
    let socket = std::env::temp_dir().join("weir-check-free.sock");
    let content = format!(
        "virtual_servers: {{ a: {{ listen: \"unix:{}\", pool: p }} }}\n\
         pools: {{ p: {{ members: [ 127.0.0.1:1 ] }}, q: {{ members: [ 127.0.0.1:1 ] }} }}\n",
        socket.display()
    );
    let file = Temporary::new("warning.yaml", &content);
    let output = weir(&["check", file.path()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).ends_with("2 members; 1 warning\n"));
    assert!(text(&output.stderr).contains(":2:43: warning: the pool `q` is never used"));
}

#[test]
fn json_goes_to_standard_output() {
    let faulty = Temporary::new("json.yaml", "pools: {}\n");
    for (file, status, findings) in [(example("full.yaml").as_str(), 0, 0), (faulty.path(), 1, 1)] {
        let output = weir(&["check", "--json", file]);
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(text(&output.stderr), "");
        let answer: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
        let list = answer["diagnostics"].as_array().expect("a list");
        // Warnings about this host have no line.
        let of_lines = list.iter().filter(|finding| !finding["line"].is_null());
        assert_eq!(of_lines.count(), findings, "{list:?}");
        for finding in list {
            assert_eq!(finding["file"], file);
        }
    }
}

#[test]
fn the_schema_is_json() {
    let output = weir(&["check", "--schema"]);
    assert_eq!(output.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["$ref"], "#/$defs/File");
}

#[test]
fn files_that_are_not_there() {
    let directory = std::env::temp_dir();
    let directory = directory.to_str().expect("a UTF-8 path");
    let cases = [
        ("/nonexistent/weir.yaml", "error: cannot open the file: No such file"),
        (directory, "error: this is a directory"),
    ];
    for (path, message) in cases {
        let output = weir(&["check", path]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(message), "{}", text(&output.stderr));
    }
}

#[test]
fn wrong_usage_gives_2_and_help_has_examples() {
    let cases: [&[&str]; 5] = [
        &[],
        &["check"],
        &["check", "--nonsense"],
        &["chekc"],
        &["check", "--schema", "weir.yaml"],
    ];
    for arguments in cases {
        let output = weir(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("Usage:"), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["check", "--help"]] {
        let output = weir(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let help = text(&output.stdout);
        let examples = help.split_once("Examples:\n").map(|(_, examples)| examples);
        assert!(
            examples.is_some_and(|examples| examples.contains("  weir check ")),
            "{arguments:?}"
        );
    }
}

/// The write end of a pipe without a reader.
fn broken_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// `set -o pipefail; weir check … | head -1 && deploy` must not accept an invalid file.
#[test]
fn a_reader_that_has_gone_changes_no_verdict() {
    let faulty = Temporary::new("pipe.yaml", "pools: {}\n");
    let sound = example("minimal.yaml");
    let cases: [(&[&str], i32); 5] = [
        (&["--json", faulty.path()], 1),
        (&[faulty.path()], 1),
        (&["--json", &sound], 0),
        (&[&sound], 0),
        (&["--schema"], 0),
    ];
    for (arguments, status) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("check").args(arguments).stdout(broken_pipe()).stderr(broken_pipe());
        let code = command.status().expect("the built command").code();
        assert_eq!(code, Some(status), "{arguments:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_gives_3_and_says_so() {
    let sound = example("minimal.yaml");
    for arguments in [&["--schema"][..], &["--json", &sound], &[&sound]] {
        let full = File::create("/dev/full").expect("a device that is always full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let output = command.arg("check").args(arguments).stdout(full).stderr(Stdio::piped());
        let output = output.spawn().and_then(|child| child.wait_with_output());
        let output = output.expect("the built command");
        assert_eq!(output.status.code(), Some(3), "{arguments:?}");
        let expected =
            "weir check: cannot write the answer: No space left on device (os error 28)\n";
        assert_eq!(text(&output.stderr), expected, "{arguments:?}");
    }
}

/// The help and the documentation agree about the exit status.
#[test]
fn the_exit_status_is_documented() {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let output = weir(&["check", "--help"]);
    let help = one_line(text(&output.stdout));
    let (_, from_status) = help.split_once("Exit status: ").expect("the exit status");
    let (status, _) = from_status.split_once(". ").expect("the end of a sentence");
    for code in ["0 ", " 1 ", " 2 ", " 3 "] {
        assert!(status.contains(code), "{status}");
    }
    let document = one_line(include_str!("../../../docs/configuration.md"));
    assert!(document.contains(&format!("Exit status: {status}.")), "{status}");
}

#[test]
fn the_way_of_requests_that_are_handed_over_is_explained() {
    let content = "virtual_servers:\n  front: { listen: 127.0.0.1:80, policies: [ routing ] }\n  app: { pool: p }\n\
                   policies: { routing: { rules: [ { name: all, then: [ { virtual_server: app } ] } ] } }\n\
                   pools: { p: { members: [ 127.0.0.1:9001 ] } }\n";
    let file = Temporary::new("hand-over.yaml", content);
    let output = weir(&["check", "--explain", file.path()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected = "virtual server front (type http): by sockets\n  hands requests over -> app (rule routing/all)\n  \
                    path: %2F is refused (`http.path.encoded_slashes`)\n\
                    virtual server app (type http): by requests that others hand over\n  \
                    path: %2F is refused (`http.path.encoded_slashes`)\n";
    assert!(text(&output.stdout).ends_with(expected), "{}", text(&output.stdout));
}
