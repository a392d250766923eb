//! Parsers for values on the command line.

use std::time::Duration;

/// A duration: `500ms`, `30s`, `5m`, `1h`, as in configurations.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a time is a number with ms, s, m or h: 30s".into()),
    };
    let number: u64 = number.parse().map_err(|_| "a time starts with a number: 30s")?;
    // A longer duration could overflow when added to the current time.
    const DURATION_MAX_MS: u64 = 365 * 24 * 3_600_000;
    match number.checked_mul(unit_ms) {
        Some(ms) if (1..=DURATION_MAX_MS).contains(&ms) => Ok(Duration::from_millis(ms)),
        _ => Err("a time is between 1ms and 8760h".into()),
    }
}

/// A size: `128`, `5KiB`, `20MiB`, as in configurations.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("a size is a number of bytes, or one with KiB, MiB or GiB: 5KiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "a size starts with a number: 5KiB")?;
    number.checked_mul(factor).ok_or_else(|| "a size that large does not exist".into())
}

/// A share from 0 to 1: `20%`, `0.5%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("a share is written in percent: 20%")?;
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a share is between 0% and 100%".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text, expected: Option<u64>| {
            let duration = parse_duration(text).ok();
            assert_eq!(duration, expected.map(Duration::from_millis), "{text}");
        };
        check("500ms", Some(500));
        check("30s", Some(30_000));
        check("5m", Some(300_000));
        check("1h", Some(3_600_000));
        for bad in ["", "s", "30", "0s", "-1s", "1d", "1.5s", "99999999999999999999h", "9999999h"] {
            check(bad, None);
        }
    }

    #[test]
    fn sizes_and_shares() {
        let check =
            |text, expected: Option<u64>| assert_eq!(parse_size(text).ok(), expected, "{text}");
        check("0", Some(0));
        check("128", Some(128));
        check("5KiB", Some(5_120));
        check("2GiB", Some(2 << 30));
        check("5k", None);
        check("KiB", None);
        check("-1", None);
        check("99999999999999999999", None);
        check("99999999999GiB", None);
        let check =
            |text, expected: Option<f64>| assert_eq!(parse_share(text).ok(), expected, "{text}");
        check("20%", Some(0.2));
        check("0.5%", Some(0.005));
        check("101%", None);
        check("-1%", None);
        check("NaN%", None);
        check("20", None);
    }
}
