//! `tls`: TLS toward clients.

use crate::raw::Timeout;
use crate::scalar::{Duration, GIB, MIB, Name, SECOND, Size, Whole};
use crate::shapes::{CipherSuite, Curve, FilePath, MemberName, OcspSource, ServerName, TlsVersion};

/// Most simultaneous handshakes that can be configured.
const HANDSHAKES_MAX: u64 = 1_000_000;

section! {
    /// TLS toward clients.
    Tls at "virtual_servers.NAME.tls" {
        /// Certificates with their keys. The first one serves clients without SNI or with an unknown name. Several certificates for one name may have different key types (RSA, ECDSA); a client gets the one with the lowest CPU cost that it supports.
        optional certificates: Vec<crate::decode::Spanned<Certificate>>;
        /// A folder with many certificates: each as `NAME.crt` with `NAME.key`, or as `NAME.pem` with both, and optionally `NAME.ocsp`. They come after those of `certificates`, sorted by name. A reload reads the folder again.
        optional certificate_folder: FilePath;
        /// The oldest TLS version.
        default min_version: TlsVersion = TlsVersion::Tls12;
        /// The newest TLS version.
        default max_version: TlsVersion = TlsVersion::Tls13;
        /// Cipher suites, by their names in RFC 8446 and RFC 5289 or by OpenSSL's names. Default: all supported: AES-GCM and ChaCha20-Poly1305 with ephemeral keys.
        optional ciphers: Vec<crate::decode::Spanned<CipherSuite>>;
        /// Key exchange groups, in order of preference. Default: X25519MLKEM768, X25519, P-256, P-384.
        optional curves: Vec<crate::decode::Spanned<Curve>>;
        /// How a returning client avoids the full handshake.
        default resumption: Resumption = Resumption::Tickets;
        /// For `tickets`: a file with ticket keys, shared by several instances. The first key encrypts; all keys are accepted. Default: own keys, changed every six hours and never stored.
        optional ticket_key_file: FilePath;
        /// For `stateful`: memory for sessions. When it is full, the oldest sessions are forgotten.
        default cache_size: Size<MIB, { 64 * GIB }> = Size(64 * MIB);
        /// For `stateful`: whether a returning client may send requests with its first message (0-RTT), which saves a round trip. Only methods that change nothing are accepted. Members get these requests with `Early-Data: 1`.
        default early_data: bool = false;
        /// Whether a client without SNI, or with a name that no certificate has, is refused.
        default strict_sni: bool = false;
        /// Client certificates. Default: clients are not asked for one.
        optional client_certificates: ClientCertificates;
        /// The time for the handshake.
        default handshake_timeout: Timeout = Duration(10 * SECOND);
        /// Most simultaneous handshakes, over all workers; further connections are closed. Default: no limit.
        optional handshakes_max: Whole<u32, 1, HANDSHAKES_MAX>;
        /// Other settings for some server names: TLS profiles, by name. Default: none.
        optional by_name: Vec<crate::decode::Spanned<ByName>>;
    }
    later []
}

section! {
    /// A certificate and its key.
    Certificate at "virtual_servers.NAME.tls.certificates" {
        /// The certificate and its chain, in PEM, without the root.
        either cert: FilePath = "acme";
        /// Its private key, in PEM and unencrypted. It may be in the same file.
        either key: FilePath = "acme";
        /// Host names: weir gets a certificate for them from the authority of [`acme`](#acme), and renews it. With `cert` and `key`, clients get that certificate until there is one.
        optional acme: Vec<crate::decode::Spanned<ServerName>>;
        /// The OCSP response, sent with the certificate while it is valid. A file in DER; or `fetch`: weir asks the responder named in the certificate, and asks again after half of the response's lifetime. Default: none.
        optional ocsp: OcspSource;
    }
    later []
}

section! {
    /// Client certificates.
    ClientCertificates at "virtual_servers.NAME.tls.client_certificates" {
        /// Treatment of clients without a certificate.
        default mode: ClientCertificateMode = ClientCertificateMode::Require;
        /// Certificates of the accepted authorities, in PEM.
        required ca: FilePath;
        /// Certificate revocation lists of these authorities, in PEM or DER. Default: none.
        optional crl: FilePath;
    }
    later []
}

section! {
    /// Settings for some server names.
    ByName at "virtual_servers.NAME.tls.by_name" {
        /// The server names that clients send; `*.` at the front stands for one label.
        required names: Vec<crate::decode::Spanned<ServerName>>;
        /// The TLS profile for these names. It has its own certificates, or uses those of the virtual server. `resumption`, `early_data` and the limits on handshakes are always those of the virtual server.
        required profile: Name;
    }
    later []
}

choice! {
    /// How a returning client avoids the full handshake.
    Resumption {
        /// The client keeps the encrypted session.
        Tickets = "tickets",
        /// weir keeps the session, for all workers.
        Stateful = "stateful",
        /// Each connection has a full handshake.
        Off = "off",
    }
    later [] maps []
}

choice! {
    /// Whether a client needs a certificate.
    ClientCertificateMode {
        /// They are refused.
        Require = "require",
        /// They are served, too.
        Request = "request",
    }
    later [] maps []
}

section! {
    /// Tells browsers to use only TLS for this host (RFC 6797).
    Hsts at "virtual_servers.NAME.hsts" {
        /// How many days browsers remember it.
        default max_age_days: Whole<u32, 0, 36_500> = Whole(365);
        /// Whether it also applies to all subdomains of the host.
        default include_subdomains: bool = false;
        /// Whether the host may be added to the preload lists of browsers.
        default preload: bool = false;
    }
    later []
}

section! {
    /// TLS toward members.
    PoolTls at "pools.NAME.tls" {
        /// Whether a member's certificate must be signed by a trusted authority and match its name. If not, anyone between weir and the member can read and change the traffic.
        default verify: bool = true;
        /// Trusted authorities, in PEM. Default: those of the system.
        optional ca: FilePath;
        /// The server name (SNI) sent to members; their certificates must match it. Default: the member's name in the file, or its address.
        optional server_name: MemberName;
        /// The client certificate for members that ask for one.
        optional certificate: Certificate;
    }
    later []
}
