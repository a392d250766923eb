//! The decisions of a virtual server's policies about one request and its response.

use std::sync::Arc;

use weir_http::cookie_attributes;
use weir_http::cookies::{self, RemainingCookies};
use weir_http::edits::{Change, FieldEdits, RequestEdits};
use weir_http::fields::forwarded_values;
use weir_http::is_authority;
use weir_http::path::{PathForm, rewritten};

use super::action::{
    Action, Answer, Body, CookieTemplate, FieldAction, FieldChange, NamedCookies, PoolChoice,
    Rewrite, WafMode,
};
use super::authenticator::Login;
use super::later_effects::LaterEffects;
use super::lines::Lines;
use super::rules::{Policy, Rules, Strategy};
use super::subrequest::Subrequest;
use crate::expression::{Evaluation, Facts, ReplaceResult, Template};
use crate::persistence::cookie::OtherTokens;

/// The decisions of the policies. It is reused from request to request, so [`Decision::clear`] empties each field.
///
/// What the response or the log needs is moved out before. `CONTRIBUTING.md` lists the places ("What outlives the decision").
#[derive(Debug, Default)]
pub struct Decision {
    /// Another pool than the virtual server's.
    pub pool: Option<PoolChoice>,
    /// The label of the member that gets the request.
    pub member: Option<Arc<str>>,
    /// Persistence other than the virtual server's; inner `None`: no persistence.
    pub persistence: Option<Option<u32>>,
    /// Rate limits that the request counts against.
    pub rate_limits: Vec<u32>,
    /// Changes to the request.
    pub request: RequestEdits,
    /// What takes effect later than the request: changes to the response, and marks.
    pub later: LaterEffects,
    /// The response is not compressed.
    pub is_uncompressed: bool,
    /// The mode of the web application firewall for the request, if a rule set one.
    pub inspection: Option<WafMode>,
    /// Tokens of other pools in the client's persistence cookie.
    pub other_tokens: OtherTokens,
    /// The end of the request by a rule; `None`: the request continues.
    pub end: Option<End>,
    /// The fields of an answer to the request.
    pub answer: FieldEdits,
    /// The body of an answer, if it was made from a template.
    pub body: Vec<u8>,
    /// The rules that were followed, by their numbers in the snapshot.
    pub followed: Vec<u32>,
    /// Lines for the event log.
    pub messages: Lines,
    /// Whether a rule was followed; otherwise there are no results.
    has_followed: bool,
    /// What is known about the request's user.
    pub authentication: Authentication,
    /// Requests of weir's own for the request.
    pub subrequests: Vec<Subrequest>,
    pub(super) work: PolicyBuffers,
}

/// What is known about the user of a request.
#[derive(Debug, Default)]
pub struct Authentication {
    /// Passwords that must be checked first.
    pub logins: Vec<Login>,
    /// The request is refused for lack of valid credentials.
    pub is_refused: bool,
}

/// Work buffers for following policies.
#[derive(Debug, Default)]
pub(super) struct PolicyBuffers {
    pub scratch: Vec<u8>,
    candidates: Vec<u32>,
    target: Target,
}

/// The request target while rules rewrite it.
#[derive(Debug, Default)]
struct Target {
    path: Vec<u8>,
    is_path_given: bool,
    is_too_long: bool,
}

impl Target {
    /// The path after the rewrites so far.
    fn path<'a>(&'a self, facts: &'a Facts<'_>) -> &'a [u8] {
        if self.is_path_given { &self.path } else { facts.request.member_path(facts.request_input) }
    }
}

/// The end of a request by policies.
#[derive(Debug, Clone)]
pub enum End {
    /// With an answer of this status; its fields are in [`Decision::answer`].
    Answer {
        /// The status.
        status: u16,
        /// The body.
        body: AnswerBody,
    },
    /// Another virtual server decides, by its index in the snapshot.
    VirtualServer(u32),
    /// The connection closes.
    Close,
    /// The connection is reset.
    Reset,
}

