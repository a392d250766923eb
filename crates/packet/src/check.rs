//! Validation of a plan.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use crate::Error;
use crate::plan::{
    DESTINATIONS_MAX, Delivery, Destination, MEMBERS_MAX, Member, PREFIXES_MAX, Plan, Prefix,
    Protocol, SERVER_MEMBERS_MAX, SOURCE_ADDRESSES_MAX, SYN_COOKIES_MAX, Source, Ttl,
    VIRTUAL_SERVERS_MAX, VirtualServer,
};

/// Checks the whole plan. Returns the first error.
pub fn check(plan: &Plan) -> Result<(), Error> {
    at_most("virtual servers", plan.virtual_servers.len(), VIRTUAL_SERVERS_MAX)?;
    let members = |server: &VirtualServer| server.members.len().max(1);
    at_most(
        "members of all virtual servers",
        plan.virtual_servers.iter().map(members).sum(),
        MEMBERS_MAX,
    )?;
    let destinations = plan.virtual_servers.iter().map(|server| server.destinations.len()).sum();
    at_most("destinations of all virtual servers", destinations, DESTINATIONS_MAX)?;
    let clients = |server: &VirtualServer| server.clients.as_ref().map_or(0, Vec::len);
    let of_servers: usize = plan.virtual_servers.iter().map(clients).sum();
    let prefixes = plan.allow.len() + plan.deny.len() + of_servers;
    at_most("prefixes to allow, to deny and of clients", prefixes, PREFIXES_MAX)?;
    at_most("addresses with SYN cookies", plan.syn_cookies.len(), SYN_COOKIES_MAX)?;
    for prefix in plan.allow.iter().chain(&plan.deny) {
        prefix_is_sound(prefix, "allow and deny")?;
    }
    if plan.new_flows_per_source.is_some_and(|rate| rate.per_second == 0 || rate.burst == 0) {
        return Err(wrong("new flows per source: the rate and its burst have to be at least 1"));
    }
    let mut names = HashSet::new();
    let mut taken = HashMap::new();
    for server in &plan.virtual_servers {
        if !names.insert((&server.name, server.is_v4())) {
            return Err(wrong(format!("two virtual servers are named {}", server.name)));
        }
        server_is_sound(server)?;
        for destination in &server.destinations {
            let key = (canonical(destination.prefix), destination.port, server.protocol);
            if let Some(other) = taken.insert(key, &server.name) {
                return Err(wrong(format!(
                    "{} has a destination of {other}: one of them has to let go of it",
                    server.name
                )));
            }
        }
    }
    Ok(())
}

/// A prefix whose bits after its length are zero.
pub fn canonical(prefix: Prefix) -> Prefix {
    let lengths = weir_core::keyed_hash::PrefixLengths { v4: prefix.length, v6: prefix.length };
    Prefix { address: lengths.of(prefix.address), length: prefix.length }
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Plan { what: what.into() }
}

fn at_most(what: &str, number: usize, max: usize) -> Result<(), Error> {
    if number > max { Err(wrong(format!("{number} {what}: at most {max}"))) } else { Ok(()) }
}

fn prefix_is_sound(prefix: &Prefix, whose: &str) -> Result<(), Error> {
    let bits = if prefix.address.is_ipv4() { 32 } else { 128 };
    if prefix.length > bits {
        return Err(wrong(format!(
            "{whose}: {}/{} is longer than {bits} bits",
            prefix.address, prefix.length
        )));
    }
    if prefix.address.to_canonical() != prefix.address {
        return Err(wrong(format!("{whose}: write {} as IPv4", prefix.address)));
    }
    Ok(())
}

fn server_is_sound(server: &VirtualServer) -> Result<(), Error> {
    let name = &server.name;
    at_most(&format!("members of {name}"), server.members.len(), SERVER_MEMBERS_MAX)?;
    if server.destinations.is_empty() {
        return Err(wrong(format!("{name} has no destination")));
    }
    if server.protocol == Protocol::Number(0) {
        return Err(wrong(format!("{name}: protocol 0 is invalid: use Any for all protocols")));
    }
    let is_v4 = server.is_v4();
    for destination in &server.destinations {
        destination_is_sound(server, destination, is_v4)?;
    }
    for client in server.clients.iter().flatten() {
        prefix_is_sound(client, name)?;
    }
    let mut members = HashSet::new();
    for member in &server.members {
        if !members.insert((member.address, member.port)) {
            return Err(wrong(format!("{name} has the member {} twice", member.address)));
        }
        member_is_sound(server, member, is_v4)?;
    }
    if matches!(server.delivery, Delivery::Route | Delivery::Pass) && !server.members.is_empty() {
        return Err(wrong(format!("{name} goes by the routing table: it has no members")));
    }
    if matches!(server.ttl, Ttl::Set(0)) {
        return Err(wrong(format!("{name}: a TTL has to be at least 1")));
    }
    if server.mss_max.is_some_and(|mss| mss < 64) {
        return Err(wrong(format!("{name}: an MSS has to be at least 64")));
    }
    source_is_sound(server, is_v4)
}

fn destination_is_sound(
    server: &VirtualServer,
    destination: &Destination,
    is_v4: bool,
) -> Result<(), Error> {
    let name = &server.name;
    prefix_is_sound(&destination.prefix, name)?;
    if destination.prefix.address.is_ipv4() != is_v4 && server.delivery != Delivery::Pass {
        return Err(wrong(format!(
            "{name} has destinations of IPv4 and IPv6: make two virtual servers of one name of it"
        )));
    }
    if destination.port == Some(0) {
        return Err(wrong(format!("{name}: 0 is not a port; for any port give none")));
    }
    if destination.port.is_some() && !matches!(server.protocol, Protocol::Tcp | Protocol::Udp) {
        return Err(wrong(format!("{name}: only TCP and UDP have ports")));
    }
    Ok(())
}

