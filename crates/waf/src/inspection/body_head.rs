//! The body-related fields of a request's head.

use crate::body;
use crate::coding::{self, Coding};

/// How to read a body, according to the request's head.
#[derive(Debug, Default)]
pub(super) struct BodyHead {
    /// The last Content-Type.
    pub content_type: Vec<u8>,
    /// Content codings, in the order in which they were applied.
    pub codings: Vec<Coding>,
    /// Why the body cannot be decoded, if it cannot.
    pub unreadable: Option<&'static str>,
    /// Why servers may interpret the body differently, if they may.
    pub doubt: Option<&'static str>,
    pub has_types: bool,
    has_type: bool,
    has_encoding: bool,
}

impl BodyHead {
    /// Adds a Content-Type field. With several, servers differ in the one they use.
    pub fn content_type_is(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.has_type, true) {
            self.has_types = true;
            self.unreadable.get_or_insert("The request has several Content-Type headers.");
        }
        if !body::has_readable_charset(value) {
            self.doubt.get_or_insert("The body has a charset that rules cannot read.");
        }
        self.content_type = value.to_vec();
    }

    /// Adds a Content-Encoding field. Servers differ in how they treat several fields, although these form one list.
    pub fn encoding_is(&mut self, value: &[u8]) {
        let is_second = std::mem::replace(&mut self.has_encoding, true);
        match coding::codings(value) {
            Ok(codings) if !is_second => self.codings = codings,
            Ok(codings) if codings.is_empty() && self.codings.is_empty() => {}
            Ok(_) => {
                let reason = "The request has several Content-Encoding headers.";
                self.unreadable.get_or_insert(reason);
            }
            Err(problem) => {
                self.unreadable.get_or_insert(problem.sentence());
            }
        }
    }
}
