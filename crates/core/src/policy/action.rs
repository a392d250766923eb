//! Compiled actions of rules.

use std::sync::Arc;

use weir_http::cookie_attributes::{CookieAttributes, NamePattern};

use super::authenticator::Authenticator;
use super::split::Split;
use super::subrequest::Subrequest;
use crate::body_edit::BodyEdit;
use crate::expression::{Reads, Replacement, Template};

/// An action of a rule.
///
/// Most questions below are lists of some actions: the compiler does not ask them about a new one. An action that
/// [`Action::is_for_request`] does not name is refused in rules that read the response.
#[derive(Debug, Clone)]
pub enum Action {
    /// The pool that gets the request.
    Pool(PoolChoice),
    /// The member that gets the request, by its label.
    Member(Arc<str>),
    /// The persistence of the request, by its index in the snapshot; `None`: no persistence.
    Persistence(Option<u32>),
    /// The request counts against the rate limit of this index.
    RateLimit(u32),
    /// Another path for the member.
    RewritePath(Rewrite),
    /// Another query.
    RewriteQuery(Rewrite),
    /// Another host.
    RewriteHost(Rewrite),
    /// Request cookies that the member does not get.
    RemoveCookies(Arc<[Box<[u8]>]>),
    /// A change to a field of the request.
    RequestField(FieldAction),
    /// A change to a field of the response.
    ResponseField(FieldAction),
    /// A cookie for the client.
    SetCookie(Arc<CookieTemplate>),
    /// Attributes of cookies that the response sets.
    CookieAttributes(Arc<NamedCookies>),
    /// Text is replaced in the body of the response.
    ReplaceBody(Arc<BodyEdit>),
    /// The response is not compressed.
    LeaveUncompressed,
    /// The mode of the web application firewall for the request.
    Inspection(WafMode),
    /// A line in the event log.
    Log(Template),
    /// A mark in the access log.
    Trace(Template),
    /// Requires authentication, or refuses the request.
    Authenticate(Arc<Authenticator>),
    /// weir makes a request of its own for the request.
    Subrequest(Subrequest),
    /// An answer in place of a member's.
    Answer(Arc<Answer>),
    /// Another virtual server decides about the request, by its index in the snapshot.
    VirtualServer(u32),
    /// The connection ends without an answer.
    Close,
    /// The connection is reset.
    Reset,
}

/// The destination of a request.
#[derive(Debug, Clone)]
pub enum PoolChoice {
    /// To this pool, by its index in the snapshot.
    One(u32),
    /// To one of several pools.
    Split(Arc<Split>),
}

impl Action {
    /// The pools that the choice may give, by their indexes.
    pub fn pools(&self) -> impl Iterator<Item = usize> {
        let (one, split) = match self {
            Self::Pool(PoolChoice::One(pool)) => (Some(*pool as usize), None),
            Self::Pool(PoolChoice::Split(split)) => (None, Some(split)),
            _ => (None, None),
        };
        one.into_iter().chain(split.into_iter().flat_map(|split| split.pools()))
    }

    /// The request of weir's own that the action makes.
    pub fn subrequest(&self) -> Option<&Subrequest> {
        match self {
            Self::Subrequest(subrequest) => Some(subrequest),
            _ => None,
        }
    }

    /// Whether the action requires authentication.
    pub fn authenticates(&self) -> bool {
        matches!(self, Self::Authenticate(_)) || self.subrequest().is_some_and(Subrequest::is_check)
    }

    /// The virtual server that decides about the request, by its index.
    pub fn virtual_server(&self) -> Option<usize> {
        match self {
            Self::VirtualServer(server) => Some(*server as usize),
            _ => None,
        }
    }

