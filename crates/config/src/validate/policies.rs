//! The policies and the persistence of virtual servers, found by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_core::policy::Policy;

use super::compiler::Compiler;
use super::names::undefined;
use crate::decode::{Context, Spanned};
use crate::profile::ProfileOr;
use crate::quote::clip;
use crate::raw;
use crate::scalar::Name;
use crate::snapshot::Persistence;

/// What virtual servers name, compiled.
pub(super) struct Policies<'c, 'a> {
    pub compiler: &'c mut Compiler<'a>,
    pub policy_by_name: BTreeMap<&'a str, usize>,
    /// `None`: unsound, which was reported.
    pub policies: Vec<Option<Arc<Policy>>>,
    pub policies_used: std::collections::HashSet<usize>,
    /// Those of the file, then those that virtual servers have inline.
    pub persistence: Vec<Option<Persistence>>,
}

impl Policies<'_, '_> {
    /// The policies of a virtual server, in order.
    pub fn named(
        &mut self,
        raw: &raw::VirtualServer,
        context: &mut Context,
    ) -> Option<Vec<Arc<Policy>>> {
        let names = raw.policies.iter().flat_map(|policies| policies.iter());
        let found: Vec<Option<Arc<Policy>>> =
            names.map(|name| self.policy(name, context)).collect();
        found.into_iter().collect()
    }

    fn policy(&mut self, name: &Spanned<Name>, context: &mut Context) -> Option<Arc<Policy>> {
        let wanted = name.value.0.as_str();
        let Some(&index) = self.policy_by_name.get(wanted) else {
            let known = self.policy_by_name.keys().copied();
            undefined("policy", &clip(wanted), name.span, known, context);
            return None;
        };
        self.policies_used.insert(index);
        self.policies[index].clone()
    }

    /// The persistence of a virtual server: the outer `None` when it is unsound.
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
                let mut found = self.compiler.persistence_of(server, raw, context)?;
                found.fallback = self.compiler.fallback(raw, context)?;
                self.persistence.push(Some(found));
                Some(Some(self.persistence.len() - 1))
            }
        }
    }
}
