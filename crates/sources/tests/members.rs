//! Changes of members alone, which are checked without everything else: they must lead where the whole check leads.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use weir_config::snapshot::{Address, Member};
use weir_config::{Config, Diagnostic, LoadResult, Resolutions};
use weir_sources::overlay::{Change, Overlay};
use weir_sources::{Files, Sources};

const TEXT: &str = r#"
virtual_servers:
  shop: { listen: 127.0.0.1:8080, pool: web, policies: [ p ] }
policies:
  p: { rules: [ { then: [ ACTION ] } ] }
pools:
  web:
    monitors: [ { type: tcp } ]
    members:
      - 10.0.0.1:80
      - { address: 10.0.0.2:80, weight: 3 }
      - { address: 10.0.0.3:80, monitors: [ { type: tcp } ] }
      - "[::1]:80"
      - app.example:80
  other: { members: [ 10.0.0.9:80 ] }
"#;

/// An action that says nothing of members, and one that names a member.
const PLAIN: &str = "{ set_header: { X-A: b } }";
const NAMED: &str = "{ member: \"10.0.0.1:80\" }";

struct Step {
    files: Files,
    overlay: Overlay,
    config: Config,
    /// The findings about the configuration.
    findings: BTreeSet<String>,
}

fn changes(changes: &Value) -> Vec<Change> {
    serde_json::from_value(changes.clone()).expect("changes")
}

/// All members of a configuration, by pool, in the order of their addresses: the order of added ones may differ.
fn members(config: &Config) -> Vec<Vec<Member>> {
    let resolutions = Resolutions::from([("app.example".into(), vec![[10, 0, 1, 1].into()])]);
    let pools = config.snapshot(&resolutions).pools;
    let mut members: Vec<Vec<Member>> = pools.iter().map(|pool| pool.members.clone()).collect();
    members.iter_mut().for_each(|pool| pool.sort_by_key(|member| member.label.clone()));
    members
}

impl Step {
    fn first(action: &str) -> Self {
        Self::of_text(&TEXT.replace("ACTION", action))
    }

    fn of_text(text: &str) -> Self {
        let files = Files::of_text("weir.yaml", text);
        let loaded = Sources::new(&files, &Overlay::default()).check();
        let findings = findings(&loaded);
        let config = loaded.config.unwrap_or_else(|| panic!("{findings:?}\n{text}"));
        Self { files, overlay: Overlay::default(), config, findings }
    }

    /// Makes changes, and says whether they were checked by themselves.
    fn take(&mut self, wanted: &Value) -> bool {
        self.take_if_possible(wanted).expect("possible changes")
    }

    /// As above; `None`: the changes are not possible.
    fn take_if_possible(&mut self, wanted: &Value) -> Option<bool> {
        let wanted = changes(wanted);
        let overlay = Sources::new(&self.files, &self.overlay).compose(&wanted).ok()?;
        let sources = Sources::new(&self.files, &overlay);
        let alone = sources.check_members(&self.overlay, &wanted, &self.config);
        let loaded = sources.check();
        let (found, whole) = (findings(&loaded), loaded.config);
        if let Some(alone) = &alone {
            let whole = whole.as_ref();
            let whole =
                whole.unwrap_or_else(|| panic!("{found:?}: {:?}, {wanted:?}", self.overlay));
            let further: Vec<&String> = found.difference(&self.findings).collect();
            assert!(further.is_empty(), "{further:?}: {:?}, {wanted:?}", self.overlay);
            assert_eq!(members(alone), members(whole), "{wanted:?}");
            let resolved = |config: &Config| config.snapshot(&Resolutions::default()).resolved;
            assert_eq!(resolved(alone).content, resolved(whole).content, "{wanted:?}");
            assert_eq!(alone.summary(), whole.summary(), "{wanted:?}");
            assert_eq!(alone.changes_from(whole), [], "{wanted:?}");
            let changed = alone.changes_from(&self.config);
            assert_eq!(changed, whole.changes_from(&self.config));
            let by_pool = alone.only_members_differ(&self.config).map(|it| it.len());
            let is_unix = |member: &Member| matches!(member.address, Address::Unix(_));
            let has_unix = members(alone).iter().flatten().any(is_unix);
            assert!(has_unix || by_pool == Some(changed.len()), "{wanted:?}");
        }
        let is_alone = alone.is_some();
        if let Some(config) = alone.or(whole) {
            (self.overlay, self.config, self.findings) = (overlay, config, found);
        }
        Some(is_alone)
    }
}

