//! `state: disabled`: weir validates and lists the virtual server, but does not listen.

use std::process::Command;

use weir_tests::client::Client;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::{STEP_TIMEOUT, eventually, tools};

#[test]
fn what_is_disabled_does_not_listen_and_is_shown() {
    let member = Member::named("here");
    let extra = Lease::new();
    let with = |state: &str| {
        let address = extra.address();
        let line = format!("spare: {{ listen: \"{address}\", pool: members, state: {state} }}");
        Setup::new(&[member.address()])
            .top("data_plane: { drain_timeout: 2s }")
            .also_virtual_server(&line)
    };
    let proxy = Proxy::start(&with("disabled"));
    assert!(Client::try_connect(extra.address()).is_err());
    assert_eq!(proxy.client().get("/").text(), "here");
    let status = || -> serde_json::Value {
        serde_json::from_str(&proxy.admin_get("/v1/status")).expect("JSON")
    };
    let found = status();
    assert_eq!(found["virtual_servers"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(
        found["disabled_virtual_servers"],
        serde_json::json!([
            { "name": "spare", "type": "http", "listen": [extra.address().to_string()] }
        ])
    );
    let mut command = Command::new(weir_binary());
    let text = tools::run(command.args(["status", "--admin", &proxy.admin_address()]));
    let expected = format!("virtual server spare: disabled\n  listen       {}\n", extra.address());
    assert!(text.contains(&expected), "{text}");

    proxy.reload_and_wait(&with("enabled"));
    let mut client = Client::connect(extra.address());
    assert_eq!(client.get("/").text(), "here");
    assert_eq!(status()["disabled_virtual_servers"], serde_json::json!([]));

    // Its open connection ends in order, and new ones are refused.
    proxy.reload_and_wait(&with("disabled"));
    eventually("nobody listens", STEP_TIMEOUT, || Client::try_connect(extra.address()).is_err());
    eventually("the connection is closed", STEP_TIMEOUT, || client.reader().rest().is_empty());
    assert_eq!(status()["virtual_servers"].as_array().map(Vec::len), Some(1));
}
