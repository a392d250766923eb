use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_config::snapshot::Address;
use weir_core::admin_state::AdminState;
use weir_core::monitor::Health;
use weir_exchange::shared::live::LiveTable;

use super::*;
use crate::testing::{observed_by, observed_with, observed_with_waf};

fn address(port: u16) -> Address {
    Address::Socket(std::net::SocketAddr::from(([127, 0, 0, 1], port)))
}

/// A process with two workers, two members and some traffic.
fn observed() -> ObservedState {
    let observed = observed_with(&[address(9_001), address(9_002)], 2);
    let table: Arc<LiveTable> = observed.table();
    let server = &table.virtual_servers[0].counters;
    server.of(0).requests.add(2);
    server.of(1).requests.add(3);
    server.of(1).responses_2xx.add(4);
    server.of(0).request_duration.record(100);
    server.of(0).authorisation_duration.record(100);
    server.of(1).request_duration.record(2_000);
    server.of(1).request_duration.record(60_000_000);
    table.pools[0].members[1].set_health(Health::Down, 1);
    observed
}

/// The samples of a text, by name and labels.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            (sample.to_owned(), value.parse().unwrap())
        })
        .collect()
}

#[test]
fn counters_of_all_workers_are_summed() {
    let text = encode(&observed(), "");
    let samples = parse(&text);
    let check =
        |sample: &str, value: f64| assert_eq!(samples.get(sample), Some(&value), "{sample}");
    check(r#"weir_virtual_server_requests_total{virtual_server="shop"}"#, 5.0);
    check(r#"weir_virtual_server_responses_total{virtual_server="shop",class="2xx"}"#, 4.0);
    check(r#"weir_pool_members{pool="web",state="up"}"#, 1.0);
    check(r#"weir_pool_members{pool="web",state="down"}"#, 1.0);
    check(r#"weir_member_up{pool="web",member="127.0.0.1:9001"}"#, 1.0);
    check(r#"weir_member_up{pool="web",member="127.0.0.1:9002"}"#, 0.0);
    check(r#"weir_member_state{pool="web",member="127.0.0.1:9002",state="down"}"#, 1.0);
    check(r#"weir_pool_members_in_service{pool="web"}"#, 1.0);
    check(
        r#"weir_member_administrative_state{pool="web",member="127.0.0.1:9001",state="enabled"}"#,
        1.0,
    );
    check(r#"weir_member_administrative_override{pool="web",member="127.0.0.1:9001"}"#, 0.0);
    check("weir_workers", 2.0);
    check(r#"weir_config_reloads_total{result="success"}"#, 0.0);
    check(&format!("weir_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1.0);
    assert!(samples["process_start_time_seconds"] > 1.7e9);
}

#[test]
fn metrics_are_chosen_by_the_beginning_of_their_names() {
    let text = encode(&observed(), "weir_request_duration_seconds");
    assert!(text.starts_with("# HELP weir_request_duration_seconds "), "{text}");
    assert!(text.lines().all(|line| line.contains("weir_request_duration_seconds")), "{text}");
    assert_eq!(encode(&observed(), "nothing"), "");
    let (own, all) = (parse(&encode(&observed(), "weir_")), parse(&encode(&observed(), "")));
    let is_own = |sample: &&String| sample.starts_with("weir_");
    assert!(own.keys().eq(all.keys().filter(is_own)) && own.len() < all.len());
}

#[test]
fn a_drained_member_is_up_and_not_in_service() {
    let observed = observed();
    let drained = Arc::clone(&observed.table().pools[0].members[0]);
    drained.set_state_override(Some(AdminState::Drain));
    let samples = parse(&encode(&observed, ""));
    let member = |name: &str, state: &str| {
        samples[&format!("{name}{{pool=\"web\",member=\"127.0.0.1:9001\"{state}}}")]
    };
    assert_eq!(member("weir_member_up", ""), 1.0);
    assert_eq!(member("weir_member_administrative_override", ""), 1.0);
    for (state, value) in [("enabled", 0.0), ("drain", 1.0), ("disabled", 0.0)] {
        let label = format!(",state=\"{state}\"");
        assert_eq!(member("weir_member_administrative_state", &label), value, "{state}");
    }
    assert_eq!(samples[r#"weir_pool_members_in_service{pool="web"}"#], 0.0);
}

fn gunzip(packed: &[u8]) -> String {
    let (text, is_whole) = weir_testing::decode("gzip", packed);
    assert!(is_whole);
    String::from_utf8(text).expect("text")
}

/// The size of an answer about many members, in bytes: as text and compressed.
fn sizes(members: usize, extra: &str) -> (usize, usize) {
    let observed = observed_by(&of_members(members, extra), 2);
    let table = observed.table();
    for (number, member) in table.pools[0].members.iter().enumerate() {
        let counters = member.counters.of(0);
        let number = number as u64;
        counters.requests.add(1_000_003 * (number + 1));
        counters.responses_2xx.add(999_983 * (number + 1));
        counters.bytes_received.add(70_001 * (number + 7));
        counters.bytes_sent.add(90_001 * (number + 5));
        if let Some(times) = member.own_times(1) {
            (0..20).for_each(|exponent| times.response_duration.record(number << exponent));
        }
    }
    let packed = encode_gzip(&observed, "").expect("memory");
    let text = encode(&observed, "");
    (text.len(), packed.len())
}

/// A configuration with a pool of this many members.
fn of_members(count: usize, extra: &str) -> String {
    let members: Vec<String> =
        (0..count).map(|it| format!("10.0.{}.{}:8080", it / 250, it % 250 + 1)).collect();
    format!(
        "virtual_servers: {{ shop: {{ listen: \"127.0.0.1:8080\", pool: web }} }}\n\
         pools: {{ web: {{ members: [ {} ] }} }}\n{extra}",
        members.join(", ")
    )
}

const BY_MEMBER: &str = "metrics: { latency_histograms: member }\n";

/// A histogram of a member has 23 samples of 55. `docs/observability.md` has the sizes with 10,000 members.
#[test]
fn metrics_of_many_members_are_small() {
    let (by_pool, packed) = sizes(500, "");
    let (by_member, packed_by_member) = sizes(500, BY_MEMBER);
    assert!(by_member * 10 > by_pool * 17, "{by_pool} of {by_member}");
    assert!(packed * 15 < by_pool, "{packed} of {by_pool}");
    assert!(packed_by_member * 15 < by_member, "{packed_by_member} of {by_member}");
    if std::env::var_os("WEIR_MEASURE").is_some() {
        eprintln!(
            "10,000 members: {:?}; {BY_MEMBER}: {:?}",
            sizes(10_000, ""),
            sizes(10_000, BY_MEMBER)
        );
    }
}

#[test]
fn members_have_histograms_on_request() {
    let has = |observed: &ObservedState| {
        let text = encode(observed, "weir_member_response_duration_seconds");
        text.contains("weir_member_response_duration_seconds_bucket{")
    };
    let observed = observed_by(&of_members(2, ""), 1);
    assert!(!has(&observed));
    let table = observed.table();
    assert!(table.pools[0].members[0].own_times(0).is_none(), "nothing is allocated");
    table.pools[0].pool.counters.of(0).response_duration.record(700);
    let samples = parse(&encode(&observed, "weir_pool_response_duration_seconds"));
    assert_eq!(samples["weir_pool_response_duration_seconds_count{pool=\"web\"}"], 1.0);
    let observed = observed_by(&of_members(2, BY_MEMBER), 1);
    assert!(has(&observed));
    let table = observed.table();
    let times = table.pools[0].members[0].own_times(0).expect("it is counted");
    times.response_duration.record(700);
    let samples = parse(&encode(&observed, ""));
    let count = |member: &str| {
        let labels = format!("pool=\"web\",member=\"{member}\"");
        samples[&format!("weir_member_response_duration_seconds_count{{{labels}}}")]
    };
    assert_eq!(["10.0.0.1:8080", "10.0.0.2:8080"].map(count), [1.0, 0.0]);
}

#[test]
fn compressed_metrics_are_the_same_text() {
    for wanted in ["", "weir_pool_", "nothing"] {
        let observed = observed();
        let packed = encode_gzip(&observed, wanted).expect("memory");
        let names = |text: &str| -> Vec<String> {
            text.lines().map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
        };
        assert_eq!(names(&gunzip(&packed)), names(&encode(&observed, wanted)), "{wanted}");
    }
}

#[test]
fn histograms_are_cumulative_and_in_seconds() {
    let samples = parse(&encode(&observed(), ""));
    let bucket = |bound: &str| {
        samples[&format!(
            "weir_request_duration_seconds_bucket{{virtual_server=\"shop\",le=\"{bound}\"}}"
        )]
    };
    assert_eq!(["0.0001", "0.001", "0.0025", "30", "+Inf"].map(bucket), [1.0, 1.0, 2.0, 2.0, 3.0]);
    assert_eq!(samples[r#"weir_request_duration_seconds_count{virtual_server="shop"}"#], 3.0);
    assert_eq!(samples[r#"weir_request_duration_seconds_sum{virtual_server="shop"}"#], 60.0021);
}

#[test]
fn what_the_firewall_did_and_its_rules_found() {
    let rules = "SecAction \"id:1,phase:1,pass,log\"\nSecAction \"id:942100,phase:1,pass,log\"";
    let observed = observed_with_waf(rules);
    let table = observed.table();
    let counters = table.virtual_servers[0].counters.of(0);
    counters.waf_inspected.add(5);
    counters.waf_blocked.add(2);
    table.waf_rules.count_one(942_100);
    observed.logs.waf.lines_written.fetch_add(3, std::sync::atomic::Ordering::Relaxed);
    let samples = parse(&encode(&observed, ""));
    let of_server = |outcome: &str| {
        let labels = format!("{{virtual_server=\"shop\",outcome=\"{outcome}\"}}");
        samples[&format!("weir_virtual_server_waf_requests_total{labels}")]
    };
    let outcomes = ["inspected", "blocked", "detected", "unjudged"];
    assert_eq!(outcomes.map(of_server), [5.0, 2.0, 0.0, 0.0]);
    assert_eq!(samples["weir_waf_rule_matches_total{rule=\"942100\"}"], 1.0);
    assert!(!samples.contains_key("weir_waf_rule_matches_total{rule=\"1\"}"));
    assert_eq!(samples["weir_waf_log_lines_total"], 3.0);
    let without = encode(&self::observed(), "");
    assert!(!without.contains("waf_requests_total{") && !without.contains("matches_total{"));
}

/// The format meets the requirements of parsers: each metric occurs once, with help, type and all its samples, and no sample
/// occurs twice.
#[test]
fn the_text_is_well_formed() {
    let text = encode(&observed(), "");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").expect(line).split_once(' ').unwrap();
        assert!(!help.is_empty() && families.insert(name.to_owned()), "{line}");
        let (typed, kind) =
            lines.next().unwrap().strip_prefix("# TYPE ").unwrap().split_once(' ').unwrap();
        assert_eq!(typed, name);
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
            assert!(sample.starts_with(name), "{sample} under {name}");
            assert!(
                samples.insert(sample.rsplit_once(' ').unwrap().0.to_owned()),
                "{sample} twice"
            );
        }
    }
    let described: BTreeSet<String> =
        descriptions().map(|description| description.name.to_owned()).collect();
    assert_eq!(families, described);
    assert_eq!(described.len(), descriptions().count());
}

/// The descriptions list exactly the labels of the samples.
#[test]
fn labels_are_as_described() {
    let text = encode(&observed(), "");
    for Description { name, kind, labels, .. } in descriptions() {
        let suffix = if kind == Kind::Histogram { "_count" } else { "" };
        let is_sample = |line: &&str| {
            line.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(suffix))
                .is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        // The observed process has no monitors, rules, TLS, files that expire, packet path or firewall, and neither rewrites nor
        // relays anything.
        let Some(sample) = text.lines().find(is_sample) else {
            let absent = [
                "weir_acme_renewal_",
                "weir_file_",
                "weir_l4_",
                "weir_token_keys_",
                "weir_member_response_duration_",
                "weir_monitor_",
                "weir_policy_",
                "weir_virtual_server_certificate_",
                "weir_virtual_server_waf_",
                "weir_virtual_server_rewritten_",
                "weir_waf_",
                "weir_virtual_server_relayed_",
                "weir_virtual_server_datagrams_",
                "weir_virtual_server_ocsp_",
            ];
            let is_absent = absent.iter().any(|of| name.starts_with(of));
            assert!(is_absent, "{name} has no sample");
            continue;
        };
        let inside =
            sample.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
        let found: Vec<&str> = inside
            .split("\",")
            .filter_map(|pair| pair.split_once('='))
            .map(|(label, _)| label)
            .collect();
        assert_eq!(found.join(","), labels, "{name}");
    }
}

#[test]
fn label_values_are_escaped() {
    let mut labels = Labels(String::new());
    labels.add("pool", "a\"b\\c\nd");
    labels.add("member", "é");
    assert_eq!(labels.0, r#"pool="a\"b\\c\nd",member="é""#);
}

#[test]
fn decimals() {
    for (value, decimals, expected) in [
        (0, 6, "0"),
        (1, 6, "0.000001"),
        (1_500_000, 6, "1.5"),
        (30_000_000, 6, "30"),
        (1_234, 3, "1.234"),
    ] {
        assert_eq!(Decimal { value, decimals }.to_string(), expected);
    }
}

/// `docs/observability.md` lists every metric, with type and labels, and no others.
#[test]
fn the_documentation_is_complete() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md");
    let text = std::fs::read_to_string(path).expect("docs/observability.md");
    let documented: BTreeSet<String> = text
        .lines()
        .filter(|line| line.starts_with("| `weir_") || line.starts_with("| `process_"))
        .map(str::to_owned)
        .collect();
    let expected: BTreeSet<String> = descriptions()
        .map(|Description { name, kind, labels, help }| {
            let labels = labels.replace(',', ", ");
            format!("| `{name}` | {} | {labels} | {help} |", kind.as_str())
        })
        .collect();
    let missing: Vec<_> = expected.difference(&documented).collect();
    let surplus: Vec<_> = documented.difference(&expected).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "missing: {missing:#?}\nsurplus: {surplus:#?}"
    );
}
