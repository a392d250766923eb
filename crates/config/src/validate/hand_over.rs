//! Virtual servers that hand requests to others: the action `virtual_server`.
//!
//! Checks of the other virtual server that concern requests apply to requests that are handed over. Checks that concern
//! only connections cannot apply. So two virtual servers are refused if one could bypass such a check of the other.

mod circles;
mod pairs;

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::policy::{Action, Answer, Body, Subrequest, WafMode};

use super::names::undefined;
use crate::decode::{Context, Decode as _, NamedItem, Spanned};
use crate::document::Span;
use crate::quote::clip;
use crate::raw::policy as raw_policy;
use crate::raw::{self, VirtualServerState, VirtualServerType};
use crate::scalar::Name;
use crate::snapshot::{ListenPoint, VirtualServer};
use crate::variants::Choice as _;

/// The status of a request that is handed to a disabled virtual server.
const DISABLED_STATUS: u16 = 503;

/// The virtual servers of a file.
pub(super) struct Targets<'a>(BTreeMap<&'a str, Target>);

/// The kind of virtual server that a rule may name.
#[derive(Clone, Copy)]
enum Target {
    /// A virtual server that serves requests, by its index in the snapshot.
    Serving(u32),
    /// A disabled virtual server.
    Disabled,
    /// A virtual server of a type without requests.
    OfType(VirtualServerType),
}

impl<'a> Targets<'a> {
    /// The virtual servers of this file.
    pub fn of(file: &'a raw::File) -> Self {
        let mut found = BTreeMap::new();
        let mut index = 0;
        for item in file.virtual_servers.iter().flat_map(|servers| &servers.value.0) {
            // An invalid virtual server is included, so that its name is known.
            let kind = item.value.as_ref().map_or(VirtualServerType::Http, |it| it.kind.value);
            let state = item.value.as_ref().map(|it| it.state.value);
            let is_disabled = state == Some(VirtualServerState::Disabled);
            let target = match kind {
                VirtualServerType::Http if is_disabled => Target::Disabled,
                VirtualServerType::Http => Target::Serving(index),
                kind => Target::OfType(kind),
            };
            found.insert(item.name.as_str(), target);
            // Virtual servers that are served by packets or disabled have no index.
            index += u32::from(!is_disabled && kind != VirtualServerType::FastL4);
        }
        Self(found)
    }

    /// The hand-over action to the virtual server with this name.
    pub fn action(&self, name: &Spanned<Name>, context: &mut Context) -> Option<Action> {
        let wanted = name.value.0.as_str();
        match self.0.get(wanted).copied() {
            Some(Target::Serving(index)) => Some(Action::VirtualServer(index)),
            Some(Target::Disabled) => {
                let message = format!(
                    "virtual server `{}` is disabled: requests that this rule hands to it get {DISABLED_STATUS}",
                    clip(wanted)
                );
                context.warning_help(name.span, message, "enable it, or hand them to another");
                Some(Action::Answer(Arc::new(Answer {
                    status: DISABLED_STATUS,
                    body: Body::None,
                    fields: Vec::new(),
                })))
            }
            Some(Target::OfType(kind)) => {
                let message = format!(
                    "virtual server `{}` is of type {}: requests can only be handed to one of type http",
                    clip(wanted),
                    kind.word()
                );
                context.error_help(name.span, message, "name one of type http, or use `pool`");
                None
            }
            None => {
                let known = self.0.keys().copied();
                undefined("virtual server", &clip(wanted), name.span, known, context);
                None
            }
        }
    }
}

/// A rule that hands requests to another virtual server.
pub(super) struct HandOver {
    policy: String,
    to: String,
    /// The place of the action.
    span: Span,
    /// Whether the rule disables the web application firewall for these requests.
    leaves_out_waf: bool,
}

/// Records that a rule hands requests over, and reports its other actions that would have no effect.
pub(super) fn note(
    hand_overs: &mut Vec<HandOver>,
    policy: &str,
    raw: &Spanned<raw_policy::Rule>,
    actions: &[(Action, Span)],
    context: &mut Context,
) -> bool {
    let named = |action: &Spanned<raw_policy::Action>| match &action.value {
        raw_policy::Action::VirtualServer(name) => Some((name.value.0.clone(), name.span)),
        _ => None,
    };
    // Several targets are reported elsewhere. Each target is checked by itself.
    let all: Vec<(String, Span)> =
        raw.then.iter().flat_map(|then| then.iter()).filter_map(named).collect();
    let Some((to, _)) = all.first() else { return true };
    let mut is_sound = true;
    for (_, place) in actions.iter().filter(|(action, _)| is_of_the_other(action)) {
        let message = format!(
            "this has no effect beside `virtual_server`: `{}` decides about it for the request",
            clip(to)
        );
        context.error_help(*place, message, format!("move it to a policy of `{}`", clip(to)));
        is_sound = false;
    }
    let is_off = |(action, _): &(Action, Span)| matches!(action, Action::Inspection(WafMode::Off));
    let leaves_out_waf = actions.iter().any(is_off);
    let noted = all.into_iter().map(|(to, span)| HandOver {
        policy: policy.to_owned(),
        to,
        span,
        leaves_out_waf,
    });
    hand_overs.extend(noted);
    is_sound
}

