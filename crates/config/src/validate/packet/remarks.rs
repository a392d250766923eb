//! Differences between the packet path and the settings of a pool.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::sentences;
use crate::decode::NamedItem;
use crate::endpoint::Endpoint;
use crate::quote::clip;
use crate::raw::{self, Balance, BalanceOr};
use crate::snapshot::packet::{Delivery, PacketServer};

/// Remarks as sentences.
pub(super) fn of_pool(item: &NamedItem<raw::Pool>) -> Vec<Arc<str>> {
    let Some(pool) = &item.value else { return Vec::new() };
    // This pattern makes a new key a compile error until it is handled here.
    let raw::Pool {
        balance,
        members,
        monitors: _,
        passive,
        reuse: _,
        retries: _,
        retry_on,
        retry_non_idempotent: _,
        connect_timeout: _,
        response_timeout: _,
        tls: _,
        http2: _,
        source,
        priority: _,
        slow_start,
        queue,
        fallback: _,
        spillover,
        monitors_min: _,
        retry_budget,
        maintenance: _,
        proxy_protocol: _,
        lenient: _,
    } = pool;
    let name = clip(&item.name);
    let mut remarks = Vec::new();
    if !matches!(balance.value, BalanceOr::Method(Balance::RoundRobin)) {
        remarks.push(format!(
            "flows are spread over pool {name} by a hash of their ends and by weight, not by its `balance`"
        ));
    }
    let members = members.iter().flat_map(|members| members.iter());
    let mut members = members.map(|member| &member.value.0);
    let is_limited = members
        .any(|member| member.connections_max.is_some() || member.requests_per_second_max.is_some());
    let without_effect = [
        ("queue", queue.is_some()),
        ("spillover", spillover.is_some()),
        ("passive", passive.is_some()),
        ("slow_start", slow_start.is_some()),
        ("retry_budget", retry_budget.is_some()),
        ("retry_on", retry_on.is_some()),
        ("source", source.is_some()),
        ("connections_max", is_limited),
    ];
    let keys: Vec<String> = without_effect
        .iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(key, _)| format!("`{key}`"))
        .collect();
    if !keys.is_empty() {
        let have = if keys.len() == 1 { "has" } else { "have" };
        remarks.push(format!("{} of pool {name} {have} no effect on packets", keys.join(", ")));
    }
    sentences(remarks)
}

/// Ports of members without an effect, because packets keep the port of their destination.
pub(super) fn of_ports(server: &PacketServer, item: &NamedItem<raw::Pool>) -> Option<Arc<str>> {
    let why = match server.delivery {
        Delivery::Translate if server.keeps_port => "translate_port: false",
        Delivery::DirectReturn => "dsr: true",
        Delivery::NextHop => "translate_address: false",
        Delivery::Translate | Delivery::Route => return None,
    };
    let members = item.value.as_ref()?.members.as_ref()?;
    let ports = members.iter().filter_map(|member| match &member.value.0.address.as_ref()?.value {
        Endpoint::Literal(address) => address.socket().map(|socket| socket.port()),
        Endpoint::Name { port, .. } => Some(*port),
    });
    let is_of_listen = |port: u16| server.destinations.iter().any(|it| it.port == Some(port));
    let ports: BTreeSet<u16> = ports.filter(|port| *port != 0 && !is_of_listen(*port)).collect();
    let name = clip(&item.name);
    let without_effect = match (ports.first()?, ports.len()) {
        (port, 1) => format!("port {port} of members of pool {name} has no effect"),
        _ => format!("the ports of members of pool {name} have no effect"),
    };
    Some(format!("packets keep the port of their destination (`{why}`): {without_effect}").into())
}
