//! Output of the benchmark's commands.

use std::fmt::Write as _;

use weir_bench::load::{Latency, LoadOutcome, Progress};

/// A line about the progress of a load.
pub fn progress(progress: &Progress) -> String {
    match progress.measured_s {
        None => "opening connections and warming up".to_owned(),
        Some(seconds) => format!(
            "{seconds:.0} s: {} requests ({:.0}/s), {} errors",
            progress.requests,
            progress.requests as f64 / seconds.max(0.001),
            progress.errors
        ),
    }
}

/// The result of a load.
pub fn outcome(outcome: &LoadOutcome) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<16} {value}");
    };
    let (window, rate) = (outcome.completed(), outcome.requests_per_second);
    line(
        "requests",
        &format!("{}, the last of them after {:.2} s", outcome.requests, outcome.elapsed_s),
    );
    line(
        "rate",
        &format!("{rate:.0}/s: {} complete in {:.2} s", window.requests, window.elapsed_s),
    );
    if let Some(offered) = outcome.offered_per_second {
        let unsent = match outcome.unsent {
            0 => String::new(),
            unsent if outcome.connections_opened == 0 => {
                format!("; {unsent} were never sent: no connection was open")
            }
            unsent => format!("; {unsent} were never sent: all connections were busy"),
        };
        line("offered", &format!("{offered:.0}/s{unsent}"));
    }
    let kinds: Vec<String> = outcome
        .errors_by_kind
        .iter()
        .map(|(kind, count)| {
            let name = serde_json::to_value(kind).ok();
            let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or("?").to_owned();
            format!("{count} {name}")
        })
        .collect();
    let errors = match kinds.as_slice() {
        [] => "0".to_owned(),
        kinds => format!("{}: {}", outcome.errors, kinds.join(", ")),
    };
    line("errors", &errors);
    for text in outcome.error_examples.values() {
        line("  for example", text);
    }
    let bits_per_second = window.bytes as f64 * 8.0 / window.elapsed_s.max(1e-9);
    line("goodput", &format!("{} in bodies: {}", bytes(window.bytes), bits(bits_per_second)));
    line("latency", &latency(&outcome.latency_us));
    if let Some(service_time) = &outcome.service_time_us {
        line("  from the send", &latency(service_time));
    }
    let connect = match (outcome.connections_opened, outcome.connect_us.count) {
        (0, _) => String::new(),
        (_, 0) => ": before measuring".to_owned(),
        _ => format!(": {}", latency(&outcome.connect_us)),
    };
    line("connections", &format!("{} opened{connect}", outcome.connections_opened));
    if outcome.sessions_resumed > 0 {
        line("TLS sessions", &format!("{} resumed", outcome.sessions_resumed));
    }
    if outcome.warm_up_requests + outcome.warm_up_errors > 0 {
        let (requests, errors) = (outcome.warm_up_requests, outcome.warm_up_errors);
        line("before measuring", &format!("{requests} requests, {errors} errors"));
    }
    let per_cpu_second = window.requests as f64 / outcome.cpu_seconds.max(1e-9);
    let cpu = format!("{:.2} s of the generator: {per_cpu_second:.0}", outcome.cpu_seconds);
    line("CPU", &format!("{cpu} requests per CPU second"));
    text
}

fn latency(latency: &Latency) -> String {
    if latency.count == 0 {
        return "none".to_owned();
    }
    let of = |name: &str, us: u64| format!("{name} {}", time(us));
    [
        of("p50", latency.p50),
        of("p90", latency.p90),
        of("p99", latency.p99),
        of("p99.9", latency.p999),
        of("max", latency.max),
    ]
    .join(", ")
}

fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{:.2} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

fn bytes(count: u64) -> String {
    scaled(count as f64, &["B", "KB", "MB", "GB", "TB"])
}

fn bits(per_second: f64) -> String {
    scaled(per_second, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while value >= 1_000.0 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0} {}", units[0])
    } else {
        format!("{value:.2} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        assert_eq!(time(999), "999 us");
        assert_eq!(time(1_500), "1.50 ms");
        assert_eq!(time(2_000_000), "2.00 s");
        assert_eq!(bytes(128), "128 B");
        assert_eq!(bytes(1_500_000), "1.50 MB");
        assert_eq!(bits(8.3e9), "8.30 Gbit/s");
    }
}