/// The part of a decision that stays valid when the request is handed over to another virtual server.
#[derive(Debug, Default)]
pub struct HandOver {
    /// The changes to the request.
    pub request: RequestEdits,
    /// Fields of the response, including cookies, that do not depend on the response.
    pub response: FieldEdits,
    /// The rules that were followed.
    pub followed: Vec<u32>,
    /// Marks for the access log.
    pub marks: Lines,
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub enum AnswerBody {
    /// No body: the error page for the status is used, if there is one.
    None,
    /// These bytes.
    Fixed(Arc<[u8]>),
    /// The body is in [`Decision::body`].
    Made,
}

/// The set of rules and actions to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All matching rules, with all their actions.
    All,
    /// All matching rules, but only their changes to the response: the request already has its answer.
    ResponseEdits,
    /// Only unconditional changes to the response: there is no request.
    Unconditional,
}

/// The reason why a rewritten request cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteError {
    /// The new path is not valid, or has a dot-segment.
    Path,
    /// The new query contains bytes that are not permitted in a query.
    Query,
    /// The new host is not valid.
    Host,
    /// A rewritten text is longer than the maximum length of a head.
    Length,
}

impl Decision {
    /// Removes everything and keeps the capacity.
    pub fn clear(&mut self) {
        self.pool = None;
        self.member = None;
        self.persistence = None;
        self.rate_limits.clear();
        self.request.clear();
        self.is_uncompressed = false;
        self.inspection = None;
        self.other_tokens.clear();
        self.end = None;
        self.answer.clear();
        if std::mem::take(&mut self.has_followed) {
            self.body.clear();
            self.followed.clear();
            self.messages.clear();
            self.later.clear();
        } else {
            self.later.response.clear();
        }
        self.work.target.is_path_given = false;
        self.work.target.is_too_long = false;
        self.subrequests.clear();
        self.authentication.logins.clear();
        self.authentication.is_refused = false;
    }

    /// Follows the policies for a request, up to an action that ends it. Later rules only change the response: such changes
    /// apply to every response. A rewritten path is parsed according to `form`, like the received path.
    ///
    /// # Errors
    /// The rewritten target is invalid; the request must not be sent.
    pub fn follow_request(
        &mut self,
        policies: &[Arc<Policy>],
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
        form: PathForm,
    ) -> Result<(), RewriteError> {
        for policy in policies {
            let extent = if self.end.is_some() { Extent::ResponseEdits } else { Extent::All };
            self.follow(&policy.request, evaluation, facts, extent);
            if self.is_unanswered() {
                return Ok(());
            }
        }
        match self.end {
            None | Some(End::VirtualServer(_)) => self.finish_target(form),
            Some(_) => Ok(()),
        }
    }

    /// The data for the other virtual server, if the request is handed over. The decision is empty afterwards.
    pub fn hand_over(&mut self) -> Option<HandOver> {
        let Some(End::VirtualServer(_)) = self.end else { return None };
        let over = HandOver {
            request: std::mem::take(&mut self.request),
            response: std::mem::take(&mut self.later.response),
            followed: std::mem::take(&mut self.followed),
            marks: std::mem::take(&mut self.later.marks),
        };
        self.clear();
        Some(over)
    }

    /// Makes only the changes to the response, for a request that was answered before its policies ran.
    pub fn edit_response_only(
        &mut self,
        policies: &[Arc<Policy>],
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
    ) {
        for policy in policies {
            self.follow(&policy.request, evaluation, facts, Extent::ResponseEdits);
        }
    }

    /// Makes only the unconditional changes to the response: there is no request, or rules must not read it.
    pub fn edit_response_unconditionally(
        &mut self,
        policies: &[Arc<Policy>],
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
    ) {
        for policy in policies {
            self.follow(&policy.request, evaluation, facts, Extent::Unconditional);
        }
    }

    /// Whether a check of the request is pending. No decision takes effect before it.
    pub fn has_checks(&self) -> bool {
        !self.authentication.logins.is_empty() || self.subrequests.iter().any(Subrequest::is_check)
    }

