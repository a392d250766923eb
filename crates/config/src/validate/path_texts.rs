//! Conditions with texts that `request.path` never contains, because it is normalised and the rule's text is not.

use std::collections::HashMap;

use weir_core::expression::{Condition, PathPlace, PathText};
use weir_http::path::{PathError, PathForm, decided};

use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::quote::clip;
use crate::scalar::Text;

/// Maximum number of warnings about one condition; a data set may have many texts.
const WARNINGS_PER_CONDITION_MAX: usize = 3;

/// Prefix and suffix that complete a part of a path. Normalising does not change them.
const BEFORE: &[u8] = b"/x~";
const BEHIND: &[u8] = b"~y";

/// A condition that looks for texts in the path.
pub(super) struct PathCondition {
    /// The policy of the condition.
    pub policy: String,
    /// The condition in the file.
    pub when: Spanned<Text>,
    /// The compiled condition.
    pub condition: Condition,
}

/// The reason why no path has a text.
enum Never {
    /// Rules see this text instead.
    Spelled(Vec<u8>),
    /// A request with the text is rejected before rules.
    Refused(PathError),
}

/// Warns of texts in conditions that no path has in the virtual servers that use the policies.
pub(super) fn warn(
    conditions: &[PathCondition],
    forms_of: &HashMap<String, Vec<PathForm>>,
    context: &mut Context,
) {
    for condition in conditions {
        let forms = forms_of.get(&condition.policy).map_or(&[][..], Vec::as_slice);
        warn_of(condition, forms, context);
    }
}

