//! Checks of a response's contents.

use weir_config::snapshot::BodyMatch;

/// Maximum size of the part of an answer that a monitor reads, in bytes.
pub const BODY_SIZE_MAX: usize = 64 * 1024;

/// Whether the response has the expected contents.
pub(super) fn has(answer: &[u8], expected: &BodyMatch) -> bool {
    match expected {
        BodyMatch::Substring(text) => memchr::memmem::find(answer, text).is_some(),
        BodyMatch::Regex(regex) => regex.is_match(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_and_patterns() {
        let check = |answer: &str, expected: BodyMatch, is_in: bool| {
            assert_eq!(has(answer.as_bytes(), &expected), is_in, "{answer:?} {expected:?}");
        };
        let text = |text: &str| BodyMatch::Substring(text.as_bytes().into());
        check("status: ok\n", text("ok"), true);
        check("status: ok", text("OK"), false);
        check("", text("x"), false);
        check("ok", text("okay"), false);
        let pattern = |text: &str| BodyMatch::Regex(regex::bytes::Regex::new(text).unwrap());
        check("status: ok\n", pattern("^status: (ok|fine)$"), false);
        check("status: ok\n", pattern("(?m)^status: (ok|fine)$"), true);
    }
}
