//! `/metrics`: the Prometheus text format (version 0.0.4).
//!
//! The text is generated directly from the per-core counters. A metrics library would hold a second copy of every number,
//! registered and found by label, only to print it. One table (`families.rs`) lists all metrics, and a test compares it with
//! `docs/observability.md`.
//!
//! The configuration limits the cardinality: labels are names from the file, addresses of members and fixed words, never
//! data from clients.

mod compressed_metrics;
mod families;
mod packets;

use std::fmt::Write;
use std::sync::Arc;

use compressed_metrics::{CompressedMetrics, PIECE_BYTES};
use families::{
    FILES, MEMBERS, MONITORS, MemberView, MonitorView, POOLS, PROCESS, PoolView, RULES, RuleView,
    ServerView, TOKEN_KEYS, VIRTUAL_SERVERS, WAF_CHECKS, WAF_RULES, WafCheckView, WafRuleView,
};
use weir_exchange::shared::counters::{HistogramTotals, LATENCY_BOUNDS_US};

use crate::figures::shown_gauge;
use crate::observed_state::ObservedState;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows while its object exists.
    Counter,
    /// A number that can grow and shrink.
    Gauge,
    /// A distribution: buckets, sum and count.
    Histogram,
}

impl Kind {
    /// The name in the text format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The description of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// The name, including its unit.
    pub name: &'static str,
    /// The type of the metric.
    pub kind: Kind,
    /// Label names, separated by commas. Empty without labels.
    pub labels: &'static str,
    /// The help text: one sentence.
    pub help: &'static str,
}

/// A metric, and the function that writes its samples for an object of type `T`.
struct Family<T: 'static> {
    description: Description,
    samples: fn(&T, &mut Samples<'_>),
}

/// All metrics, in the order of the text.
pub fn descriptions() -> impl Iterator<Item = Description> {
    let servers = VIRTUAL_SERVERS.iter().map(|family| family.description);
    let rules = RULES.iter().map(|family| family.description);
    let pools = POOLS.iter().map(|family| family.description);
    let members = MEMBERS.iter().map(|family| family.description);
    let monitors = MONITORS.iter().map(|family| family.description);
    let process = PROCESS.iter().map(|family| family.description);
    let packets = packets::descriptions();
    let waf_rules = WAF_RULES.iter().map(|family| family.description);
    let waf_checks = WAF_CHECKS.iter().map(|family| family.description);
    let files = FILES.iter().map(|family| family.description);
    let token_keys = TOKEN_KEYS.iter().map(|family| family.description);
    let all = servers
        .chain(rules)
        .chain(waf_rules)
        .chain(waf_checks)
        .chain(files)
        .chain(token_keys)
        .chain(pools)
        .chain(members)
        .chain(monitors)
        .chain(process);
    all.chain(packets)
}

/// Generates the text of the metrics whose names begin with `wanted`; empty: of all.
pub fn encode(observed: &ObservedState, wanted: &str) -> String {
    let mut page = Page::new(wanted);
    write(&mut page, observed);
    page.text
}

/// As [`encode`], compressed by gzip while the text is generated, so that it is never in memory as a whole. `None`: the
/// encoder has no memory.
pub fn encode_gzip(observed: &ObservedState, wanted: &str) -> Option<Vec<u8>> {
    let mut page = Page { packed: CompressedMetrics::begin(), ..Page::new(wanted) };
    page.packed.as_ref()?;
    write(&mut page, observed);
    page.packed?.end(&page.text)
}

fn write(page: &mut Page<'_>, observed: &ObservedState) {
    let judge = observed.judge();
    let table = Arc::clone(judge.table());
    let servers: Vec<ServerView> = ServerView::all(&judge);
    let rules: Vec<RuleView> = RuleView::all(&table);
    let pools: Vec<PoolView> = PoolView::all(&judge);
    let members: Vec<MemberView> = MemberView::all(&table);
    let monitors: Vec<MonitorView> = MonitorView::all(&table, &observed.monitors);
    write_families(page, VIRTUAL_SERVERS, &servers, |server, labels| {
        labels.add("virtual_server", &server.name);
    });
    write_families(page, RULES, &rules, |rule, labels| {
        labels.add("policy", &rule.name.policy);
        labels.add("rule", &rule.name.rule);
    });
    write_families(page, WAF_CHECKS, &WafCheckView::all(&table), |check, labels| {
        labels.add("check", check.name);
    });
    write_families(page, WAF_RULES, &WafRuleView::all(&table), |rule, labels| {
        labels.add("rule", &rule.number.to_string());
    });
    write_families(page, FILES, &table.snapshot.dated, |file, labels| {
        labels.add("file", &file.path);
        labels.add("kind", file.kind.as_str());
    });
    write_families(
        page,
        TOKEN_KEYS,
        &observed.obtained.token_keys.fetches(),
        |(url, _), labels| {
            labels.add("url", url);
        },
    );
    write_families(page, POOLS, &pools, |pool, labels| labels.add("pool", &pool.name));
    write_families(page, MEMBERS, &members, |member, labels| {
        labels.add("pool", &member.live.pool.name);
        labels.add("member", &member.live.label);
    });
    write_families(page, MONITORS, &monitors, |monitor, labels| {
        labels.add("pool", &monitor.pool);
        labels.add("member", &monitor.member);
        labels.add("monitor", &monitor.number.to_string());
        labels.add("type", monitor.report.kind);
    });
    write_families(page, PROCESS, std::slice::from_ref(observed), |_, _| {});
    packets::write(page, observed);
}