    /// Whether the request ends without a response.
    fn is_unanswered(&self) -> bool {
        matches!(self.end, Some(End::Close | End::Reset))
    }

    /// Follows the policies for a response; the changes are added to [`LaterEffects::response`]. An answer replaces the
    /// response; later rules only change that answer.
    pub fn follow_response(
        &mut self,
        policies: &[Arc<Policy>],
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
    ) {
        for policy in policies {
            for rules in &policy.response {
                let extent = if self.end.is_some() { Extent::ResponseEdits } else { Extent::All };
                self.follow(rules, evaluation, facts, extent);
            }
        }
    }

    fn follow(
        &mut self,
        rules: &Rules,
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
        mut extent: Extent,
    ) {
        if rules.all().is_empty() || extent != Extent::All && !rules.edits_response() {
            return;
        }
        let mut candidates = std::mem::take(&mut self.work.candidates);
        let path = facts.request.path(facts.request_input);
        let host = if rules.index().names_hosts() { evaluation.host() } else { b"" };
        rules.index().candidates(host, path, &mut candidates);
        for &candidate in &candidates {
            let rule = &rules.all()[candidate as usize];
            let holds = rule.condition.as_ref().is_none_or(|condition| {
                extent != Extent::Unconditional && evaluation.holds(condition)
            });
            if !holds {
                continue;
            }
            self.has_followed = true;
            let is_whole = extent == Extent::All;
            if is_whole || rule.edits_response() {
                self.followed.extend(rule.id);
            }
            for action in rule.actions.iter().filter(|it| is_whole || it.edits_response()) {
                // No rule may replace the answer to an unauthenticated client.
                if !self.authentication.is_refused || action.edits_response() {
                    self.act(action, evaluation, facts);
                }
            }
            if self.is_unanswered() || rules.strategy() == Strategy::FirstMatch {
                break;
            }
            if self.end.is_some() {
                extent = Extent::ResponseEdits;
            }
        }
        self.work.candidates = candidates;
    }

    fn act(&mut self, action: &Action, evaluation: &mut Evaluation<'_>, facts: &Facts<'_>) {
        match action {
            Action::Pool(pool) => self.pool = Some(pool.clone()),
            Action::Member(label) => self.member = Some(Arc::clone(label)),
            Action::Persistence(persistence) => self.persistence = Some(*persistence),
            Action::RateLimit(limit) => self.rate_limits.push(*limit),
            Action::RewritePath(how) => self.rewrite_path(how, evaluation, facts),
            // RFC 9112 section 3.2.4: the asterisk-form has no query.
            Action::RewriteQuery(_) if self.work.target.path(facts) == b"*" => {}
            Action::RewriteQuery(how) => {
                let now = self.request.query().or(facts.request.query(facts.request_input));
                self.work.scratch.clear();
                match rewrite(how, now.unwrap_or_default(), evaluation, &mut self.work.scratch) {
                    ReplaceResult::Yes => {
                        self.request.query_mut().extend_from_slice(&self.work.scratch)
                    }
                    ReplaceResult::TooLong => self.work.target.is_too_long = true,
                    ReplaceResult::No => {}
                }
            }
            Action::RewriteHost(how) => {
                let now = facts.request.authority(facts.request_input);
                let now = self.request.authority().unwrap_or(now);
                self.work.scratch.clear();
                match rewrite(how, now, evaluation, &mut self.work.scratch) {
                    ReplaceResult::Yes => {
                        self.request.authority_mut().extend_from_slice(&self.work.scratch)
                    }
                    ReplaceResult::TooLong => self.work.target.is_too_long = true,
                    ReplaceResult::No => {}
                }
            }
            Action::RemoveCookies(names) => {
                let received =
                    forwarded_values(&facts.request.fields, facts.request_input, b"cookie");
                let edits = &mut self.request.fields;
                let is_removed = |name: &[u8]| names.iter().any(|gone| **gone == *name);
                remove_cookies(edits, received, &mut self.work.scratch, is_removed);
            }
            Action::RequestField(field) => {
                let received = forwarded_values(
                    &facts.request.fields,
                    facts.request_input,
                    field.name.as_bytes(),
                );
                let edits = &mut self.request.fields;
                change(edits, field, received, &mut self.work.scratch, evaluation);
            }
            Action::ResponseField(field) => self.change_response(field, evaluation, facts),
            Action::SetCookie(cookie) => {
                let is_tls = facts.tls.is_some();
                self.later
                    .response
                    .add(b"Set-Cookie", |out| write_cookie(cookie, is_tls, evaluation, out));
            }
            Action::CookieAttributes(cookies) => self.complete_cookies(cookies, facts),
            Action::ReplaceBody(edit) => self.later.body_edits.push(Arc::clone(edit)),
            Action::LeaveUncompressed => self.is_uncompressed = true,
            Action::Inspection(mode) => self.inspection = Some(*mode),
            Action::Log(text) => self.messages.push(|out| evaluation.render(text, out)),
            Action::Trace(text) => self.later.marks.push(|out| evaluation.render(text, out)),
            Action::Authenticate(by) => self.authenticate(by, evaluation, facts),
            Action::Subrequest(subrequest) => self.add_subrequest(subrequest),
            Action::Answer(answer) => self.answer_with(answer, evaluation),
            Action::VirtualServer(to) => self.end = Some(End::VirtualServer(*to)),
            Action::Close => self.end = Some(End::Close),
            Action::Reset => self.end = Some(End::Reset),
        }
    }

