//! Decoding values within values ends, and delivers no more than its limits allow.

use weir_waf::body::{
    Limits, NESTED_DEPTH_MAX, NestedValues, cookie_text, may_be_nested, without_escapes,
};

const LIMITS: Limits = Limits { arguments_max: 40, name_bytes_max: 64, ..Limits::DEFAULT };

/// Checks a value.
pub fn check(value: &[u8]) {
    let (mut count, mut texts, mut bytes) = (0, 0, 0);
    NestedValues::new(LIMITS).read(value, &mut |path, leaf| {
        assert!(path.len() <= LIMITS.name_bytes_max as usize);
        bytes += leaf.len();
        if path.is_empty() { texts += 1 } else { count += 1 }
    });
    assert!(count <= LIMITS.arguments_max, "{count} values");
    // Each of them may contain one text on each level.
    assert!(texts <= (count as usize + 1) * NESTED_DEPTH_MAX, "{texts} texts");
    // What begins as JSON and is not is read in both ways, so a level has at most twice as much as the one before. A byte that is
    // not UTF-8 becomes three.
    let bytes_max = 3 * (value.len() + 4) * (2 << NESTED_DEPTH_MAX);
    assert!(bytes <= bytes_max, "{bytes} of {}", value.len());
    let plain = without_escapes(value);
    assert!(plain.len() <= 3 * value.len(), "{} of {}", plain.len(), value.len());
    assert!(may_be_nested(value) || bytes == 0, "{value:?}");
    if let Some((text, rest)) = cookie_text(value) {
        assert!(text.len() + rest.len() < value.len());
    }
}