    /// Whether the action ends the evaluation of rules.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Answer(_) | Self::VirtualServer(_) | Self::Close | Self::Reset)
    }

    /// Whether the action ends the request at its virtual server. An answer that reads the response does not: it replaces
    /// the response later.
    pub fn ends_request(&self) -> bool {
        self.is_end() && !self.reads_response()
    }

    /// Whether the action changes the head of every response.
    pub fn edits_response(&self) -> bool {
        matches!(self, Self::ResponseField(_) | Self::SetCookie(_) | Self::CookieAttributes(_))
    }

    /// The values that the action's templates read.
    pub fn reads(&self) -> Reads {
        match self {
            Self::RewritePath(how) | Self::RewriteQuery(how) | Self::RewriteHost(how) => {
                how.reads()
            }
            Self::RequestField(field) | Self::ResponseField(field) => match &field.change {
                FieldChange::Set(text) | FieldChange::Add(text) => text.reads(),
                FieldChange::Rewrite(how) => how.reads(),
                FieldChange::Remove | FieldChange::RemovePrefix => Reads::default(),
            },
            Self::SetCookie(cookie) => cookie.value.reads(),
            Self::Log(text) | Self::Trace(text) => text.reads(),
            Self::Answer(answer) => {
                let in_fields: Reads = answer.fields.iter().map(|(_, text)| text.reads()).collect();
                match &answer.body {
                    Body::Text(text) => in_fields | text.reads(),
                    Body::None | Body::Bytes(_) => in_fields,
                }
            }
            Self::Pool(_)
            | Self::Member(_)
            | Self::Persistence(_)
            | Self::RateLimit(_)
            | Self::RemoveCookies(_)
            | Self::CookieAttributes(_)
            | Self::ReplaceBody(_)
            | Self::LeaveUncompressed
            | Self::Inspection(_)
            | Self::Authenticate(_)
            | Self::Subrequest(_)
            | Self::VirtualServer(_)
            | Self::Close
            | Self::Reset => Reads::default(),
        }
    }

    /// Whether a template of the action reads the response.
    pub fn reads_response(&self) -> bool {
        self.reads().response
    }

    /// Whether the action changes or reads fields of a response, and therefore needs one.
    pub fn needs_response(&self) -> bool {
        let rewrites = |field: &FieldAction| matches!(field.change, FieldChange::Rewrite(_));
        self.reads_response()
            || matches!(self, Self::CookieAttributes(_))
            || matches!(self, Self::ResponseField(field) if rewrites(field))
    }

    /// Whether the action changes the request, and therefore has no effect at a response. An answer does not count: it may
    /// replace a member's response.
    pub fn is_for_request(&self) -> bool {
        !matches!(
            self,
            Self::ResponseField(_)
                | Self::SetCookie(_)
                | Self::CookieAttributes(_)
                | Self::ReplaceBody(_)
                | Self::LeaveUncompressed
                | Self::Log(_)
                | Self::Trace(_)
                | Self::Answer(_)
        )
    }
}

/// The mode of the web application firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WafMode {
    /// No inspection.
    Off,
    /// Findings are logged and counted.
    Detect,
    /// As `Detect`, and requests with findings do not reach the member.
    Block,
}

impl WafMode {
    /// The name in the configuration and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Detect => "detect",
            Self::Block => "block",
        }
    }
}

/// A change to the fields of one name.
#[derive(Debug, Clone)]
pub struct FieldAction {
    /// The field's name as it is sent.
    pub name: Arc<str>,
    /// The change.
    pub change: FieldChange,
}

/// A change of the fields of a name.
#[derive(Debug, Clone)]
pub enum FieldChange {
    /// The fields are replaced by one with this value.
    Set(Template),
    /// A field with this value is added.
    Add(Template),
    /// The fields are removed.
    Remove,
    /// All fields whose names begin with the name are removed.
    RemovePrefix,
    /// The values of existing fields are changed.
    Rewrite(Rewrite),
}

/// A change of a text.
#[derive(Debug, Clone)]
pub enum Rewrite {
    /// The text is replaced by another one.
    Text(Template),
    /// Each match of a pattern is replaced; a text without a match stays as it is.
    Pattern(Arc<Replacement>),
}

impl Rewrite {
    fn reads(&self) -> Reads {
        match self {
            Self::Text(text) => text.reads(),
            Self::Pattern(_) => Reads::default(),
        }
    }
}

/// Cookies by their names, and the attributes to set.
#[derive(Debug, Clone)]
pub struct NamedCookies {
    /// The names of the cookies; empty: all.
    pub names: Vec<NamePattern>,
    /// The attributes.
    pub attributes: CookieAttributes,
}

/// A cookie for the client: its value, and the texts before and after the value.
#[derive(Debug, Clone)]
pub struct CookieTemplate {
    /// `name=`
    pub before: Box<[u8]>,
    /// The value.
    pub value: Template,
    /// `; Path=/; HttpOnly`, without Secure.
    pub after: Box<[u8]>,
    /// Whether the cookie gets the Secure attribute.
    pub secure: Secure,
}

/// When a cookie gets the Secure attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secure {
    /// If the request came over TLS.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Secure {
    /// Whether the cookie gets the attribute; `is_tls`: the request came over TLS.
    pub fn holds(self, is_tls: bool) -> bool {
        match self {
            Self::Auto => is_tls,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// An answer of weir's own.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Body,
    /// Fields: names and values.
    pub fields: Vec<(Arc<str>, Template)>,
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub enum Body {
    /// No body from the rule.
    None,
    /// From a template.
    Text(Template),
    /// A constant body: the contents of a file when the configuration was read.
    Bytes(Arc<[u8]>),
}
