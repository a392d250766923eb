//! The policies and the persistence of virtual servers, looked up by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use weir_core::expression::Reads;
use weir_core::policy::Policy;
use weir_http::path::PathForm;

use super::compiler::Compiler;
use super::demands::Place;
use super::names::find;
use super::policy::redirects;
use super::{allowed_clients, unreachable};
use crate::decode::{Context, Decode as _, NamedItem, Spanned};
use crate::document::{self, Lines, Span};
use crate::profile::ProfileOr;
use crate::raw;
use crate::scalar::Name;
use crate::snapshot::{ConnectionPolicies, ListenPoint, Persistence};

/// The port of `https` that is left out of URLs.
const HTTPS_PORT: u16 = 443;

/// Compiled objects that virtual servers name.
pub(super) struct Policies<'c, 'a> {
    pub compiler: &'c mut Compiler<'a>,
    pub policy_by_name: BTreeMap<&'a str, usize>,
    /// The policies; `None`: invalid, which was reported.
    pub policies: Vec<Option<Arc<Policy>>>,
    pub policies_used: std::collections::HashSet<usize>,
    /// The path forms of the virtual servers that use each policy.
    pub path_forms: HashMap<String, Vec<PathForm>>,
    /// The persistences of the file, followed by inline ones of virtual servers.
    pub persistence: Vec<Option<Persistence>>,
}

impl Policies<'_, '_> {
    /// The policies of a virtual server, in order, with its other keys.
    pub fn of_server(
        &mut self,
        server: &str,
        raw: &raw::VirtualServer,
        path_form: PathForm,
        context: &mut Context,
    ) -> Option<Vec<Arc<Policy>>> {
        let (mut found, mut is_sound) = (Vec::new(), true);
        if let Some((status, port)) = raw.https_redirect.value.settings() {
            let leads_back = raw.tls.is_some();
            if leads_back {
                let message = "`https_redirect` with `tls`: it would redirect to itself";
                let help = "set it for the virtual server that listens without TLS";
                context.error_help(raw.https_redirect.span, message, help);
            }
            is_sound = redirects(status, raw.https_redirect.span, context) && !leads_back;
            let port = if port == HTTPS_PORT { String::new() } else { format!(":{port}") };
            let to = format!("https://${{request.host}}{port}${{request.target}}");
            let action = format!("redirect: {{ to: \"{to}\", status: {status} }}");
            if is_sound {
                found.push(self.built_in(
                    server,
                    ("https_redirect", raw.https_redirect.span),
                    &action,
                    context,
                ));
            }
        }
        if let Some(name) = &raw.authenticate {
            // Looked up here, so that an error is reported at the place of the name.
            is_sound &= self.compiler.authentications.require(name, context).is_some();
            if is_sound {
                let action = format!("authenticate: {}", name.value.0);
                found.push(self.built_in(server, ("authenticate", name.span), &action, context));
            }
        }
        let place =
            Place { kind: raw.kind.value, has_tls: raw.tls.is_some(), is_before_requests: false };
        let names = raw.policies.iter().flat_map(|policies| policies.iter());
        found.extend(names.map(|name| self.policy(name, (place, path_form), context)));
        if let Some(hsts) = &raw.hsts {
            if raw.tls.is_none() {
                // RFC 6797 section 7.2
                let message = "`hsts` without `tls`: browsers accept it only over TLS";
                context.error_help(hsts.span, message, "set it for the virtual server with `tls`");
                is_sound = false;
            }
            let value = hsts_value(&hsts.value);
            let action =
                format!("set_response_header: {{ Strict-Transport-Security: \"{value}\" }}");
            found.push(self.built_in(server, ("hsts", hsts.span), &action, context));
        }
        let found: Vec<Arc<Policy>> = found.into_iter().collect::<Option<_>>()?;
        unreachable::warn_of_policies(raw, &found, context);
        is_sound.then_some(found)
    }

    /// Looks up the names in a virtual server that is otherwise invalid, so that undefined names are reported in the
    /// same run.
    pub fn names_of(&mut self, raw: &raw::VirtualServer, context: &mut Context) {
        for name in
            [&raw.policies, &raw.connection_policies].into_iter().flatten().flat_map(|it| it.iter())
        {
            self.find(name, context);
        }
        if let Some(Spanned { value: ProfileOr::Name(name), span, .. }) = &raw.persistence {
            let name = Spanned { value: name.clone(), span: *span, given: true };
            self.compiler.persistence(&name, context);
        }
    }

