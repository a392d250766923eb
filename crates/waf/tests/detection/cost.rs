//! The work of rules grows linearly with the size of a request.

use weir_waf::inspection::{Limit, Verdict};

use crate::send::{Sent, judge_sent, view};

/// A key of this size that all transformations change.
fn key(bytes: usize) -> String {
    "%2525\\\\x41&lt;".chars().cycle().take(bytes / 12 * 12).collect()
}

fn joined(count: usize, element: impl Fn(usize) -> String) -> String {
    (0..count).map(element).collect::<Vec<_>>().join(",")
}

#[test]
fn names_of_json_cost_no_more_than_the_body_allows() {
    let view = view(&crate::builtin(), &[]);
    let array = |bytes| format!("{{\"{}\":[{}]}}", key(bytes), joined(900, |it| it.to_string()));
    let object = |bytes| {
        let leaves = joined(900, |it| format!("\"{it}\":1"));
        format!("{{\"{}\":{{{leaves}}}}}", key(bytes))
    };
    for (body, is_judged) in [
        (array(240), true),
        // Its names are inspected once, but all of them are kept.
        (array(3_600), false),
        (object(60), true),
        (object(240), false),
        (object(3_600), false),
    ] {
        let bytes = body.len() as u64;
        let start = std::time::Instant::now();
        let judged = judge_sent(&view, &Sent::post("/", "application/json", body));
        let work = judged.inspection.work_bytes();
        println!("{bytes} bytes: {work} looked at, {:?}", start.elapsed());
        let expected = if is_judged { Verdict::Pass } else { Verdict::Exceeded(Limit::Arguments) };
        assert_eq!(judged.verdict, expected);
        assert!(work < 500 * bytes + 1_000_000, "{work} for {bytes}");
    }
}
