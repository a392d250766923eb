//! Latency histograms, parsed from the metrics of a running weir.

use std::collections::HashMap;

/// Histograms by object.
#[derive(Debug, Clone, Default)]
pub struct Histograms {
    /// By virtual server.
    pub servers: HashMap<String, Histogram>,
    /// By pool and member.
    pub members: HashMap<(String, String), Histogram>,
}

/// Cumulative counts by upper bounds in milliseconds. The last bound is infinite.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram(Vec<(f64, u64)>);

const OF_SERVERS: &str = "weir_request_duration_seconds_bucket{";
const OF_MEMBERS: &str = "weir_member_response_duration_seconds_bucket{";

impl Histograms {
    /// Parses metrics in the text format of Prometheus.
    pub fn parse(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            if let Some(bucket) = line.strip_prefix(OF_SERVERS).and_then(Bucket::parse) {
                let name = bucket.label("virtual_server");
                let histogram = found.servers.entry(name).or_default();
                histogram.0.push((bucket.bound_ms, bucket.count));
            } else if let Some(bucket) = line.strip_prefix(OF_MEMBERS).and_then(Bucket::parse) {
                let key = (bucket.label("pool"), bucket.label("member"));
                let histogram = found.members.entry(key).or_default();
                histogram.0.push((bucket.bound_ms, bucket.count));
            }
        }
        found
    }
}

/// A bucket of a histogram: one line of the text.
struct Bucket {
    labels: Vec<(String, String)>,
    bound_ms: f64,
    count: u64,
}

impl Bucket {
    /// Parses a line such as `virtual_server="shop",le="0.001"} 42`, without the opening brace.
    fn parse(line: &str) -> Option<Self> {
        let (labels, rest) = labels(line)?;
        let bound = labels.iter().find(|(name, _)| name == "le")?.1.clone();
        let bound_s = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
        let count = rest.split_whitespace().next()?.parse::<f64>().ok()?;
        Some(Self { labels, bound_ms: bound_s * 1_000.0, count: count as u64 })
    }

    fn label(&self, name: &str) -> String {
        let found = self.labels.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

/// Parses labels up to the closing brace; returns them and the rest. In values, a backslash escapes the next character.
fn labels(mut text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches(',');
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
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
weir_member_response_duration_seconds_bucket{pool=\"a\\\"b\",member=\"10.0.0.1:80\",le=\"0.001\"} 0
weir_member_response_duration_seconds_bucket{pool=\"a\\\"b\",member=\"10.0.0.1:80\",le=\"+Inf\"} 7
weir_request_duration_seconds_bucket{broken
weir_requests_total{virtual_server=\"shop\"} 100
";

    #[test]
    fn quantiles_of_what_was_added() {
        let found = Histograms::parse(TEXT);
        let shop = &found.servers["shop"];
        assert_eq!(shop.quantile_since(None, 50.0).map(|it| (it * 100.0).round()), Some(56.0));
        assert_eq!(shop.quantile_since(None, 95.0), Some(5.5));
        assert_eq!(shop.quantile_since(Some(shop), 50.0), None);
        let later = Histogram(vec![(1.0, 90), (10.0, 104), (f64::INFINITY, 104)]);
        assert_eq!(later.quantile_since(Some(shop), 50.0), Some(5.5));
        let member = &found.members[&("a\"b".to_owned(), "10.0.0.1:80".to_owned())];
        assert_eq!(member.quantile_since(None, 50.0), Some(1.0));
        assert_eq!((found.servers.len(), found.members.len()), (1, 1));
    }
}
