//! Random configurations.

use std::sync::Arc;

use weir_config::snapshot::{Record, Snapshot, UnjudgedAction, Waf};
use weir_core::policy::WafMode;
use weir_testing::Random;
use weir_testing::configurations::{Shape, WAF_RULES, configuration};
use weir_waf::body::Limits;
use weir_waf::inspection::CommonTexts;
use weir_waf::plan::{Files, RuleSet, Settings, View};

/// The size of a configuration.
#[derive(Clone, Copy)]
pub struct Size {
    /// Virtual servers that clients reach: `v0`, `v1` and so on.
    pub servers: usize,
    pub pools: usize,
    pub policies: usize,
    /// The rate of limits: keys and values.
    pub rate: &'static str,
    /// Requests that stay under way, at most.
    pub under_way_max: usize,
}

struct OneFile;

impl Files for OneFile {
    fn find(&mut self, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
        Ok(WAF_RULES.into())
    }
}

/// A configuration, and its text.
pub fn draw(size: Size, random: &mut Random) -> (String, Snapshot) {
    let Size { servers, pools, policies, rate, .. } = size;
    let mut calls = 0;
    let mut shape = Shape {
        servers,
        pools,
        policies,
        rate,
        has_http2_members: true,
        before_inner: "",
        listen: &mut |number| format!("127.0.0.1:{}", port(number)),
        member: &mut |pool, member| format!("10.0.{pool}.{member}:80"),
        further: &mut |_| {
            calls += 1;
            // The last one has no connections of its own.
            if calls > servers { String::new() } else { ", http: { http2: true }".to_owned() }
        },
    };
    let text = configuration(&mut shape, random);
    let parsed = weir_config::parse("random.yaml", &text);
    let config = parsed.config.unwrap_or_else(|| panic!("{:#?}\n{text}", parsed.diagnostics));
    let mut snapshot = config.snapshot(&weir_config::Resolutions::default());
    let modes = [WafMode::Block, WafMode::Detect];
    for server in &mut snapshot.virtual_servers {
        if random.percent(50) {
            server.waf = Some(waf(modes[random.below(modes.len())]));
        }
    }
    (text, snapshot)
}

/// The port of a virtual server.
pub fn port(server: usize) -> usize {
    8_000 + server
}

fn waf(mode: WafMode) -> Arc<Waf> {
    let rules = RuleSet::compile(&["rules.conf".into()], &mut OneFile).expect("sound rules");
    let view = View::new(Arc::new(rules), &Settings::default()).expect("nothing is absent");
    Arc::new(Waf {
        mode,
        common: Arc::new(CommonTexts::new(Arc::new(view))),
        checks: None,
        profile: None,
        exclusions: Vec::new(),
        limits: Limits::DEFAULT,
        body_bytes_max: 10_000,
        files_bytes_max: 0,
        body_timeout_ms: 60_000,
        cookies: None,
        responses: None,
        work_bytes_max: 1 << 20,
        time_max_ms: 1_000,
        unjudged: UnjudgedAction::Block,
        record: Record::Off,
    })
}
