//! `admin`: the admin listeners, and their users.

use super::tls::{Certificate, ClientCertificates};
use crate::address::{AdminName, ListenAddress};
use crate::decode::{Named, OneOrMany, Spanned};
use crate::scalar::Text;
use crate::shapes::{FilePath, TlsVersion, TokenHash};

section! {
    /// The admin listeners, for operators. Clients of virtual servers cannot reach them.
    Admin at "admin" {
        /// One or several addresses that serve the [admin API](api.md) and `/metrics`. A unix socket belongs to the user that weir runs as, who may do everything. An address on loopback speaks plain HTTP and is read-only without a token, for example for Prometheus on the same host. All other addresses need `tls`, and admit only `users`.
        required listen: OneOrMany<Spanned<ListenAddress>>;
        /// One or several host names that are allowed in the `Host` field over TCP, in addition to addresses and `localhost`. Other names get 421: otherwise a web page could point its own name at this address (DNS rebinding). Default: none.
        optional host_names: OneOrMany<Spanned<AdminName>>;
        /// TLS on all addresses except loopback ones and unix sockets. Required for these.
        optional tls: AdminTls;
        /// The folder with reports of `weir bench` that the [dashboard](dashboard.md) shows: `NAME/report.html`, as `weir bench run` keeps them. Default: `reports` in `state_dir`.
        optional reports: FilePath;
        /// Users, by name. They authenticate with a token or a client certificate. Default: none.
        optional users: Named<AdminUser>;
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
        /// The hash of the user's token, as printed by `weir token new`. Several hashes are accepted while a token is replaced.
        either token_hash: OneOrMany<Spanned<TokenHash>> = "certificate";
        /// A name in the user's client certificate: its common name, or a DNS name, mail address or URI among its alternative names. Needs `admin.tls.client_certificates`.
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
