//! `admin`: the admin listeners, and their users.

use super::tls::{Certificate, ClientCertificates};
use crate::address::{AdminName, ListenAddress};
use crate::decode::{NamedMap, OneOrMany, Spanned};
use crate::scalar::Text;
use crate::shapes::{FilePath, TlsVersion, TokenHash};

section! {
    /// The admin listeners, for operators. They are separate from the virtual servers.
    Admin at "admin" {
        /// One or several addresses that serve the [admin API](api.md) and `/metrics`. A unix socket has mode 0600: only weir's user and root can use it, with all rights. An address on loopback speaks plain HTTP and is read-only without a token, for example for Prometheus on the same host. All other addresses need `tls`, and admit only `users`.
        required listen: OneOrMany<Spanned<ListenAddress>>;
        /// One or several host names that are allowed in the `Host` header over TCP, in addition to IP addresses and `localhost`. Requests with other names get 421. This prevents DNS rebinding (a web page whose host name resolves to this address). Default: none.
        optional host_names: OneOrMany<Spanned<AdminName>>;
        /// TLS for all addresses that are neither loopback nor a unix socket. Required if `listen` has such an address.
        optional tls: AdminTls;
        /// The directory with the reports of `weir bench run` (`NAME/report.html`). The [dashboard](dashboard.md) shows them. Default: `reports` in `state_dir`.
        optional reports: FilePath;
        /// Users, by name. They authenticate with a token or a client certificate. Default: none.
        optional users: NamedMap<AdminUser>;
    }
    later []
}

section! {
    /// TLS of the admin listeners.
    AdminTls at "admin.tls" {
        /// Certificates with their keys, as for virtual servers, but without `ocsp: fetch`.
        required certificates: Vec<Spanned<Certificate>>;
        /// The oldest TLS version.
        default min_version: TlsVersion = TlsVersion::Tls12;
        /// Client certificates, as for virtual servers. With `mode: require`, users with a token need a certificate as well. Default: clients are not asked for one.
        optional client_certificates: ClientCertificates;
    }
    later []
}

section! {
    /// A user of the admin listeners: a person or a program.
    AdminUser at "admin.users.NAME" {
        /// The user's rights.
        required role: AdminRole;
        /// The hash of the user's token, as printed by `weir token new`. To replace a token, list both hashes until the user has the new token.
        either token_hash: OneOrMany<Spanned<TokenHash>> = "certificate";
        /// A name in the user's client certificate: the common name, or a DNS name, email address or URI in the subject alternative names. Needs `admin.tls.client_certificates`.
        optional certificate: OneOrMany<Spanned<Text>>;
    }
    later []
}

choice! {
    /// Rights of a user of the admin listeners.
    AdminRole {
        /// Can read everything except passwords in the configuration.
        Read = "read",
        /// Can also change the state of members, end flows, reload the configuration, and go back to an earlier version of it.
        Operate = "operate",
        /// Can do everything.
        Admin = "admin",
    }
    later [] maps []
}