    fn add_subrequest(&mut self, subrequest: &Subrequest) {
        if !self.subrequests.iter().any(|earlier| earlier.makes_needless(subrequest)) {
            self.subrequests.push(subrequest.clone());
        }
    }

    fn rewrite_path(&mut self, how: &Rewrite, evaluation: &mut Evaluation<'_>, facts: &Facts<'_>) {
        let now = self.work.target.path(facts);
        self.work.scratch.clear();
        match rewrite(how, now, evaluation, &mut self.work.scratch) {
            ReplaceResult::Yes => {
                self.work.target.is_path_given = true;
                std::mem::swap(&mut self.work.target.path, &mut self.work.scratch);
            }
            ReplaceResult::TooLong => self.work.target.is_too_long = true,
            ReplaceResult::No => {}
        }
    }

    fn change_response(
        &mut self,
        field: &FieldAction,
        evaluation: &mut Evaluation<'_>,
        facts: &Facts<'_>,
    ) {
        let name = field.name.as_bytes();
        let edits = &mut self.later.response;
        match facts.response {
            Some(response) => {
                let received = forwarded_values(&response.head.fields, response.input, name);
                change(edits, field, received, &mut self.work.scratch, evaluation);
            }
            None => change(edits, field, std::iter::empty(), &mut self.work.scratch, evaluation),
        }
    }

    fn complete_cookies(&mut self, cookies: &NamedCookies, facts: &Facts<'_>) {
        let received = facts.response.iter().flat_map(|response| {
            forwarded_values(&response.head.fields, response.input, b"Set-Cookie")
        });
        self.later.response.note_changed(b"Set-Cookie");
        self.later.response.change_each(
            b"Set-Cookie",
            received,
            &mut self.work.scratch,
            |field, out| {
                let cookie = cookie_attributes::divided(field);
                let is_named = |name: &[u8]| {
                    cookies.names.is_empty() || cookies.names.iter().any(|names| names.has(name))
                };
                let Some((_, pair, attributes)) = cookie.filter(|(name, ..)| is_named(name)) else {
                    return Change::None;
                };
                out.extend_from_slice(pair);
                cookies.attributes.write(attributes, out);
                Change::Changed
            },
        );
    }

    fn answer_with(&mut self, answer: &Answer, evaluation: &mut Evaluation<'_>) {
        for (name, value) in &answer.fields {
            self.answer.add(name.as_bytes(), |out| evaluation.render(value, out));
        }
        let body = match &answer.body {
            Body::None => AnswerBody::None,
            Body::Bytes(bytes) => AnswerBody::Fixed(Arc::clone(bytes)),
            Body::Text(template) => {
                evaluation.render(template, &mut self.body);
                AnswerBody::Made
            }
        };
        self.end = Some(End::Answer { status: answer.status, body });
    }