/// What a check finds, without the places: they differ with what the overlay has.
fn findings(loaded: &LoadResult) -> BTreeSet<String> {
    let one = |it: &Diagnostic| format!("{:?}: {}", it.severity, it.message);
    loaded.diagnostics.iter().map(one).collect()
}

fn set(path: &str, value: impl Into<Value>) -> Value {
    json!({ "op": "set", "path": format!("/pools/web/members/{path}"), "value": value.into() })
}

fn remove(path: &str) -> Value {
    json!({ "op": "remove", "path": format!("/pools/web/members/{path}") })
}

#[test]
fn changes_of_members_one_after_another_lead_where_the_whole_check_leads() {
    let mut step = Step::first(PLAIN);
    for wanted in [
        json!([set("10.0.0.1:80/weight", 7)]),
        json!([set("10.0.0.1:80/state", "drain"), set("10.0.0.1:80/connections_max", 20)]),
        json!([remove("10.0.0.1:80/weight")]),
        json!([set("10.0.0.2:80/requests_per_second_max", 100), set("10.0.0.2:80/priority", 2)]),
        json!([set("10.0.0.3:80/weight", 0)]),
        json!([set("[::1]:80", json!({ "weight": 4 }))]),
        json!([set("10.0.0.4:81", json!({}))]),
        json!([set("10.0.0.4:81/weight", 9), remove("10.0.0.1:80")]),
        json!([set("10.0.0.1:80", json!({ "address": "10.0.0.1:80", "state": "disabled" }))]),
        json!([remove("10.0.0.4:81")]),
        json!([set("10.0.0.4:82", "10.0.0.4:82"), remove("10.0.0.4:82")]),
        json!([{ "op": "set", "path": "/pools/other/members/10.0.0.9:80/weight", "value": 2 },
               set("10.0.0.2:80/weight", 1)]),
    ] {
        assert!(step.take(&wanted), "{wanted}");
    }
}

#[test]
fn what_may_matter_elsewhere_is_checked_as_a_whole() {
    let other = |path: &str, value: Value| json!([{ "op": "set", "path": path, "value": value }]);
    for wanted in [
        json!([set("app.example:80/weight", 2)]),
        json!([set("app2.example:80", json!({}))]),
        json!([set("unix:~1run~1app.sock", json!({}))]),
        json!([set("10.0.0.1:80/monitors", json!([]))]),
        json!([set("10.0.0.1:80", json!({ "monitors": [] }))]),
        json!([set("10.0.0.3:80", json!({}))]),
        json!([remove("10.0.0.3:80")]),
        json!([set("10.0.0.1:80/weight", 1_000)]),
        json!([set("10.0.0.1:80/weight", json!([1]))]),
        json!([set("127.0.0.1:8080", json!({}))]),
        other("/pools/other/members/10.0.0.9:80/weight", json!(0)),
        other("/pools/other/members", json!(["10.0.0.8:80"])),
        other("/pools/other/retries", json!(2)),
        json!([set("10.0.0.1:80/weight", 2), { "op": "set", "path": "/pools/web/retries", "value": 2 }]),
        json!([{ "op": "remove", "path": "/pools/other/members/10.0.0.9:80" }]),
    ] {
        assert!(!Step::first(PLAIN).take(&wanted), "{wanted}");
    }
    // A pool whose list of members was set as a whole.
    let mut step = Step::first(PLAIN);
    assert!(!step.take(&other("/pools/other/members", json!(["10.0.0.8:80"]))));
    assert!(!step.take(&other("/pools/other/members/10.0.0.8:80/weight", json!(2))));
    // A rule names members.
    let mut step = Step::first(NAMED);
    assert!(step.take(&json!([set("10.0.0.1:80/weight", 2)])));
    assert!(!step.take(&json!([remove("10.0.0.2:80")])));
}

