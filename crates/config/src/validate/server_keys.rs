//! Keys of virtual servers and pools that the types of the virtual servers would ignore.

use crate::decode::{Context, NamedItem};
use crate::quote::clip;
use crate::raw::{self, VirtualServerType};
use crate::variants::{Choice as _, PresentKey, Variants as _, keys_fit};

/// Keys of a pool that every virtual server without them refuses by itself: without them, traffic would not be as
/// members expect it.
const REFUSED_BY_EACH: [&str; 2] = ["tls", "proxy_protocol"];

/// Whether a virtual server has only keys of its type; the others are reported.
pub(super) fn server_keys_fit(raw: &raw::VirtualServer, context: &mut Context) -> bool {
    let kind = raw.kind.value;
    let mut fits = keys_fit(raw, kind, context);
    // Of a key that is refused itself, the parts are not reported.
    let takes = |key| raw::VirtualServer::takes(key, kind);
    if let Some(address) = raw.client_address.as_ref().filter(|_| takes("client_address")) {
        fits &= keys_fit(&address.value, kind, context);
    }
    if let Some(limits) = raw.limits.as_ref().filter(|_| takes("limits")) {
        fits &= keys_fit(&limits.value, kind, context);
        for limit in limits.per_key.iter().flat_map(|all| all.iter()) {
            fits &= keys_fit(&limit.value, kind, context);
        }
    }
    fits
}

/// Reports keys of a pool that none of these types takes: those of the virtual servers that use it, at least one.
pub(super) fn refuse_keys_of_pool(
    item: &NamedItem<raw::Pool>,
    kinds: &[VirtualServerType],
    context: &mut Context,
) {
    let Some(pool) = &item.value else { return };
    let is_taken = |given: &PresentKey<VirtualServerType>| {
        REFUSED_BY_EACH.contains(&given.key) || kinds.iter().any(|kind| given.takers.include(*kind))
    };
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    for PresentKey { key, span, .. } in pool.given().filter(|given| !is_taken(given)) {
        let message = format!(
            "`{key}` does not apply to the pool `{}`: only virtual servers of type {} use it",
            clip(&item.name),
            words.join(" and ")
        );
        context.error_help(span, message, "remove it");
    }
}
