//! Common parts of policies, limits, persistence and pools: compiled expressions, and names.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use weir_core::expression::{
    Condition, DataSets, ExpressionError, Phase, Purpose, Replacement, ReplacementError, Scope,
    Slots, Template,
};

use super::authentication::Authentications;
use super::demands::Demands;
use super::hand_over::{HandOver, Targets};
use super::names::{find, undefined};
use super::path_texts::PathCondition;
use crate::config::ConfiguredMember;
use crate::decode::{Context, Decode as _, Spanned};
use crate::document::Span;
use crate::endpoint::Endpoint;
use crate::hints::{meant, nearest};
use crate::quote::clip;
use crate::raw;
use crate::scalar::{Name, Text};
use crate::shapes;
use crate::snapshot::{KeyLimit, RuleName, RulePlace};

/// The objects that the rules of a file refer to, and the compiled results.
pub(super) struct Compiler<'a> {
    pub data_sets: &'a DataSets,
    pub slots: Slots,
    pub authentications: Authentications<'a>,
    pub pools: &'a BTreeMap<&'a str, usize>,
    pub persistence: &'a BTreeMap<&'a str, usize>,
    /// The virtual servers that rules can name.
    pub virtual_servers: Targets<'a>,
    /// The addresses of the members of all pools.
    pub members: BTreeSet<String>,
    /// Whether a pool has members with host names, whose addresses are not known yet.
    pub has_named_members: bool,
    /// Whether a rule names a member.
    pub names_members: Cell<bool>,
    pub pools_used: HashSet<usize>,
    pub persistence_used: HashSet<usize>,
    pub limits: Vec<Arc<KeyLimit>>,
    pub directory: &'a Path,
    /// The names of all rules so far.
    pub rule_names: Vec<RuleName>,
    /// The positions of all rules so far.
    pub rule_places: Vec<RulePlace>,
    /// The current rule, for names within it.
    pub rule: String,
    /// Notes about rules, for checks of the virtual servers that use the policies.
    pub notes: Notes,
}

/// Notes about rules, for the virtual servers that use them.
#[derive(Default)]
pub(super) struct Notes {
    /// Conditions that look for texts in the path.
    pub path_conditions: Vec<PathCondition>,
    /// The requirements of each policy's rules.
    pub demands: BTreeMap<String, Vec<Demands>>,
    /// Rules that hand requests to other virtual servers.
    pub hand_overs: Vec<HandOver>,
}

impl Compiler<'_> {
    /// Compiles a condition; `None`: it is invalid, which was reported.
    pub fn condition(&mut self, when: &Spanned<Text>, context: &mut Context) -> Option<Condition> {
        let mut scope = self.scope(false);
        let compiled = Condition::compile(&when.value.0, &mut scope);
        compiled.map_err(|error| explain(&error, when.span, &when.value.0, context)).ok()
    }

    fn scope(&mut self, has_datagrams: bool) -> Scope<'_> {
        let (phase, data, slots) = (Phase::Response, self.data_sets, &mut self.slots);
        Scope { phase, has_datagrams, data, pools: self.pools, slots }
    }

    /// Compiles a text with `${…}`; `None`: it is invalid, which was reported.
    pub fn template(
        &mut self,
        text: &str,
        span: Span,
        purpose: Purpose,
        context: &mut Context,
    ) -> Option<Template> {
        let mut scope = self.scope(false);
        let compiled = Template::compile(text, purpose, &mut scope);
        compiled.map_err(|error| explain(&error, span, text, context)).ok()
    }

    /// Compiles a text that selects a member. It may read a datagram: the caller checks that there is one.
    pub fn member_key(
        &mut self,
        text: &str,
        span: Span,
        context: &mut Context,
    ) -> Option<Template> {
        request_text(self, (text, span), true, context)
    }

    /// Compiles a text that identifies requests. `key`: the name of the text's key in the file.
    pub fn key(
        &mut self,
        key: &str,
        text: &Spanned<Text>,
        context: &mut Context,
    ) -> Option<Template> {
        let template = request_text(self, (&text.value.0, text.span), false, context)?;
        varying(template, key, text, context)
    }

    /// The pool with this name.
    pub fn pool(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<usize> {
        let found = find("pool", self.pools, name, context)?;
        self.pools_used.insert(found);
        Some(found)
    }

    /// Collects the members' addresses, for rules that name a member.
    pub fn know_members<'m>(&mut self, members: impl Iterator<Item = &'m ConfiguredMember>) {
        for member in members {
            match &member.endpoint {
                Endpoint::Literal(address) => {
                    self.members.insert(address.label());
                }
                Endpoint::Name { .. } => self.has_named_members = true,
            }
        }
    }

    /// The member with this address.
    pub fn member(&self, member: &Spanned<Endpoint>, context: &mut Context) -> Option<Arc<str>> {
        let address = member.value.to_string();
        self.names_members.set(true);
        if let Endpoint::Name { .. } = member.value {
            let message =
                format!("`{}` is a name: it can stand for several members", clip(&address));
            context.error_help(member.span, message, "name an address, or a `pool` with that name");
            return None;
        }
        if !self.has_named_members && !self.members.contains(&address) {
            let members = self.members.iter().map(String::as_str);
            undefined("member", &clip(&address), member.span, members, context);
            return None;
        }
        Some(address.into())
    }

    /// The persistence with this name.
    pub fn persistence(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<usize> {
        let wanted = name.value.0.as_str();
        if !context.is_full()
            && !self.persistence.contains_key(wanted)
            && nearest(wanted, self.persistence.keys().copied()).is_none()
            && let Some(kind) =
                meant(wanted, raw::persistence::PersistenceType::words().iter().copied())
        {
            let wanted = clip(wanted);
            let help =
                format!("define it in the top-level `persistence`: `{wanted}: {{ type: {kind} }}`");
            context.error_help(name.span, format!("persistence `{wanted}` is not defined"), help);
            return None;
        }
        let found = find("persistence", self.persistence, name, context)?;
        self.persistence_used.insert(found);
        Some(found)
    }

    /// Compiles the replacement of each match.
    pub fn replacement(
        &mut self,
        raw: &shapes::Pattern,
        context: &mut Context,
    ) -> Option<Replacement> {
        let (regex, to) = (raw.regex.as_ref()?, raw.to.as_ref()?);
        match Replacement::compile(&regex.value.0, &to.value.0, &mut self.slots) {
            Ok(replacement) => Some(replacement),
            Err(ReplacementError::Regex(error)) => {
                explain(&error, regex.span, &regex.value.0, context);
                None
            }
            Err(ReplacementError::To(error)) => {
                explain(&error, to.span, &to.value.0, context);
                None
            }
        }
    }
}

