use std::sync::Arc;

use weir_dataplane::outside;

use super::*;

struct Own;

impl Host for Own {
    fn address_toward(&self, to: IpAddr) -> Option<IpAddr> {
        (to != IpAddr::from([10, 9, 9, 9])).then(|| IpAddr::from([10, 0, 0, 254]))
    }

    fn free_ports(&self) -> (u16, u16) {
        (1_024, 32_767)
    }

    fn own_addresses(&self) -> Vec<IpAddr> {
        let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        vec![IpAddr::from([10, 0, 0, 254]), IpAddr::from([192, 0, 2, 1]), v6]
    }
}

fn table(server: &str, pools: &str) -> LiveTable {
    table_at("10.0.0.1:80", server, pools)
}

fn table_at(listen: &str, server: &str, pools: &str) -> LiveTable {
    let text = format!(
        "virtual_servers:\n  a: {{ type: fast_l4, listen: {listen}, {server} }}\npools:\n{pools}"
    );
    let loaded = weir_config::parse("test.yaml", &text);
    let config = loaded.config.unwrap_or_else(|| panic!("{text}{:#?}", loaded.diagnostics));
    let snapshot = config.snapshot(&weir_config::Resolutions::default());
    LiveTable::build(Arc::new(snapshot), None, 1, &outside())
}

/// The members as text: `10.0.0.2:80 up, 10.0.0.3 down`.
fn shown(plan: &Plan) -> String {
    let members = plan.virtual_servers[0].members.iter().map(|member| {
        let port = member.port.map_or_else(String::new, |port| format!(":{port}"));
        let state = match member.state {
            MemberState::Up => "up",
            MemberState::Draining => "draining",
            MemberState::Down => "down",
        };
        format!("{}{port} {state}", member.address)
    });
    members.collect::<Vec<_>>().join(", ")
}

const POOL: &str = "  p: { members: [ 10.0.0.2:8080, { address: 10.0.0.3:8080, weight: 3 } ], priority: { active_members_min: 1 } }\n";

#[test]
fn members_follow_health_and_operators() {
    let table = table("pool: p", POOL);
    let members = &table.pools[0].members;
    let now = || shown(&plan(&table, &Own, false));
    assert_eq!(now(), "10.0.0.2:8080 up, 10.0.0.3:8080 up");
    assert_eq!(plan(&table, &Own, false).virtual_servers[0].members[1].weight, 3);
    members[0].set_health(Health::Down, 1);
    assert_eq!(now(), "10.0.0.2:8080 down, 10.0.0.3:8080 up");
    members[1].set_state_override(Some(AdminState::Drain));
    assert_eq!(now(), "10.0.0.2:8080 down, 10.0.0.3:8080 draining");
    members[1].set_state_override(Some(AdminState::Disabled));
    assert_eq!(now(), "10.0.0.2:8080 down, 10.0.0.3:8080 draining");
    members[1].set_state_override(None);
    members[0].set_health(Health::Draining, 1);
    assert_eq!(now(), "10.0.0.2:8080 draining, 10.0.0.3:8080 up");
    assert_eq!(shown(&plan(&table, &Own, true)), "10.0.0.2:8080 draining, 10.0.0.3:8080 draining");
}

#[test]
fn a_member_without_weight_keeps_its_flows_and_gets_no_new_ones() {
    let table = table(
        "pool: p",
        "  p: { members: [ { address: 10.0.0.2:80, weight: 0 }, 10.0.0.3:80 ], fallback: q }\n  \
           q: { members: [ 10.0.0.4:80 ] }\n",
    );
    let now = || shown(&plan(&table, &Own, false));
    assert_eq!(now(), "10.0.0.2:80 draining, 10.0.0.3:80 up");
    // The members of the fallback are added; the other members stay.
    table.pools[0].members[1].set_health(Health::Down, 1);
    assert_eq!(now(), "10.0.0.2:80 draining, 10.0.0.3:80 down, 10.0.0.4:80 up");
}

#[test]
fn lower_priorities_and_fallbacks_stand_by() {
    let table = table(
        "pool: p",
        "  p: { members: [ { address: 10.0.0.2:80, priority: 9 }, 10.0.0.3:80 ], fallback: q }\n  \
           q: { members: [ 10.0.0.3:80, 10.0.0.4 ] }\n",
    );
    let now = || shown(&plan(&table, &Own, false));
    assert_eq!(now(), "10.0.0.2:80 up, 10.0.0.3:80 draining");
    table.pools[0].members[0].set_health(Health::Down, 1);
    assert_eq!(now(), "10.0.0.2:80 down, 10.0.0.3:80 up");
    table.pools[0].members[1].set_health(Health::Down, 1);
    // A member of both pools has its state in the first one.
    assert_eq!(now(), "10.0.0.2:80 down, 10.0.0.3:80 down, 10.0.0.4 up");
}

