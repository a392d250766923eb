//! Changes to a head: withheld, replaced and added fields, and a new target.
//!
//! The head itself stays as it was received, so that later readers (conditions, the access log) see the original. Edits
//! are collected while rules run and applied when the head is written; the buffers are reused, so nothing is allocated
//! once they have grown.

use crate::chars::is_alike;
use crate::connection_authentication;
use crate::fields::may_be_trailer_of_client;
use crate::message::Span;
use crate::path::{encode_raw_bytes, has_raw_bytes};

/// Changes to the fields of one head, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub struct FieldEdits {
    /// Names and values.
    text: Vec<u8>,
    /// Names whose received lines are not forwarded.
    withheld: Vec<WithheldField>,
    /// The names of fields whose values are edited in place, so that trailers of these names are dropped too.
    changed: Vec<Span>,
    added: Vec<Line>,
}

/// The result for a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The field stays unchanged.
    None,
    /// Another value replaces the field's value.
    Changed,
    /// The field is removed.
    Removed,
}

/// A line to be added.
#[derive(Debug, Clone, Copy)]
struct Line {
    name: Span,
    value: Span,
    /// The field was received, and is edited.
    is_received: bool,
}

/// A name whose received lines are not forwarded.
#[derive(Debug, Clone, Copy)]
struct WithheldField {
    name: Span,
    /// The fields are edited, and added again.
    is_changed: bool,
    /// The name is a prefix.
    is_prefix: bool,
}

impl WithheldField {
    fn has(&self, text: &[u8], name: &[u8]) -> bool {
        has_name(self.name.of(text), self.is_prefix, name)
    }
}

/// Whether a name is alike, or has this prefix.
fn has_name(of: &[u8], is_prefix: bool, name: &[u8]) -> bool {
    let start = if is_prefix { name.get(..of.len()) } else { Some(name) };
    start.is_some_and(|start| is_alike(start, of))
}

impl FieldEdits {
    /// No change.
    pub const NONE: Self =
        Self { text: Vec::new(), withheld: Vec::new(), changed: Vec::new(), added: Vec::new() };

