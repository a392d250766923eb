//! Facts that a test determined before its measurements, as one sentence per probe.

use std::collections::BTreeMap;

use super::text;

const RATE: &str = "_requests_per_second";
const BUSY: &str = "_core_busy_percent";
const CAPACITY: &str = "capacity_";
const AT: &str = "_at_";

/// Returns the label of a product in a report.
pub type ProductLabel<'a> = &'a dyn Fn(&str) -> String;

/// The facts of one probe.
#[derive(Default)]
struct ProbeFacts {
    /// Requests per second and busy percent of the core, by product.
    capacities: BTreeMap<String, (Option<f64>, Option<f64>)>,
    /// Rates derived from the capacities, by name.
    rates: BTreeMap<String, f64>,
}

/// The facts of a test as sentences. Facts are named `capacity_<product>[_at_<place>]_requests_per_second`,
/// `…_core_busy_percent` and `<word>[_at_<place>]_requests_per_second`. A fact with another name becomes a sentence of
/// its own.
pub fn sentences(facts: &BTreeMap<String, f64>, called: ProductLabel<'_>) -> Vec<String> {
    let (looks, others) = looks(facts);
    let told = looks.into_iter().map(|(place, look)| sentence(&place, look, called));
    let others = others
        .into_iter()
        .map(|(name, value)| format!("{}: {}.", name.replace('_', " "), text::number(value)));
    told.chain(others).collect()
}

/// The offered rate as a share of each product's capacity, one sentence per probe: `8,000/s were offered to all, of the
/// capacity first found 95% of Envoy's and 17% of weir's.`
pub fn loads(facts: &BTreeMap<String, f64>, called: ProductLabel<'_>) -> Vec<String> {
    let told = |(place, look): (String, ProbeFacts)| {
        let offered = *look.rates.get(OFFERED)?;
        let share = |(product, (rate, _)): (&String, &(Option<f64>, Option<f64>))| {
            let rate = rate.filter(|rate| *rate > 0.0)?;
            Some((offered / rate, called(product)))
        };
        let mut shares: Vec<(f64, String)> = look.capacities.iter().filter_map(share).collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let shares: Vec<String> = shares
            .into_iter()
            .map(|(share, product)| format!("{:.0}% of {product}'s", share * 100.0))
            .collect();
        let place = place_told(&place);
        let offered = text::number(offered);
        (!shares.is_empty()).then(|| {
            format!(
                "{offered}/s were offered to all{place}, of the capacity first found {}.",
                text::list(&shares)
            )
        })
    };
    looks(facts).0.into_iter().filter_map(told).collect()
}

/// The name of the offered rate, which is derived from a probe.
const OFFERED: &str = "offered";

/// Facts grouped by probe, and the other facts.
fn looks(facts: &BTreeMap<String, f64>) -> (BTreeMap<String, ProbeFacts>, Vec<(&str, f64)>) {
    let mut looks: BTreeMap<String, ProbeFacts> = BTreeMap::new();
    let mut others = Vec::new();
    for (name, &value) in facts {
        let (stem, is_rate) = match (name.strip_suffix(RATE), name.strip_suffix(BUSY)) {
            (Some(stem), _) => (stem, true),
            (None, Some(stem)) if stem.starts_with(CAPACITY) => (stem, false),
            _ => {
                others.push((name.as_str(), value));
                continue;
            }
        };
        let (what, place) = stem.split_once(AT).unwrap_or((stem, ""));
        let look = looks.entry(place.to_owned()).or_default();
        match what.strip_prefix(CAPACITY) {
            Some(product) => {
                let capacity = look.capacities.entry(product.to_owned()).or_default();
                *(if is_rate { &mut capacity.0 } else { &mut capacity.1 }) = Some(value);
            }
            None => drop(look.rates.insert(what.replace('_', " "), value)),
        }
    }
    (looks, others)
}