#[test]
fn sources() {
    let of = |source: &str| {
        let server = format!("pool: p, fast_l4: {{ source: {source} }}");
        plan(&table(&server, POOL), &Own, false).virtual_servers[0].source.clone()
    };
    let own = |first, last| {
        let address = IpAddr::from([10, 0, 0, 254]);
        plan::Source::Addresses(vec![SourceAddress { address, port_first: first, port_last: last }])
    };
    assert_eq!(of("off"), plan::Source::Client);
    assert_eq!(of("auto"), own(1_024, 32_767));
    assert_eq!(of("10.0.0.254"), own(1_024, 32_767));
    assert_eq!(of("{ addresses: 10.0.0.254, ports: 2000-3999 }"), own(2_000, 3_999));
    let seen = |source: &str| {
        let server = format!("pool: p, fast_l4: {{ source: {source} }}");
        plan(&table(&server, POOL), &Own, false).virtual_servers[0].members[0].source
    };
    assert_eq!(seen("auto"), Some(IpAddr::from([10, 0, 0, 254])));
    assert_eq!(seen("[ 10.0.0.253, 10.0.0.254 ]"), None);
    // A member without a route gets no flows, because it would see the client's address.
    let server = "pool: p, fast_l4: { source: auto }";
    let table = table(server, "  p: { members: [ 10.9.9.9:80, 10.0.0.2:80 ] }\n");
    assert_eq!(shown(&plan(&table, &Own, false)), "10.0.0.2:80 up");
}

#[test]
fn what_is_forwarded() {
    let check = |server: &str, delivery: plan::Delivery, members: &str| {
        let table = table(server, "  p: { members: [ 10.0.0.2:80 ] }\n");
        let plan = plan(&table, &Own, false);
        assert_eq!(plan.virtual_servers[0].delivery, delivery, "{server}");
        assert_eq!(shown(&plan), members, "{server}");
    };
    check("pool: p", plan::Delivery::Translate, "10.0.0.2:80 up");
    check("pool: p, fast_l4: { translate_port: false }", plan::Delivery::Translate, "10.0.0.2 up");
    check("pool: p, fast_l4: { dsr: true }", plan::Delivery::DirectReturn, "10.0.0.2:80 up");
    check(
        "pool: p, fast_l4: { translate_address: false }",
        plan::Delivery::NextHop,
        "10.0.0.2:80 up",
    );
    check("forward: route", plan::Delivery::Route, "");
}

#[test]
fn what_is_for_this_host_goes_to_it() {
    let own = |listen: &str| -> Vec<IpAddr> {
        let text = format!(
            "virtual_servers: {{ a: {{ type: fast_l4, listen: {listen}, protocol: any, forward: route }} }}\n"
        );
        let config = weir_config::parse("test.yaml", &text).config.expect("a sound configuration");
        let snapshot = Arc::new(config.snapshot(&weir_config::Resolutions::default()));
        let plan = plan(&LiveTable::build(snapshot, None, 1, &outside()), &Own, false);
        let server = plan.virtual_servers.iter().find(|server| server.name == THIS_HOST);
        assert!(server.is_none_or(|it| it.delivery == plan::Delivery::Pass));
        server.iter().flat_map(|it| &it.destinations).map(|it| it.prefix.address).collect()
    };
    let (first, second) = (IpAddr::from([10, 0, 0, 254]), IpAddr::from([192, 0, 2, 1]));
    assert_eq!(own("\"0.0.0.0/0:*\""), [first, second]);
    assert_eq!(own("\"10.0.0.0/24:*\""), [first]);
    assert_eq!(own("[ \"0.0.0.0/0:*\", \"10.0.0.254:*\" ]"), [second]);
    assert!(own("\"10.0.0.1:*\"").is_empty());
    assert_eq!(own("\"[::]/0:*\""), [IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])]);
}

#[test]
fn only_what_differs_is_done() {
    let table = table("pool: p", POOL);
    let before = plan(&table, &Own, false);
    assert_eq!(difference(&before, &plan(&table, &Own, false)), Difference::None);
    table.pools[0].members[1].set_health(Health::Down, 1);
    let after = plan(&table, &Own, false);
    let name = MemberName {
        virtual_server: "a".into(),
        address: IpAddr::from([10, 0, 0, 3]),
        port: Some(8_080),
    };
    let states = vec![(name, MemberState::Down)];
    assert_eq!(difference(&before, &after), Difference::States(states));
    let mut other = after.clone();
    other.virtual_servers[0].members[0].weight = 2;
    assert_eq!(difference(&before, &other), Difference::Whole);
    other = after.clone();
    other.virtual_servers[0].members.pop();
    assert_eq!(difference(&before, &other), Difference::Whole);
}

