//! The sandbox denies workers, and threads that inspect requests, access to files. Other threads have access.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};

/// Whether `NoNewPrivs` is set for each thread of the process, by the thread's name.
fn threads(pid: u32) -> BTreeMap<String, bool> {
    let folders = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let status = folders.map(|it| std::fs::read_to_string(it.unwrap().path().join("status")));
    let value = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {text}")).trim().to_owned()
    };
    let of = |text: String| (value(&text, "Name:"), value(&text, "NoNewPrivs:") == "1");
    status.map(|text| of(text.expect("a status"))).collect()
}

fn sandbox(proxy: &Proxy) -> Value {
    let status: Value = serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON");
    status["sandbox"].clone()
}

#[test]
fn workers_are_restricted_and_reloads_read_what_they_need() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).virtual_server("waf: { mode: block }");
    let mut proxy = Proxy::start(&setup);
    let found = sandbox(&proxy);
    if found["is_on"] != true {
        return weir_testing::skip(&format!("the kernel has no Landlock: {found}"));
    }
    assert_eq!((&found["setting"], &found["why"]), (&"auto".into(), &Value::Null));
    proxy.client().get("/").assert_status(200);
    let threads = threads(proxy.process().pid());
    for kind in ["weir-", "inspector-"] {
        let mut those = threads.iter().filter(|(name, _)| is_numbered(name, kind)).peekable();
        assert!(those.peek().is_some(), "{threads:?}");
        assert!(those.all(|(_, is_restricted)| *is_restricted), "{threads:?}");
    }
    assert!(!threads["weir"], "{threads:?}");
    // A reload opens a log file in another folder.
    let folder = weir_tests::temp::TempDir::new("sandbox");
    let log = folder.path().join("access.log");
    proxy.reload_and_wait(&setup.access_log().log_to(&log.display().to_string()));
    proxy.client().get("/").assert_status(200);
    weir_tests::eventually("the line is written", weir_tests::STEP_TIMEOUT, || {
        std::fs::read_to_string(&log).is_ok_and(|text| !text.is_empty())
    });
}

/// Whether this is the name of a thread of this kind: `weir-0`, `weir-1`.
fn is_numbered(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind).is_some_and(|number| number.bytes().all(|it| it.is_ascii_digit()))
}

#[test]
fn it_can_be_switched_off() {
    let member = Member::echo();
    let setup = Setup::new(&[member.address()]).top("data_plane: { sandbox: \"off\" }");
    let mut proxy = Proxy::start(&setup);
    let found = sandbox(&proxy);
    assert_eq!((&found["setting"], &found["is_on"]), (&"off".into(), &false.into()));
    proxy.client().get("/").assert_status(200);
    let threads = threads(proxy.process().pid());
    assert!(threads.values().all(|is_restricted| !is_restricted), "{threads:?}");
    // The setting cannot be changed by a reload.
    proxy.reload_and_wait(&Setup::new(&[member.address()]));
    assert_eq!(sandbox(&proxy)["setting"], "off");
    assert!(proxy.process().output().contains("data_plane.sandbox needs a restart"));
}