/// Compiles a text that is evaluated before the response; `None`: it is invalid.
fn request_text(
    compiler: &mut Compiler<'_>,
    (text, span): (&str, Span),
    has_datagrams: bool,
    context: &mut Context,
) -> Option<Template> {
    let mut scope = Scope { phase: Phase::Request, ..compiler.scope(has_datagrams) };
    let compiled = Template::compile(text, Purpose::Plain, &mut scope);
    compiled.map_err(|error| explain(&error, span, text, context)).ok()
}

/// A compiler without compiled objects.
pub(super) fn compiler<'a>(
    data_sets: &'a DataSets,
    (slots, authentications): (Slots, Authentications<'a>),
    (pools, persistence): (&'a BTreeMap<&'a str, usize>, &'a BTreeMap<&'a str, usize>),
    (file, directory): (&'a raw::File, &'a Path),
) -> Compiler<'a> {
    let pools_used = authentications.pools();
    Compiler {
        data_sets,
        slots,
        authentications,
        pools,
        persistence,
        virtual_servers: Targets::of(file),
        members: BTreeSet::new(),
        has_named_members: false,
        names_members: Cell::default(),
        pools_used,
        persistence_used: HashSet::new(),
        limits: Vec::new(),
        directory,
        rule_names: Vec::new(),
        rule_places: Vec::new(),
        rule: String::new(),
        notes: Notes::default(),
    }
}

/// Compiles a template that must not be constant.
pub(super) fn varying(
    template: Template,
    key: &str,
    text: &Spanned<Text>,
    context: &mut Context,
) -> Option<Template> {
    if template.constant().is_none() {
        return Some(template);
    }
    let message = format!("`{key}` has no `${{…}}` in it: it is the same for every request");
    let help = format!("an expression is written `${{{}}}`", text.value.0);
    context.error_help(text.span, message, help);
    None
}

/// Reports the errors of an expression at their places in the file.
pub(super) fn explain(error: &ExpressionError, span: Span, text: &str, context: &mut Context) {
    for error in [error].into_iter().chain(&error.more) {
        explain_one(error, span, text, context);
    }
}

fn explain_one(error: &ExpressionError, span: Span, text: &str, context: &mut Context) {
    let before = text.get(..error.range.start).map_or(0, |before| before.chars().count());
    let length = text.get(error.range.clone()).map_or(1, |part| part.chars().count()).max(1);
    let mut place = span.within(text, before);
    if place != span {
        place.length = length;
    }
    match &error.help {
        Some(help) => context.error_help(place, error.message.clone(), help.clone()),
        None => context.error(place, error.message.clone()),
    }
}
