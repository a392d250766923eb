//! Values of datagrams: refused for virtual servers with requests or connections.

use std::sync::Arc;

use weir_core::policy::{Action, Policy};

use super::policies::Policies;
use crate::decode::{Context, NamedItem};
use crate::document::Span;
use crate::quote::clip;
use crate::raw::{self, BalanceOr, VirtualServerType};
use crate::snapshot::{Balance, LearnedPersistence, PersistenceKind, Pool};
use crate::variants::Choice as _;

const HELP: &str = "values of datagrams are for virtual servers of `type: udp` only";

/// Refuses load balancing by a value of a datagram where there are no datagrams.
pub(super) fn refuse_balance(
    item: &NamedItem<raw::Pool>,
    model: Option<&Pool>,
    server: &raw::VirtualServer,
    context: &mut Context,
) {
    if server.kind.value == VirtualServerType::Udp {
        return;
    }
    let Some(BalanceOr::Hash(balance)) = item.value.as_ref().map(|pool| &pool.balance.value) else {
        return;
    };
    let reads_datagram = matches!(
        model.map(|model| &model.balance),
        Some(Balance::Hash(template)) if template.reads_datagram()
    );
    if let (Some(hash), true) = (&balance.hash, reads_datagram) {
        let name = clip(&item.name);
        let what = format!("the pool `{name}` is balanced by a value of a datagram");
        tell(hash.span, &what, server, context);
    }
}

/// Refuses persistence by a value of a datagram where there are no datagrams. `own`: the virtual server's persistence;
/// its policies may select others.
pub(super) fn refuse_persistence(
    own: Option<usize>,
    followed: &[Arc<Policy>],
    server: &raw::VirtualServer,
    policies: &Policies<'_, '_>,
    context: &mut Context,
) {
    if server.kind.value == VirtualServerType::Udp {
        return;
    }
    let span = server.persistence.as_ref().map(|choice| choice.span);
    if let (Some(own), Some(span)) = (own, span)
        && let Some(name) = of_datagram(own, policies)
    {
        let what = format!("the persistence `{}` is by a value of a datagram", clip(name));
        tell(span, &what, server, context);
    }
    for given in server.policies.iter().flat_map(|policies| policies.iter()) {
        let policy = followed.iter().find(|policy| *policy.name == *given.value.0);
        let Some(name) = policy.and_then(|policy| chosen(policy, policies)) else { continue };
        let what = format!(
            "the policy `{}` chooses the persistence `{}`, which is by a value of a datagram",
            clip(&given.value.0),
            clip(name)
        );
        tell(given.span, &what, server, context);
    }
}

/// The first persistence by datagram values that a policy may select.
fn chosen<'p>(policy: &Policy, policies: &'p Policies<'_, '_>) -> Option<&'p str> {
    let actions = policy.request.all().iter().flat_map(|rule| &rule.actions);
    let mut chosen = actions.filter_map(|action| match action {
        Action::Persistence(Some(persistence)) => Some(*persistence as usize),
        _ => None,
    });
    chosen.find_map(|persistence| of_datagram(persistence, policies))
}

/// The name of this persistence, or of one of its fallbacks, if it uses datagram values.
fn of_datagram<'p>(persistence: usize, policies: &'p Policies<'_, '_>) -> Option<&'p str> {
    let mut next = Some(persistence);
    // At most as many steps as persistences, so that a cycle, which is reported elsewhere, ends.
    for _ in 0..policies.persistence.len() {
        let found = policies.persistence[next?].as_ref()?;
        let is_of_datagram = match &found.kind {
            PersistenceKind::ConnectionIds(_) => true,
            PersistenceKind::Hash(of) | PersistenceKind::Learned(LearnedPersistence { of, .. }) => {
                of.reads_datagram()
            }
            _ => false,
        };
        if is_of_datagram {
            return Some(&found.name);
        }
        next = found.fallback;
    }
    None
}

fn tell(span: Span, what: &str, server: &raw::VirtualServer, context: &mut Context) {
    let kind = server.kind.value.word();
    let place = context.place(server.kind.span, span);
    let message = format!("{what}, and the virtual server of type {kind} in {place} has none");
    context.error_help(span, message, HELP);
}