/// Example: ` at 30 KB`; empty for a probe without a place.
fn place_told(place: &str) -> String {
    match place.strip_suffix("_bytes").and_then(|bytes| bytes.parse().ok()) {
        _ if place.is_empty() => String::new(),
        Some(bytes) => format!(" at {}", text::bytes(bytes)),
        None => format!(" at {}", place.replace('_', " ")),
    }
}

/// Example: `Capacity first found: nginx 28,120/s (99% busy), weir 33,345/s (97% busy); offered to all: 3,591/s.`
fn sentence(place: &str, look: ProbeFacts, called: ProductLabel<'_>) -> String {
    let capacity = |(product, (rate, busy)): (String, (Option<f64>, Option<f64>))| {
        let rate = rate.map_or("–".to_owned(), |rate| text::number(rate) + "/s");
        let busy = busy.map(|busy| format!(" ({busy:.0}% busy)")).unwrap_or_default();
        format!("{} {rate}{busy}", called(&product))
    };
    let place = place_told(place);
    let mut parts = Vec::new();
    if !look.capacities.is_empty() {
        let capacities: Vec<String> = look.capacities.into_iter().map(capacity).collect();
        parts.push(format!("capacity first found{place}: {}", capacities.join(", ")));
    }
    for (what, rate) in look.rates {
        let place = if parts.is_empty() { &*place } else { "" };
        let what = if what == OFFERED { "offered to all" } else { &*what };
        parts.push(format!("{what}{place}: {}/s", text::number(rate)));
    }
    text::sentence_case(&parts.join("; ")) + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str) -> String {
        text::maker(name).to_owned()
    }

    #[test]
    fn facts_are_one_sentence_per_look() {
        let check = |facts: &[(&str, f64)], expected: &[&str]| {
            let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assert_eq!(sentences(&facts, &called), expected);
        };
        check(&[], &[]);
        check(
            &[
                ("capacity_haproxy_requests_per_second", 28_120.4),
                ("capacity_haproxy_core_busy_percent", 98.6),
                ("capacity_weir_requests_per_second", 33_345.0),
                ("capacity_weir_core_busy_percent", 97.2),
                ("offered_requests_per_second", 3_591.0),
            ],
            &[
                "Capacity first found: HAProxy 28,120/s (99% busy), weir 33,345/s (97% busy); offered to all: \
               3,591/s.",
            ],
        );
        check(
            &[
                ("capacity_weir_at_1_bytes_requests_per_second", 40_000.0),
                ("slowest_at_1_bytes_requests_per_second", 9_000.0),
                ("offered_at_30720_bytes_requests_per_second", 5_000.0),
            ],
            &[
                "Capacity first found at 1 B: weir 40,000/s; slowest: 9,000/s.",
                "Offered to all at 30 KB: 5,000/s.",
            ],
        );
        check(&[("slowest_requests_per_second", 1.0)], &["Slowest: 1.00/s."]);
        check(&[("<odd>", 2.0)], &["<odd>: 2.00."]);
    }

    #[test]
    fn an_equal_rate_is_told_as_a_share_of_each_capacity() {
        let check = |facts: &[(&str, f64)], expected: &[&str]| {
            let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assert_eq!(loads(&facts, &called), expected);
        };
        check(&[("capacity_weir_requests_per_second", 40_000.0)], &[]);
        check(&[("offered_requests_per_second", 4_000.0)], &[]);
        check(
            &[
                ("capacity_weir_at_1_bytes_requests_per_second", 43_678.0),
                ("capacity_envoy_at_1_bytes_requests_per_second", 7_937.0),
                ("capacity_nginx_at_1_bytes_requests_per_second", 0.0),
                ("capacity_weir_at_1_bytes_core_busy_percent", 99.0),
                ("offered_at_1_bytes_requests_per_second", 7_540.0),
            ],
            &[
                "7,540/s were offered to all at 1 B, of the capacity first found 95% of Envoy's and 17% of weir's.",
            ],
        );
    }
}
