//! Daylight saving changes, compared with calendars.

use super::*;

/// A file with these changes and this rule; offsets are in seconds.
fn file(changes: &[(i64, u8)], kinds: &[i32], rule: &str) -> Vec<u8> {
    let header = |times: usize, kinds: usize| {
        let mut bytes = b"TZif2".to_vec();
        bytes.extend([0; 15]);
        for count in [0, 0, 0, times, kinds, 4] {
            bytes.extend((count as u32).to_be_bytes());
        }
        bytes
    };
    // The part with 32-bit times is empty.
    let mut bytes = header(0, 1);
    bytes.extend([0; 6]);
    bytes.extend(b"LMT\0");
    bytes.extend(header(changes.len(), kinds.len()));
    changes.iter().for_each(|(at_s, _)| bytes.extend(at_s.to_be_bytes()));
    bytes.extend(changes.iter().map(|(_, kind)| *kind));
    for offset_s in kinds {
        bytes.extend(offset_s.to_be_bytes());
        bytes.extend([0, 0]);
    }
    bytes.extend(b"LMT\0");
    bytes.extend(format!("\n{rule}\n").bytes());
    bytes
}

fn zone(changes: &[(i64, u8)], kinds: &[i32], rule: &str) -> TimeZone {
    TimeZone::parse(&file(changes, kinds, rule)).unwrap()
}

/// Hours ahead of UTC at times such as 2026-03-29T01:00 of UTC.
fn hours(zone: &TimeZone, times: &[(i64, i64, i64, i64)]) -> Vec<f64> {
    let at = |(year, month, day, minute): &(i64, i64, i64, i64)| {
        (days_to(*year, *month) + day - 1) * DAY_S + minute * 60
    };
    times.iter().map(|time| f64::from(zone.offset_s(at(time))) / 3_600.0).collect()
}

#[test]
fn a_fixed_zone_never_changes() {
    let zone = TimeZone::fixed(-19_800);
    for unix_s in [i64::MIN, 0, 1_800_000_000, i64::MAX] {
        assert_eq!(zone.offset_s(unix_s), -19_800);
    }
    assert_eq!(TimeZone::default().offset_s(0), 0);
}

#[test]
fn rules_are_those_of_calendars() {
    let check = |rule: &str, times: &[(i64, i64, i64, i64)], expected: &[f64]| {
        assert_eq!(hours(&zone(&[], &[0], rule), times), expected, "{rule}");
    };
    // Berlin: the last Sundays of March and October, at 01:00 UTC both.
    check(
        "CET-1CEST,M3.5.0,M10.5.0/3",
        &[
            (2026, 1, 1, 0),
            (2026, 3, 29, 59),
            (2026, 3, 29, 60),
            (2026, 10, 25, 59),
            (2026, 10, 25, 60),
            (2028, 3, 26, 59),
            (2028, 3, 26, 60),
            (2199, 7, 1, 0),
        ],
        &[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0],
    );
    // New York: the second Sunday of March at 07:00 UTC, the first of November at 06:00 UTC.
    check(
        "EST5EDT,M3.2.0,M11.1.0",
        &[(2026, 3, 8, 419), (2026, 3, 8, 420), (2026, 11, 1, 359), (2026, 11, 1, 360)],
        &[-5.0, -4.0, -4.0, -5.0],
    );
    // Sydney: summer time spans the turn of the year.
    check(
        "AEST-10AEDT,M10.1.0,M4.1.0/3",
        &[(2026, 1, 1, 0), (2026, 4, 4, 959), (2026, 4, 4, 960), (2026, 10, 3, 960)],
        &[11.0, 11.0, 10.0, 11.0],
    );
    // Lord Howe: a change of half an hour. Dublin: the special offset is in winter. Nuuk: the change is on the evening
    // before.
    check(
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        &[(2026, 1, 1, 0), (2026, 7, 1, 0)],
        &[11.0, 10.5],
    );
    check("IST-1GMT0,M10.5.0,M3.5.0/1", &[(2026, 1, 1, 0), (2026, 7, 1, 0)], &[0.0, 1.0]);
    check(
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        &[(2026, 3, 29, 59), (2026, 3, 29, 60), (2026, 10, 25, 60)],
        &[-2.0, -1.0, -2.0],
    );
    // Days of the year: J60 is 1 March, 59 is 29 February in leap years.
    check("AAA0BBB,J60/0,J300/0", &[(2028, 2, 29, 1439), (2028, 3, 1, 0)], &[0.0, 1.0]);
    check("AAA0BBB,59/0,300/0", &[(2028, 2, 28, 1439), (2028, 2, 29, 0)], &[0.0, 1.0]);
    check("UTC0", &[(2026, 7, 1, 0)], &[0.0]);
    check("<+0545>-5:45", &[(2026, 7, 1, 0)], &[5.75]);
}

#[test]
fn what_a_file_lists_comes_before_its_rule() {
    let change = days_to(2_026, 6) * DAY_S;
    let zone = zone(&[(0, 0), (change, 1)], &[7_200, 3_600], "CET-1CEST,M3.5.0,M10.5.0/3");
    let times =
        [(1_960, 1, 1, 0), (2026, 5, 1, 0), (2026, 7, 1, 0), (2027, 1, 1, 0), (2027, 7, 1, 0)];
    assert_eq!(hours(&zone, &times), [2.0, 2.0, 1.0, 1.0, 2.0]);
    // Without a rule, the last change is valid for ever.
    let zone = self::zone(&[(change, 1)], &[7_200, 3_600], "");
    assert_eq!(hours(&zone, &[(2026, 5, 1, 0), (2100, 7, 1, 0)]), [2.0, 1.0]);
}

#[test]
fn what_is_no_zone_is_refused() {
    let good = file(&[(0, 0)], &[3_600], "CET-1");
    assert!(TimeZone::parse(&good).is_ok());
    for length in 0..good.len() {
        assert!(TimeZone::parse(&good[..length]).is_err(), "{length}");
    }
    let check = |bytes: &[u8], expected| assert_eq!(TimeZone::parse(bytes), Err(expected));
    check(b"", ZoneError::NoZone);
    check(&[b'x'; 100], ZoneError::NoZone);
    let mut old = good.clone();
    old[4] = 0;
    check(&old, ZoneError::Old);
    let mut many = good.clone();
    many[32] = 255;
    check(&many, ZoneError::Malformed);
    check(&file(&[(0, 1)], &[3_600], "CET-1"), ZoneError::Malformed);
    check(&file(&[(0, 0)], &[360_000], "CET-1"), ZoneError::Malformed);
    check(&file(&[(5, 0), (4, 0)], &[3_600], "CET-1"), ZoneError::Malformed);
    check(&file(&[], &[], "CET-1"), ZoneError::Malformed);
    for rule in [
        "C-1",
        "CET",
        "CET-25",
        "CET-1CEST",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.0.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/200",
        "CET-1CEST,J0,J300",
        "CET-1CEST,1,366",
        "CET-1CEST,M3.5.0,M10.5.0,",
        "<CET-1",
        "CET-99999999999999999999",
    ] {
        check(&file(&[], &[0], rule), ZoneError::Rule);
    }
}

#[test]
fn years_are_found() {
    for year in 1_970..2_300 {
        let first_s = days_to(year, 1) * DAY_S;
        assert_eq!((year_of(first_s), year_of(first_s - 1)), (year, year - 1), "{year}");
    }
    assert_eq!((days_to(1_970, 1), days_to(2_000, 3), days_to(2_026, 12)), (0, 11_017, 20_788));
}
