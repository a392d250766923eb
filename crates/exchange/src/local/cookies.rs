//! Cookies of the application: sealed and completed on the way to the client, opened on the way to the member.

use weir_config::snapshot::{PersistenceKind, Snapshot, VirtualServer};
use weir_core::persistence::keys::{Keys, Seals};
use weir_http::cookie_attributes::{self, CookieAttributes};
use weir_http::edits::{Change, FieldEdits};
use weir_http::fields::forwarded_values;
use weir_http::message::{RequestHead, ResponseHead};
use weir_waf::checks::{CookieTerms, Sealer, TAG_BYTES};

use crate::shared::live::LiveTable;
use crate::shared::sticky::reached_persistence;

const COOKIE: &[u8] = b"Cookie";
const SET_COOKIE: &[u8] = b"Set-Cookie";

/// Protects the cookies of a virtual server's application.
pub struct CookieKeeper {
    terms: CookieTerms,
    attributes: CookieAttributes,
    seals: OwnSeals,
}

/// The seals of one application: the tag of a cookie is also about the application, so another one does not accept it,
/// although all of them have the same keys by default.
struct OwnSeals {
    seals: Seals,
    /// The beginning of all messages: the length of the name, and the name.
    application: Box<[u8]>,
}

impl OwnSeals {
    fn of(application: &str, keys: &Keys) -> Self {
        let name = application.as_bytes();
        let application = [&(name.len() as u64).to_le_bytes()[..], name].concat().into();
        Self { seals: keys.seals(), application }
    }

    fn whole(&self, message: &[u8]) -> Vec<u8> {
        [&self.application, message].concat()
    }
}

impl Sealer for OwnSeals {
    fn tag(&self, message: &[u8]) -> [u8; TAG_BYTES] {
        self.seals.tag(&self.whole(message))
    }

    fn is_tag(&self, message: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
        self.seals.is_tag(&self.whole(message), tag)
    }
}

/// The Cookie fields of a request, as the member receives them.
#[derive(Default)]
pub struct UnsealedCookies {
    /// The values in order.
    pub fields: Vec<Vec<u8>>,
    /// The names of sealed cookies whose seal is invalid.
    pub changed: Vec<Vec<u8>>,
}

impl CookieKeeper {
    /// The keeper of a virtual server; `None`: its cookies need no protection.
    pub fn of(server: &VirtualServer, table: &LiveTable) -> Option<Box<Self>> {
        let cookies = server.waf.as_ref()?.cookies.as_ref()?;
        let keys = cookies.keys.as_ref().unwrap_or(&table.stickies.own_keys);
        let terms = CookieTerms {
            others: of_persistence(server, &table.snapshot),
            ..cookies.terms.clone()
        };
        let attributes = cookies.attributes.clone();
        let application = cookies.application.as_ref().unwrap_or(&server.name);
        Some(Box::new(Self { terms, attributes, seals: OwnSeals::of(application, keys) }))
    }

    /// Opens the sealed cookies of a request and writes the original values into `edits`.
    pub fn open(
        &self,
        (head, input): (&RequestHead, &[u8]),
        edits: &mut FieldEdits,
        scratch: &mut Vec<u8>,
    ) -> UnsealedCookies {
        let mut opened = UnsealedCookies::default();
        let received = forwarded_values(&head.fields, input, COOKIE);
        // Policies may have changed the fields of the request.
        edits.change_each(COOKIE, received, scratch, |field, out| {
            let start = out.len();
            let is_other = self.terms.open(field, &self.seals, &mut opened.changed, out);
            opened.fields.push(out[start..].to_vec());
            change(is_other)
        });
        opened
    }

    /// Seals and completes the cookies of a response.
    pub fn set(
        &self,
        (head, input): (&ResponseHead, &[u8]),
        edits: &mut FieldEdits,
        scratch: &mut Vec<u8>,
    ) {
        let received = forwarded_values(&head.fields, input, SET_COOKIE);
        edits.change_each(SET_COOKIE, received, scratch, |field, out| self.set_one(field, out));
    }

    fn set_one(&self, field: &[u8], out: &mut Vec<u8>) -> Change {
        let cookie = cookie_attributes::divided(field);
        let Some((name, pair, attributes)) = cookie.filter(|(name, ..)| !self.terms.leave(name))
        else {
            return Change::None;
        };
        let start = out.len();
        let is_sealed = self.terms.set(name, pair, &self.seals, out);
        self.attributes.write(attributes, out);
        change(is_sealed || out.len() - start > field.len())
    }
}

fn change(is_other: bool) -> Change {
    if is_other { Change::Changed } else { Change::None }
}

/// The names of the persistence cookies of a virtual server. Cookies that weir inserts may pass to other virtual
/// servers of the same host; cookies of an application belong to its own virtual server.
fn of_persistence(server: &VirtualServer, snapshot: &Snapshot) -> Vec<Box<[u8]>> {
    let own = reached_persistence(server, snapshot);
    let mut names = Vec::new();
    for (index, persistence) in snapshot.persistence.iter().enumerate() {
        match &persistence.kind {
            PersistenceKind::Insert(inserted) => names.push(inserted.cookie.name.as_bytes().into()),
            _ if !own.contains(&index) => {}
            PersistenceKind::Passive { name } => names.push(name.as_bytes().into()),
            PersistenceKind::PathParameter { name, .. } => {
                names.push(name.to_ascii_uppercase().as_bytes().into());
            }
            PersistenceKind::Learned(learned) => {
                names.extend(learned.of.cookies().map(|name| name.as_bytes().into()));
            }
            PersistenceKind::Address(_)
            | PersistenceKind::ConnectionIds(_)
            | PersistenceKind::Hash(_) => {}
        }
    }
    names
}
