//! Policies: conditions and actions compiled, names looked up.

use std::sync::Arc;

use weir_core::expression::{Condition, Purpose, Template};
use weir_core::policy::{
    Action, Answer, Body, CookieTemplate, FieldAction, FieldChange, Policy, Rewrite, Rule, Rules,
    Strategy, WafMode,
};
use weir_http::cookies::SetCookie;

use super::compiler::Compiler;
use super::cookie_attributes::{same_site, secure};
use super::demands::Demands;
use super::files::{Source, content_type_of, field_value, source};
use super::hand_over;
use super::header_names::{may_be_changed, remove};
use super::path_texts::PathCondition;
use super::responses;
use super::split;
use super::unreachable::{self, Outline};
use crate::decode::{Context, NamedItem, Spanned, if_given};
use crate::document::Span;
use crate::raw::policy as raw;
use crate::scalar::{Name, Text, WordOr};
use crate::shapes::{self, AnyText, AutoOr, FieldTexts, HeaderPatterns};
use crate::snapshot::{RuleName, RulePlace};

/// The rules of a policy, by the time of their evaluation.
#[derive(Default)]
struct Parts {
    /// Rules that are evaluated with the request.
    request: Vec<Rule>,
    /// The parts that wait for the response, one for each rule in `request`.
    waiting: Vec<Rule>,
    /// Rules that are evaluated with the response, because their condition reads it.
    response: Vec<Rule>,
}

