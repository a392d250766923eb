//! The admin listeners and their users.

use std::collections::HashMap;
use std::path::Path;

use super::server::Servers;
use super::tls::refuse_acme;
use crate::decode::{Context, NamedItem, Section as _, Spanned};
use crate::profile::ProfileOr;
use crate::raw::admin::{Admin, AdminRole, AdminTls as RawTls, AdminUser as RawUser};
use crate::raw::tls::Tls;
use crate::shapes::OcspSource;
use crate::snapshot::{Address, AdminSettings, AdminTls, AdminUser, Role};

/// The help for an address that is reachable from outside.
const SECURE_HELP: &str =
    "listen on loopback or a unix socket, or add `tls` and `users` (see `weir token new`)";

impl Servers<'_> {
    /// Checks the admin listeners' addresses for conflicts, and the users.
    pub fn admin(
        &mut self,
        admin: &Admin,
        directory: &Path,
        context: &mut Context,
    ) -> AdminSettings {
        let listen = admin.listen.as_ref().map_or(&[][..], |listen| &listen.value.0);
        for address in listen {
            let point = address.value.0.clone().into();
            self.listeners.claim("the admin listener", &point, address.span, context);
        }
        let tls = admin.tls.as_ref().and_then(|tls| self.admin_tls(tls, context));
        let users = users(admin, context);
        for address in listen.iter().filter(|address| is_open(&address.value.0)) {
            let lacks = match (admin.tls.is_some(), admin.users.is_some()) {
                (true, true) => continue,
                (false, true) => "`tls`",
                (true, false) => "`users`",
                (false, false) => "`tls` and `users`",
            };
            let message = format!(
                "others can reach the admin listener at {}: it needs {lacks}",
                address.value.0
            );
            context.error_help(address.span, message, SECURE_HELP);
        }
        let listen: Vec<Address> = listen.iter().map(|address| address.value.0.clone()).collect();
        warn_of_useless(admin, &listen, context);
        let names = admin.host_names.iter().flat_map(|names| &names.value.0);
        let host_names = names.map(|name| name.value.0.trim_end_matches('.').to_owned()).collect();
        let reports = admin.reports.as_ref().map(|path| directory.join(&path.value.0));
        AdminSettings { listen, host_names, tls, reports, users }
    }

    fn admin_tls(&mut self, raw: &Spanned<RawTls>, context: &mut Context) -> Option<AdminTls> {
        let certificates = raw.certificates.iter().flat_map(|all| all.iter());
        for certificate in certificates.clone() {
            refuse_acme(&certificate.value, "the admin listeners show no", context)?;
        }
        for ocsp in certificates.filter_map(|certificate| certificate.value.ocsp.as_ref()) {
            if ocsp.value == OcspSource::Fetch {
                let message = "the admin listener fetches no OCSP responses";
                context.error_help(ocsp.span, message, "name a file, or remove `ocsp`");
                return None;
            }
        }
        let tls = Tls {
            certificates: raw.certificates.clone(),
            min_version: raw.min_version.clone(),
            client_certificates: raw.client_certificates.clone(),
            ..Tls::absent()
        };
        let value = ProfileOr::Inline(Box::new(tls));
        let choice = Spanned { value, span: raw.span, given: true };
        let made = self.tls.of(&choice, &[b"http/1.1"], context)?;
        let identities = made.shown().collect();
        Some(AdminTls { config: made.default.config, identities })
    }
}

/// Whether the address is reachable from outside this host.
fn is_open(address: &Address) -> bool {
    match address {
        Address::Unix(_) => false,
        Address::Socket(address) | Address::Udp(address) => !address.ip().is_loopback(),
    }
}

/// Warns of keys that have no effect on these addresses.
fn warn_of_useless(admin: &Admin, listen: &[Address], context: &mut Context) {
    if listen.is_empty() {
        return;
    }
    let is_unix = |address: &Address| matches!(address, Address::Unix(_));
    if let Some(names) = admin.host_names.as_ref().filter(|_| listen.iter().all(is_unix)) {
        let message = "`host_names` has no effect: over a unix socket any name will do";
        context.warning_help(names.span, message, "remove it, or listen on an IP address as well");
    }
    if let Some(tls) = admin.tls.as_ref().filter(|_| !listen.iter().any(is_open)) {
        let message = "`tls` has no effect: unix sockets and loopback addresses speak plain HTTP";
        context.warning_help(tls.span, message, "remove it, or listen on another address as well");
    }
}

fn users(admin: &Admin, context: &mut Context) -> Vec<AdminUser> {
    let items = admin.users.as_ref().map_or(&[][..], |users| &users.value.0);
    if let Some(users) = admin.users.as_ref().filter(|_| items.is_empty()) {
        context.error_help(users.span, "`users` is empty", "add a user, or remove it");
    }
    let asks = admin.tls.as_ref().is_some_and(|tls| tls.client_certificates.is_some());
    let mut owners = Owners::default();
    items.iter().filter_map(|item| user(item, asks, &mut owners, context)).collect()
}

/// The users of all credentials so far.
#[derive(Default)]
struct Owners<'a> {
    of_hash: HashMap<[u8; 32], &'a str>,
    of_certificate: HashMap<&'a str, &'a str>,
}

/// Checks a user. `asks`: clients are asked for certificates.
fn user<'a>(
    item: &'a NamedItem<RawUser>,
    asks: bool,
    owners: &mut Owners<'a>,
    context: &mut Context,
) -> Option<AdminUser> {
    let raw = item.value.as_ref()?;
    let hashes = raw.token_hash.as_ref().map_or(&[][..], |hashes| &hashes.value.0);
    let certificates = raw.certificate.as_ref().map_or(&[][..], |names| &names.value.0);
    for hash in hashes {
        if let Some(other) = owners.of_hash.insert(hash.value.0, &item.name) {
            let message = format!("this is also a token of the user `{other}`");
            context.error_help(hash.span, message, "make a token for each user");
        }
    }
    for name in certificates {
        if let Some(other) = owners.of_certificate.insert(&name.value.0, &item.name) {
            let message = format!("this is also a certificate of the user `{other}`");
            context.error_help(name.span, message, "remove one of them");
        }
    }
    if let Some(names) = raw.certificate.as_ref().filter(|_| !asks) {
        let message = "`certificate` has no effect: clients are not asked for certificates";
        let help = "add `client_certificates: { ca: FILE }` to `admin.tls`";
        context.error_help(names.span, message, help);
    }
    Some(AdminUser {
        name: item.name.as_str().into(),
        role: match raw.role.as_ref()?.value {
            AdminRole::Read => Role::Read,
            AdminRole::Operate => Role::Operate,
            AdminRole::Admin => Role::Admin,
        },
        token_hashes: hashes.iter().map(|hash| hash.value.0).collect(),
        certificates: certificates.iter().map(|name| name.value.0.clone()).collect(),
    })
}
