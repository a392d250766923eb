//! Connections that members end at once, without a byte: they have failed, although the member has accepted them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use weir_tests::client::Client;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::{StreamMember, reset};
use weir_tests::{STEP_TIMEOUT, eventually};

/// The number of connections in each case.
const ASKED: usize = 40;

type Handler = fn(TcpStream) -> io::Result<()>;

fn relay(members: &[SocketAddr]) -> Setup {
    Setup::new(members).virtual_server("type: tcp")
}

fn ended(proxy: &Proxy, termination: &str) -> f64 {
    let label = format!("termination=\"{termination}\"");
    proxy.metric("weir_virtual_server_relayed_connections_total", &["\"main\"", &label])
}

fn first_byte(stream: &mut TcpStream) -> io::Result<()> {
    stream.read(&mut [0; 1]).map(drop)
}

fn reset_at_once(stream: TcpStream) -> io::Result<()> {
    reset(stream);
    Ok(())
}

/// What a member does with a connection, and whether that is a failure.
#[test]
fn connections_that_a_member_ends_without_a_byte_have_failed() {
    let check = |what: &str, handler: Handler, sends: &str, fails: bool| {
        let member = StreamMember::new(handler);
        let setup = relay(&[member.address()]);
        let proxy = Proxy::start(&setup);
        proxy.settle();
        // A reset at once may come before weir has seen that the connection is open.
        let unserved = || {
            proxy.metric("weir_virtual_server_relayed_connections_unserved_total", &["\"main\""])
                + ended(&proxy, "member_connect")
        };
        let failures = || proxy.metric("weir_member_failures_total", &[]);
        let all = ["complete", "client_abort", "member_abort", "member_connect"];
        let ends = || all.map(|it| ended(&proxy, it));
        let sum = || ends().iter().sum::<f64>();
        // The harness's connection counts as well.
        let before = (unserved(), failures(), sum());
        // The reset may come before the connect call has returned.
        let ask = || {
            let Ok(mut client) = Client::try_connect(proxy.address()) else { return };
            let _ = client.stream().write_all(sends.as_bytes());
            let _ = client.stream().read_to_end(&mut Vec::new());
        };
        (0..ASKED).for_each(|_| ask());
        eventually("all have ended", STEP_TIMEOUT, || sum() == before.2 + ASKED as f64);
        let expected = if fails { ASKED as f64 } else { 0.0 };
        assert_eq!(unserved() - before.0, expected, "{what}");
        assert_eq!(failures() - before.1, expected, "{what}");
        if fails {
            eventually(&format!("{what}: told as failing"), STEP_TIMEOUT, || {
                ask();
                let status = proxy.admin_get("/v1/status");
                let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
                let state = |kind: &str| status[kind][0]["health"]["state"] == "failing";
                state("virtual_servers") && state("pools")
            });
        }
    };
    check("a reset at once", reset_at_once, "", true);
    check(
        "a reset behind the question",
        |mut it| {
            first_byte(&mut it)?;
            reset_at_once(it)
        },
        "x",
        true,
    );
    check("an end behind the question", |mut it| first_byte(&mut it), "x", true);
    check("an end at once", |_| Ok(()), "", true);
    check("an answer and an end", |mut it| it.write_all(b"x"), "", false);
}

/// The client ends first: the member's end is the answer to that.
#[test]
fn a_member_that_only_listens_has_not_failed() {
    let member = StreamMember::new(|mut stream| stream.read_to_end(&mut Vec::new()).map(drop));
    let proxy = Proxy::start(&relay(&[member.address()]));
    proxy.settle();
    let before = ended(&proxy, "complete");
    for sends in ["", "a line for the log"] {
        let mut client = proxy.client();
        client.send(sends);
        client.finish();
        assert_eq!(client.reader().rest(), b"");
    }
    eventually("all have ended", STEP_TIMEOUT, || ended(&proxy, "complete") >= before + 2.0);
    assert_eq!(proxy.metric("weir_virtual_server_relayed_connections_unserved_total", &[]), 0.0);
    assert_eq!(proxy.metric("weir_member_failures_total", &["\"response\""]), 0.0);
}
