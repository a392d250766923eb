//! What a request's head says of its body.

use crate::body;
use crate::coding::{self, Coding};

/// How a body is to be read, by its head.
#[derive(Debug, Default)]
pub(super) struct BodyHead {
    /// The last Content-Type.
    pub content_type: Vec<u8>,
    /// How it is encoded, in the order in which that was done.
    pub codings: Vec<Coding>,
    /// Why nothing can be said of it, if that is so.
    pub unreadable: Option<&'static str>,
    /// Why servers may see something else in it, if that is so.
    pub doubt: Option<&'static str>,
    pub has_types: bool,
    has_type: bool,
    has_encoding: bool,
}

impl BodyHead {
    /// Takes a Content-Type. Servers differ in which of several they go by.
    pub fn content_type_is(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.has_type, true) {
            self.has_types = true;
            self.unreadable.get_or_insert("The request has several Content-Type fields.");
        }
        if !body::has_readable_charset(value) {
            self.doubt.get_or_insert("The body has a charset that rules cannot read.");
        }
        self.content_type = value.to_vec();
    }

    /// Takes a Content-Encoding. Servers differ in what they make of several, though they are one list.
    pub fn encoding_is(&mut self, value: &[u8]) {
        let is_second = std::mem::replace(&mut self.has_encoding, true);
        match coding::codings(value) {
            Ok(codings) if !is_second => self.codings = codings,
            Ok(codings) if codings.is_empty() && self.codings.is_empty() => {}
            Ok(_) => {
                let reason = "The request has several Content-Encoding fields.";
                self.unreadable.get_or_insert(reason);
            }
            Err(problem) => {
                self.unreadable.get_or_insert(problem.sentence());
            }
        }
    }
}