    /// Removes all changes, and keeps the capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.withheld.clear();
        self.changed.clear();
        self.added.clear();
    }

    /// The capacity for text, in bytes.
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.withheld.is_empty() && self.added.is_empty()
    }

    /// Whether an added line has credentials that authenticate a connection, not only the request.
    #[inline]
    pub fn binds_connection(&self) -> bool {
        let is_bound = |line: &Line| {
            // Most requests get lines, and hardly any of them has a name of these lengths.
            connection_authentication::may_be_name(line.name.len())
                && connection_authentication::is_credentials(
                    line.name.of(&self.text),
                    line.value.of(&self.text),
                )
        };
        self.added.iter().any(is_bound)
    }

    /// Removes every line of this name: those received, and those added so far.
    pub fn remove(&mut self, name: &[u8]) {
        let text = &self.text;
        self.added.retain(|line| !line.name.of(text).eq_ignore_ascii_case(name));
        let mut is_withheld = false;
        for withheld in self.withheld.iter_mut().filter(|it| it.has(text, name)) {
            // Changes to its lines are dropped for good, also for later messages.
            (withheld.is_changed, is_withheld) = (false, true);
        }
        if !is_withheld {
            let name = self.push(name);
            self.withheld.push(WithheldField { name, is_changed: false, is_prefix: false });
        }
    }

    /// Withholds the received lines of this name. Lines that were added under it stay.
    pub fn withhold_received(&mut self, name: &[u8]) {
        let text = &self.text;
        self.added
            .retain(|line| !(line.is_received && line.name.of(text).eq_ignore_ascii_case(name)));
        let name = self.push(name);
        self.withheld.push(WithheldField { name, is_changed: false, is_prefix: false });
    }

    /// As [`Self::remove`], for every name with this prefix.
    pub fn remove_prefix(&mut self, prefix: &[u8]) {
        let text = &self.text;
        self.added.retain(|line| !has_name(prefix, true, line.name.of(text)));
        let name = self.push(prefix);
        self.withheld.push(WithheldField { name, is_changed: false, is_prefix: true });
    }

    /// Drops the changes to received lines: another message replaces them.
    pub fn forget_received(&mut self) {
        self.added.retain(|line| !line.is_received);
        self.withheld.retain(|withheld| !withheld.is_changed);
        self.changed.clear();
    }

    /// Adds a line behind all others. `write` appends the value; the caller makes sure that it has no control
    /// control characters except tabs.
    pub fn add(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let name = self.push(name);
        let start = self.text.len();
        write(&mut self.text);
        debug_assert!(
            !self.text[start..].iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)),
            "a value that would split the head"
        );
        let value = Span::new(start, self.text.len());
        self.added.push(Line { name, value, is_received: false });
    }

    /// Makes this the only line of its name.
    pub fn set(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.remove(name);
        self.add(name, write);
    }

    /// Changes the value of every line of this name that would be forwarded, received ones and those added so far.
    /// `change` appends the new value; `scratch` is a buffer for it.
    pub fn change_each<'v>(
        &mut self,
        name: &[u8],
        received: impl Iterator<Item = &'v [u8]>,
        scratch: &mut Vec<u8>,
        mut change: impl FnMut(&[u8], &mut Vec<u8>) -> Change,
    ) {
        let before = self.added.len();
        if !self.withholds(name) {
            let start = self.text.len();
            let spelling = self.push(name);
            let mut is_same = true;
            for value in received {
                let start = self.text.len();
                let what = change(value, &mut self.text);
                debug_assert!(
                    !self.text[start..].iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)),
                    "a value that would split the head"
                );
                is_same &= what == Change::None;
                if what == Change::None {
                    self.text.truncate(start);
                    self.text.extend_from_slice(value);
                }
                if what != Change::Removed {
                    let value = Span::new(start, self.text.len());
                    self.added.push(Line { name: spelling, value, is_received: true });
                }
            }
            if is_same {
                self.added.truncate(before);
                self.text.truncate(start);
            } else {
                self.withheld.push(WithheldField {
                    name: spelling,
                    is_changed: true,
                    is_prefix: false,
                });
            }
        }
        let mut index = 0;
        let mut left = before;
        while index < left {
            let line = self.added[index];
            if !line.name.of(&self.text).eq_ignore_ascii_case(name) {
                index += 1;
                continue;
            }
            scratch.clear();
            scratch.extend_from_slice(line.value.of(&self.text));
            let start = self.text.len();
            match change(scratch, &mut self.text) {
                Change::None => self.text.truncate(start),
                Change::Changed => self.added[index].value = Span::new(start, self.text.len()),
                Change::Removed => {
                    self.text.truncate(start);
                    self.added.remove(index);
                    left -= 1;
                    continue;
                }
            }
            index += 1;
        }
    }

    /// Whether received lines of this name are not forwarded. This includes names with underscores instead of hyphens,
    /// because members that convert names to CGI variables cannot distinguish them.
    #[inline]
    pub fn withholds(&self, name: &[u8]) -> bool {
        self.withheld.iter().any(|withheld| withheld.has(&self.text, name))
    }

    /// Whether some change also [applies to trailers](FieldNames).
    pub fn hold_for_trailers(&self) -> bool {
        !self.withheld.is_empty() || !self.changed.is_empty()
    }

    /// Records that received values of this name are edited in place, which is not done for trailers.
    pub fn note_changed(&mut self, name: &[u8]) {
        let name = self.push(name);
        self.changed.push(name);
    }

    /// The lines added so far.
    pub fn added(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.added.iter().map(|line| (line.name.of(&self.text), line.value.of(&self.text)))
    }

    fn push(&mut self, bytes: &[u8]) -> Span {
        let start = self.text.len();
        self.text.extend_from_slice(bytes);
        Span::new(start, self.text.len())
    }
}

/// Names of the fields that the edits of a head concern, stored for the trailers after its body.
#[derive(Debug, Clone, Default)]
pub struct FieldNames {
    text: Vec<u8>,
    /// The names, each with whether it is a prefix.
    names: Vec<(Span, bool)>,
}

impl FieldNames {
    /// Adds the names whose received lines the edits withhold or change.
    pub fn note(&mut self, edits: &FieldEdits) {
        let withheld = edits.withheld.iter().map(|withheld| (withheld.name, withheld.is_prefix));
        for (name, is_prefix) in withheld.chain(edits.changed.iter().map(|name| (*name, false))) {
            let start = self.text.len();
            self.text.extend_from_slice(name.of(&edits.text));
            self.names.push((Span::new(start, self.text.len()), is_prefix));
        }
    }

    /// As [`note`](Self::note), with the names of added lines: nothing that weir tells a member may come a second time
    /// from the client, behind its body.
    pub fn note_with_added(&mut self, edits: &FieldEdits) {
        self.note(edits);
        for (name, _) in edits.added() {
            let start = self.text.len();
            self.text.extend_from_slice(name);
            self.names.push((Span::new(start, self.text.len()), false));
        }
    }

    /// Removes all names, and keeps the capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.names.clear();
    }

    /// The capacity for text, in bytes.
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }

    /// Whether `name` is one of the names, or looks like one to CGI-like members.
    pub fn have(&self, name: &[u8]) -> bool {
        self.names.iter().any(|(noted, is_prefix)| has_name(noted.of(&self.text), *is_prefix, name))
    }
}

