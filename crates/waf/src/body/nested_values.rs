//! Values within values: JSON in a field, in a cookie or in a string of JSON, and strings with escapes, such as those of
//! GraphQL. Applications decode such a value once more, so rules inspect what they get.
//!
//! A value that neither begins like JSON nor contains an escape costs one search for a backslash. Decoding is bounded: by
//! [`NESTED_DEPTH_MAX`], by the limits of JSON, and by the number of values of all nested documents of a request. Beyond
//! that number, the rest of a document is inspected as one text, with its escapes decoded.

mod escapes;

use super::format::significant;
use super::json::{Json, JsonNames};
use super::limits::Limits;
use super::sink::Sink;
pub use escapes::{cookie_text, without_escapes};

/// Maximum number of values around a value: JSON in a string of JSON has depth 2.
pub const NESTED_DEPTH_MAX: usize = 8;

/// The mark of JSON in the cookies of some frameworks.
const COOKIE_MARK: &[u8] = b"j:";

/// Whether a value may contain other values.
pub fn may_be_nested(value: &[u8]) -> bool {
    begins_like_json(value) || escapes::has_escape(value)
}

/// Whether a value begins like JSON. A number or a word is not decoded any further.
fn begins_like_json(value: &[u8]) -> bool {
    matches!(json_of(value).first(), Some(b'{' | b'[' | b'"'))
}

/// The value without blanks, invisible characters and marks before the JSON.
fn json_of(value: &[u8]) -> &[u8] {
    let value = significant(value);
    value.strip_prefix(COOKIE_MARK).unwrap_or(value)
}

/// The decoder of the nested values of a request.
#[derive(Debug)]
pub struct NestedValues {
    limits: Limits,
    /// The number of values that may still be delivered.
    left: u32,
}

impl NestedValues {
    /// A decoder with these limits, for all values of a request.
    pub fn new(limits: Limits) -> Self {
        Self { limits, left: limits.arguments_max }
    }

    /// Takes a place for a value that was decoded in another way. Returns whether there was one.
    pub fn take_one(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or_default();
        left.is_some()
    }

    /// Decodes the contents of a value. `to` gets each value with its path: `json.a.b`; the path of a text whose escapes
    /// were decoded is empty. Returns whether the whole value is JSON, and all of its values were delivered.
    pub fn read(&mut self, value: &[u8], to: &mut impl FnMut(&[u8], &[u8])) -> bool {
        let mut is_whole = true;
        let mut open = vec![(value.to_vec(), 1)];
        while let Some((text, depth)) = open.pop() {
            let is_read = begins_like_json(&text) && {
                let mut reading = Json::new(JsonNames::ModSecurity, self.limits);
                let mut leaves =
                    Leaves { to, open: &mut open, depth, left: self.left, is_full: false };
                reading.feed(json_of(&text), &mut leaves);
                reading.finish(&mut leaves);
                self.left = leaves.left;
                !leaves.is_full && reading.failure().is_none()
            };
            is_whole &= is_read || depth > 1;
            if is_read || !escapes::has_escape(&text) {
                continue;
            }
            let plain = without_escapes(&text);
            to(b"", &plain);
            // What began like JSON, and is not, is not read again.
            let is_new = begins_like_json(&plain) && !begins_like_json(&text);
            let is_open = is_new || escapes::has_escape(&plain);
            if depth < NESTED_DEPTH_MAX && plain != text && is_open {
                open.push((plain, depth + 1));
            }
        }
        is_whole
    }
}

/// Delivers the leaves of a document, and notes those that contain other values.
struct Leaves<'a, F> {
    to: &'a mut F,
    open: &'a mut Vec<(Vec<u8>, usize)>,
    depth: usize,
    left: u32,
    /// Whether there were more values than may be delivered.
    is_full: bool,
}

impl<F: FnMut(&[u8], &[u8])> Sink for Leaves<'_, F> {
    fn argument(&mut self, name: &[u8], value: &[u8]) {
        let Some(left) = self.left.checked_sub(1) else {
            self.is_full = true;
            return;
        };
        self.left = left;
        (self.to)(name, value);
        if self.depth < NESTED_DEPTH_MAX && may_be_nested(value) {
            self.open.push((value.to_vec(), self.depth + 1));
        }
    }
}

#[cfg(test)]
mod tests;
