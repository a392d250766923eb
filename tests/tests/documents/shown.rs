//! Every row of the tables in the document about layer 4 has a test.

use std::collections::BTreeSet;

use weir_tests::repository::{expect_none, files, read};

const DOCUMENT: &str = "docs/layer-4.md";
/// The first cell in the head of the table about connections. [`SHOWN`] contains the tests of its rows.
const CONNECTIONS: &str = "| HAProxy `mode tcp` |";
/// The last cell in the head of a table that has a column with tests.
const PACKETS: &str = "| shown by |";

/// The tests of each row about connections. They are here, because readers of the document do not need them.
const SHOWN: &[(&str, &[&str])] = &[
    ("`type: tcp`", &["bytes_pass_both_ways_at_once", "each_half_ends_by_itself"]),
    ("`tcp.idle_timeout`", &["an_idle_connection_ends_and_a_busy_one_does_not"]),
    (
        "`connect_timeout`, `retries` of the pool",
        &[
            "a_member_that_does_not_answer_in_time_is_passed_over",
            "another_member_is_tried_and_nothing_is_lost",
        ],
    ),
    ("`tcp.hello_timeout`", &["who_is_slow_with_the_hello_is_closed"]),
    ("`by_server_name`", &["names_lead_to_pools_and_nothing_is_changed"]),
    ("`pool` beside it", &["what_is_no_client_hello_goes_to_the_pool_for_the_rest"]),
    ("a rule with `close` or `reset`", &["addresses_are_let_in_or_not"]),
    ("a rule with `pool`", &["names_and_addresses_lead_to_pools"]),
    (
        "`limits.connections`, `connections_max`",
        &["limits_on_connections", "connections_wait_for_a_member_that_is_full"],
    ),
    ("`queue`", &["connections_wait_for_a_member_that_is_full"]),
    (
        "`client_address.proxy_protocol`, `proxy_protocol` of the pool",
        &["the_proxy_protocol_both_ways"],
    ),
    (
        "`tls` of the virtual server, of the pool",
        &["tls_ends_here_for_any_protocol", "large_streams_through_tls_on_both_sides"],
    ),
    (
        "`balance: source_address`, `persistence: { type: source_address }`",
        &["clients_are_kept_at_their_members"],
    ),
    ("`listen: 10.0.0.1:8000-8100`", &["a_thousand_ports_are_listened_on"]),
    (
        "a member without a port",
        &["members_without_a_port_get_the_port_of_a_range_that_the_client_chose"],
    ),
    ("`free_bind: true`", &["an_address_that_the_host_lacks_is_listened_on_if_asked_for"]),
    (
        "`interfaces`",
        &[
            "the_same_address_is_served_by_another_virtual_server_on_each_interface",
            "every_address_of_an_interface_is_served_and_no_other",
        ],
    ),
    (
        "`defer_accept`",
        &["a_deferred_connection_is_taken_when_its_client_has_said_something_or_in_time"],
    ),
    ("`allowed_clients`", &["only_clients_of_the_listed_networks_connect"]),
    (
        "`tcp.reset_on_service_down`",
        &[
            "sessions_of_a_member_that_goes_down_are_reset",
            "sessions_of_a_disabled_member_are_reset_and_those_of_a_drained_one_stay",
            "sessions_of_a_removed_member_are_reset",
        ],
    ),
    (
        "`weir sessions end`, `weir member … end-sessions`",
        &["sessions_of_all_types_are_listed_and_ended_by_filter"],
    ),
    (
        "`source` of the pool",
        &["connections_come_from_several_addresses_in_turn_and_from_their_ports"],
    ),
    ("`source: client`", &["members_see_the_clients_own_address"]),
    ("by itself, where much flows", &["bytes_both_ways_at_once_are_moved_as_they_are"]),
    (
        "`monitors: [ { type: tcp, … } ]`",
        &[
            "without_a_member_the_client_is_reset_and_that_is_told",
            "a_plain_conversation_on_another_port_decides",
        ],
    ),
];

/// The cells of each row of the tables whose head passes `is_meant`.
fn rows(text: &str, is_meant: impl Fn(&str) -> bool) -> Vec<Vec<&str>> {
    let rows = text.lines().skip_while(|line| !is_meant(line)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The names of all tests.
fn tests() -> BTreeSet<String> {
    let scenarios = files("rs").into_iter().filter(|path| path.starts_with("tests/tests/"));
    let mut names = BTreeSet::new();
    for text in scenarios.map(|path| read(&path)) {
        let functions = text.split("#[test]\nfn ").skip(1).filter_map(|rest| rest.split_once("()"));
        names.extend(functions.map(|(name, _)| name.to_owned()));
    }
    names
}

#[test]
fn layer_4_has_a_test_of_each_row() {
    let (text, tests) = (read(DOCUMENT), tests());
    let mut findings = Vec::new();
    let mut look = |row: &str, shown: &[&str]| {
        let is_shown = !shown.is_empty() && shown.iter().all(|name| tests.contains(*name));
        if !is_shown {
            findings.push(format!("{DOCUMENT}: no test shows: {row}, or {shown:?} are not there"));
        }
    };
    let connections = rows(&text, |line| line.starts_with(CONNECTIONS));
    let here: Vec<&str> = connections.iter().filter_map(|cells| cells.last().copied()).collect();
    for row in &here {
        look(row, SHOWN.iter().find(|(known, _)| known == row).map_or(&[], |(_, shown)| shown));
    }
    let packets = rows(&text, |line| line.ends_with(PACKETS));
    for cells in &packets {
        let last = cells.last().copied().unwrap_or_default();
        let shown: Vec<&str> = super::quoted(last).map(|(_, name)| name).collect();
        look(&cells.join(" | "), &shown);
    }
    for (row, _) in SHOWN.iter().filter(|(row, _)| !here.contains(row)) {
        findings.push(format!("{DOCUMENT}: there is no row {row} any more"));
    }
    assert!(here.len() > 10 && packets.len() > 10, "both tables are read");
    expect_none(&findings);
}