/// The fields of a trailer section to forward, among those that are [permitted](crate::fields).
#[derive(Debug, Clone, Copy)]
pub enum TrailerEdits<'a> {
    /// No fields.
    Drop,
    /// All fields.
    Keep,
    /// All fields except those that were withheld or changed in the head.
    KeepBut(&'a FieldNames),
    /// Fields of a client that [say nothing about it](crate::fields), except those that were withheld, changed or
    /// added in the head.
    OfClient(Option<&'a FieldNames>),
}

impl TrailerEdits<'_> {
    /// Whether a field of this name is forwarded.
    pub fn let_pass(&self, name: &[u8]) -> bool {
        match self {
            Self::Drop => false,
            Self::Keep => true,
            Self::KeepBut(names) => !names.have(name),
            Self::OfClient(names) => {
                may_be_trailer_of_client(name) && names.is_none_or(|names| !names.have(name))
            }
        }
    }
}

/// A part of a request's target that was replaced.
#[derive(Debug, Clone, Default)]
struct ReplacedPart {
    is_given: bool,
    bytes: Vec<u8>,
}

impl ReplacedPart {
    const NOT: Self = Self { is_given: false, bytes: Vec::new() };

    fn give(&mut self) -> &mut Vec<u8> {
        self.is_given = true;
        self.bytes.clear();
        &mut self.bytes
    }

    fn get(&self) -> Option<&[u8]> {
        self.is_given.then_some(&*self.bytes)
    }
}

/// Changes to one request head.
#[derive(Debug, Clone, Default)]
pub struct RequestEdits {
    /// Edits of the fields.
    pub fields: FieldEdits,
    path: ReplacedPart,
    query: ReplacedPart,
    authority: ReplacedPart,
}

impl RequestEdits {
    /// No change.
    pub const NONE: Self = Self {
        fields: FieldEdits::NONE,
        path: ReplacedPart::NOT,
        query: ReplacedPart::NOT,
        authority: ReplacedPart::NOT,
    };

    /// Removes all changes, and keeps the capacity.
    pub fn clear(&mut self) {
        self.fields.clear();
        for given in [&mut self.path, &mut self.query, &mut self.authority] {
            given.is_given = false;
        }
    }

    /// Whether the edits change nothing visible in the head.
    pub fn is_empty(&self) -> bool {
        let given = [&self.path, &self.query, &self.authority];
        self.fields.is_empty() && given.iter().all(|given| !given.is_given)
    }

    /// The new path; `None`: unchanged.
    pub fn path(&self) -> Option<&[u8]> {
        self.path.get()
    }

    /// The new query; `Some` of an empty text: no query. `None`: unchanged.
    pub fn query(&self) -> Option<&[u8]> {
        self.query.get()
    }

    /// The new host and port; `None`: unchanged.
    pub fn authority(&self) -> Option<&[u8]> {
        self.authority.get()
    }

    /// Sets another path: the contents of the returned buffer, which must be canonical.
    pub fn path_mut(&mut self) -> &mut Vec<u8> {
        self.path.give()
    }

    /// Sets another query: the contents of the returned buffer, without a question mark and without bytes that are not
    /// allowed in a query.
    pub fn query_mut(&mut self) -> &mut Vec<u8> {
        self.query.give()
    }

    /// Encodes the [raw bytes](crate::path::RawBytes) of a new query.
    pub fn encode_query(&mut self) {
        if let Some(query) = self.query.get().filter(|query| has_raw_bytes(query)) {
            let raw = query.to_vec();
            encode_raw_bytes(&raw, self.query.give());
        }
    }

    /// Sets another host: the contents of the returned buffer, which must be a valid host.
    pub fn authority_mut(&mut self) -> &mut Vec<u8> {
        self.authority.give()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(edits: &FieldEdits) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        edits.added().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
    }

    #[test]
    fn the_last_change_of_a_field_counts() {
        let mut edits = FieldEdits::default();
        assert!(edits.is_empty());
        edits.add(b"X-A", |out| out.extend_from_slice(b"1"));
        edits.add(b"x-a", |out| out.extend_from_slice(b"2"));
        assert_eq!(lines(&edits), ["X-A: 1", "x-a: 2"]);
        assert!(!edits.withholds(b"X-A"));
        edits.set(b"X-a", |out| out.extend_from_slice(b"3"));
        assert_eq!(lines(&edits), ["X-a: 3"]);
        assert!(edits.withholds(b"x-A"));
        edits.remove(b"X-A");
        edits.remove(b"X-A");
        assert_eq!(lines(&edits), [""; 0]);
        assert!(edits.withholds(b"X-A") && !edits.is_empty());
        edits.clear();
        assert!(edits.is_empty() && !edits.withholds(b"X-A"));
    }

