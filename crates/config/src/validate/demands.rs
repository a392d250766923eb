//! Requirements of rules on the place where they are used. With a request, all values are available. A connection has no
//! request, and fewer values before its handshake.

use std::sync::Arc;

use weir_core::expression::{Condition, Reads};
use weir_core::policy::Action;

use super::unreachable::in_words;
use crate::decode::{Context, Spanned};
use crate::document::Span;
use crate::quote::clip;
use crate::raw::VirtualServerType;
use crate::raw::policy as raw;
use crate::scalar::Name;
use crate::snapshot::{CountedEvents, KeyLimit};
use crate::variants::Choice as _;

/// What an action needs. Each has what those before it have.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(super) enum ActionNeeds {
    /// A connection of a client.
    Connection,
    /// A connection that is relayed to a member.
    Relay,
    /// A request.
    Request,
}

impl ActionNeeds {
    /// Without a wildcard, so that a new action does not compile until it is decided about here.
    fn of(action: &raw::Action) -> Self {
        match action {
            raw::Action::RateLimit(_)
            | raw::Action::Log(_)
            | raw::Action::Close
            | raw::Action::Reset => Self::Connection,
            raw::Action::Pool(_)
            | raw::Action::Member(_)
            | raw::Action::Persistence(_)
            | raw::Action::Trace(_) => Self::Relay,
            raw::Action::Authenticate(_)
            | raw::Action::Mirror(_)
            | raw::Action::VirtualServer(_)
            | raw::Action::Redirect(_)
            | raw::Action::Respond(_)
            | raw::Action::RewritePath(_)
            | raw::Action::RewriteQuery(_)
            | raw::Action::RewriteHost(_)
            | raw::Action::SetHeader(_)
            | raw::Action::AddHeader(_)
            | raw::Action::RemoveHeader(_)
            | raw::Action::ReplaceHeader(_)
            | raw::Action::SetResponseHeader(_)
            | raw::Action::AddResponseHeader(_)
            | raw::Action::RemoveResponseHeader(_)
            | raw::Action::ReplaceResponseHeader(_)
            | raw::Action::RewriteLocation(_)
            | raw::Action::ReplaceResponseBody(_)
            | raw::Action::SetCookie(_)
            | raw::Action::SetCookieAttributes(_)
            | raw::Action::RemoveCookie(_)
            | raw::Action::Compression(_)
            | raw::Action::Waf(_) => Self::Request,
        }
    }
}

/// The requirements of a rule.
pub(super) struct Demands {
    /// The rule, as text.
    pub rule: String,
    /// The place of the rule.
    pub span: Span,
    /// The values that its condition and its texts read.
    pub reads: Reads,
    /// The keys of its actions, and what these need.
    pub actions: Vec<(&'static str, ActionNeeds)>,
    /// The events that its limits count.
    pub counts: Vec<CountedEvents>,
}

impl Demands {
    /// The requirements of a rule with this name.
    pub fn of(
        raw: &Spanned<raw::Rule>,
        name: &str,
        condition: Option<&Condition>,
        (actions, limits): (&[Action], &[Arc<KeyLimit>]),
    ) -> Self {
        let rule = in_words(name, raw.name.is_some());
        let limits = actions.iter().filter_map(|action| match action {
            Action::RateLimit(limit) => Some(&limits[*limit as usize]),
            _ => None,
        });
        let keys = limits.clone().map(|limit| limit.key.reads());
        let texts = actions.iter().map(Action::reads).chain(keys);
        let reads = texts.chain(condition.map(Condition::reads)).collect();
        let counts = limits.map(|limit| limit.counted).collect();
        let actions = raw.then.iter().flat_map(|then| then.iter());
        Self {
            rule,
            span: raw.span,
            reads,
            actions: actions.map(|it| (it.value.key(), ActionNeeds::of(&it.value))).collect(),
            counts,
        }
    }
}

/// A place where policies are used.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The type of the virtual server.
    pub kind: VirtualServerType,
    /// Whether the virtual server has `tls`.
    pub has_tls: bool,
    /// Whether the policies are in `connection_policies`.
    pub is_before_requests: bool,
}