#[test]
fn disabled_virtual_servers_are_checked_with_their_members() {
    let disabled = "shop: { listen: 127.0.0.1:8080, pool: web, policies: [ p ] }\n  \
                    off: { listen: 127.0.0.1:8090, pool: web, state: disabled }";
    let text = TEXT.replace("ACTION", PLAIN);
    let text =
        text.replace("shop: { listen: 127.0.0.1:8080, pool: web, policies: [ p ] }", disabled);
    let mut step = Step::of_text(&text);
    assert!(!step.take(&json!([set("127.0.0.1:8090", json!({}))])), "it would go round for ever");
    assert!(step.take(&json!([set("127.0.0.1:8091", json!({}))])));
    let packets = "listen: 127.0.0.1:8090, pool: l4, state: disabled, type: fast_l4";
    let text = text.replace("listen: 127.0.0.1:8090, pool: web, state: disabled", packets);
    let mut step = Step::of_text(&format!("{text}  l4: {{ members: [ 10.0.0.1:80 ] }}\n"));
    let other_family =
        json!([{ "op": "set", "path": "/pools/l4/members/[2001:db8::1]:80", "value": {} }]);
    assert!(!step.take(&other_family), "packets cannot get there");
}

#[test]
fn an_admin_listener_of_the_files_is_no_member_of_the_overlay() {
    let text = TEXT.replace("ACTION", PLAIN).replace("10.0.0.1:80", "127.0.0.1:9900");
    let text = format!("admin: {{ listen: \"127.0.0.1:9900\" }}\n{text}");
    let mut step = Step::of_text(&text);
    assert!(!step.findings.is_empty(), "a warning");
    assert!(!step.take(&json!([set("127.0.0.1:9900", json!({ "weight": 2 }))])));
    assert!(!step.take(&json!([set("127.0.0.1:9900/weight", 2)])));
    assert!(step.take(&json!([set("10.0.0.2:80/weight", 2)])));
    // Probes may lead there, too.
    let monitors = "monitors: [ { type: tcp, port: 9900 } ]\n    members:\n      - 127.0.0.1:80\n";
    let text = text.replace("monitors: [ { type: tcp } ]\n    members:\n", monitors);
    assert!(!Step::of_text(&text).take(&json!([set("127.0.0.1:80", json!({ "weight": 2 }))])));
}

#[test]
fn spillover_depends_on_the_limits_of_members() {
    let text = TEXT.replace("ACTION", PLAIN).replace(
        "other: { members: [ 10.0.0.9:80 ] }",
        "other: { members: [ { address: 10.0.0.9:80, connections_max: 5 } ], spillover: { pool: web } }",
    );
    let of = |key: &str, value: Value| json!([{ "op": "set", "path": format!("/pools/other/members/10.0.0.9:80{key}"), "value": value }]);
    let mut step = Step::of_text(&text);
    for plain in [of("/weight", json!(3)), of("/state", json!("drain")), of("/priority", json!(2))]
    {
        assert!(step.take(&plain), "{plain}");
    }
    let without =
        json!([{ "op": "remove", "path": "/pools/other/members/10.0.0.9:80/connections_max" }]);
    for other in [without, of("", json!({})), of("/connections_max", json!(7))] {
        assert!(!Step::of_text(&text).take(&other), "{other}");
    }
}

