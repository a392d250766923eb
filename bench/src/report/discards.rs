//! Discarded measurements in the report.

use std::collections::BTreeMap;

use crate::catalogue::Axis;
use crate::record::Discard;

use super::model::Report;
use super::text;

/// Discarded measurements by product and reason: `(product, reason, measurements, tests)`, the most frequent first.
pub fn by_reason(report: &Report) -> Vec<(String, String, usize, String)> {
    let mut sums: BTreeMap<(String, String), (usize, Vec<&str>)> = BTreeMap::new();
    for test in &report.run.tests {
        for discard in &test.discarded {
            let product =
                discard.product.as_deref().map_or("before any", |name| report.called(name));
            let key = (product.to_owned(), without_numbers(&discard.reason));
            let (count, tests) = sums.entry(key).or_default();
            *count += 1;
            if !tests.contains(&test.name.as_str()) {
                tests.push(&test.name);
            }
        }
    }
    let mut rows: Vec<_> = sums
        .into_iter()
        .map(|((product, reason), (count, tests))| (product, reason, count, tests.join(", ")))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.2));
    rows
}

/// Number of failed and unsent requests in discarded measurements, as a sentence; `None` without any.
pub fn errors(report: &Report) -> Option<String> {
    let discards = || report.run.tests.iter().flat_map(|test| &test.discarded);
    let sum = |count: fn(&Discard) -> Option<u64>| {
        discards().filter_map(count).fold(0, u64::saturating_add)
    };
    let known = discards().filter(|discard| discard.errors.is_some()).count();
    let unknown = discards().count() - known;
    let mut said = Vec::new();
    if known > 0 {
        said.push(format!(
            "In {} {} requests failed and {} were never sent.",
            text::counted(known, "discarded measurement"),
            text::count(sum(|discard| discard.errors)),
            text::count(sum(|discard| discard.unsent)),
        ));
    }
    if unknown > 0 {
        let unknown = text::counted(unknown, "discarded measurement");
        said.push(format!("For {unknown} it is unknown how many requests failed."));
    }
    (!said.is_empty()).then(|| said.join(" "))
}

/// Replaces each number in a reason by an ellipsis, so that reasons that differ only in numbers are equal.
fn without_numbers(reason: &str) -> String {
    let mut kind = String::with_capacity(reason.len());
    for part in reason.split_inclusive(|character: char| !character.is_ascii_digit()) {
        let number = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if number > 0 && !kind.ends_with('…') {
            kind.push('…');
        }
        kind += &part[number..];
    }
    kind
}

/// Example: `round 2 at 12,000 connections: nginx: the hypervisor took 31% of the cores`.
pub fn discarded(report: &Report, axis: Axis, discard: &Discard) -> String {
    let mut place = discard.round.map(|round| format!("round {}", u64::from(round) + 1));
    let setting = discard.at.map(|at| text::setting(axis, at)).unwrap_or_default();
    if !setting.is_empty() {
        place = Some(format!("{} at {setting}", place.as_deref().unwrap_or("a round")));
    }
    let product = discard.product.as_deref().map(|name| report.called(name).to_owned());
    let words = place.into_iter().chain(product).chain([discard.reason.clone()]);
    words.collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    #[test]
    fn what_was_thrown_away_is_summed_by_product_and_reason() {
        for (reason, expected) in [
            ("", ""),
            ("noise", "noise"),
            ("the hypervisor took 31% of the cores", "the hypervisor took …% of the cores"),
            ("450 of 1000 requests/s, 7", "… of … requests/s, …"),
        ] {
            assert_eq!(without_numbers(reason), expected);
        }
        let mut run = testing::run();
        for (test, product, share) in
            [(0, Some("weir"), 7), (1, Some("weir"), 12), (1, Some("weir"), 9), (2, None, 9)]
        {
            let product = product.map(str::to_owned);
            let reason = format!("took {share}%");
            let discard = Discard { product, reason, ..run.tests[0].discarded[0].clone() };
            run.tests[test].discarded.push(discard);
        }
        let row = |product: &str, reason: &str, count: usize, tests: &str| {
            (product.to_owned(), reason.to_owned(), count, tests.to_owned())
        };
        let expected = [
            row("weir", "took …%", 3, "basic-l7, l7-requests"),
            row("before any", "took …%", 1, "l7-uri"),
            row("nginx", "the hypervisor took …% of the cores", 1, "basic-l7"),
        ];
        assert_eq!(by_reason(&Report::new(run)), expected);
    }

    #[test]
    fn discarded_rounds_say_where() {
        let report = Report::new(testing::run());
        let check = |round, at, product: Option<&str>, expected: &str| {
            let product = product.map(str::to_owned);
            let reason = "noise".to_owned();
            let discard = Discard { round, at, product, reason, ..Discard::default() };
            assert_eq!(discarded(&report, Axis::Connections, &discard), expected);
        };
        check(None, None, None, "noise");
        check(Some(0), None, Some("haproxy"), "round 1: HAProxy: noise");
        check(Some(1), Some(12e3), Some("nginx"), "round 2 at 12,000 connections: nginx: noise");
    }

    #[test]
    fn what_failed_in_them_is_told() {
        let check = |counts: &[Option<u64>], expected: Option<&str>| {
            let mut run = testing::run();
            run.tests.iter_mut().for_each(|test| test.discarded.clear());
            let discard = |errors: &Option<u64>| Discard {
                errors: *errors,
                unsent: errors.map(|errors| errors * 100),
                ..Discard::default()
            };
            run.tests[0].discarded = counts.iter().map(discard).collect();
            assert_eq!(errors(&Report::new(run)).as_deref(), expected);
        };
        check(&[], None);
        check(&[None], Some("For 1 discarded measurement it is unknown how many requests failed."));
        check(
            &[Some(2), Some(0), Some(9)],
            Some("In 3 discarded measurements 11 requests failed and 1,100 were never sent."),
        );
        check(
            &[Some(0), None],
            Some(
                "In 1 discarded measurement 0 requests failed and 0 were never sent. For 1 discarded \
                 measurement it is unknown how many requests failed.",
            ),
        );
    }
}
