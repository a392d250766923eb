//! Entity tags (RFC 9110 section 8.8.3) of compressed responses.
//!
//! A strong tag promises identical bytes, and compressed bytes differ. So the client of a compressed response gets `W/"x"`
//! for the member's `"x"`, and returns `W/"x"` in conditional requests:
//!
//! - **If-None-Match** compares weakly (section 13.1.2): to a member that follows the standard `W/"x"` is `"x"`, and it
//!   answers 304. The field goes to the member as the client sent it. Neither taking `W/` away nor adding the strong
//!   tag would be better: many members compare the field as a text and send weak tags themselves, and would answer 200
//!   from then on. For a member that compares as a text and knows only the strong tag, `W/"x"` is another version: it
//!   answers 200 with the whole content. Then [`is_unchanged`] shows that the client has this version, and weir may
//!   answer 304 instead.
//! - **If-Match** compares strongly (section 13.1.1): a weak tag never matches, and the client could not change what it
//!   has read. [`restore_if_match`] puts the strong tags of the weak ones in front of the list. If the member has the
//!   strong one, that is the version that the client saw. If its own tag is weak, the meaning of the field does not
//!   change. In front, because Apache (2.4) stops reading at a weak tag of its own version: it answers 412 to
//!   `W/"x", "x"`.
//! - **If-Range** compares strongly too: `W/"x"` never matches, so the member sends the whole content, and no range of
//!   the plain content gets into a compressed one. The field stays unchanged.
//! - **304** must have the tag that the client knows (RFC 9111 section 4.3.4): if the request named a weak tag, it is
//!   weakened there as well; see [`crate::edit_response`].

use weir_http::edits::{Change, FieldEdits};
use weir_http::fields::values;
use weir_http::message::{RequestHead, ResponseHead};

/// A tag of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag<'v> {
    /// Whether it is preceded by `W/`.
    pub is_weak: bool,
    /// The opaque tag with its quotes.
    pub opaque: &'v [u8],
}

/// The tags of a field's value, up to the first malformed part.
pub fn tags(value: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let (tag, tail) = read_tag(rest)?;
        rest = tail;
        Some(tag)
    })
}

/// The tag at the start of `text`, and the rest.
fn read_tag(text: &[u8]) -> Option<(Tag<'_>, &[u8])> {
    let (is_weak, quoted) = match text {
        [b'W', b'/', quoted @ ..] => (true, quoted),
        quoted => (false, quoted),
    };
    let [b'"', inner @ ..] = quoted else {
        return None;
    };
    let end = inner.iter().position(|byte| *byte == b'"')?;
    let (opaque, tail) = quoted.split_at(end + 2);
    matches!(tail.first(), None | Some(b',' | b' ' | b'\t'))
        .then_some((Tag { is_weak, opaque }, tail))
}

/// The tag, if the value is exactly one tag.
fn whole_tag(value: &[u8]) -> Option<Tag<'_>> {
    read_tag(value).and_then(|(tag, tail)| tail.is_empty().then_some(tag))
}

/// Appends the ETag of a compressed response: a strong tag becomes weak, and an invalid tag is removed, because a
/// client might take it for a strong one.
fn weaken(value: &[u8], out: &mut Vec<u8>) -> Change {
    match whole_tag(value) {
        Some(Tag { is_weak: true, .. }) => Change::None,
        Some(Tag { is_weak: false, opaque }) => {
            out.extend_from_slice(b"W/");
            out.extend_from_slice(opaque);
            Change::Changed
        }
        None => Change::Removed,
    }
}

/// Makes the tag of a response weak, because weir changes the content.
pub fn weaken_tag(
    head: &ResponseHead,
    input: &[u8],
    edits: &mut FieldEdits,
    scratch: &mut Vec<u8>,
) {
    edits.change_each(b"ETag", values(&head.fields, input, "ETag"), scratch, weaken);
}

/// Whether the client has the content of a response although the member did not notice: If-None-Match contains as weak the
/// tag that the member sent as strong. A 200 to GET or HEAD may then be answered with 304.
pub fn is_unchanged<'v>(if_none_match: impl Iterator<Item = &'v [u8]>, etag: &[u8]) -> bool {
    let Some(Tag { is_weak: false, opaque }) = whole_tag(etag) else {
        return false;
    };
    if_none_match.flat_map(tags).any(|tag| tag.is_weak && tag.opaque == opaque)
}

