//! The tests of the web application firewall.

use super::Figure::{
    CoreBusy, CpuPerRequest, FirewallCpuPerRequest, FirewallMemory, LatencyP50, LatencyP99, Rate,
    RulesLoadTime, UnguardedCpuPerRequest,
};
use super::{Axis, CORAZA, Chapter, Figure, Goal, Measure, NGINX_MODSECURITY, Picture, Test, goal};

/// The cases of the tests `waf-2020-idle` and `waf-2020-stressed`.
pub const WAF_CASES: &[&str] = &[
    "TLS 1.3, none inspected",
    "TLS 1.3, 33% inspected",
    "TLS 1.3, all inspected",
    "TLS 1.2, none inspected",
    "TLS 1.2, 33% inspected",
    "TLS 1.2, all inspected",
];

/// The report of 2020.
const CITRIX_2020: &str = "Citrix ADC VPX 13.0 and F5 BIG-IP VE 15.1, 2020";

/// Maximum added CPU time, as a share of what the better peer's firewall adds.
const ADDED_SHARE: f64 = 0.1;

const fn added_goals(added_us: f64) -> [Goal; 3] {
    [
        goal(FirewallCpuPerRequest, 0.0, Measure::Value, added_us),
        goal(FirewallCpuPerRequest, 0.0, Measure::RatioTo(NGINX_MODSECURITY), ADDED_SHARE),
        goal(FirewallCpuPerRequest, 0.0, Measure::RatioTo(CORAZA), ADDED_SHARE),
    ]
}

const GET_GOALS: [Goal; 3] = added_goals(100.0);
const FORM_1K_GOALS: [Goal; 3] = added_goals(150.0);
const LONG_BODY_GOALS: [Goal; 3] = added_goals(500.0);

const ADDED_FIGURES: &[Figure] =
    &[FirewallCpuPerRequest, CpuPerRequest, UnguardedCpuPerRequest, Rate, LatencyP99, CoreBusy];

/// A test of the CPU time that a firewall adds to each request.
const fn added(
    name: &'static str,
    title: &'static str,
    summary: &'static str,
    goals: &'static [Goal],
) -> Test {
    Test {
        name,
        chapter: Chapter::Firewall,
        title,
        summary,
        after: "our own",
        axis: Axis::Single,
        picture: Picture::Bars,
        figures: ADDED_FIGURES,
        judged: &[FirewallCpuPerRequest],
        goals,
    }
}

pub(super) const GET: Test = added(
    "waf-get",
    "CPU that a firewall adds to a GET",
    "A search with four fields in its query and a browser's header fields, on keep-alive connections, as fast as \
     answered, OWASP CRS at paranoia level 1. What counts is what a request costs with the firewall less what the same \
     costs the same process without, measured right before.",
    &GET_GOALS,
);

pub(super) const FORM_1K: Test = added(
    "waf-form-1k",
    "CPU that a firewall adds to a form of 1 KB",
    "As above, a POST of 1,024 bytes of application/x-www-form-urlencoded.",
    &FORM_1K_GOALS,
);

pub(super) const FORM_8K: Test = added(
    "waf-form-8k",
    "CPU that a firewall adds to a form of 8 KB",
    "As above, 8,192 bytes.",
    &LONG_BODY_GOALS,
);

pub(super) const JSON_8K: Test = added(
    "waf-json-8k",
    "CPU that a firewall adds to 8 KB of JSON",
    "As above, 8,192 bytes of application/json.",
    &LONG_BODY_GOALS,
);

pub(super) const IDLE: Test = Test {
    name: "waf-2020-idle",
    chapter: Chapter::Firewall,
    title: "P99 latency of a firewall, idle",
    summary: "100 requests per second, 80% GET and 20% POST (forms of 1 KB), responses of 30 KB, over TLS 1.3 and TLS 1.2: \
              without the firewall, with it on a third of the requests by their path, and on all.",
    after: CITRIX_2020,
    axis: Axis::Cases(WAF_CASES),
    picture: Picture::Percentiles,
    figures: &[LatencyP99, LatencyP50],
    judged: &[LatencyP99, LatencyP50],
    goals: &[],
};

pub(super) const STRESSED: Test = Test {
    name: "waf-2020-stressed",
    chapter: Chapter::Firewall,
    title: "P99 latency and CPU of a firewall, stressed",
    summary: "As above, at 65% of what the slowest product sustains with the firewall on all requests: one rate for all, \
              with and without it.",
    after: CITRIX_2020,
    axis: Axis::Cases(WAF_CASES),
    picture: Picture::Percentiles,
    figures: &[LatencyP99, CpuPerRequest, LatencyP50, CoreBusy],
    judged: &[LatencyP99, CpuPerRequest],
    goals: &[
        goal(LatencyP99, 2.0, Measure::RatioToBest(&[]), 0.7),
        goal(LatencyP99, 5.0, Measure::RatioToBest(&[]), 0.7),
    ],
};

pub(super) const MEMORY: Test = Test {
    name: "waf-memory",
    chapter: Chapter::Firewall,
    title: "Memory and loading of a firewall's rules",
    summary: "Resident memory with 1,000 virtual servers that have the same firewall, less that with one; and the time to \
              check a configuration with OWASP CRS, from start to end of the process.",
    after: "our own",
    axis: Axis::Single,
    picture: Picture::Bars,
    figures: &[FirewallMemory, RulesLoadTime],
    judged: &[],
    goals: &[
        goal(FirewallMemory, 0.0, Measure::Value, 64.0),
        goal(RulesLoadTime, 0.0, Measure::Value, 2_000.0),
    ],
};
