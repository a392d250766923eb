//! The fields of a request head that describe the body.

use crate::body::Charset;
use crate::coding::{self, Coding};

/// How the body is parsed, according to the request head.
#[derive(Debug, Default)]
pub(super) struct BodyHead {
    /// The value of the last Content-Type field.
    pub content_type: Vec<u8>,
    /// The content codings, in the order in which they were applied.
    pub codings: Vec<Coding>,
    /// The reason why the body cannot be inspected; `None`: it can.
    pub unreadable: Option<&'static str>,
    pub charset: Charset,
    /// The length of the body, if it is known.
    pub bytes: Option<u64>,
    pub has_types: bool,
    has_type: bool,
    has_encoding: bool,
}

impl BodyHead {
    /// Adds a Content-Type field. If there are several, servers disagree on the one that applies.
    pub fn content_type_is(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.has_type, true) {
            self.has_types = true;
            self.unreadable.get_or_insert("The request has several Content-Type headers.");
        }
        self.charset = Charset::of(value);
        self.content_type = value.to_vec();
    }

    /// Adds a Content-Encoding field. Servers disagree on several fields, although these form one list.
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