impl Compiler<'_> {
    /// A policy, if it is valid.
    pub fn policy(
        &mut self,
        item: &NamedItem<raw::Policy>,
        context: &mut Context,
    ) -> Option<Arc<Policy>> {
        let raw = item.value.as_ref()?;
        let strategy = match raw.strategy.value {
            raw::Strategy::FirstMatch => Strategy::FirstMatch,
            raw::Strategy::AllMatch => Strategy::AllMatch,
        };
        let mut parts = Parts::default();
        let rules = raw.rules.iter().flat_map(|rules| rules.iter()).enumerate();
        let outlines: Vec<Option<Outline>> = rules
            .map(|(index, rule)| self.rule(&item.name, index, rule, &mut parts, context))
            .collect();
        let outlines: Option<Vec<Outline>> = outlines.into_iter().collect();
        outlines.map(|outlines| {
            unreachable::warn(strategy, &outlines, context);
            let Parts { request, waiting, response } = parts;
            // A part without actions only keeps the order, which matters only before a part with actions.
            let keeps_order = strategy == Strategy::FirstMatch;
            let any_waits = waiting.iter().any(|rule: &Rule| !rule.actions.is_empty());
            let waiting = waiting.into_iter();
            let waiting: Vec<Rule> = waiting
                .filter(|rule| any_waits && (keeps_order || !rule.actions.is_empty()))
                .collect();
            let later = [waiting, response].into_iter().filter(|rules| !rules.is_empty());
            Arc::new(Policy {
                name: item.name.as_str().into(),
                request: Rules::new(strategy, request),
                response: later.map(|rules| Rules::new(strategy, rules)).collect(),
            })
        })
    }

    /// Adds a rule to its parts.
    fn rule(
        &mut self,
        policy: &str,
        index: usize,
        raw: &Spanned<raw::Rule>,
        parts: &mut Parts,
        context: &mut Context,
    ) -> Option<Outline> {
        let name: Arc<str> = match &raw.name {
            Some(name) => name.value.0.as_str().into(),
            None => (index + 1).to_string().into(),
        };
        self.rule = format!("policies.{policy}.{name}");
        let id = Some(self.rule_names.len() as u32);
        self.rule_names.push(RuleName { policy: policy.into(), rule: Arc::clone(&name) });
        self.rule_places.push(place(raw, context));
        let condition = raw.when.as_ref().map(|when| self.condition(when, context));
        let mut is_sound = !matches!(condition, Some(None));
        let condition = condition.flatten();
        if let (Some(when), Some(condition)) = (&raw.when, &condition)
            && !condition.path_texts().is_empty()
        {
            let (policy, when, condition) = (policy.to_owned(), when.clone(), condition.clone());
            self.notes.path_conditions.push(PathCondition { policy, when, condition });
        }
        let waits = condition.as_ref().is_some_and(Condition::reads_response);
        let mut actions = Vec::new();
        for action in raw.then.iter().flat_map(|then| then.iter()) {
            is_sound &= self.action(action, &mut actions, context).is_some();
        }
        is_sound &= come_in_time(&actions, waits, context);
        is_sound &= hand_over::note(&mut self.notes.hand_overs, policy, raw, &actions, context);
        let actions = actions.into_iter().map(|(action, _)| action);
        let actions: Vec<Action> = actions.collect();
        let demands = Demands::of(raw, &name, condition.as_ref(), (&actions, &self.limits));
        self.notes.demands.entry(policy.to_owned()).or_default().push(demands);
        let outline = Outline::new(
            raw.span,
            &name,
            raw.name.is_some(),
            (raw.when.as_ref(), condition.as_ref()),
            &actions,
        );
        if waits {
            parts.response.push(Rule { name, id, condition, actions });
        } else {
            let (later, now): (Vec<Action>, Vec<Action>) =
                actions.into_iter().partition(Action::needs_response);
            is_sound &= answers_no_strangers(raw.span, (&now, &later), context);
            let (of, when) = (Arc::clone(&name), condition.clone());
            parts.waiting.push(Rule { name: of, id: None, condition: when, actions: later });
            parts.request.push(Rule { name, id, condition, actions: now });
        }
        is_sound.then_some(outline)
    }

    /// Compiles an action into `actions`, each with its place.
    fn action(
        &mut self,
        raw: &Spanned<raw::Action>,
        actions: &mut Vec<(Action, Span)>,
        context: &mut Context,
    ) -> Option<()> {
        let first = actions.len();
        let span = raw.span;
        let name = format!("{}[{first}]", self.rule);
        let mut push = |action| actions.push((action, span));
        match &raw.value {
            raw::Action::Pool(_) | raw::Action::Mirror(_) => push(split::of(self, raw, context)?),
            raw::Action::Member(member) => push(Action::Member(self.member(member, context)?)),
            raw::Action::Persistence(choice) => push(self.persistence_action(choice, context)?),
            raw::Action::Compression(_) => push(Action::LeaveUncompressed),
            raw::Action::Waf(mode) => push(Action::Inspection(inspection(mode.value))),
            raw::Action::RateLimit(limit) => {
                for limit in self.rule_limits(&name, limit, context)? {
                    push(Action::RateLimit(limit as u32));
                }
            }
            raw::Action::VirtualServer(name) => push(self.virtual_servers.action(name, context)?),
            raw::Action::Redirect(redirect) => push(self.redirect(&redirect.value, context)?),
            raw::Action::Respond(respond) => push(self.respond(&respond.value, context)?),
            raw::Action::RewritePath(how) => {
                push(Action::RewritePath(self.rewrite(how, Purpose::Uri, context)?));
            }
            raw::Action::RewriteQuery(how) => {
                push(Action::RewriteQuery(self.rewrite(how, Purpose::Uri, context)?));
            }
            raw::Action::RewriteHost(how) => {
                push(Action::RewriteHost(self.rewrite(how, Purpose::HeaderValue, context)?));
            }
            raw::Action::SetHeader(_)
            | raw::Action::AddHeader(_)
            | raw::Action::RemoveHeader(_)
            | raw::Action::ReplaceHeader(_) => {
                let fields = request_fields(self, &raw.value, context)?;
                fields.into_iter().map(Action::RequestField).for_each(push);
            }
            raw::Action::SetResponseHeader(_)
            | raw::Action::AddResponseHeader(_)
            | raw::Action::RemoveResponseHeader(_)
            | raw::Action::ReplaceResponseHeader(_)
            | raw::Action::RewriteLocation(_)
            | raw::Action::SetCookie(_)
            | raw::Action::SetCookieAttributes(_)
            | raw::Action::ReplaceResponseBody(_) => {
                responses::action(self, &raw.value, context)?.into_iter().for_each(push);
            }
            raw::Action::RemoveCookie(names) => {
                let names = names.value.0.iter().map(|name| name.value.0.as_bytes().into());
                push(Action::RemoveCookies(names.collect()));
            }
            raw::Action::Authenticate(name) => push(self.authentications.require(name, context)?),
            raw::Action::Log(text) => push(Action::Log(line(self, text, context)?)),
            raw::Action::Trace(text) => push(Action::Trace(line(self, text, context)?)),
            raw::Action::Close => push(Action::Close),
            raw::Action::Reset => push(Action::Reset),
        }
        Some(())
    }

    fn persistence_action(
        &mut self,
        choice: &Spanned<WordOr<crate::scalar::Off, Name>>,
        context: &mut Context,
    ) -> Option<Action> {
        let WordOr::Value(name) = &choice.value else {
            return Some(Action::Persistence(None));
        };
        let name = Spanned { value: name.clone(), span: choice.span, given: true };
        self.persistence(&name, context).map(|found| Action::Persistence(Some(found as u32)))
    }

    fn redirect(&mut self, raw: &raw::Redirect, context: &mut Context) -> Option<Action> {
        let status = raw.status.value.0;
        let is_redirect = redirects(status, raw.status.span, context);
        let to = raw.to.as_ref()?;
        let location = self.template(&to.value.0, to.span, Purpose::Uri, context)?;
        is_redirect.then_some(Action::Answer(Arc::new(Answer {
            status,
            body: Body::None,
            fields: vec![("Location".into(), location)],
        })))
    }

    fn respond(&mut self, raw: &raw::Respond, context: &mut Context) -> Option<Action> {
        let is_given = raw.body.is_some() || raw.file.is_some();
        let status = raw.status.value.0;
        let mut is_sound = true;
        if is_given && matches!(status, 204 | 205 | 304) {
            let message = format!("a response of status {status} has no body");
            context.error_help(raw.status.span, message, "remove `body`, or choose another status");
            is_sound = false;
        }
        let body = body(self, raw, context);
        let content_type = raw.content_type.as_ref().filter(|_| is_given);
        let content_type = content_type.map(|given| field_value(given, context));
        let headers = raw.headers.as_ref();
        let headers = headers.map(|headers| self.fields(headers, FieldChange::Add, context));
        let (body, by_name) = body?;
        let mut fields = Vec::new();
        if is_given {
            let content_type = match content_type {
                Some(given) => given?,
                None => by_name.unwrap_or("text/plain; charset=utf-8").to_owned(),
            };
            let text = content_type.replace('$', "$$");
            let template = self.template(&text, raw.status.span, Purpose::HeaderValue, context)?;
            fields.push(("Content-Type".into(), template));
        }
        if let Some(headers) = headers {
            for field in headers? {
                if let FieldChange::Add(template) = field.change {
                    fields.push((field.name, template));
                }
            }
        }
        is_sound.then(|| Action::Answer(Arc::new(Answer { status, body, fields })))
    }

    pub(super) fn cookie(
        &mut self,
        raw: &raw::SetCookie,
        context: &mut Context,
    ) -> Option<CookieTemplate> {
        let (name, value) = (raw.name.as_ref()?, raw.value.as_ref()?);
        let domain = if_given(raw.domain.as_ref(), |domain| field_value(domain, context));
        let path = field_value(&raw.path, context);
        let text = self.template(&value.value.0, value.span, Purpose::HeaderValue, context);
        let mut cookie = SetCookie {
            name: name.value.0.as_str().to_owned(),
            path: Some(path?),
            domain: domain?,
            max_age_s: raw.max_age.as_ref().map(|max_age| max_age.value.0 / 1_000),
            secure: raw.secure.value != AutoOr::Always(false),
            http_only: raw.http_only.value,
            same_site: raw.same_site.as_ref().map(|raw| same_site(raw.value)),
        };
        if let Err(error) = cookie.check() {
            context.error(name.span, error.to_string());
            return None;
        }
        // `secure` depends on the request.
        cookie.secure = false;
        Some(CookieTemplate {
            before: format!("{}=", name.value.0).into_bytes().into(),
            value: text?,
            after: cookie.attributes().into(),
            secure: secure(raw.secure.value),
        })
    }

    pub(super) fn rewrite(
        &mut self,
        raw: &Spanned<shapes::Rewrite>,
        purpose: Purpose,
        context: &mut Context,
    ) -> Option<Rewrite> {
        match &raw.value {
            shapes::Rewrite::Text(AnyText(text)) => {
                self.template(text, raw.span, purpose, context).map(Rewrite::Text)
            }
            shapes::Rewrite::Pattern(pattern) => {
                let found = self.replacement(pattern, context)?;
                Some(Rewrite::Pattern(Arc::new(found)))
            }
        }
    }

    pub(super) fn fields(
        &mut self,
        raw: &Spanned<FieldTexts>,
        change: impl Fn(Template) -> FieldChange,
        context: &mut Context,
    ) -> Option<Vec<FieldAction>> {
        let mut fields = Vec::new();
        let mut is_sound = true;
        for (name, text) in &raw.value.0 {
            is_sound &= may_be_changed(name, context);
            match self.template(&text.value.0, text.span, Purpose::HeaderValue, context) {
                Some(template) => {
                    let name = name.value.0.as_str().into();
                    fields.push(FieldAction { name, change: change(template) });
                }
                None => is_sound = false,
            }
        }
        is_sound.then_some(fields)
    }

    pub(super) fn patterns(
        &mut self,
        raw: &Spanned<HeaderPatterns>,
        context: &mut Context,
    ) -> Option<Vec<FieldAction>> {
        let mut fields = Vec::new();
        let mut is_sound = true;
        for (name, pattern) in &raw.value.0 {
            is_sound &= may_be_changed(name, context);
            match self.replacement(&pattern.value, context) {
                Some(found) => {
                    let change = FieldChange::Rewrite(Rewrite::Pattern(Arc::new(found)));
                    fields.push(FieldAction { name: name.value.0.as_str().into(), change });
                }
                None => is_sound = false,
            }
        }
        is_sound.then_some(fields)
    }
}