/// Random numbers (Steele et al., "SplitMix", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// The text, or nothing.
    fn perhaps(&mut self, text: &'static str) -> &'static str {
        self.one_of(&["", text])
    }

    /// A configuration with some of what a check of members must look at.
    fn text(&mut self) -> String {
        let rule = self.one_of(&[PLAIN, PLAIN, PLAIN, NAMED]);
        let admin = self.perhaps("admin: { listen: \"127.0.0.1:9900\" }\n");
        let servers = [
            "  off: { listen: 127.0.0.1:8081, pool: other, state: disabled }\n",
            "  tcp: { listen: 127.0.0.1:8082, pool: tcp, type: tcp }\n",
            "  udp: { listen: \"0.0.0.0:8083\", pool: other, type: udp, state: disabled }\n",
            "  ports: { listen: \"127.0.0.1:8084-8086\", pool: other }\n",
        ];
        let servers = servers.map(|server| self.perhaps(server)).concat();
        let l4 = "  l4: { listen: 10.0.0.1:80, pool: l4, type: fast_l4, state: disabled }\n";
        let l4 = self.one_of(&["", "", "", l4]);
        let web = [
            "    spillover: { pool: other }\n",
            "    fallback: other\n",
            "    monitors_min: 2\n",
            "    slow_start: 10s\n",
        ];
        let web = web.map(|key| self.perhaps(key)).concat();
        let both = "    monitors: [ { type: tcp }, { type: tcp, port: 9900 } ]\n";
        let monitors = self.one_of(&["", "    monitors: [ { type: tcp } ]\n", both]);
        let monitors = if web.contains("monitors_min") { both } else { monitors };
        let source = self.perhaps("source: [ 10.1.0.1 ],");
        let limited = self.one_of(&["connections_max: 5", "weight: 0", "weight: 2"]);
        let door = self.one_of(&["", "", "      - 127.0.0.1:9900\n"]);
        format!(
            "{admin}virtual_servers:\n  shop: {{ listen: 127.0.0.1:8080, pool: web, policies: [ p ] }}\n{servers}{l4}\
             policies:\n  p: {{ rules: [ {{ then: [ {rule} ] }} ] }}\n\
             pools:\n  web:\n{web}{monitors}    members:\n      - {{ address: 10.0.0.1:80, {limited} }}\n      \
             - 10.0.0.2:80\n      - {{ address: 10.0.0.3:80, monitors: [ {{ type: tcp }} ] }}\n      - app.example:80\n{door}  \
             other: {{ members: [ {{ address: 10.0.0.1:80, connections_max: 3 }} ] }}\n  \
             tcp: {{ {source} members: [ 10.0.0.9:80, 10.0.0.2 ] }}\n  l4: {{ members: [ 10.0.0.9:80 ] }}\n"
        )
    }

    fn change(&mut self) -> Value {
        let pool = self.one_of(&["web", "web", "web", "other", "tcp", "l4"]);
        let member = self.one_of(&[
            "10.0.0.1:80",
            "10.0.0.1:80",
            "10.0.0.2:80",
            "10.0.0.2:80",
            "10.0.0.3:80",
            "10.0.0.4:80",
            "10.0.0.9:80",
            "[::1]:80",
            "[0:0::1]:80",
            "[::ffff:10.0.0.1]:80",
            "127.0.0.1:8080",
            "127.0.0.1:8081",
            "127.0.0.1:8082",
            "127.0.0.1:8083",
            "127.0.0.1:8085",
            "127.0.0.1:9900",
            "127.0.0.1:80",
            "0.0.0.0:9900",
            "10.0.0.2",
            "app.example:80",
            "unix:~1run~1app",
        ]);
        let (key, value) = self.one_of(&[
            ("weight", json!(0)),
            ("weight", json!(1)),
            ("weight", json!(7)),
            ("weight", json!(7_000)),
            ("weight", json!("some")),
            ("state", json!("drain")),
            ("state", json!("disabled")),
            ("state", json!("off")),
            ("priority", json!(3)),
            ("connections_max", json!(5)),
            ("connections_max", json!(0)),
            ("requests_per_second_max", json!(100)),
            ("requests_per_second_max", json!(4_000_000_000_u64)),
            ("monitors", json!([])),
        ]);
        let path = format!("/pools/{pool}/members/{member}");
        match self.below(8) {
            0 => json!({ "op": "set", "path": path, "value": {} }),
            1 => json!({ "op": "set", "path": path, "value": { key: value } }),
            2 => json!({ "op": "remove", "path": path }),
            3 => json!({ "op": "remove", "path": format!("{path}/{key}") }),
            _ => json!({ "op": "set", "path": format!("{path}/{key}"), "value": value }),
        }
    }
}

/// What the check of members accepts by itself, the whole check accepts, with the same result and no further findings.
#[test]
fn random_changes_lead_where_the_whole_check_leads() {
    const SEEDS: u64 = 120;
    const STEPS: usize = 25;
    let (mut alone, mut possible) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let mut step = Step::of_text(&random.text());
        for _ in 0..STEPS {
            let count = random.one_of(&[1, 1, 1, 2, 3]);
            let wanted: Vec<Value> = (0..count).map(|_| random.change()).collect();
            let Some(is_alone) = step.take_if_possible(&wanted.into()) else { continue };
            possible += 1;
            alone += usize::from(is_alone);
        }
    }
    assert!(alone * 6 > possible && alone > 150, "{alone} of {possible}");
}
