//! Translation of URLs between the names that clients use and those that members use: `Location` in responses, and
//! `Destination` in COPY and MOVE requests (WebDAV).

use std::io::Write as _;

use weir_config::snapshot::Address;
use weir_core::expression::Facts;
use weir_http::edits::{Change, FieldEdits, RequestEdits};
use weir_http::fields::forwarded_values;
use weir_http::message::{ResponseHead, Scheme};
use weir_http::origin::{Origin, take_apart, write_url};

/// The names of the server in the URLs of a client and of its member. Reused with its capacity.
#[derive(Debug, Default)]
pub struct Names {
    schemes: Option<Schemes>,
    /// Host and port in the client's request.
    client: Vec<u8>,
    /// Host and port in the request to the member.
    member: Vec<u8>,
}

/// The schemes of the two connections.
#[derive(Debug, Clone, Copy)]
struct Schemes {
    client: Scheme,
    member: Scheme,
}

impl Names {
    /// Stores the names for a request, and changes `Destination` to the name that the member uses. `asked`: the host
    /// that the client requested, if rules have changed it; else empty.
    pub fn take(
        &mut self,
        (facts, asked): (&Facts<'_>, &[u8]),
        member: Scheme,
        edits: &mut RequestEdits,
    ) {
        let (head, input) = (facts.request, facts.request_input);
        let received = head.authority(input);
        if received.is_empty() {
            return;
        }
        let asked = if asked.is_empty() { received } else { asked };
        self.schemes = Some(Schemes { client: facts.scheme, member });
        self.client.extend_from_slice(asked);
        self.member.extend_from_slice(edits.authority().unwrap_or(received));
        let (Some((client, member)), b"COPY" | b"MOVE") =
            (self.origins(), head.method_text.of(input))
        else {
            return;
        };
        let fields = forwarded_values(&head.fields, input, b"destination");
        edits.fields.change_each(b"Destination", fields, &mut Vec::new(), |url, out| {
            move_url(url, |origin| origin.is(client), member, out)
        });
    }

    /// Changes `Location` in a response of the member at `address`, if the field names that member.
    pub fn change_location(
        &self,
        head: &ResponseHead,
        input: &[u8],
        address: &Address,
        edits: &mut FieldEdits,
    ) {
        let Some((client, member)) = self.origins() else { return };
        let is_own = |origin: Origin<'_>| origin.is(member) || is_at(origin, member, address);
        let fields = forwarded_values(&head.fields, input, b"location");
        edits.change_each(b"Location", fields, &mut Vec::new(), |url, out| {
            move_url(url, is_own, client, out)
        });
    }

    /// Empties it, and keeps the capacity.
    pub fn clear(&mut self) {
        self.schemes = None;
        self.client.clear();
        self.member.clear();
    }

    /// The capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.client.capacity() + self.member.capacity()
    }

    fn origins(&self) -> Option<(Origin<'_>, Origin<'_>)> {
        let schemes = self.schemes?;
        let client = Origin { scheme: schemes.client, authority: &self.client };
        Some((client, Origin { scheme: schemes.member, authority: &self.member }))
    }
}

/// Whether a URL has the member's port and either the requested host or the member's own address: servers use the names
/// in their own configuration.
fn is_at(origin: Origin<'_>, member: Origin<'_>, address: &Address) -> bool {
    let Address::Socket(address) = address else { return false };
    let mut with_port = member.host().to_vec();
    let mut own = Vec::new();
    // Writing to a vector cannot fail.
    let _ = write!(with_port, ":{}", address.port());
    let _ = write!(own, "{address}");
    let is = |authority: &[u8]| origin.is(Origin { scheme: member.scheme, authority });
    is(&with_port) || is(&own)
}

fn move_url(
    url: &[u8],
    is_from: impl Fn(Origin<'_>) -> bool,
    to: Origin<'_>,
    out: &mut Vec<u8>,
) -> Change {
    match take_apart(url) {
        Some((origin, rest)) if is_from(origin) && origin != to => {
            write_url(to, rest, out);
            Change::Changed
        }
        _ => Change::None,
    }
}