fn member_is_sound(server: &VirtualServer, member: &Member, is_v4: bool) -> Result<(), Error> {
    if member.address.is_ipv4() != is_v4 || member.address.to_canonical() != member.address {
        return Err(wrong(format!(
            "{}: its destinations and its member {} are not of one family",
            server.name, member.address
        )));
    }
    if member.port == Some(0) {
        return Err(wrong(format!(
            "{}: the port of its member {} is 0",
            server.name, member.address
        )));
    }
    let is_listed = |own: IpAddr| match &server.source {
        Source::Client => false,
        Source::Addresses(addresses) => addresses.iter().any(|it| it.address == own),
    };
    if member.source.is_some_and(|own| !is_listed(own)) {
        return Err(wrong(format!(
            "{}: the source address of its member {} is not among its source addresses",
            server.name, member.address
        )));
    }
    Ok(())
}

fn source_is_sound(server: &VirtualServer, is_v4: bool) -> Result<(), Error> {
    let name = &server.name;
    let Source::Addresses(addresses) = &server.source else { return Ok(()) };
    if addresses.is_empty() {
        return Err(wrong(format!("{name}: its list of source addresses is empty")));
    }
    at_most(&format!("source addresses of {name}"), addresses.len(), SOURCE_ADDRESSES_MAX)?;
    if server.delivery == Delivery::DirectReturn {
        return Err(wrong(format!(
            "{name}: members that answer clients directly have to see the clients' addresses"
        )));
    }
    for source in addresses {
        if source.address.is_ipv4() != is_v4 {
            return Err(wrong(format!(
                "{name}: the source address {} is not of the family of its members",
                source.address
            )));
        }
        if source.port_first == 0 || source.port_last < source.port_first {
            return Err(wrong(format!(
                "{name}: the source address {} needs a range of ports above 0",
                source.address
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Rate, SourceAddress};

    fn server() -> VirtualServer {
        let destination = Destination::socket("192.0.2.1:80".parse().unwrap());
        let mut server = VirtualServer::new("shop", Protocol::Tcp, vec![destination]);
        server.members.push(Member::new("10.0.0.1".parse().unwrap(), Some(80)));
        server
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Plan), expected: &str) {
        let mut plan = Plan { virtual_servers: vec![server()], ..Plan::default() };
        check(&plan).unwrap();
        change(&mut plan);
        let error = check(&plan).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        refused(|plan| plan.virtual_servers.push(server()), "two virtual servers");
        refused(
            |plan| plan.virtual_servers.push(VirtualServer { name: "other".into(), ..server() }),
            "has a destination of shop",
        );
        let one = |change: fn(&mut VirtualServer)| {
            move |plan: &mut Plan| change(&mut plan.virtual_servers[0])
        };
        refused(one(|server| server.destinations.clear()), "no destination");
        refused(one(|server| server.destinations[0].prefix.length = 33), "longer than 32 bits");
        refused(one(|server| server.destinations[0].port = Some(0)), "0 is not a port");
        refused(one(|server| server.protocol = Protocol::Any), "only TCP and UDP have ports");
        let zero = |server: &mut VirtualServer| {
            (server.protocol, server.destinations[0].port) = (Protocol::Number(0), None);
        };
        refused(one(zero), "protocol 0 is invalid");
        refused(one(|server| server.members.push(server.members[0])), "twice");
        refused(one(|server| server.members[0].address = "::1".parse().unwrap()), "one family");
        refused(one(|server| server.members[0].port = Some(0)), "is 0");
        let other = |server: &mut VirtualServer| {
            server.members[0].source = Some("10.0.0.9".parse().unwrap());
        };
        refused(one(other), "not among its source addresses");
        refused(one(|server| server.delivery = Delivery::Route), "no members");
        refused(one(|server| server.delivery = Delivery::Pass), "no members");
        refused(one(|server| server.ttl = Ttl::Set(0)), "TTL");
        refused(one(|server| server.mss_max = Some(63)), "MSS");
        refused(one(|server| server.source = Source::Addresses(Vec::new())), "empty");
        refused(
            |plan| plan.new_flows_per_source = Some(Rate { per_second: 0, burst: 1 }),
            "at least 1",
        );
        refused(
            |plan| {
                plan.deny.push(Prefix { address: "::ffff:1.2.3.4".parse().unwrap(), length: 128 })
            },
            "as IPv4",
        );
    }

    #[test]
    fn source_addresses_have_ports() {
        let source = |address: &str, port_first, port_last| {
            let address = address.parse().unwrap();
            Source::Addresses(vec![SourceAddress { address, port_first, port_last }])
        };
        let mut one = server();
        one.source = source("192.0.2.9", 1000, 1001);
        let plan = |server: &VirtualServer| Plan {
            virtual_servers: vec![server.clone()],
            ..Plan::default()
        };
        check(&plan(&one)).unwrap();
        for wrong in [
            source("192.0.2.9", 1000, 999),
            source("192.0.2.9", 0, 9),
            source("2001:db8::1", 1000, 2000),
        ] {
            one.source = wrong;
            assert!(check(&plan(&one)).is_err());
        }
        one.source = source("192.0.2.9", 1000, 1001);
        one.delivery = Delivery::DirectReturn;
        assert!(check(&plan(&one)).is_err());
    }
}
