//! Formats numbers and settings for readers.

use crate::catalogue::{self, Axis, Figure};

use super::stats::Spread;

/// Three significant digits, with thousands separators: `0.412`, `12.9`, `25,600`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let decimals = decimals(value);
    grouped(&format!("{value:.decimals$}"))
}

fn decimals(value: f64) -> usize {
    let size = value.abs();
    match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.09995 => 3,
        _ => 4,
    }
}

/// Example: `0.098–0.119`: the spread with the digits of its median. One number if both ends look alike.
pub fn range(spread: &Spread) -> String {
    let decimals = decimals(spread.median);
    let [low, high] = [spread.min, spread.max].map(|end| grouped(&format!("{end:.decimals$}")));
    if low == high { low } else { format!("{low}–{high}") }
}

/// A whole number with thousands separators.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Inserts thousands separators into a decimal number.
fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut text = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// The label of a tick, with as few digits as possible (`0.05`, `2.5`, `20k`, `1.2M`).
pub fn tick(value: f64) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e15 => return format!("{value:.0e}"),
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        size if size > 0.0 && size < 1e-4 => return format!("{value:.0e}"),
        _ => (value, ""),
    };
    let text = format!("{scaled:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    grouped(text) + suffix
}

/// A size, such as `128 B` or `5 KB` (of 1,024 bytes, as in the vendors' reports).
pub fn bytes(value: f64) -> String {
    const KB: f64 = 1024.0;
    match value {
        _ if value < KB => format!("{value:.0} B"),
        _ if value < KB * KB => format!("{} KB", short(value / KB)),
        _ if value < KB * KB * KB => format!("{} MB", short(value / KB / KB)),
        _ => format!("{} GB", short(value / KB / KB / KB)),
    }
}

fn short(value: f64) -> String {
    let text = number(value);
    match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text,
    }
}

/// A setting in a sentence, such as `at 12,000 connections`. Empty if the test varies nothing.
pub fn setting(axis: Axis, at: f64) -> String {
    match axis {
        Axis::Single => String::new(),
        Axis::Connections if at == 1.0 => "1 connection".to_owned(),
        Axis::Connections => format!("{} connections", count_of(at)),
        Axis::Cases(cases) => case(cases, at),
        Axis::ObjectBytes => bytes(at),
        Axis::OfferedRate => format!("{} requests/s offered", count_of(at)),
    }
}

/// A setting in a table below the axis' heading, such as `12,000`.
pub fn setting_short(axis: Axis, at: f64) -> String {
    match axis {
        Axis::Single => String::new(),
        Axis::ObjectBytes => bytes(at),
        Axis::Cases(cases) => case(cases, at),
        Axis::Connections | Axis::OfferedRate => count_of(at),
    }
}

/// The name of a case; its number if this version of weir does not know it.
fn case(cases: &[&str], at: f64) -> String {
    let named = cases.iter().enumerate().find(|(index, _)| *index as f64 == at);
    named.map_or_else(|| format!("case {at}"), |(_, name)| (*name).to_owned())
}

/// The label of a setting on an axis, such as `12k`.
pub fn setting_tick(axis: Axis, at: f64) -> String {
    match axis {
        Axis::ObjectBytes => bytes(at),
        Axis::Cases(cases) => case(cases, at),
        _ => tick(at),
    }
}

fn count_of(value: f64) -> String {
    grouped(&format!("{value:.0}"))
}

/// The name of an axis.
pub fn axis(axis: Axis) -> &'static str {
    match axis {
        Axis::Single => "",
        Axis::Connections => "connections",
        Axis::ObjectBytes => "object size",
        Axis::OfferedRate => "offered requests/s",
        Axis::Cases(_) => "case",
    }
}

/// A value with its unit, such as `12.9 µs`, `25,600/s` or `98.0%`.
pub fn with_unit(value: f64, figure: Figure) -> String {
    let number = number(value);
    match figure.unit() {
        "%" => number + "%",
        "1/s" => number + "/s",
        "1/J" => number + "/J",
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// A ratio, such as `0.83`, `12.4` or `0.0026`.
pub fn ratio(value: f64) -> String {
    if (0.0995..9.995).contains(&value) { format!("{value:.2}") } else { number(value) }
}

/// A figure's title with its unit, such as `P99 latency, ms`. Titles of rates and counts contain the unit.
pub fn titled(figure: Figure) -> String {
    match figure.unit() {
        "1/s" | "1/J" | "" => figure.title().to_owned(),
        unit => format!("{}, {unit}", figure.title()),
    }
}

/// The unit of the figure's axis, in words.
pub fn axis_unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Rate => "requests/s",
        Figure::RequestsPerCpuSecond => "requests per second of CPU time",
        Figure::HandshakesPerCpuSecond => "handshakes per second of CPU time",
        Figure::ResponseBytes => "bytes per response",
        Figure::RequestsPerJoule => "requests per joule",
        Figure::CoreBusy => "% of the product's cores",
        Figure::CpuPerRequest
        | Figure::OwnCpuPerRequest
        | Figure::WorkersCpuPerRequest
        | Figure::OthersCpuPerRequest
        | Figure::AddedCpuPerRequest
        | Figure::FirewallCpuPerRequest
        | Figure::UnguardedCpuPerRequest => "µs per request",
        Figure::CpuPerGigabyte => "ms per GB",
        Figure::Lost => "% of the queries",
        Figure::PacketRate => "million packets/s",
        Figure::CpuPerPacket => "ns per packet",
        Figure::InstructionsPerRequest => "instructions per request",
        Figure::SystemCallsPerRequest => "system calls per request",
        Figure::MemoryPerConnection => "bytes per connection",
        figure => figure.unit(),
    }
}