/// The changes of request fields by an action.
fn request_fields(
    compiler: &mut Compiler<'_>,
    raw: &raw::Action,
    context: &mut Context,
) -> Option<Vec<FieldAction>> {
    match raw {
        raw::Action::SetHeader(fields) => compiler.fields(fields, FieldChange::Set, context),
        raw::Action::AddHeader(fields) => compiler.fields(fields, FieldChange::Add, context),
        raw::Action::RemoveHeader(names) => remove(&names.value.0, context),
        raw::Action::ReplaceHeader(fields) => compiler.patterns(fields, context),
        other => {
            debug_assert!(false, "`{}` changes no field of requests", other.key());
            None
        }
    }
}

/// The log action of a rule.
fn line(
    compiler: &mut Compiler<'_>,
    text: &Spanned<Text>,
    context: &mut Context,
) -> Option<Template> {
    compiler.template(&text.value.0, text.span, Purpose::HeaderValue, context)
}

/// The body of a response, and the media type for its file name.
fn body(
    compiler: &mut Compiler<'_>,
    raw: &raw::Respond,
    context: &mut Context,
) -> Option<(Body, Option<&'static str>)> {
    let is_given = raw.body.is_some() || raw.file.is_some();
    Some(match source(raw.body.as_ref(), raw.file.as_ref(), compiler.directory, context) {
        None if is_given => return None,
        None => (Body::None, None),
        Some(Source::File(bytes)) => {
            let by_name = raw.file.as_ref().and_then(|file| content_type_of(&file.value.0));
            (Body::Bytes(bytes), by_name)
        }
        Some(Source::Given(text)) => {
            let span = raw.body.as_ref()?.span;
            (Body::Text(compiler.template(&text, span, Purpose::Plain, context)?), None)
        }
    })
}