/// The text so far, and the beginning of the names of wanted metrics.
struct Page<'a> {
    text: String,
    wanted: &'a str,
    /// Takes the text in pieces; `None`: the text stays as it is.
    packed: Option<CompressedMetrics>,
}

impl<'a> Page<'a> {
    fn new(wanted: &'a str) -> Self {
        Self { text: String::with_capacity(PIECE_BYTES), wanted, packed: None }
    }

    /// Compresses what there is, if it is a whole piece.
    fn pack(&mut self) {
        if let Some(packed) = self.packed.as_mut().filter(|_| self.text.len() >= PIECE_BYTES) {
            packed.add(&self.text);
            self.text.clear();
        }
    }
}

fn write_families<T>(
    page: &mut Page<'_>,
    families: &[Family<T>],
    objects: &[T],
    label: fn(&T, &mut Labels),
) {
    let prefix = page.wanted;
    let wanted = families.iter().filter(|it| it.description.name.starts_with(prefix));
    let mut wanted = wanted.peekable();
    if wanted.peek().is_none() {
        return;
    }
    let labels: Vec<Labels> = objects
        .iter()
        .map(|object| {
            let mut labels = Labels(String::new());
            label(object, &mut labels);
            labels
        })
        .collect();
    for Family { description, samples } in wanted {
        let Description { name, kind, help, .. } = description;
        let _ = writeln!(page.text, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str());
        for (object, labels) in objects.iter().zip(&labels) {
            samples(object, &mut Samples { out: &mut page.text, name, labels });
            page.pack();
        }
    }
}

/// Labels in the text format, without braces: `pool="web",member="127.0.0.1:9001"`.
#[derive(Debug, Clone)]
struct Labels(String);

impl Labels {
    fn add(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let _ = write!(self.0, "{name}=\"");
        for character in value.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
    }
}

/// Writes the samples of one metric of one object.
struct Samples<'a> {
    out: &'a mut String,
    name: &'static str,
    labels: &'a Labels,
}

impl Samples<'_> {
    /// Writes the only sample.
    fn value(&mut self, value: u64) {
        self.write("", None, value);
    }

    /// Writes a gauge that is a sum over workers.
    fn gauge(&mut self, total: u64) {
        self.value(shown_gauge(total));
    }

    /// Writes a sample with an additional label.
    fn labelled(&mut self, name: &str, label: &str, value: u64) {
        self.write("", Some((name, label)), value);
    }

    /// Writes a sample with two additional labels.
    fn labelled_twice(&mut self, [(a, first), (b, second)]: [(&str, &str); 2], value: u64) {
        let mut both = Labels(self.labels.0.clone());
        both.add(a, first);
        both.add(b, second);
        Samples { out: self.out, name: self.name, labels: &both }.value(value);
    }

    /// Writes milliseconds as seconds.
    fn seconds(&mut self, milliseconds: u64) {
        self.write("", None, Decimal { value: milliseconds, decimals: 3 });
    }

    /// Writes the numbers of responses by class of status.
    fn classes(&mut self, counts: [u64; 5]) {
        for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(counts) {
            self.labelled("class", class, count);
        }
    }

    /// Writes the cumulative buckets in seconds, the sum and the count.
    fn histogram(&mut self, totals: &HistogramTotals) {
        let mut cumulative = 0;
        for (index, count) in totals.buckets.iter().enumerate() {
            cumulative += count;
            let bound = LATENCY_BOUNDS_US.get(index).map_or_else(
                || "+Inf".to_owned(),
                |&value| Decimal { value, decimals: 6 }.to_string(),
            );
            self.write("_bucket", Some(("le", &bound)), cumulative);
        }
        self.write("_sum", None, Decimal { value: totals.sum_us, decimals: 6 });
        self.write("_count", None, cumulative);
    }

    fn write(&mut self, suffix: &str, extra: Option<(&str, &str)>, value: impl std::fmt::Display) {
        let (name, labels) = (self.name, &self.labels.0);
        let comma = if labels.is_empty() { "" } else { "," };
        // Writing to a `String` cannot fail.
        let _ = match extra {
            Some((key, label)) => {
                writeln!(self.out, "{name}{suffix}{{{labels}{comma}{key}=\"{label}\"}} {value}")
            }
            None if labels.is_empty() => writeln!(self.out, "{name}{suffix} {value}"),
            None => writeln!(self.out, "{name}{suffix}{{{labels}}} {value}"),
        };
    }
}

/// The number `value / 10^decimals`, without trailing zeros and without rounding.
struct Decimal {
    value: u64,
    decimals: u32,
}

impl std::fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = 10_u64.pow(self.decimals);
        let (whole, rest) = (self.value / unit, self.value % unit);
        if rest == 0 {
            return write!(formatter, "{whole}");
        }
        let digits = format!("{rest:0width$}", width = self.decimals as usize);
        write!(formatter, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests;