/// The difference of a ratio from 1: `17% less`, `2.3 times`, `equal`.
pub fn away_from_one(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent {
        _ if percent.abs() < 0.5 => "the same".to_owned(),
        _ if percent >= 100.0 => format!("{} times as much", self::ratio(ratio)),
        _ if percent > 0.0 => format!("{percent:.0}% more"),
        _ if percent <= -99.5 => format!("{:.1}% less", -percent),
        _ => format!("{:.0}% less", -percent),
    }
}

/// The name of a product as its makers write it, for both of its rows.
pub fn maker(name: &str) -> &str {
    match catalogue::maker(name) {
        "haproxy" => "HAProxy",
        "envoy" => "Envoy",
        catalogue::NGINX_MODSECURITY => "nginx with ModSecurity",
        catalogue::CORAZA => "Coraza",
        "weir-plain" => "plain weir",
        "signatures" => "bare signatures",
        name => name,
    }
}

/// The first word that begins with a digit, or with `v` and a digit: `2.6.12-1+deb12u2` in `HAProxy version
/// 2.6.12-1+deb12u2 2023/12/16`, and `1.0.6` in `v1.0.6, Linux 6.18.44`.
pub fn version_number(version: &str) -> Option<&str> {
    version
        .split(|character: char| character.is_whitespace() || matches!(character, '/' | ','))
        .map(|word| word.strip_prefix('v').unwrap_or(word))
        .find(|word| word.starts_with(|character: char| character.is_ascii_digit()))
}

/// The version number without the packager's suffix, such as `2.6.12`.
pub fn short_version_number(version: &str) -> Option<&str> {
    version_number(version)?.split(['-', '+']).next()
}

/// Joins items: `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A number with its noun, such as `1 round` or `3 rounds`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", self::count(count as u64))
}

/// The text with a capital first letter.
pub fn sentence_case(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| {
        first.to_uppercase().collect::<String>() + characters.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_numbers() {
        for (version, expected) in [
            ("HAProxy version 2.6.12-1+deb12u2 2023/12/16", Some("2.6.12")),
            ("nginx version: nginx/1.22.1", Some("1.22.1")),
            ("v1.0.6, Linux 6.18.44-fc-v657", Some("1.0.6")),
            ("Linux 6.18.44-fc-v657", Some("6.18.44")),
            ("very old", None),
            ("", None),
        ] {
            assert_eq!(short_version_number(version), expected, "{version}");
        }
    }

    #[test]
    fn numbers() {
        for (value, expected) in [
            (0.0, "0"),
            (0.04123, "0.0412"),
            (0.4123, "0.412"),
            (0.9999, "1.00"),
            (9.999, "10.0"),
            (12.94, "12.9"),
            (99.97, "100"),
            (123.4, "123"),
            (25_600.4, "25,600"),
            (-1234.0, "-1,234"),
            (1_234_567.0, "1,234,567"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), expected, "{value}");
        }
    }

    #[test]
    fn ranges_have_the_digits_of_their_median() {
        let check = |median: f64, min: f64, max: f64, expected: &str| {
            assert_eq!(range(&Spread { median, min, max, rounds: 3 }), expected);
        };
        check(0.118, 0.098, 0.1181, "0.098–0.118");
        check(78.9, 78.91, 78.92, "78.9");
        check(52_553.2, 50_112.0, 55_513.0, "50,112–55,513");
    }

    #[test]
    fn ticks() {
        for (value, expected) in [
            (0.0, "0"),
            (0.05, "0.05"),
            (0.5, "0.5"),
            (2.5, "2.5"),
            (1000.0, "1,000"),
            (20_000.0, "20k"),
            (12_500.0, "12.5k"),
            (192_000.0, "192k"),
            (1_200_000.0, "1.2M"),
        ] {
            assert_eq!(tick(value), expected, "{value}");
        }
    }

    #[test]
    fn settings() {
        for (axis, at, expected) in [
            (Axis::Single, 0.0, ""),
            (Axis::Connections, 12_000.0, "12,000 connections"),
            (Axis::Connections, 1.0, "1 connection"),
            (Axis::Cases(&["few", "many"]), 1.0, "many"),
            (Axis::Cases(&["few", "many"]), 2.0, "case 2"),
            (Axis::ObjectBytes, 1.0, "1 B"),
            (Axis::ObjectBytes, 128.0, "128 B"),
            (Axis::ObjectBytes, 30.0 * 1024.0, "30 KB"),
            (Axis::ObjectBytes, 1536.0, "1.50 KB"),
            (Axis::OfferedRate, 20_000.0, "20,000 requests/s offered"),
        ] {
            assert_eq!(setting(axis, at), expected);
        }
    }

    #[test]
    fn distances_from_one() {
        for (ratio, expected) in [
            (0.83, "17% less"),
            (1.001, "the same"),
            (1.4, "40% more"),
            (2.31, "2.31 times as much"),
            (0.001, "99.9% less"),
        ] {
            assert_eq!(away_from_one(ratio), expected);
        }
    }
}
