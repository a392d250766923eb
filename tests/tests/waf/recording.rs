//! Recorded requests in the firewall's log, which can be inspected again.

use std::process::Command;

use weir_tests::member::Member;
use weir_tests::proxy::Proxy;
use weir_tests::temp::TempDir;

use crate::setup::{ask, form, get, guarded, wait_for_lines};

#[test]
fn all_requests_are_recorded_without_their_secrets() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: detect, checks: off }").record("all");
    let mut proxy = Proxy::start(&setup);
    // One connection is served by one worker, which writes its lines in order.
    let mut client = proxy.client();
    for request in [
        get("/a/../?q=shoes&token=hunter2"),
        form("/save", "name=O%27Brien&password=hunter2"),
        form("/save", "name=1'+or+'1'='1'--"),
    ] {
        client.send(request);
        client.response().assert_status(200);
    }
    let told = wait_for_lines(&mut proxy, 3);
    let outcomes: Vec<_> = told.iter().map(|line| line["outcome"].as_str()).collect();
    assert_eq!(outcomes, [Some("passed"), Some("passed"), Some("detected")]);
    let request = &told[0]["request"];
    let head = request["head"].as_str().expect("a head");
    assert!(head.starts_with("GET /a/../?q=shoes&token=*** HTTP/1.1\r\nHost: "), "{head}");
    assert_eq!(request["member_target"], "/?q=shoes&token=***");
    assert_eq!(request["body"], "");
    // name=O%27Brien&password=***
    assert_eq!(told[1]["request"]["body"], "bmFtZT1PJTI3QnJpZW4mcGFzc3dvcmQ9Kioq");
    assert!(!proxy.process().output().contains("hunter2"));
}

#[test]
fn what_is_recorded_is_judged_the_same_again() {
    let member = Member::echo();
    let setup = guarded(&member, "waf: { mode: block, checks: off }").record("told");
    let mut proxy = Proxy::start(&setup);
    ask(&proxy, form("/save", "name=1'+or+'1'='1'--")).assert_status(403);
    ask(&proxy, get("/?q=%3Cscript%3Ealert(1)%3C/script%3E")).assert_status(403);
    ask(&proxy, get("/?q=shoes")).assert_status(200);
    wait_for_lines(&mut proxy, 2);
    let folder = TempDir::new("recorded");
    folder.write("waf.log", proxy.process().output());
    folder.write("none.conf", "SecAction \"id:1,phase:1,pass,nolog\"\n");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let output = Command::new(weir_tests::proxy::weir_binary())
        .args(["waf", "diff", "builtin", &path("none.conf"), &path("waf.log"), "--no-checks"])
        .output()
        .expect("the command");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("2 requests judged, 2 decided differently: 2 pass now"), "{told}");
}

#[test]
fn what_a_virtual_server_inspects_is_said_beforehand() {
    let folder = TempDir::new("explained");
    folder.write("rules.conf", "SecRule ARGS \"@contains x\" \"id:1,phase:2,deny\"\n");
    folder.write(
        "weir.yaml",
        "virtual_servers:\n  a: { listen: 127.0.0.1:8080, pool: p, waf: { mode: detect, rules: rules.conf, checks: off, responses: {} } }\n  \
         b: { listen: 127.0.0.1:8081, pool: p }\npools: { p: { members: [ 127.0.0.1:9000 ] } }\n",
    );
    let output = Command::new(weir_tests::proxy::weir_binary())
        .args(["check", "--explain"])
        .arg(folder.path().join("weir.yaml"))
        .output()
        .expect("the command");
    let told = String::from_utf8_lossy(&output.stdout);
    let (_, explained) = told.split_once('\n').expect("the summary, and the rest");
    assert_eq!(
        explained,
        "virtual server a (type http): by sockets\n  \
         path: %2F stays for members, and is a slash for rules (`http.path.encoded_slashes`)\n  \
         waf: mode detect, unless a policy says otherwise\n  \
         waf: at most 1 rules, all phases together\n  waf: checks off, cookies off, responses on\n\
         virtual server b (type http): by sockets\n  \
         path: %2F stays for members, and is a slash for rules (`http.path.encoded_slashes`)\n"
    );
}
