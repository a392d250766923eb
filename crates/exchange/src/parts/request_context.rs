//! Data of a request that policies or persistence need later, stored outside its exchange.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_core::expression::{Facts, ResponseFacts};
use weir_core::persistence::cookie::OtherTokens;
use weir_core::policy::{Decision, LaterEffects};
use weir_http::edits::FieldNames;
use weir_http::message::{RequestHead, Scheme};

use crate::local::client_tls::ClientTls;
use crate::local::key_limits::LimitPlace;
use crate::local::location::Names;
use crate::local::stickiness::{PersistenceResult, Stickiness};
use crate::local::surroundings::{RequestSurroundings, SeedAndTime};
use crate::local::table::LocalServer;
use crate::parts::identity::Identity;
use crate::parts::request_trace::RequestTrace;
use crate::parts::stage_work::StageWork;

/// Maximum number of spare boxes.
pub const SPARE_MAX: usize = 256;
/// A box with more memory is freed instead of kept.
pub const SPARE_BYTES_MAX: usize = 16 * 1024;

/// Data of a request that is needed later. Boxes are reused with their capacity, so [`RequestContext::clear`] empties each field.
///
/// What a rule may decide because of the user is also dropped by [`RequestContext::forget_what_is_for_the_unchecked`]: rules
/// read the user before the password is checked.
#[derive(Debug, Default)]
pub struct RequestContext {
    /// What was decided with the request for its response and for the access log.
    pub later: LaterEffects,
    /// The numbers of rules that were followed, for the access log.
    pub followed: Vec<u32>,
    /// The request id from a trusted proxy; empty: the request has a number.
    pub request_id: Box<[u8]>,
    /// Its trace context.
    pub traced: Option<Box<RequestTrace>>,
    /// The persistence of the client.
    pub stickiness: Option<Stickiness>,
    /// The result of persistence; `None`: no member has responded.
    pub kept: Option<PersistenceResult>,
    /// Tokens of other pools in the cookie.
    pub other_tokens: OtherTokens,
    /// Whether it arrived over TLS.
    pub is_secure: bool,
    /// Its places under limits.
    pub limit_places: Vec<LimitPlace>,
    /// Fields that were changed in the request's head, so they must not appear in trailers.
    pub request_names: FieldNames,
    /// Fields that were changed in the response's head.
    pub response_names: FieldNames,
    /// The names of the server in URLs, if responses are changed by them.
    pub names: Names,
    /// The user, if authentication was required.
    pub identity: Option<Box<Identity>>,
    /// The virtual server of the listener, if another one decides.
    pub entered_at: Option<Rc<LocalServer>>,
    /// What its stages have to do; `None`: nothing.
    pub stage_work: Option<Box<StageWork>>,
    /// The request, if rules read it with the response.
    request: Option<Request>,
    has_request: bool,
}

/// A received request.
#[derive(Debug)]
struct Request {
    head: RequestHead,
    input: Vec<u8>,
    client: Option<SocketAddr>,
    server: Option<SocketAddr>,
    scheme: Scheme,
    tls: Option<Rc<ClientTls>>,
    known: SeedAndTime,
}

impl RequestContext {
    /// Takes over the decisions.
    pub fn take(&mut self, decision: &mut Decision, stickiness: Option<Stickiness>) {
        std::mem::swap(&mut self.later, &mut decision.later);
        std::mem::swap(&mut self.other_tokens, &mut decision.other_tokens);
        self.stickiness = stickiness;
    }

    /// Stores the request for rules that read it with the response.
    pub fn keep_request(
        &mut self,
        facts: &Facts<'_>,
        tls: Option<Rc<ClientTls>>,
        known: SeedAndTime,
    ) {
        let request = self.request.get_or_insert_with(|| Request {
            head: RequestHead::new(),
            input: Vec::new(),
            client: None,
            server: None,
            scheme: Scheme::Http,
            tls: None,
            known,
        });
        request.head.copy_from(facts.request);
        request.input.clear();
        request.input.extend_from_slice(facts.request_input);
        request.client = facts.client;
        request.server = facts.server;
        request.scheme = facts.scheme;
        request.tls = tls;
        request.known = known;
        self.has_request = true;
    }