    #[test]
    fn values_are_changed_wherever_they_are() {
        let shout = |value: &[u8], out: &mut Vec<u8>| match value {
            b"gone" => Change::Removed,
            b"same" => Change::None,
            _ => {
                out.extend(value.iter().map(u8::to_ascii_uppercase));
                Change::Changed
            }
        };
        let mut edits = FieldEdits::default();
        let mut scratch = Vec::new();
        edits.change_each(b"x", [&b"same"[..]].into_iter(), &mut scratch, shout);
        assert!(edits.is_empty());
        edits.add(b"X", |out| out.extend_from_slice(b"gone"));
        edits.add(b"X", |out| out.extend_from_slice(b"added"));
        edits.add(b"Y", |out| out.extend_from_slice(b"other"));
        let received: [&[u8]; 3] = [b"same", b"a", b"gone"];
        edits.change_each(b"x", received.into_iter(), &mut scratch, shout);
        assert_eq!(lines(&edits), ["X: ADDED", "Y: other", "x: same", "x: A"]);
        assert!(edits.withholds(b"X"));
        edits.change_each(b"X", received.into_iter(), &mut scratch, shout);
        assert_eq!(lines(&edits), ["X: ADDED", "Y: other", "x: same", "x: A"]);
    }

    #[test]
    fn lines_are_removed_by_the_beginning_of_their_names() {
        let mut edits = FieldEdits::default();
        edits.add(b"X-Internal-A", |out| out.extend_from_slice(b"1"));
        edits.add(b"X-Other", |out| out.extend_from_slice(b"2"));
        edits.remove_prefix(b"X-Internal-");
        edits.add(b"x-internal-b", |out| out.extend_from_slice(b"3"));
        assert_eq!(lines(&edits), ["X-Other: 2", "x-internal-b: 3"]);
        let mut names = FieldNames::default();
        names.note(&edits);
        for (name, expected) in [
            ("X-Internal-A", true),
            ("x_internal.a", true),
            ("X-Internal-", true),
            ("X-Internal", false),
            ("X-Other", false),
        ] {
            assert_eq!(edits.withholds(name.as_bytes()), expected, "{name}");
            assert_eq!(names.have(name.as_bytes()), expected, "{name} in trailers");
        }
    }

    #[test]
    fn what_was_made_of_received_lines_is_taken_back() {
        let double = |value: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(&value.repeat(2));
            Change::Changed
        };
        let mut edits = FieldEdits::default();
        edits.add(b"X", |out| out.extend_from_slice(b"own"));
        edits.set(b"Y", |out| out.extend_from_slice(b"set"));
        edits.remove(b"Z");
        edits.change_each(b"X", [&b"a"[..]].into_iter(), &mut Vec::new(), double);
        edits.change_each(b"W", [&b"b"[..]].into_iter(), &mut Vec::new(), double);
        assert_eq!(lines(&edits), ["X: ownown", "Y: set", "X: aa", "W: bb"]);
        edits.forget_received();
        assert_eq!(lines(&edits), ["X: ownown", "Y: set"]);
        let withheld = [b"W", b"X", b"Y", b"Z"].map(|name| edits.withholds(name));
        assert_eq!(withheld, [false, false, true, true]);
    }

    #[test]
    fn what_is_removed_or_set_after_a_change_stays_so() {
        let double = |value: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(&value.repeat(2));
            Change::Changed
        };
        let mut edits = FieldEdits::default();
        for name in [b"X", b"Y", b"W"] {
            edits.change_each(name, [&b"a"[..]].into_iter(), &mut Vec::new(), double);
        }
        edits.set(b"x", |out| out.extend_from_slice(b"set"));
        edits.remove(b"Y");
        edits.forget_received();
        assert_eq!(lines(&edits), ["x: set"]);
        assert_eq!([b"W", b"X", b"Y"].map(|name| edits.withholds(name)), [false, true, true]);
    }

    #[test]
    fn parts_of_the_target_are_given_or_left() {
        let mut edits = RequestEdits::default();
        edits.query_mut();
        edits.path_mut().extend_from_slice(b"/a");
        edits.path_mut().extend_from_slice(b"/b");
        assert_eq!(
            (edits.path(), edits.query(), edits.authority()),
            (Some(&b"/b"[..]), Some(&b""[..]), None)
        );
        edits.clear();
        assert_eq!((edits.path(), edits.query(), edits.authority()), (None, None, None));
    }
}