/// Warns about texts that no path can have in any of these forms: the forms of the virtual servers that use the policy.
fn warn_of(found: &PathCondition, forms: &[PathForm], context: &mut Context) {
    if forms.is_empty() {
        return;
    }
    let mut texts = found.condition.path_texts();
    texts.sort_unstable_by_key(|text| text.text);
    texts.dedup();
    let never = texts.iter().filter_map(|text| {
        let reasons = forms.iter().map(|form| never(text, *form));
        let reasons: Option<Vec<Never>> = reasons.collect();
        Some((text, reasons?.into_iter().next()?))
    });
    let never: Vec<(&PathText<'_>, Never)> = never.collect();
    let shown = never.len().min(WARNINGS_PER_CONDITION_MAX);
    for (index, (text, reason)) in never[..shown].iter().enumerate() {
        let written = String::from_utf8_lossy(text.text);
        let how = match text.place {
            PathPlace::Whole => "equals",
            PathPlace::Start => "starts with",
            PathPlace::End => "ends with",
            PathPlace::Within => "contains",
        };
        let more = match never.len() - shown {
            more if more > 0 && index + 1 == shown => format!(", nor {more} more of its texts"),
            _ => String::new(),
        };
        let message = format!("`request.path` never {how} `{}`{more}", clip(&written));
        let place = place(&found.when, &written);
        context.warning_help(place, message, help(text, reason));
    }
}

/// The reason why no path has a text, if so. A path can contain exactly the texts that normalising leaves unchanged.
fn never(text: &PathText<'_>, form: PathForm) -> Option<Never> {
    // Not server paths: `OPTIONS *`, and the empty path without a request.
    if matches!(text.text, b"" | b"*") {
        return None;
    }
    let (path, seen) = whole(text, text.text)?;
    let compared = |path: &[u8]| {
        let mut compared = decided(path, form)?;
        if text.is_lowered {
            compared.make_ascii_lowercase();
        }
        Ok(compared)
    };
    match compared(&path) {
        Ok(decided) if decided == path => None,
        Ok(decided) => Some(Never::Spelled(seen(&decided).to_vec())),
        Err(PathError::Character) => {
            // The text may become a path when it is encoded as browsers do.
            let encoded = encode(text.text);
            let spelled = whole(text, &encoded).and_then(|(path, seen)| {
                compared(&path).ok().map(|decided: Vec<u8>| seen(&decided).to_vec())
            });
            Some(spelled.map_or(Never::Refused(PathError::Character), Never::Spelled))
        }
        Err(error) => Some(Never::Refused(error)),
    }
}

/// A path that contains a text at the compared place, and a function that extracts it again. `None`: it is an
/// incomplete escape, which any text may continue.
#[expect(clippy::type_complexity, reason = "the path and the way back belong together")]
fn whole(text: &PathText<'_>, written: &[u8]) -> Option<(Vec<u8>, fn(&[u8]) -> &[u8])> {
    fn behind(path: &[u8]) -> &[u8] {
        path.strip_prefix(BEFORE).unwrap_or(path)
    }
    fn before(path: &[u8]) -> &[u8] {
        path.strip_suffix(BEHIND).unwrap_or(path)
    }
    let start = without_cut_escape(written);
    let is_cut = start.is_empty();
    Some(match text.place {
        PathPlace::Whole => (written.to_vec(), |path| path),
        PathPlace::End => ([BEFORE, written].concat(), behind),
        PathPlace::Start | PathPlace::Within if is_cut => return None,
        PathPlace::Start => ([start, BEHIND].concat(), before),
        PathPlace::Within => ([BEFORE, start, BEHIND].concat(), |path| before(behind(path))),
    })
}

/// The text without an incomplete escape at its end.
fn without_cut_escape(text: &[u8]) -> &[u8] {
    match text {
        [start @ .., b'%'] => start,
        [start @ .., b'%', digit] if digit.is_ascii_hexdigit() => start,
        whole => whole,
    }
}

/// Encodes the bytes of a text that no path contains.
fn encode(text: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(text.len());
    for &byte in text {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>') {
            encoded.push(byte);
        } else {
            encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    encoded
}

fn help(text: &PathText<'_>, reason: &Never) -> String {
    let is_from_start = matches!(text.place, PathPlace::Whole | PathPlace::Start);
    let refused = |what: &str, key: &str, else_seen: &str| {
        format!("requests with {what} in the path are refused (`http.path.{key}`){else_seen}")
    };
    match reason {
        Never::Spelled(seen) if seen.is_empty() => {
            "rules do not see parameters: they are in `request.raw_path`".into()
        }
        Never::Spelled(seen) => {
            format!("rules see `{}`: write that", clip(&String::from_utf8_lossy(seen)))
        }
        Never::Refused(PathError::Escape) => "a percent sign in a path is `%25`".into(),
        Never::Refused(PathError::Character) if text.text.contains(&b'?') => {
            "the query is not part of the path: use `request.query['NAME']`".into()
        }
        Never::Refused(PathError::Character) if is_from_start && text.text[0] != b'/' => {
            "a path begins with `/`".into()
        }
        Never::Refused(PathError::Character) => "a path cannot have these characters".into(),
        Never::Refused(PathError::Nul) => refused("`%00`", "nul", ""),
        Never::Refused(PathError::Backslash) => refused("a backslash", "backslashes", ""),
        Never::Refused(PathError::EncodedSlash) => {
            let else_seen = "; where they are not, rules see `/`";
            refused("an encoded slash", "encoded_slashes", else_seen)
        }
        Never::Refused(PathError::Parameters) => {
            let else_seen = "; where they are not, rules do not see parameters";
            refused("such parameters", "parameters", else_seen)
        }
        Never::Refused(PathError::DotSegment) => "requests with this path are refused".into(),
    }
}

/// The place of a text in its condition; the whole condition, if the text is elsewhere or has escapes.
fn place(when: &Spanned<Text>, written: &str) -> Span {
    let condition = when.value.0.as_str();
    let quoted = ['\'', '"'].map(|quote| format!("{quote}{written}{quote}"));
    let at = quoted.iter().filter_map(|quoted| condition.find(quoted.as_str())).min();
    let Some(at) = at else { return when.span };
    let mut place = when.span.within(condition, condition[..at].chars().count());
    if place != when.span {
        place.length = quoted[0].chars().count();
    }
    place
}