    /// The random number and time that the request has used.
    pub fn known(&self) -> SeedAndTime {
        let request = self.request.as_ref().filter(|_| self.has_request);
        request.map_or_else(SeedAndTime::default, |request| request.known)
    }

    /// The stored request together with its response, as facts for rules.
    pub fn facts<'a>(
        &'a self,
        response: ResponseFacts<'a>,
        around: &'a RequestSurroundings<'a>,
    ) -> Option<Facts<'a>> {
        let request = self.request.as_ref().filter(|_| self.has_request)?;
        Some(Facts {
            request: &request.head,
            request_input: &request.input,
            client: request.client,
            server: request.server,
            scheme: request.scheme,
            tls: request.tls.as_deref().map(ClientTls::facts),
            response: Some(response),
            datagram: None,
            around,
            unix_s: self.identity.as_ref().and_then(|identity| identity.unix_s),
        })
    }

    /// Whether a check is pending, so that no decision takes effect yet.
    fn is_unchecked(&self) -> bool {
        self.stage_work.as_deref().is_some_and(StageWork::is_unchecked)
    }

    /// The user's name; empty: no user was authenticated by name.
    pub fn user(&self) -> &[u8] {
        let checked = self.identity.as_ref().filter(|_| !self.is_unchecked());
        checked.map_or(&[], |identity| &identity.user)
    }

    /// The user for the access log: also includes the user at the virtual server of the listener.
    pub fn logged_user(&self) -> &[u8] {
        let checked = self.identity.as_deref().filter(|_| !self.is_unchecked());
        match checked {
            Some(identity) if identity.user.is_empty() => &identity.entered_as,
            Some(identity) => &identity.user,
            None => &[],
        }
    }

    /// Drops all decisions that depend on a user whose check has not succeeded.
    pub fn forget_what_is_for_the_unchecked(&mut self) {
        if !self.is_unchecked() {
            return;
        }
        if let Some(identity) = self.identity.as_deref_mut() {
            identity.user = Box::default();
            identity.entered_as = Box::default();
        }
        self.later.clear();
    }

    /// The request is blocked by its head: no stage behind the inspection takes place, and nothing takes effect that depends on one.
    pub fn leave_out_later_stages(&mut self) {
        if self.stage_work.as_deref().is_some_and(StageWork::has_later_checks) {
            self.forget_what_is_for_the_unchecked();
        }
        if let Some(work) = &mut self.stage_work {
            work.leave_out_later();
        }
    }

    /// A check of the request has failed: no other is made, and nothing takes effect that depends on them.
    pub fn leave_out_checks(&mut self) {
        self.forget_what_is_for_the_unchecked();
        if let Some(work) = &mut self.stage_work {
            work.leave_out_checks();
        }
    }

    /// Empties it, and keeps the capacity.
    pub fn clear(&mut self) {
        self.later.clear();
        self.followed.clear();
        self.request_id = Box::default();
        self.traced = None;
        self.stickiness = None;
        self.kept = None;
        self.other_tokens.clear();
        self.is_secure = false;
        self.limit_places.clear();
        self.request_names.clear();
        self.response_names.clear();
        self.names.clear();
        self.identity = None;
        self.entered_at = None;
        self.stage_work = None;
        self.has_request = false;
    }

    /// The approximate memory of its buffers.
    pub fn kept_bytes(&self) -> usize {
        let request = self.request.as_ref().map_or(0, |request| request.input.capacity());
        let names = self.request_names.capacity() + self.response_names.capacity();
        let names = names + self.names.capacity();
        self.later.response.capacity() + self.later.marks.capacity() + names + request
    }
}
