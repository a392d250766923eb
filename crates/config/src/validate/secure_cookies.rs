//! Warnings about `Secure` cookies of virtual servers without TLS: browsers drop these cookies.

use std::sync::Arc;

use weir_core::policy::Secure;

use super::policies::Policies;
use crate::decode::Context;
use crate::raw;
use crate::snapshot::{PersistenceKind, Waf};

/// Warns of these cookies, unless TLS may end in front of weir: `client_address.trust` means that there is a proxy.
pub(super) fn warn(
    raw: &raw::VirtualServer,
    persistence: Option<usize>,
    waf: Option<&Option<Arc<Waf>>>,
    policies: &Policies<'_, '_>,
    context: &mut Context,
) {
    let is_behind_another = raw.client_address.as_ref().is_some_and(|it| it.trust.is_some());
    if raw.tls.is_some() || is_behind_another {
        return;
    }
    let help = "add `tls`, or say which proxies end TLS in front of weir: `client_address.trust`";
    let mut next = persistence;
    // At most as many steps as persistences, so that a cycle of fallbacks ends.
    for _ in 0..policies.persistence.len() {
        let Some(found) = next.and_then(|index| policies.persistence[index].as_ref()) else {
            break;
        };
        next = found.fallback;
        if let PersistenceKind::Insert(insert) = &found.kind
            && insert.secure == Secure::Always
            && let Some(choice) = &raw.persistence
        {
            let message = format!(
                "the cookie `{}` is `secure`, and clients come without TLS here: browsers drop it, and nobody is \
                 kept at a member",
                insert.cookie.name
            );
            context.warning_help(choice.span, message, help);
        }
    }
    let is_made_secure = waf
        .and_then(|waf| waf.as_ref()?.cookies.as_ref())
        .is_some_and(|cookies| cookies.attributes.secure);
    if let (true, Some(choice)) = (is_made_secure, &raw.waf) {
        let message = "`cookies.secure` of `waf`, and clients come without TLS here: browsers drop the application's cookies";
        context.warning_help(choice.span, message, help);
    }
}
