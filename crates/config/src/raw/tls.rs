//! `tls`: TLS toward clients.

use crate::raw::Timeout;
use crate::scalar::{Duration, GIB, MIB, Name, SECOND, Size, Whole};
use crate::shapes::{CipherSuite, Curve, FilePath, MemberName, OcspSource, ServerName, TlsVersion};

/// Most simultaneous handshakes that can be configured.
const HANDSHAKES_MAX: u64 = 1_000_000;

section! {
    /// TLS toward clients.
    Tls at "virtual_servers.NAME.tls" {
        /// Certificates with their keys. The first one serves clients without SNI or with an unknown name. Several certificates for one name may have different key types (RSA, ECDSA); among those that the client supports, weir selects the one with the lowest CPU cost.
        optional certificates: Vec<crate::decode::Spanned<Certificate>>;
        /// A directory with many certificates: each as `NAME.crt` with `NAME.key`, or as `NAME.pem` with both, and optionally `NAME.ocsp`. weir adds them after `certificates`, sorted by name. A reload reads the directory again.
        optional certificate_folder: FilePath;
        /// The oldest TLS version.
        default min_version: TlsVersion = TlsVersion::Tls12;
        /// The newest TLS version.
        default max_version: TlsVersion = TlsVersion::Tls13;
        /// Cipher suites, by their names in RFC 8446 and RFC 5289 or by OpenSSL's names. Default: all supported: AES-GCM and ChaCha20-Poly1305 with ephemeral keys.
        optional ciphers: Vec<crate::decode::Spanned<CipherSuite>>;
        /// Key exchange groups, in order of preference. Default: X25519MLKEM768, X25519, P-256, P-384.
        optional curves: Vec<crate::decode::Spanned<Curve>>;
        /// TLS session resumption, which saves returning clients the full handshake.
        default resumption: Resumption = Resumption::Tickets;
        /// With `resumption: tickets`: a file with ticket keys, shared by several instances. The first key encrypts; all keys are accepted. Default: weir generates keys, changes them every six hours, and does not store them.
        optional ticket_key_file: FilePath;
        /// With `resumption: stateful`: memory for sessions. A full cache drops the oldest sessions.
        default cache_size: Size<MIB, { 64 * GIB }> = Size(64 * MIB);
        /// With `resumption: stateful`. `true`: a returning client may send requests with its ClientHello (0-RTT), which saves a round trip. weir serves only GET, HEAD, OPTIONS and TRACE this way; other methods wait for the handshake (HTTP/2: 425). Members get these requests with `Early-Data: 1`.
        default early_data: bool = false;
        /// `true`: clients without SNI, or with a name that no certificate covers, are refused.
        default strict_sni: bool = false;
        /// Client certificates. Default: clients are not asked for one.
        optional client_certificates: ClientCertificates;
        /// Maximum time for the handshake. After it, weir closes the connection.
        default handshake_timeout: Timeout = Duration(10 * SECOND);
        /// Maximum number of simultaneous handshakes, over all workers; further connections are closed. Default: no limit.
        optional handshakes_max: Whole<u32, 1, HANDSHAKES_MAX>;
        /// Other TLS profiles for some server names (SNI). Default: none.
        optional by_name: Vec<crate::decode::Spanned<ByName>>;
    }
    later []
}

section! {
    /// A certificate and its key.
    Certificate at "virtual_servers.NAME.tls.certificates" {
        /// The certificate and its chain, in PEM, without the root.
        either cert: FilePath = "acme";
        /// The private key of the certificate, in PEM and unencrypted. It may be in the same file.
        either key: FilePath = "acme";
        /// Host names: weir gets a certificate for them from the authority of [`acme`](#acme), and renews it. `acme` can be combined with `cert` and `key`: clients then get that certificate until the authority has issued one.
        optional acme: Vec<crate::decode::Spanned<ServerName>>;
        /// OCSP stapling: weir sends this OCSP response with the certificate while the response is valid. A path: a file with the response in DER. `fetch`: weir gets the response from the OCSP responder of the certificate, and renews it after half of its lifetime. Default: none.
        optional ocsp: OcspSource;
    }
    later []
}

section! {
    /// Client certificates.
    ClientCertificates at "virtual_servers.NAME.tls.client_certificates" {
        /// Treatment of clients without a certificate. A certificate that a client sends must always be valid.
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
        /// The TLS profile for these names. It has its own certificates, or uses those of the virtual server. `resumption`, `early_data`, `handshake_timeout` and `handshakes_max` are always those of the virtual server.
        required profile: Name;
    }
    later []
}

choice! {
    /// TLS session resumption.
    Resumption {
        /// Session tickets, stored by the client.
        Tickets = "tickets",
        /// A session cache in weir, shared by all workers.
        Stateful = "stateful",
        /// Every connection has a full handshake.
        Off = "off",
    }
    later [] maps []
}

choice! {
    /// Treatment of clients without a certificate.
    ClientCertificateMode {
        /// Clients without a certificate are refused.
        Require = "require",
        /// Clients without a certificate are served, too.
        Request = "request",
    }
    later [] maps []
}

section! {
    /// Tells browsers to use only TLS for this host (RFC 6797).
    Hsts at "virtual_servers.NAME.hsts" {
        /// `max-age` in days: browsers use only TLS for this time.
        default max_age_days: Whole<u32, 0, 36_500> = Whole(365);
        /// `true` adds `includeSubDomains`: also for all subdomains of the host.
        default include_subdomains: bool = false;
        /// `true` adds `preload`: the host may be added to the preload lists of browsers.
        default preload: bool = false;
    }
    later []
}

section! {
    /// TLS toward members.
    PoolTls at "pools.NAME.tls" {
        /// `true`: the member's certificate must be signed by a trusted authority and match the member's name. With `false`, anyone between weir and the member can read and change the traffic.
        default verify: bool = true;
        /// Trusted authorities, in PEM. Default: those of the system.
        optional ca: FilePath;
        /// The server name (SNI) sent to members; their certificates must match it. Default: the member's host name in the configuration, or its IP address.
        optional server_name: MemberName;
        /// The client certificate for members that ask for one.
        optional certificate: Certificate;
    }
    later []
}
