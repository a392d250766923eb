//! Fields by which a client could claim what members believe weir alone.

use weir_http::edits::FieldEdits;

use crate::local::withheld_names;
use crate::parts::arrival::Arrival;

/// Withholds fields of the client that members take from weir alone. A request that was handed over has lost them at its
/// entry, whose names include those of all virtual servers behind it: what it has of them now, rules have set.
#[inline]
pub fn withhold_claims(arrival: &Arrival<'_>, edits: &mut FieldEdits) {
    let claims = &arrival.server.claims;
    if !claims.names.is_empty() && arrival.entry().is_none() {
        let of_weir = claims.own_mark.field_of_weir((arrival.head, arrival.input));
        withheld_names::withhold(&claims.names, of_weir, edits);
    }
}
