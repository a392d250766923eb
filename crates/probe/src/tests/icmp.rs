//! ICMP probes, with or without the permission to send them.

use super::*;

/// Whether the kernel allows this process's group to open ICMP sockets.
fn is_allowed() -> bool {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap();
    let bounds: Vec<u32> = range.split_whitespace().map(|bound| bound.parse().unwrap()).collect();
    let mut groups = rustix::process::getgroups().unwrap();
    groups.push(rustix::process::getegid());
    groups.iter().any(|group| (bounds[0]..=bounds[1]).contains(&group.as_raw()))
}

#[tokio::test]
async fn a_host_answers_or_this_one_may_not_ask() {
    let not_allowed = "cannot probe: ICMP is not allowed for the group of this process: \
                       `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"` allows it";
    let expected = if is_allowed() { "passed" } else { not_allowed };
    // The port is ignored.
    for member in ["127.0.0.1:1", "127.0.0.1:0"] {
        let member = Address::Socket(member.parse().unwrap());
        assert_eq!(result(&member, MonitorKind::Icmp).await, expected);
    }
    let elsewhere = Address::Unix("/run/app.sock".into());
    let unix = "cannot probe: a unix socket takes no datagrams";
    assert_eq!(result(&elsewhere, MonitorKind::Icmp).await, unix);
}