    /// The policy with this name.
    fn find(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<usize> {
        let found = find("policy", &self.policy_by_name, name, context)?;
        self.policies_used.insert(found);
        Some(found)
    }

    /// The connection policies of a virtual server.
    pub fn of_connections(
        &mut self,
        server: &str,
        raw: &raw::VirtualServer,
        listen: &[(ListenPoint, Span)],
        context: &mut Context,
    ) -> Option<ConnectionPolicies> {
        if !allowed_clients::are_sound(raw, listen, context) {
            return None;
        }
        let place =
            Place { kind: raw.kind.value, has_tls: raw.tls.is_some(), is_before_requests: true };
        let accepted = self.allowed_clients(server, raw, context);
        let mut is_sound = accepted.is_some();
        let mut found =
            ConnectionPolicies { accepted: accepted.unwrap_or_default(), named: Vec::new() };
        for name in raw.connection_policies.iter().flat_map(|policies| policies.iter()) {
            let policy = self.policy(name, (place, PathForm::default()), context);
            let reads_name = self.reads(std::slice::from_ref(name)).server_name;
            let of = if reads_name { &mut found.named } else { &mut found.accepted };
            is_sound &= policy.is_some();
            of.extend(policy);
        }
        is_sound.then_some(found)
    }

    /// The connection policy that `allowed_clients` is short for; empty: all clients are allowed. `None`: it is invalid,
    /// which was reported.
    pub fn allowed_clients(
        &mut self,
        server: &str,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Option<Vec<Arc<Policy>>> {
        let Some((condition, span)) = allowed_clients::refusing(raw) else {
            return Some(Vec::new());
        };
        let rule = format!("name: allowed_clients, when: \"{condition}\", then: [ reset ]");
        self.of_one_rule(server, (&rule, span), context).map(|policy| vec![policy])
    }

    /// A policy of one rule that always matches, for a key that is a shorthand.
    fn built_in(
        &mut self,
        server: &str,
        (name, span): (&str, Span),
        action: &str,
        context: &mut Context,
    ) -> Option<Arc<Policy>> {
        let rule = format!("name: {name}, then: [ {{ {action} }} ]");
        self.of_one_rule(server, (&rule, span), context)
    }

    /// `span`: the place of the key, which the rule has in explanations.
    fn of_one_rule(
        &mut self,
        server: &str,
        (rule, span): (&str, Span),
        context: &mut Context,
    ) -> Option<Arc<Policy>> {
        let text = format!("rules: [ {{ {rule} }} ]");
        let (root, _) = document::parse(&Lines::new(&text));
        let value = raw::policy::Policy::decode(&root?.all_at(span), context);
        let name = format!("virtual_servers.{server}");
        let item = NamedItem { name, name_span: span, value };
        self.compiler.policy(&item, context)
    }

    fn policy(
        &mut self,
        name: &Spanned<Name>,
        (place, path_form): (Place, PathForm),
        context: &mut Context,
    ) -> Option<Arc<Policy>> {
        let wanted = name.value.0.as_str();
        let index = self.find(name, context)?;
        let forms = self.path_forms.entry(wanted.to_owned()).or_default();
        if !forms.contains(&path_form) {
            forms.push(path_form);
        }
        let demands = self.compiler.notes.demands.get(wanted).map_or(&[][..], Vec::as_slice);
        if !place.accepts(name, demands, context) {
            return None;
        }
        self.policies[index].clone()
    }

    /// The values that the rules of these policies read.
    pub fn reads(&self, names: &[Spanned<Name>]) -> Reads {
        let named = names.iter().filter_map(|name| self.compiler.notes.demands.get(&name.value.0));
        named.flatten().map(|demands| demands.reads).collect()
    }

    /// The persistence of a virtual server. The outer `None`: it is invalid.
    pub fn persistence(
        &mut self,
        server: &str,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Option<Option<usize>> {
        let Some(choice) = &raw.persistence else {
            return Some(None);
        };
        match &choice.value {
            ProfileOr::Name(name) => {
                let name = Spanned { value: name.clone(), span: choice.span, given: true };
                self.compiler.persistence(&name, context).map(Some)
            }
            ProfileOr::Inline(raw) => {
                // This name cannot be confused with a persistence of the file that has the virtual server's name.
                let name = format!("virtual_servers.{server}");
                let found = self.compiler.persistence_of(&name, raw, context);
                let fallback = self.compiler.fallback(raw, context)?;
                self.persistence.push(Some(Persistence { fallback, ..found? }));
                Some(Some(self.persistence.len() - 1))
            }
        }
    }
}

/// The value of `Strict-Transport-Security` (RFC 6797 section 6.1).
fn hsts_value(hsts: &raw::tls::Hsts) -> String {
    const DAY_S: u64 = 24 * 60 * 60;
    let mut value = format!("max-age={}", u64::from(hsts.max_age_days.value.0) * DAY_S);
    if hsts.include_subdomains.value {
        value.push_str("; includeSubDomains");
    }
    if hsts.preload.value {
        value.push_str("; preload");
    }
    value
}