/// Whether an action concerns decisions of the virtual server that gets the request.
fn is_of_the_other(action: &Action) -> bool {
    let is_for_the_member = matches!(
        action,
        Action::Pool(_)
            | Action::Member(_)
            | Action::Persistence(_)
            | Action::Subrequest(Subrequest::Mirror(_))
            | Action::LeaveUncompressed
            | Action::ReplaceBody(_)
            | Action::Inspection(WafMode::Detect | WafMode::Block)
    );
    is_for_the_member || action.needs_response()
}

/// A virtual server in the file, and its valid settings if it serves.
struct Server<'a> {
    name: &'a str,
    raw: &'a raw::VirtualServer,
    built: Option<&'a VirtualServer>,
    /// The virtual servers to which its rules hand requests over, by index.
    to: Vec<(usize, &'a HandOver)>,
}

/// Checks all hand-overs.
pub(super) fn check<'a>(
    items: &[NamedItem<raw::VirtualServer>],
    built: &[Option<VirtualServer>],
    noted: &[HandOver],
    leads_to: &dyn Fn(&VirtualServer, &ListenPoint) -> Option<&'a str>,
    context: &mut Context,
) {
    let mut by_policy: BTreeMap<&str, Vec<&HandOver>> = BTreeMap::new();
    noted.iter().for_each(|over| by_policy.entry(&over.policy).or_default().push(over));
    let built: BTreeMap<&str, &VirtualServer> =
        built.iter().flatten().map(|server| (&*server.name, server)).collect();
    let sound: Vec<_> =
        items.iter().filter_map(|item| Some((item, item.value.as_ref()?))).collect();
    let places: BTreeMap<&str, usize> =
        sound.iter().enumerate().map(|(place, (item, _))| (item.name.as_str(), place)).collect();
    let given = |raw: &raw::VirtualServer| {
        let names = raw.policies.iter().flat_map(|names| names.iter());
        let overs = names.filter_map(|name| by_policy.get(name.value.0.as_str())).flatten();
        overs.filter_map(|over| Some((*places.get(over.to.as_str())?, *over))).collect::<Vec<_>>()
    };
    let servers: Vec<Server<'_>> = sound
        .iter()
        .map(|found| Server {
            name: &found.0.name,
            raw: found.1,
            built: built.get(found.0.name.as_str()).copied(),
            to: given(found.1),
        })
        .collect();
    // An invalid virtual server may be the source of any requests.
    if sound.len() == items.len() {
        refuse_unreachable(&sound, &servers, context);
    }
    if circles::refuse(&servers, context) {
        pairs::check(&servers, context);
        circles::refuse_loops(&servers, leads_to, context);
    }
}

/// Reports a virtual server without a listener to which no other virtual server hands requests over.
fn refuse_unreachable(
    sound: &[(&NamedItem<raw::VirtualServer>, &raw::VirtualServer)],
    servers: &[Server<'_>],
    context: &mut Context,
) {
    for (place, (item, raw)) in sound.iter().enumerate() {
        if raw.listen.is_some() {
            continue;
        }
        let gets_some = servers.iter().any(|server| server.to.iter().any(|(to, _)| *to == place));
        if raw.kind.value == VirtualServerType::Http && gets_some {
            pairs::refuse_keys_of_listeners(&servers[place], context);
            continue;
        }
        let message = format!("`virtual_servers.{}` lacks `listen`", clip(&item.name));
        let expected =
            crate::decode::OneOrMany::<Spanned<crate::destination::ListenOn>>::expected();
        let help = format!("add `listen:` with {expected}");
        let help = match raw.kind.value {
            VirtualServerType::Http => {
                format!("{help}; or hand requests to it, by the action `virtual_server` of a rule")
            }
            _ => help,
        };
        context.error_help(item.name_span, message, help);
    }
}
