//! iperf3 through the packet path: TCP in both directions over parallel connections, and datagrams.

use serde_json::Value;
use weir_tests::{STEP_TIMEOUT, eventually, tools};

use crate::network::Network;

const SERVERS: &str = "virtual_servers:
  connections: { type: fast_l4, listen: 10.77.9.1:5201, pool: p, fast_l4: { source: auto } }
  datagrams: { type: fast_l4, protocol: udp, listen: 10.77.9.1:5201, pool: p, fast_l4: { source: auto } }
pools: { p: { members: [ 10.77.2.2:5201 ] } }
";

/// The client's report for a run with these arguments.
#[track_caller]
fn run(network: &Network, arguments: &str) -> Value {
    // The server handles one run and exits.
    let words = ["iperf3", "--server", "--one-off", "--forceflush", "--bind", "10.77.2.2"];
    let mut serving = network.start_in("server", &words);
    eventually("iperf3 listens", STEP_TIMEOUT, || {
        assert!(serving.exited().is_none(), "{}", serving.output());
        serving.output().contains("Server listening")
    });
    let line = format!("iperf3 --client 10.77.9.1 --json --time 1 {arguments}");
    let output = network.namespaces.output("client", &line);
    let told: Value = serde_json::from_str(&output).expect("JSON of iperf3");
    assert!(told.get("error").is_none(), "{arguments}: {}", told["error"]);
    serving.wait(STEP_TIMEOUT);
    told
}

#[test]
fn iperf3_receives_what_it_sends() {
    if !tools::present("iperf3") {
        return;
    }
    let Some(mut network) = Network::make() else { return };
    network.configure("", SERVERS);
    network.start();
    for arguments in ["--parallel 4", "--parallel 4 --reverse"] {
        let told = run(&network, arguments);
        let bytes = |side: &str| told["end"][side]["bytes"].as_u64().expect("a number of bytes");
        let (sent, received) = (bytes("sum_sent"), bytes("sum_received"));
        // Bytes in flight at the end are not received.
        assert!(received > 1 << 20, "{arguments}: {received} bytes");
        assert!(received <= sent, "{arguments}: {sent} bytes sent, {received} received");
        println!("{arguments}: {received} bytes in a second");
    }
    let told = run(&network, "--udp --bitrate 50M --length 1200");
    // A busy member loses datagrams for which its socket has no room.
    let sum = &told["end"]["sum"];
    let count = |name: &str| sum[name].as_u64().expect("a number of packets");
    assert!(count("packets") >= count("lost_packets") + 1_000, "{sum}");
}