/// Whether each action comes in time; if not, that is reported.
fn come_in_time(actions: &[(Action, Span)], waits: bool, context: &mut Context) -> bool {
    let mut is_sound = true;
    for (action, span) in actions {
        if action.is_for_request() && (waits || action.reads_response()) {
            let what = if waits { "this rule" } else { "this" };
            let message = format!("{what} reads the response: by then the request has been sent");
            let help = "do it in a rule that reads the request only";
            context.error_help(*span, message, help);
            is_sound = false;
        }
    }
    for ((action, _), (_, next)) in actions.iter().zip(actions.iter().skip(1)) {
        if action.is_end() {
            let message = "nothing comes after an answer, `virtual_server`, `close` or `reset`";
            context.error_help(*next, message, "move it before");
            is_sound = false;
        }
    }
    is_sound
}

/// The position of a rule, and its condition.
fn place(raw: &Spanned<raw::Rule>, context: &Context) -> RulePlace {
    let when = raw.when.as_ref().map(|when| when.value.0.as_str().into());
    let (file, position) = context.source_of(raw.span);
    RulePlace { file: file.into(), position, when }
}

/// Whether an answer that waits for the response would replace the answer that `authenticate` in the same rule gives to
/// unauthenticated clients.
fn answers_no_strangers(
    span: Span,
    (now, later): (&[Action], &[Action]),
    context: &mut Context,
) -> bool {
    let authenticates = now.iter().any(Action::authenticates);
    let is_sound = !authenticates || later.iter().all(Action::edits_response);
    if !is_sound {
        let message = "a rule that reads the response would replace the 401 of `authenticate`";
        let help = "write it as a separate rule, with a condition: when: 'response.status == 404'";
        context.error_help(span, message, help);
    }
    is_sound
}

/// Whether a status is a redirect; if not, that is reported.
pub(super) fn redirects(status: u16, span: Span, context: &mut Context) -> bool {
    let is_redirect = matches!(status, 301 | 302 | 303 | 307 | 308);
    if !is_redirect {
        let message = format!("{status} does not redirect");
        context.error_help(span, message, "use 301, 302, 303, 307 or 308");
    }
    is_redirect
}

/// Converts the mode to the type of the core.
pub(super) fn inspection(raw: raw::WafMode) -> WafMode {
    match raw {
        raw::WafMode::Off => WafMode::Off,
        raw::WafMode::Detect => WafMode::Detect,
        raw::WafMode::Block => WafMode::Block,
    }
}