/// Adds to If-Match the strong form of each weak tag, before the list; for requests whose responses may be compressed.
pub fn restore_if_match(
    head: &RequestHead,
    input: &[u8],
    edits: &mut FieldEdits,
    scratch: &mut Vec<u8>,
) {
    let received = values(&head.fields, input, "If-Match");
    edits.change_each(b"If-Match", received, scratch, restore_list);
}

fn restore_list(value: &[u8], out: &mut Vec<u8>) -> Change {
    let mut change = Change::None;
    // Strong tags that are already listed are added again: a search for each would take quadratic time.
    for tag in tags(value).filter(|tag| tag.is_weak) {
        out.extend_from_slice(tag.opaque);
        out.extend_from_slice(b", ");
        change = Change::Changed;
    }
    if change == Change::Changed {
        out.extend_from_slice(value);
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_one_by_one() {
        for (value, expected) in [
            ("\"a\"", &["\"a\""][..]),
            ("W/\"a\"", &["W/\"a\""]),
            ("\"a\", W/\"b,c\" ,\"\"", &["\"a\"", "W/\"b,c\"", "\"\""]),
            (",, \"a\"\t,", &["\"a\""]),
            ("*", &[]),
            ("", &[]),
            ("a", &[]),
            ("w/\"a\"", &[]),
            ("W/ \"a\"", &[]),
            ("\"a", &[]),
            ("\"a\"b, \"c\"", &[]),
            ("\"a\", b, \"c\"", &["\"a\""]),
        ] {
            let found: Vec<String> = tags(value.as_bytes())
                .map(|tag| {
                    let opaque = String::from_utf8_lossy(tag.opaque);
                    format!("{}{opaque}", if tag.is_weak { "W/" } else { "" })
                })
                .collect();
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn a_strong_tag_gets_weak() {
        for (value, change, expected) in [
            ("\"a\"", Change::Changed, "W/\"a\""),
            ("\"\"", Change::Changed, "W/\"\""),
            ("W/\"a\"", Change::None, ""),
            ("a", Change::Removed, ""),
            ("\"a\" ", Change::Removed, ""),
            ("\"a\", \"b\"", Change::Removed, ""),
            ("w/\"a\"", Change::Removed, ""),
            ("", Change::Removed, ""),
        ] {
            let mut out = Vec::new();
            assert_eq!(weaken(value.as_bytes(), &mut out), change, "{value}");
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{value}");
        }
    }

    #[test]
    fn a_client_with_the_weakened_tag_has_the_content() {
        for (fields, etag, expected) in [
            (&["W/\"a\""][..], "\"a\"", true),
            (&["W/\"b\", W/\"a\""], "\"a\"", true),
            (&["W/\"b\"", "W/\"a\""], "\"a\"", true),
            (&["W/\"b\""], "\"a\"", false),
            // The member has already compared these tags.
            (&["\"a\""], "\"a\"", false),
            (&["W/\"a\""], "W/\"a\"", false),
            (&["*"], "\"a\"", false),
            (&["W/\"a\""], "a", false),
            (&[], "\"a\"", false),
        ] {
            let values = fields.iter().map(|value| value.as_bytes());
            assert_eq!(is_unchanged(values, etag.as_bytes()), expected, "{fields:?} {etag}");
        }
    }

    #[test]
    fn if_match_gets_the_strong_tags_back() {
        for (value, expected) in [
            ("W/\"a\"", Some("\"a\", W/\"a\"")),
            ("W/\"a\", \"b\", W/\"c\"", Some("\"a\", \"c\", W/\"a\", \"b\", W/\"c\"")),
            ("W/\"a\", \"a\"", Some("\"a\", W/\"a\", \"a\"")),
            ("\"a\", W/\"a\"", Some("\"a\", \"a\", W/\"a\"")),
            ("\"b\", W/\"a\"", Some("\"a\", \"b\", W/\"a\"")),
            ("\"a\"", None),
            ("*", None),
            ("", None),
        ] {
            let mut out = Vec::new();
            let change = restore_list(value.as_bytes(), &mut out);
            let found = (change == Change::Changed).then(|| String::from_utf8(out).unwrap());
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }
}