    /// Makes the rewritten target valid for sending. A question mark in the path begins the query.
    fn finish_target(&mut self, form: PathForm) -> Result<(), RewriteError> {
        if self.work.target.is_too_long {
            return Err(RewriteError::Length);
        }
        if self.work.target.is_path_given {
            let (path, query) = match memchr::memchr(b'?', &self.work.target.path) {
                Some(at) => (&self.work.target.path[..at], Some(&self.work.target.path[at + 1..])),
                None => (&*self.work.target.path, None),
            };
            rewritten(path, form, self.request.path_mut()).map_err(|_| RewriteError::Path)?;
            if let Some(query) = query {
                self.request.query_mut().extend_from_slice(query);
            }
        }
        self.request.encode_query();
        let is_query_byte = |byte: &u8| byte.is_ascii_graphic() && *byte != b'#';
        if !self.request.query().unwrap_or_default().iter().all(is_query_byte) {
            return Err(RewriteError::Query);
        }
        if self.request.authority().is_some_and(|host| !is_authority(host)) {
            return Err(RewriteError::Host);
        }
        Ok(())
    }
}

/// Appends the rewritten form of `text` if it changes.
fn rewrite(
    how: &Rewrite,
    text: &[u8],
    evaluation: &mut Evaluation<'_>,
    out: &mut Vec<u8>,
) -> ReplaceResult {
    match how {
        Rewrite::Text(template) => {
            evaluation.render(template, out);
            ReplaceResult::Yes
        }
        Rewrite::Pattern(replacement) => evaluation.replace(replacement, text, out),
    }
}

fn change<'v>(
    edits: &mut FieldEdits,
    field: &FieldAction,
    received: impl Iterator<Item = &'v [u8]>,
    scratch: &mut Vec<u8>,
    evaluation: &mut Evaluation<'_>,
) {
    let name = field.name.as_bytes();
    let mut write = |template: &Template, out: &mut Vec<u8>| evaluation.render(template, out);
    match &field.change {
        FieldChange::Set(value) => edits.set(name, |out| write(value, out)),
        FieldChange::Add(value) => edits.add(name, |out| write(value, out)),
        FieldChange::Remove => edits.remove(name),
        FieldChange::RemovePrefix => edits.remove_prefix(name),
        FieldChange::Rewrite(how) => {
            edits.note_changed(name);
            edits.change_each(name, received, scratch, |value, out| {
                match rewrite(how, value, evaluation, out) {
                    ReplaceResult::Yes => Change::Changed,
                    ReplaceResult::No => Change::None,
                    // A value that could not be changed must not be forwarded unchanged.
                    ReplaceResult::TooLong => Change::Removed,
                }
            });
        }
    }
}

/// Removes cookies from the received `Cookie` fields.
pub(super) fn remove_cookies<'v>(
    edits: &mut FieldEdits,
    received: impl Iterator<Item = &'v [u8]>,
    scratch: &mut Vec<u8>,
    is_removed: impl Fn(&[u8]) -> bool,
) {
    edits.change_each(b"Cookie", received, scratch, |value, out| {
        match cookies::write_without(value, |name, _| is_removed(name), out) {
            RemainingCookies::Unchanged => Change::None,
            RemainingCookies::Rewritten => Change::Changed,
            RemainingCookies::Nothing => Change::Removed,
        }
    });
}

fn write_cookie(
    cookie: &CookieTemplate,
    is_tls: bool,
    evaluation: &mut Evaluation<'_>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&cookie.before);
    let start = out.len();
    evaluation.render(&cookie.value, out);
    cookies::encode_value(out, start);
    out.extend_from_slice(&cookie.after);
    if cookie.secure.holds(is_tls) {
        out.extend_from_slice(b"; Secure");
    }
}
