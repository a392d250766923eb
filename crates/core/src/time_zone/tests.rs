//! Daylight saving changes, compared with calendars.

use jiff::civil;

use super::*;

/// The names of kinds of local time in files.
const NAMES: &[u8] = b"LMT\0CET\0CEST\0";

/// A kind of local time in a file: the offset in seconds, whether it is summer time, and where in [`NAMES`] its name begins.
type Kind = (i32, bool, u8);

const LMT: Kind = (3_208, false, 0);
const CET: Kind = (3_600, false, 4);
const CEST: Kind = (7_200, true, 8);

const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

/// A file with these changes and this rule.
fn file(changes: &[(i64, u8)], kinds: &[Kind], rule: &str) -> Vec<u8> {
    let header = |times: usize, kinds: usize, names: &[u8]| {
        let mut bytes = b"TZif2".to_vec();
        bytes.extend([0; 15]);
        for count in [0, 0, 0, times, kinds, names.len()] {
            bytes.extend((count as u32).to_be_bytes());
        }
        bytes
    };
    // The part with 32-bit times is empty.
    let mut bytes = header(0, 1, b"\0");
    bytes.extend([0; 6]);
    bytes.extend(b"\0");
    bytes.extend(header(changes.len(), kinds.len(), NAMES));
    changes.iter().for_each(|(at_s, _)| bytes.extend(at_s.to_be_bytes()));
    bytes.extend(changes.iter().map(|(_, kind)| *kind));
    for (offset_s, is_summer, name) in kinds {
        bytes.extend(offset_s.to_be_bytes());
        bytes.extend([u8::from(*is_summer), *name]);
    }
    bytes.extend(NAMES);
    bytes.extend(format!("\n{rule}\n").bytes());
    bytes
}

fn zone(changes: &[(i64, u8)], kinds: &[Kind], rule: &str) -> TimeZone {
    TimeZone::parse(&file(changes, kinds, rule)).unwrap()
}

/// A year, a month, a day and a minute of UTC.
type Time = (i16, i8, i8, i64);

fn unix_s((year, month, day, minute): Time) -> i64 {
    let midnight = civil::date(year, month, day).at(0, 0, 0, 0);
    Offset::UTC.to_timestamp(midnight).unwrap().as_second() + minute * 60
}

/// Hours ahead of UTC at these times.
fn hours(zone: &TimeZone, times: &[Time]) -> Vec<f64> {
    times.iter().map(|time| f64::from(zone.offset_s(unix_s(*time))) / 3_600.0).collect()
}

#[test]
fn a_fixed_zone_never_changes() {
    let zone = TimeZone::fixed(-19_800);
    for unix_s in [i64::MIN, 0, 1_800_000_000, i64::MAX] {
        assert_eq!(zone.offset_s(unix_s), -19_800);
    }
    assert_eq!(TimeZone::default().offset_s(0), 0);
    assert_eq!(TimeZone::fixed(i32::MIN).offset_s(0), -93_599, "the furthest possible");
}

#[test]
fn rules_are_those_of_calendars() {
    let check = |rule: &str, times: &[Time], expected: &[f64]| {
        assert_eq!(hours(&zone(&[], &[LMT], rule), times), expected, "{rule}");
    };
    // Berlin: the last Sundays of March and October, at 01:00 UTC both.
    check(
        BERLIN,
        &[
            (2026, 1, 1, 0),
            (2026, 3, 29, 59),
            (2026, 3, 29, 60),
            (2026, 10, 25, 59),
            (2026, 10, 25, 60),
            (2028, 3, 26, 59),
            (2028, 3, 26, 60),
            (2199, 7, 1, 0),
            (9998, 7, 1, 0),
        ],
        &[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0, 2.0],
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
    // In 2026, summer time began in February.
    let changes = [
        (unix_s((1900, 1, 1, 0)), 1),
        (unix_s((2026, 2, 1, 0)), 2),
        (unix_s((2026, 10, 25, 60)), 1),
    ];
    let zone = zone(&changes, &[LMT, CET, CEST], BERLIN);
    let times =
        [(1900, 1, 2, 0), (2026, 1, 1, 0), (2026, 3, 1, 0), (2027, 3, 1, 0), (2027, 7, 1, 0)];
    assert_eq!(hours(&zone, &times), [1.0, 1.0, 2.0, 1.0, 2.0]);
    // Before the first change, the first kind is valid; without a rule, the last change is valid for ever.
    assert_eq!(zone.offset_s(unix_s((1899, 12, 31, 1_439))), 3_208);
    assert_eq!(zone.offset_s(i64::MIN), 3_208);
    let zone = self::zone(&changes[..2], &[LMT, CET, CEST], "");
    assert_eq!(hours(&zone, &[(2026, 1, 1, 0), (2100, 1, 1, 0)]), [1.0, 2.0]);
    assert_eq!(zone.offset_s(i64::MAX), 7_200);
}

#[test]
fn what_is_no_zone_is_refused() {
    let good = file(&[(0, 0)], &[CET], "CET-1");
    assert!(TimeZone::parse(&good).is_ok());
    for length in 0..good.len() {
        assert!(TimeZone::parse(&good[..length]).is_err(), "{length}");
    }
    let check = |bytes: &[u8], expected| assert_eq!(TimeZone::parse(bytes), Err(expected));
    check(b"", ZoneError::NoZone);
    check(b"TZif", ZoneError::NoZone);
    check(&[b'x'; 100], ZoneError::NoZone);
    let mut old = good.clone();
    old[4] = 0;
    check(&old, ZoneError::Old);
    let mut many = good.clone();
    many[32] = 255;
    check(&many, ZoneError::Malformed);
    check(&file(&[(0, 1)], &[CET], "CET-1"), ZoneError::Malformed);
    check(&file(&[(0, 0)], &[(360_000, false, 4)], "CET-1"), ZoneError::Malformed);
    check(&file(&[], &[], "CET-1"), ZoneError::Malformed);
    // Changes that are out of order, or at one time.
    for times in [[5, 0], [5, 5]] {
        check(&file(&times.map(|at_s| (at_s, 0)), &[CET], "CET-1"), ZoneError::Malformed);
    }
    // The rule has another offset than the last change.
    check(&file(&[(0, 0)], &[CET], "CET-2"), ZoneError::Malformed);
    for rule in [
        "C-1",
        "CET",
        "CET-25",
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
        check(&file(&[], &[LMT], rule), ZoneError::Malformed);
    }
}
