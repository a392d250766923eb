//! No data port leads to the admin listener, by no spelling of its address.

use serde_json::{Value, json};
use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually};

/// The configuration of a data port before these members.
fn yaml(proxy: &Proxy, state: &TempDir, listen: &str, members: &str) -> String {
    format!(
        "state_dir: {}\nadmin: {{ listen: [ \"{}\", {listen} ] }}\nlog: {{ access: {{ format: \"off\" }} }}\n\
         virtual_servers: {{ main: {{ listen: \"{}\", pool: members }} }}\n\
         pools: {{ members: {{ members: [ {members} ] }} }}\n",
        state.path().display(),
        proxy.admin_address(),
        proxy.address(),
    )
}

fn start(member: &Member, state: &TempDir) -> Proxy {
    let state = format!("state_dir: {}", state.path().display());
    Proxy::start(&Setup::new(&[member.address()]).top(&state).admin_socket())
}

fn status(proxy: &Proxy) -> u16 {
    proxy.client().get("/v1/whoami").status
}

#[test]
fn a_member_that_is_the_admin_listener_gets_no_request() {
    let member = Member::named("a");
    let folder = TempDir::new("own-doors");
    let mut proxy = start(&member, &folder);
    let lease = Lease::new();
    let port = lease.address().port();
    let socket = proxy.admin_address();
    let path = socket.strip_prefix("unix:").expect("a socket").to_owned();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let loopback = format!("\"127.0.0.1:{port}\"");
    let reload = |proxy: &Proxy, text: &str| {
        let before = proxy.reloads("success");
        proxy.reload_text(text);
        eventually("the configuration is in force", STEP_TIMEOUT, || {
            proxy.reloads("success") > before
        });
    };
    for to in [
        socket.clone(),
        format!("unix:{}", link.display()),
        format!("127.0.0.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("localhost:{port}"),
    ] {
        reload(&proxy, &yaml(&proxy, &folder, &loopback, &format!("\"{to}\"")));
        // `localhost` has another address as well, where nothing listens.
        assert!(matches!(status(&proxy), 502 | 503), "{to}");
        // Beside another member, that one gets all requests.
        reload(
            &proxy,
            &yaml(&proxy, &folder, &loopback, &format!("\"{to}\", \"{}\"", member.address())),
        );
        for _ in 0..4 {
            assert_eq!(status(&proxy), 200, "{to}");
        }
    }
    proxy.process().says("is weir's own admin listener: weir never connects to it");
    // A link that is made later leads nowhere either.
    let later = folder.path().join("later");
    reload(&proxy, &yaml(&proxy, &folder, &loopback, &format!("\"unix:{}\"", later.display())));
    std::os::unix::fs::symlink(&path, &later).expect("a link");
    let answer = proxy.client().get("/v1/whoami");
    assert!(answer.status >= 500 && !answer.text().contains("admin"), "{}", answer.text());
}

#[test]
fn a_change_that_names_the_admin_listener_is_refused() {
    let member = Member::named("a");
    let folder = TempDir::new("own-doors");
    let proxy = start(&member, &folder);
    let lease = Lease::new();
    let port = lease.address().port();
    let loopback = format!("\"127.0.0.1:{port}\"");
    let before = proxy.reloads("success");
    proxy.reload_text(&yaml(&proxy, &folder, &loopback, &format!("\"{}\"", member.address())));
    eventually("the configuration is in force", STEP_TIMEOUT, || proxy.reloads("success") > before);
    let own = format!("127.0.0.1:{port}");
    let ask = |change: Value| {
        let body = json!({ "changes": [ change ] }).to_string();
        let mut client: Client = proxy.admin_client();
        client.send(format!(
            "POST /v1/changes?dry_run=true HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        client.response()
    };
    let set = |path: &str, value: Value| json!({ "op": "set", "path": path, "value": value });
    let monitor = json!([ { "type": "http", "port": port } ]);
    for change in [
        set("/pools/new", json!({ "members": [ own.clone() ] })),
        set("/pools/new", json!({ "members": [ proxy.admin_address() ] })),
        set("/pools/new", json!({ "members": [ "127.0.0.1:1" ], "monitors": monitor })),
        set(
            "/pools/new",
            json!({ "members": [ { "address": "127.0.0.1:1", "monitors": monitor } ] }),
        ),
        set("/tracing", json!({ "otlp": format!("http://{own}/") })),
        set("/log/access", json!({ "to": { "syslog": own.clone(), "transport": "tcp" } })),
        set(
            "/authentication",
            json!({ "a": { "type": "jwt", "keys": { "url": format!("http://{own}/k") } } }),
        ),
    ] {
        let answer = ask(change.clone());
        assert_eq!(answer.status, 409, "{change}: {}", answer.text());
        assert!(answer.text().contains("weir's own admin listener"), "{change}: {}", answer.text());
    }
    let other = ask(set("/pools/new", json!({ "members": [ "127.0.0.2:1" ] })));
    assert_eq!(other.status, 200, "{}", other.text());
}
