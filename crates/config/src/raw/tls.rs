//! `tls`: how clients are served over TLS.

use crate::raw::Timeout;
use crate::scalar::{Duration, GIB, MIB, Name, SECOND, Size, Whole};
use crate::shapes::{CipherSuite, Curve, FilePath, MemberName, OcspSource, ServerName, TlsVersion};

/// Handshakes at a time that can be allowed.
const HANDSHAKES_MAX: u64 = 1_000_000;

section! {
    /// How clients are served over TLS.
    Tls at "virtual_servers.NAME.tls" {
        /// Certificates with their keys. The first is for clients that ask for no name, or for one that no certificate has; several for one name may differ in what signs (RSA, ECDSA), and a client gets the cheaper one that it knows.
        optional certificates: Vec<crate::decode::Spanned<Certificate>>;
        /// A folder with certificates, for many of them: each `NAME.crt` with `NAME.key`, or `NAME.pem` with both in it, and `NAME.ocsp` where there is one. They come after those of `certificates`, in the order of their names; a reload reads it again.
        optional certificate_folder: FilePath;
        /// The oldest version that is spoken.
        default min_version: TlsVersion = TlsVersion::Tls12;
        /// The newest version that is spoken.
        default max_version: TlsVersion = TlsVersion::Tls13;
        /// Cipher suites, by their names in RFC 8446 and RFC 5289 or OpenSSL's. Default: all that there are: AES-GCM and ChaCha20-Poly1305 with ephemeral keys.
        optional ciphers: Vec<crate::decode::Spanned<CipherSuite>>;
        /// Groups of the key exchange, the preferred first. Default: X25519MLKEM768, X25519, P-256, P-384.
        optional curves: Vec<crate::decode::Spanned<Curve>>;
        /// How a client that comes again is spared the full handshake. `tickets`: what is needed is with the client, sealed. `stateful`: it is remembered here, for all workers. `off`: it is not.
        default resumption: Resumption = Resumption::Tickets;
        /// Of `tickets`: a file with their keys, shared by several instances; the first key seals, all are honoured. Default: own keys, changed every six hours and never stored.
        optional ticket_key_file: FilePath;
        /// Of `stateful`: memory for sessions; when it is full the oldest are forgotten.
        default cache_size: Size<MIB, { 64 * GIB }> = Size(64 * MIB);
        /// Of `stateful`: whether a client that comes again may send its first requests along with its first message (0-RTT), which saves it a round trip. Only methods that change nothing are served from there; members are told by `Early-Data: 1`.
        default early_data: bool = false;
        /// Whether a client that asks for no name, or for one that no certificate has, is refused.
        default strict_sni: bool = false;
        /// Whether clients show a certificate. Default: they are not asked for one.
        optional client_certificates: ClientCertificates;
        /// How long a client may take for the handshake.
        default handshake_timeout: Timeout = Duration(10 * SECOND);
        /// Handshakes at a time, over all workers; clients beyond it are closed. Default: any number.
        optional handshakes_max: Whole<u32, 1, HANDSHAKES_MAX>;
        /// Other settings for some names: TLS profiles, by name.
        optional by_name: Vec<crate::decode::Spanned<ByName>>;
    }
    later []
}

section! {
    /// A certificate and its key.
    Certificate at "virtual_servers.NAME.tls.certificates" {
        /// The certificate and its chain up to, but without, the root, in PEM.
        required cert: FilePath;
        /// Its private key, in PEM and not encrypted. It may stand in the same file.
        required key: FilePath;
        /// What the authority says of it (OCSP): sent along with the certificate as long as it is in time. A file, in DER; or `fetch`: weir asks the responder that the certificate names, and asks again half-way to the end of what it got.
        optional ocsp: OcspSource;
    }
    later []
}

section! {
    /// Whose certificates clients may show.
    ClientCertificates at "virtual_servers.NAME.tls.client_certificates" {
        /// `require`: a client without one is refused. `request`: it is served as well.
        default mode: ClientCertificateMode = ClientCertificateMode::Require;
        /// The authorities' certificates, in PEM.
        required ca: FilePath;
        /// Certificates that are revoked: the authorities' lists, in PEM or DER.
        optional crl: FilePath;
    }
    later []
}

section! {
    /// Names that have settings of their own.
    ByName at "virtual_servers.NAME.tls.by_name" {
        /// The names that clients ask for; `*.` at the front stands for one label.
        required names: Vec<crate::decode::Spanned<ServerName>>;
        /// The TLS profile that they get. It has certificates of its own, or uses those of the virtual server; `resumption`, `early_data` and the limits on handshakes are the virtual server's.
        required profile: Name;
    }
    later []
}

choice! {
    /// How a client that comes again is spared the full handshake.
    Resumption {
        /// By tickets.
        Tickets = "tickets",
        /// By what is remembered here.
        Stateful = "stateful",
        /// It is not.
        Off = "off",
    }
    later [] maps []
}

choice! {
    /// Whether a client has to show a certificate.
    ClientCertificateMode {
        /// It has to.
        Require = "require",
        /// It is asked.
        Request = "request",
    }
    later [] maps []
}

section! {
    /// That browsers use nothing but TLS for this host (RFC 6797).
    Hsts at "virtual_servers.NAME.hsts" {
        /// For how many days they remember it.
        default max_age_days: Whole<u32, 0, 36_500> = Whole(365);
        /// Whether it counts for all names below the host.
        default include_subdomains: bool = false;
        /// Whether the host may be put on the browsers' own lists.
        default preload: bool = false;
    }
    later []
}

section! {
    /// How members are spoken to over TLS.
    PoolTls at "pools.NAME.tls" {
        /// Whether a member's certificate must be signed by an authority that is trusted, and be for its name. Without, anybody between weir and the member can read and change what passes.
        default verify: bool = true;
        /// The authorities that are trusted, in PEM. Default: the system's.
        optional ca: FilePath;
        /// The name that members are asked for, and that their certificates must be for. Default: the name by which the file lists a member, or its address.
        optional server_name: MemberName;
        /// What is shown to members that ask for a certificate.
        optional certificate: Certificate;
    }
    later []
}
