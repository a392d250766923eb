//! Latency histograms, parsed from the metrics of a running weir.

use std::collections::HashMap;

/// Histograms by object.
#[derive(Debug, Clone, Default)]
pub struct Histograms {
    /// By virtual server.
    pub servers: HashMap<String, Histogram>,
    /// By pool.
    pub pools: HashMap<String, Histogram>,
    /// By pool and member; only if the configuration asks for them.
    pub members: HashMap<(String, String), Histogram>,
}

/// Cumulative counts by upper bounds in milliseconds. The last bound is infinite.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram(Vec<(f64, u64)>);

/// The metrics with these histograms.
pub const HISTOGRAMS: [&str; 3] = [
    "weir_request_duration_seconds",
    "weir_pool_response_duration_seconds",
    "weir_member_response_duration_seconds",
];

const OF_SERVERS: &str = "weir_request_duration_seconds_bucket{";
const OF_POOLS: &str = "weir_pool_response_duration_seconds_bucket{";
const OF_MEMBERS: &str = "weir_member_response_duration_seconds_bucket{";

impl Histograms {
    /// Adds histograms from metrics in the text format of Prometheus. Empty ones are left out: with thousands of members, most
    /// are.
    pub fn add(&mut self, text: &str) {
        let mut open: Option<Open<'_>> = None;
        for bucket in text.lines().filter_map(Bucket::parse) {
            if let Some(open) = open.as_mut().filter(|open| open.labels == bucket.labels) {
                open.buckets.push((bucket.bound_ms, bucket.count));
                continue;
            }
            let next =
                Open { labels: bucket.labels, buckets: vec![(bucket.bound_ms, bucket.count)] };
            self.close(open.replace(next));
        }
        self.close(open);
    }

    fn close(&mut self, open: Option<Open<'_>>) {
        let Some(Open { labels: (prefix, text), buckets }) = open else { return };
        if buckets.last().is_none_or(|(_, count)| *count == 0) {
            return;
        }
        let Some(labels) = labels(text) else { return };
        let label = |name: &str| {
            let found = labels.iter().find(|(of, _)| of == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let histogram = Histogram(buckets);
        match prefix {
            OF_SERVERS => drop(self.servers.insert(label("virtual_server"), histogram)),
            OF_POOLS => drop(self.pools.insert(label("pool"), histogram)),
            _ => drop(self.members.insert((label("pool"), label("member")), histogram)),
        }
    }
}

/// The prefix of a line, and its labels except the last one, as they are written.
type WrittenLabels<'t> = (&'static str, &'t str);

/// A histogram of which buckets are being read.
struct Open<'t> {
    labels: WrittenLabels<'t>,
    buckets: Vec<(f64, u64)>,
}

/// A bucket of a histogram: one line of the text.
struct Bucket<'t> {
    labels: WrittenLabels<'t>,
    bound_ms: f64,
    count: u64,
}

impl<'t> Bucket<'t> {
    /// Parses a line such as `weir_request_duration_seconds_bucket{virtual_server="shop",le="0.001"} 42`.
    fn parse(line: &'t str) -> Option<Self> {
        let prefix =
            [OF_SERVERS, OF_POOLS, OF_MEMBERS].into_iter().find(|it| line.starts_with(it))?;
        // Values escape their quotes, so this is the label.
        let (labels, rest) = line[prefix.len()..].rsplit_once("le=\"")?;
        let (bound, count) = rest.split_once("\"} ")?;
        let bound_s = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
        let count = count.split_whitespace().next()?.parse::<f64>().ok()?;
        Some(Self { labels: (prefix, labels), bound_ms: bound_s * 1_000.0, count: count as u64 })
    }
}

/// Parses labels. In values, a backslash escapes the next character.
fn labels(mut text: &str) -> Option<Vec<(String, String)>> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches(',');
        if text.is_empty() {
            return Some(labels);
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.push((name.to_owned(), value));
        text = &rest[end + 1..];
    }
}

impl Histogram {
    /// A quantile, in milliseconds, of the values added since `before`; `None`: none were added.
    pub fn quantile_since(&self, before: Option<&Self>, percent: f64) -> Option<f64> {
        let earlier = |place: usize| {
            before.and_then(|before| before.0.get(place)).map_or(0, |(_, count)| *count)
        };
        let counts = self.0.iter().enumerate();
        let counts: Vec<(f64, u64)> = counts
            .map(|(place, (bound, count))| (*bound, count.saturating_sub(earlier(place))))
            .collect();
        let total = counts.last().map(|(_, count)| *count).filter(|count| *count > 0)?;
        let rank = total as f64 * percent / 100.0;
        let (mut below, mut start) = (0, 0.0);
        for (bound, count) in counts {
            if count > below && count as f64 >= rank {
                if bound.is_infinite() {
                    return Some(start);
                }
                let share = (rank - below as f64) / (count - below) as f64;
                return Some(start + (bound - start) * share.clamp(0.0, 1.0));
            }
            (below, start) = (count.max(below), bound);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# TYPE weir_request_duration_seconds histogram
weir_request_duration_seconds_bucket{virtual_server=\"shop\",le=\"0.001\"} 90
weir_request_duration_seconds_bucket{virtual_server=\"shop\",le=\"0.01\"} 100
weir_request_duration_seconds_bucket{virtual_server=\"shop\",le=\"+Inf\"} 100
weir_pool_response_duration_seconds_bucket{pool=\"a\\\"b\",le=\"0.001\"} 0
weir_pool_response_duration_seconds_bucket{pool=\"a\\\"b\",le=\"+Inf\"} 9
weir_member_response_duration_seconds_bucket{pool=\"a\\\"b\",member=\"10.0.0.1:80\",le=\"0.001\"} 0
weir_member_response_duration_seconds_bucket{pool=\"a\\\"b\",member=\"10.0.0.1:80\",le=\"+Inf\"} 7
weir_member_response_duration_seconds_bucket{pool=\"a\\\"b\",member=\"idle:80\",le=\"0.001\"} 0
weir_member_response_duration_seconds_bucket{pool=\"a\\\"b\",member=\"idle:80\",le=\"+Inf\"} 0
weir_request_duration_seconds_bucket{broken
weir_requests_total{virtual_server=\"shop\"} 100
";

    #[test]
    fn quantiles_of_what_was_added() {
        let mut found = Histograms::default();
        found.add(TEXT);
        let shop = &found.servers["shop"];
        assert_eq!(shop.quantile_since(None, 50.0).map(|it| (it * 100.0).round()), Some(56.0));
        assert_eq!(shop.quantile_since(None, 95.0), Some(5.5));
        assert_eq!(shop.quantile_since(Some(shop), 50.0), None);
        let later = Histogram(vec![(1.0, 90), (10.0, 104), (f64::INFINITY, 104)]);
        assert_eq!(later.quantile_since(Some(shop), 50.0), Some(5.5));
        let member = &found.members[&("a\"b".to_owned(), "10.0.0.1:80".to_owned())];
        assert_eq!(member.quantile_since(None, 50.0), Some(1.0));
        assert_eq!(found.pools["a\"b"].quantile_since(None, 50.0), Some(1.0));
        assert_eq!((found.servers.len(), found.pools.len(), found.members.len()), (1, 1, 1));
    }
}