impl Place {
    fn sees_requests(self) -> bool {
        self.kind == VirtualServerType::Http && !self.is_before_requests
    }

    /// Whether a policy can be used here; if not, the reason is reported at its name.
    pub fn accepts(self, name: &Spanned<Name>, rules: &[Demands], context: &mut Context) -> bool {
        let Some((what, rule, help)) =
            rules.iter().find_map(|rule| self.refusal(rule).map(|(what, help)| (what, rule, help)))
        else {
            return true;
        };
        let here = match (self.is_before_requests, self.kind) {
            (true, _) => "`connection_policies` run when a connection is accepted".into(),
            (false, kind) => format!("this is a virtual server of type {}", kind.word()),
        };
        let policy = clip(&name.value.0);
        let place = context.place(rule.span, name.span);
        let message =
            format!("the policy `{policy}` {what} ({} in {place}), and {here}", rule.rule);
        context.error_help(name.span, message, help);
        false
    }

    /// The action of a rule that is impossible here, and the fix.
    fn refusal(self, rule: &Demands) -> Option<(String, &'static str)> {
        let counts = |counted| rule.counts.contains(&counted);
        if self.sees_requests() {
            return counts(CountedEvents::Connections).then(|| {
                let help = "limit `requests_per_second` or `requests`, or name it in `connection_policies`";
                ("limits connections".to_owned(), help)
            });
        }
        if let Some((foreign, needs)) = rule.actions.iter().find(|(_, needs)| !self.has(*needs)) {
            let help = match (self.is_before_requests, self.kind) {
                (true, VirtualServerType::Http) => {
                    "use `rate_limit`, `log`, `close` or `reset`, or name it in `policies`"
                }
                (true, _) if *needs < ActionNeeds::Request => "name it in `policies`",
                (true, _) => "use `rate_limit`, `log`, `close` or `reset`",
                (false, _) => {
                    "use `pool`, `member`, `persistence`, `rate_limit`, `log`, `trace`, `close` or `reset`"
                }
            };
            return Some((format!("has the action `{foreign}`"), help));
        }
        if counts(CountedEvents::Requests) {
            let help = "limit `connections_per_second` or `connections`";
            return Some(("limits requests".into(), help));
        }
        let (what, help) = self.unreadable(rule.reads)?;
        Some((format!("reads {what}"), help))
    }

    /// Whether an action with these needs is possible here, where there are no requests.
    fn has(self, needs: ActionNeeds) -> bool {
        match needs {
            ActionNeeds::Connection => true,
            ActionNeeds::Relay => !self.is_before_requests,
            ActionNeeds::Request => false,
        }
    }

    /// The value that a rule reads and that is unavailable here.
    fn unreadable(self, reads: Reads) -> Option<(&'static str, &'static str)> {
        let before = self.is_before_requests;
        if reads.request || reads.response {
            let help = match self.kind {
                VirtualServerType::Http => {
                    "read only `client`, `server` or `tls.sni`, or name it in `policies`"
                }
                _ if before => "read only `client`, `server` or `tls.sni`",
                _ => "read only `client`, `server` or `tls`",
            };
            return Some((if reads.request { "the request" } else { "the response" }, help));
        }
        if reads.handshake && (before || !self.has_tls) {
            let help = match (before, self.has_tls) {
                (true, true) => "of `tls` read only `tls.sni`, or name it in `policies`",
                (true, false) => "read only `client` or `server`",
                (false, _) => "of `tls` read only `tls.sni`, or add `tls` to the virtual server",
            };
            return Some(("results of the TLS handshake", help));
        }
        if reads.server_name && before && !self.has_tls {
            let help = match self.kind {
                VirtualServerType::Tcp => {
                    "name it in `policies`, or add `tls` to the virtual server"
                }
                _ => "add `tls` to the virtual server",
            };
            return Some(("`tls.sni`", help));
        }
        None
    }
}
