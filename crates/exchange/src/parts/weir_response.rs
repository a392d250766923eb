//! Responses of weir's own, and other ends of an exchange without the response of a member.

use std::borrow::Cow;
use std::sync::Arc;

use weir_config::snapshot::Page;
use weir_core::policy::{AnswerBody, Decision, End};
use weir_http::edits::FieldEdits;

use crate::local::table::LocalServer;
use crate::termination::Termination;

/// How an exchange ends without the response of a member.
pub enum ExchangeEnd<'a> {
    /// With a response of weir's own.
    Response(WeirResponse<'a>),
    /// Without a response: the client connection ends.
    Cut {
        /// The reason.
        termination: Termination,
        /// Whether the connection ends with a reset.
        must_reset: bool,
    },
}

impl ExchangeEnd<'_> {
    /// This end is meant by whoever configured weir: with a status of 5xx it is no failure.
    pub fn meant(mut self) -> Self {
        if let Self::Response(response) = &mut self {
            response.is_meant = true;
        }
        self
    }
}

/// A response of weir's own: why, and what the client gets.
pub struct WeirResponse<'a> {
    /// The status.
    pub status: u16,
    /// The reason.
    pub termination: Termination,
    /// Its fields.
    pub fields: Cow<'a, FieldEdits>,
    /// Its body.
    pub body: WeirResponseBody<'a>,
    /// With a status of 5xx it is no failure: a page for maintenance.
    pub is_meant: bool,
}

/// The body of a response of weir's own.
pub enum WeirResponseBody<'a> {
    /// A line that says the status.
    StatusLine,
    /// The content of a page.
    Page(Arc<[u8]>),
    /// This text.
    Text(Cow<'a, [u8]>),
}

impl WeirResponseBody<'_> {
    /// Its bytes; `None`: a line that says the status.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::StatusLine => None,
            Self::Page(bytes) => Some(bytes),
            Self::Text(bytes) => Some(bytes),
        }
    }
}

impl WeirResponse<'static> {
    /// With the virtual server's page for the status, if it has one.
    pub fn new(server: &LocalServer, status: u16, termination: Termination) -> Self {
        Self::with_fields(server, status, termination, FieldEdits::NONE)
    }

    /// As [`Self::new`], with further fields.
    pub fn with_fields(
        server: &LocalServer,
        status: u16,
        termination: Termination,
        fields: FieldEdits,
    ) -> Self {
        match server.error_page(status) {
            Some(page) => Self::with_page(status, termination, page, fields),
            None => Self::of(status, termination, fields, WeirResponseBody::StatusLine),
        }
    }

    /// With this page.
    pub fn with_page(
        status: u16,
        termination: Termination,
        page: Page,
        mut fields: FieldEdits,
    ) -> Self {
        add_content_type(&mut fields, &page);
        Self::of(status, termination, fields, WeirResponseBody::Page(page.body))
    }

    /// With these fields and this body.
    pub fn with_text(
        status: u16,
        termination: Termination,
        fields: FieldEdits,
        text: Vec<u8>,
    ) -> Self {
        Self::of(status, termination, fields, WeirResponseBody::Text(Cow::Owned(text)))
    }

    /// With a line that says the status, whatever pages there are.
    pub fn without_page(status: u16, termination: Termination) -> Self {
        Self::of(status, termination, FieldEdits::NONE, WeirResponseBody::StatusLine)
    }

    fn of(
        status: u16,
        termination: Termination,
        fields: FieldEdits,
        body: WeirResponseBody<'static>,
    ) -> Self {
        Self { status, termination, fields: Cow::Owned(fields), body, is_meant: false }
    }
}

impl<'a> WeirResponse<'a> {
    /// The answer that policies have decided, with the page for its status if it has no body of its own. `None`: they have decided
    /// otherwise.
    pub fn decided(
        server: &LocalServer,
        decision: &'a mut Decision,
        termination: Termination,
    ) -> Option<Self> {
        let Decision { end, answer: fields, body: made, .. } = decision;
        let Some(End::Answer { status, body }) = end else {
            debug_assert!(false, "it ends otherwise");
            return None;
        };
        let body = match body {
            AnswerBody::Fixed(bytes) => WeirResponseBody::Text(Cow::Borrowed(bytes)),
            AnswerBody::Made => WeirResponseBody::Text(Cow::Borrowed(made)),
            AnswerBody::None => match server.error_page(*status) {
                Some(Page { content_type, body }) => {
                    fields.set(b"Content-Type", |out| {
                        out.extend_from_slice(content_type.as_bytes());
                    });
                    WeirResponseBody::Page(body)
                }
                None => WeirResponseBody::Text(Cow::Borrowed(b"")),
            },
        };
        let (status, fields) = (*status, Cow::Borrowed(&*fields));
        Some(Self { status, termination, fields, body, is_meant: false })
    }
}

/// Adds the media type of a page.
pub fn add_content_type(fields: &mut FieldEdits, page: &Page) {
    fields.add(b"Content-Type", |out| out.extend_from_slice(page.content_type.as_bytes()));
}