#[test]
fn a_virtual_server_of_both_families_is_one_of_each() {
    let table = table_at(
        "[ 10.0.0.1:80, \"[2001:db8::1]:80\" ]",
        "pool: p, fast_l4: { source: { addresses: [ 10.0.0.9, \"2001:db8::9\" ] } }",
        "  p: { members: [ 10.0.0.2:80, \"[2001:db8::2]:80\" ] }\n",
    );
    let plan = plan(&table, &Own, false);
    let parts: Vec<_> = plan
        .virtual_servers
        .iter()
        .map(|it| {
            (it.name.as_str(), it.is_v4(), it.destinations.len(), it.members[0].address.is_ipv4())
        })
        .collect();
    assert_eq!(parts, [("a", true, 1, true), ("a", false, 1, false)]);
    for part in &plan.virtual_servers {
        let plan::Source::Addresses(addresses) = &part.source else { panic!("{:?}", part.source) };
        assert_eq!(addresses.len(), 1);
        assert_eq!(addresses[0].address.is_ipv4(), part.is_v4());
    }
    weir_packet::check(&plan).unwrap();
}

/// The packet path accepts every configuration that `weir check` accepts.
#[test]
fn every_example_is_sound() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let Some(config) = weir_config::parse("example.yaml", &text).config else { continue };
        let mut resolutions = weir_config::Resolutions::default();
        for name in config.host_names() {
            let both = ["192.0.2.77".parse().unwrap(), "2001:db8::77".parse().unwrap()];
            resolutions.insert(name.to_owned(), both.to_vec());
        }
        let snapshot = config.snapshot(&resolutions);
        let table = LiveTable::build(Arc::new(snapshot), None, 1, &outside());
        let plan = plan(&table, &Own, false);
        found += usize::from(!plan.virtual_servers.is_empty());
        weir_packet::check(&plan).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert!(found > 0, "no example has packets");
}

#[test]
fn what_has_no_room_is_refused_beforehand() {
    let check = |members: u32| {
        let listed: Vec<String> = (0..members)
            .map(|number| {
                format!("10.{}.{}.{}:80", 1 + number / 62_500, number / 250 % 250, number % 250 + 1)
            })
            .collect();
        let server = |number: u32| {
            format!("  s{number}: {{ type: fast_l4, listen: 10.0.0.1:{number}, pool: p }}\n")
        };
        let servers: String = (1..=4).map(server).collect();
        let text = format!(
            "virtual_servers:\n{servers}pools: {{ p: {{ members: [ {} ] }} }}\n",
            listed.join(", ")
        );
        let loaded = weir_config::parse("test.yaml", &text);
        let config = loaded.config.unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics));
        super::check(&config, std::path::Path::new("test.yaml")).map(|it| it.message)
    };
    assert_eq!(check(100), None);
    let message = check(4_200).unwrap();
    assert!(message.contains("16800 members of all virtual servers: at most 16384"), "{message}");
}

#[test]
fn what_goes_by_the_routing_table_is_the_kernels_while_weir_drains() {
    let table = table("forward: route", "  p: { members: [ 10.0.0.2:80 ] }\n");
    let delivery = |drains| plan(&table, &Own, drains).virtual_servers[0].delivery;
    assert_eq!(delivery(false), plan::Delivery::Route);
    assert_eq!(delivery(true), plan::Delivery::Pass);
}

#[test]
fn changes_of_other_pools_are_no_changes_of_packets() {
    let pools = "  p: { members: [ 10.0.0.2:80 ], fallback: q }\n  q: { members: [ 10.0.0.3:80 ] }\n  \
                 r: { members: [ 10.0.0.4:80 ] }\n";
    let table = table("pool: p }\n  b: { listen: 10.0.0.1:81, pool: r", pools);
    let index = |name: &str| {
        let mut pools = table.snapshot.pools.iter();
        pools.position(|pool| *pool.name == *name).expect("a pool")
    };
    for (changed, expected) in
        [(&["p"][..], true), (&["q"], true), (&["r"], false), (&["r", "q"], true), (&[], false)]
    {
        let changed: Vec<usize> = changed.iter().map(|name| index(name)).collect();
        assert_eq!(reaches(&table.snapshot, &changed), expected, "{changed:?}");
    }
}
