//! The scripts of tlsfuzzer: options of each script, known failures with reasons, and excluded scripts.

/// The server for a script.
#[derive(Debug, Clone, Copy)]
pub enum Server {
    /// The RSA certificate.
    Rsa,
    /// The ECDSA certificate.
    Ec,
    /// Both certificates.
    Both,
    /// The RSA certificate. The server stores sessions and sends no tickets.
    Stateful,
    /// The RSA certificate. The server requests client certificates, and the script presents an RSA certificate.
    ClientRsa,
    /// The RSA certificate. The server requests client certificates, and the script presents an ECDSA certificate.
    ClientEc,
    /// The RSA certificate. The member echoes.
    Echo,
}

use Server::{Both, ClientEc, ClientRsa, Ec, Echo, Rsa, Stateful};

/// A script of tlsfuzzer and its known failures.
pub struct Script {
    pub name: &'static str,
    pub server: Server,
    pub options: &'static str,
    /// The start of a conversation's name, a part of its error, and the reason.
    pub expected: &'static [(&'static str, &'static str, &'static str)],
}

pub const fn script(
    name: &'static str,
    server: Server,
    options: &'static str,
    expected: &'static [(&'static str, &'static str, &'static str)],
) -> Script {
    Script { name, server, options, expected }
}

pub const ANOTHER_ALERT: &str = "refused as it should be, with another alert";
pub const ODD_NAME: &str = "refused as it should be, with unrecognized_name, as OpenSSL does";
pub const WITHOUT_ALERT: &str =
    "refused as it should be; the connection is closed without an alert";
pub const AFTER_THE_SERVER_HELLO: &str = "refused as it should be, after the ServerHello";
pub const SCRIPT_OFFERS_RSA_KEYS_ONLY: &str =
    "the script's plain conversation offers only RSA key exchange, which there is not";
pub const NO_RENEGOTIATION: &str = "no renegotiation: a warning says so and the connection goes on";
pub const BIG_HELLO: &str = "a ClientHello is limited to 32 KiB";
pub const MANY_RECORDS: &str = "a ClientHello is limited to 64 records";
pub const NEWER_EXTENSIONS: &str = "to the script these extensions mean nothing; the empty or random ticket_request or \
    encrypted_client_hello among them is malformed";
pub const SCRIPT_CANNOT: &str = "the script itself fails before anything is sent";
pub const NO_SUCH_GROUP: &str = "the group is not offered";
pub const NO_SUCH_SUITE: &str = "the suite is not offered";
pub const NO_TLS_1_1: &str = "no version below TLS 1.2";
pub const TICKETS_WHEN_ASKED: &str = "tickets go only to a client that says how it would use them";
pub const LENIENT: &str = "RFC 8446 would have it refused; it is passed over and has no effect";
pub const OTHER_SCHEMES: &str = "the list of signature schemes is another than the script's";
pub const AEAD: &str = "-C TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

/// The scripts to run. `-d` means ECDHE, here with AES-GCM: see `PRELUDE` in the other file of this folder.
pub const SCRIPTS: &[Script] = &[
    // TLS 1.3.
    script("tls13-0rtt-garbage", Rsa, "-d", &[]),
    script("tls13-ccs", Rsa, "", &[]),
    script(
        "tls13-certificate-compression",
        Rsa,
        "-d",
        &[
            ("", "Handshake(certificate)", "certificates are not compressed"),
            ("duplicated algos", "illegal_parameter", "a list with an algorithm twice is refused"),
        ],
    ),
    script(
        "tls13-certificate-request",
        ClientRsa,
        "",
        &[
            ("check sigalgs", "signature algorithms", OTHER_SCHEMES),
            ("verify extensions", "unexpected extension(s): 47", "it names the authorities"),
        ],
    ),
    script(
        "tls13-certificate-verify",
        ClientRsa,
        "",
        &[("check sigalgs", "signature algorithms", OTHER_SCHEMES)],
    ),
    script(
        "tls13-connection-abort",
        Rsa,
        "",
        &[("\"After NewSessionTicket\"", "ApplicationData", TICKETS_WHEN_ASKED)],
    ),
    script("tls13-conversation", Rsa, "", &[]),
    script(
        "tls13-count-tickets",
        Rsa,
        "-t 2",
        &[("count NewSessionTickets", "Timeout", TICKETS_WHEN_ASKED)],
    ),
    script(
        "tls13-crfg-curves",
        Rsa,
        "",
        &[("", "handshake_failure", NO_SUCH_GROUP), ("empty x", "\"decode_error\"", ANOTHER_ALERT)],
    ),
    script(
        "tls13-ecdhe-curves",
        Rsa,
        "",
        &[
            ("x448", "handshake_failure", NO_SUCH_GROUP),
            ("sanity - x448", "handshake_failure", NO_SUCH_GROUP),
            ("secp521r1", "handshake_failure", NO_SUCH_GROUP),
            ("sanity - secp521r1", "handshake_failure", NO_SUCH_GROUP),
        ],
    ),
    script(
        "tls13-ecdsa-in-certificate-verify",
        ClientEc,
        "",
        &[
            ("check sigalgs", "signature algorithms", OTHER_SCHEMES),
            ("check ecdsa_secp", "\"decrypt_error\"", ANOTHER_ALERT),
        ],
    ),
    script(
        "tls13-ecdsa-support",
        Ec,
        "",
        &[("Test with ecdsa_", "handshake_failure", "the server's key is of secp256r1 only")],
    ),
    script("tls13-empty-alert", Rsa, "", &[("empty alert", "\"decode_error\"", ANOTHER_ALERT)]),
    script(
        "tls13-finished",
        Rsa,
        "",
        &[
            ("padding - cipher", "\"decrypt_error\"", ANOTHER_ALERT),
            ("padding - cipher", "Unexpected closure", WITHOUT_ALERT),
            ("truncation - cipher", "\"decrypt_error\"", ANOTHER_ALERT),
            ("empty - cipher", "\"decrypt_error\"", ANOTHER_ALERT),
        ],
    ),
    script(
        "tls13-finished-plaintext",
        Rsa,
        "",
        &[("Unencrypted Finished", "\"bad_record_mac\"", ANOTHER_ALERT)],
    ),
    script("tls13-hrr", Rsa, "", &[]),
    script("tls13-invalid-ciphers", Rsa, "", &[]),
    script(
        "tls13-keyshare-omitted",
        Rsa,
        "",
        &[("key_share extension omitted", "\"handshake_failure\"", ANOTHER_ALERT)],
    ),
    script("tls13-keyupdate", Rsa, "", &[]),
    script(
        "tls13-keyupdate-from-server",
        Rsa,
        "",
        &[("post-handshake KeyUpdate", "ApplicationData", TICKETS_WHEN_ASKED)],
    ),
    script(
        "tls13-large-number-of-extensions",
        Rsa,
        "-n 10",
        &[
            ("unassigned extensions with random", "illegal_parameter", BIG_HELLO),
            ("", "decode_error", NEWER_EXTENSIONS),
        ],
    ),
    script("tls13-legacy-version", Rsa, "", &[("version (", "Handshake(server_hello)", LENIENT)]),
    script("tls13-lengths", Echo, "-n 40", &[]),
    script("tls13-mlkem", Rsa, "-n 60", &[("secp", "handshake_failure", NO_SUCH_GROUP)]),
    script(
        "tls13-multiple-ccs-messages",
        Rsa,
        "",
        &[("", "Timeout", "RFC 8446 lets any number of these messages be dropped")],
    ),
    script(
        "tls13-no-unknown-groups",
        Rsa,
        "-C TLS_AES_128_GCM_SHA256",
        &[(
            "long list of unknown (between 4356 and 4611)",
            "hello_retry_request",
            "X25519MLKEM768 is among them, which the script does not know",
        )],
    ),
    script("tls13-nociphers", Rsa, "", &[]),
    script(
        "tls13-obsolete-curves",
        Rsa,
        "",
        &[
            ("", "handshake_failure", NO_SUCH_GROUP),
            ("", "Handshake(server_hello", "groups that are not known are passed over"),
        ],
    ),
    script(
        "tls13-pkcs-signature",
        Rsa,
        "",
        &[("rsa_pkcs1_", "Handshake(server_hello)", AFTER_THE_SERVER_HELLO)],
    ),
    script(
        "tls13-record-layer-limits",
        Rsa,
        "",
        &[("max size payload (2**14) of Finished", "\"decrypt_error\"", ANOTHER_ALERT)],
    ),
    script("tls13-record-padding", Rsa, "", &[]),
    script(
        "tls13-rsa-signatures",
        Rsa,
        "",
        &[("tls13 signature rsa_pss_pss", "Handshake(server_hello)", AFTER_THE_SERVER_HELLO)],
    ),
    script(
        "tls13-serverhello-random",
        Rsa,
        "",
        &[("\"TLS 1.3 with", "handshake_failure", NO_SUCH_GROUP)],
    ),
    script(
        "tls13-session-resumption",
        Rsa,
        "-d",
        &[(
            "session resumption - PSK_ONLY",
            "ApplicationData",
            "no resumption without a key exchange",
        )],
    ),
    script(
        "tls13-shuffled-extentions",
        Rsa,
        "",
        &[
            ("HRR reversed", "Handshake(server_hello)", LENIENT),
            ("HRR reversed", "decode_error", NEWER_EXTENSIONS),
        ],
    ),
    script(
        "tls13-signature-algorithms",
        Rsa,
        "",
        &[
            ("", "Alert(fatal, illegal_parameter)", BIG_HELLO),
            ("only undefined sigalgs", "server_hello", AFTER_THE_SERVER_HELLO),
            ("only legacy sigalgs", "server_hello", "refused as it should be, behind that message"),
        ],
    ),
    script(
        "tls13-symetric-ciphers",
        Rsa,
        "",
        &[("check connection with TLS_AES_128_CCM", "handshake_failure", NO_SUCH_SUITE)],
    ),
    script("tls13-unencrypted-alert", Rsa, "", &[]),
    script(
        "tls13-unrecognised-groups",
        Rsa,
        "",
        &[
            ("", "illegal_parameter", BIG_HELLO),
            ("known group ffdhe2048", "handshake_failure", NO_SUCH_GROUP),
            ("only unknown key_share", "handshake_failure", NO_SUCH_GROUP),
        ],
    ),
    script(
        "tls13-version-negotiation",
        Rsa,
        "-d",
        &[("fallback from TLS 1.8 to 1.1", "protocol_version", NO_TLS_1_1)],
    ),
    script(
        "tls13-zero-content-type",
        Rsa,
        "",
        &[("zero content type", "Unexpected closure", WITHOUT_ALERT)],
    ),
    script("tls13-zero-length-data", Rsa, "", &[]),
    // TLS 1.2.
    script(
        "TLSv1_2-rejected-without-TLSv1_2",
        Rsa,
        "",
        &[("sanity", "", SCRIPT_OFFERS_RSA_KEYS_ONLY)],
    ),
    script("aes-gcm-nonces", Rsa, "-d", &[]),
    script(
        "alpn-negotiation",
        Stateful,
        "-d",
        &[
            ("renegotiation", "no_renegotiation", NO_RENEGOTIATION),
            ("", "\"no_application_protocol\"", ANOTHER_ALERT),
            (
                "overflow length of last item",
                "Handshake(server_hello)",
                "the first name is a good one",
            ),
            (
                "resumption with alpn change",
                "ApplicationData",
                "HTTP/2 begins with settings of the server",
            ),
        ],
    ),
    script("ccs", Rsa, AEAD, &[("two bytes long CCS", "\"decode_error\"", ANOTHER_ALERT)]),
    script(
        "certificate-malformed",
        ClientRsa,
        AEAD,
        &[("", "Expected alert description", ANOTHER_ALERT)],
    ),
    script(
        "certificate-request",
        ClientRsa,
        AEAD,
        &[("check sigalgs", "signature algorithms", OTHER_SCHEMES)],
    ),
    script("certificate-verify", ClientRsa, AEAD, &[]),
    script("certificate-verify-malformed", ClientRsa, AEAD, &[]),
    script("chacha20", Rsa, "", &[]),
    script(
        "client-compatibility",
        Both,
        "-d -n 0",
        &[
            ("", "handshake_failure", "a client of old that has no suite in common"),
            ("", "handshake_failure", "a client of old that has no suite in common"),
            ("", "unexpected_message", "a client that begins with SSL 2"),
        ],
    ),
    script(
        "client-hello-max-size",
        Rsa,
        "-d",
        &[("max client hello", "illegal_parameter", BIG_HELLO)],
    ),
    script(
        "clienthello-md5",
        Rsa,
        "",
        &[("sanity", "handshake_failure", SCRIPT_OFFERS_RSA_KEYS_ONLY)],
    ),
    script("connection-abort", Rsa, AEAD, &[]),
    script("conversation", Rsa, AEAD, &[]),
    script("cve-2016-6309", Rsa, AEAD, &[]),
    script("cve-2016-7054", Rsa, "-C TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", &[]),
    script(
        "downgrade-protection",
        Rsa,
        "-d",
        &[("TLS 1.3 downgrade check", "protocol_version", NO_TLS_1_1)],
    ),
    script("early-application-data", Rsa, AEAD, &[]),
    script(
        "ecdsa-in-certificate-verify",
        ClientEc,
        "",
        &[
            ("make sha", "\"illegal_parameter\"", ANOTHER_ALERT),
            ("make sha", "Alert(fatal, illegal_parameter)", "the scheme is not offered"),
        ],
    ),
    script(
        "extended-master-secret-extension",
        Stateful,
        "-d",
        &[
            ("", "no_renegotiation", NO_RENEGOTIATION),
            ("", "protocol_version", NO_TLS_1_1),
            ("EMS with session resume without", "\"illegal_parameter\"", ANOTHER_ALERT),
        ],
    ),
    script(
        "extended-master-secret-extension-with-client-cert",
        ClientRsa,
        "-d",
        &[(
            "resume with certificate and EMS",
            "Handshake(certificate)",
            "this server resumes by ticket, the script by session id",
        )],
    ),
    script(
        "fallback-scsv",
        Rsa,
        "-d",
        &[
            ("sanity - TLSv1.1", "handshake_failure", NO_TLS_1_1),
            ("record TLSv1.1 hello TLSv1.1", "handshake_failure", NO_TLS_1_1),
            ("FALLBACK", "\"protocol_version\"", NO_TLS_1_1),
            ("FALLBACK", "\"handshake_failure\"", NO_TLS_1_1),
        ],
    ),
    script("fuzzed-ciphertext", Rsa, "-n 100 -C TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", &[]),
    script("hello-request-by-client", Rsa, AEAD, &[]),
    script("interleaved-CKE-with-CCS", Rsa, AEAD, &[("", "Unexpected closure", WITHOUT_ALERT)]),
    script(
        "interleaved-application-data-and-fragmented-handshakes-in-renegotiation",
        Rsa,
        AEAD,
        &[
            ("", "no_renegotiation", NO_RENEGOTIATION),
            ("Application data inside Client Hello", "unexpected_message", NO_RENEGOTIATION),
        ],
    ),
    script(
        "interleaved-application-data-in-renegotiation",
        Rsa,
        AEAD,
        &[("", "no_renegotiation", NO_RENEGOTIATION)],
    ),
    script(
        "invalid-cipher-suites",
        Rsa,
        "",
        &[("sanity", "handshake_failure", SCRIPT_OFFERS_RSA_KEYS_ONLY)],
    ),
    script(
        "invalid-client-hello",
        Rsa,
        "",
        &[("sanity", "handshake_failure", SCRIPT_OFFERS_RSA_KEYS_ONLY)],
    ),
    script("invalid-client-hello-w-record-overflow", Rsa, AEAD, &[]),
    script("invalid-compression-methods", Rsa, AEAD, &[]),
    script("invalid-content-type", Rsa, AEAD, &[]),
    script(
        "invalid-server-name-extension",
        Rsa,
        "-d",
        &[
            ("multiple", "decode_error", ANOTHER_ALERT),
            ("SNI name with", "illegal_parameter", ODD_NAME),
            ("multiple types in SNI", "illegal_parameter", "names of other kinds are refused"),
            (
                "incorrect SNI",
                "Handshake(server_hello)",
                "an unknown name gets the first certificate, without strict_sni",
            ),
        ],
    ),
    script(
        "invalid-server-name-extension-resumption",
        Stateful,
        "-d",
        &[
            (
                "session resume with different SNI",
                "unexpected extension(s)",
                "the name is acknowledged: the session is a new one",
            ),
            ("Sanity check, bad SNI", "illegal_parameter", ODD_NAME),
            ("session resume with malformed SNI", "illegal_parameter", ODD_NAME),
        ],
    ),
    script(
        "invalid-session-id",
        Rsa,
        "",
        &[("sanity", "handshake_failure", SCRIPT_OFFERS_RSA_KEYS_ONLY)],
    ),
    script(
        "invalid-version",
        Rsa,
        "",
        &[("sanity", "handshake_failure", SCRIPT_OFFERS_RSA_KEYS_ONLY)],
    ),
    script(
        "large-hello",
        Rsa,
        "-d -n 20",
        &[
            ("", "illegal_parameter", BIG_HELLO),
            ("multiple extensions", "decode_error", NEWER_EXTENSIONS),
            ("", "ValueError", SCRIPT_CANNOT),
        ],
    ),
    script(
        "large-number-of-extensions",
        Rsa,
        "-d",
        &[("819", "illegal_parameter", BIG_HELLO), ("16375", "illegal_parameter", BIG_HELLO)],
    ),
    script(
        "legacy-renegotiation",
        Rsa,
        "-d",
        &[
            ("", "no_renegotiation", NO_RENEGOTIATION),
            (
                "non-empty initial",
                "Handshake(server_hello)",
                "passed over: there is no renegotiation to protect",
            ),
        ],
    ),
    script("lengths", Echo, "-n 40 -C TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", &[]),
    script(
        "message-skipping",
        Rsa,
        "-d",
        &[("skip Client Hello", "AttributeError", SCRIPT_CANNOT)],
    ),
    script("no-heartbeat", Rsa, "-d", &[]),
    script("no-mlkem-in-old-tls", Rsa, AEAD, &[]),
    script(
        "point-extension",
        Rsa,
        AEAD,
        &[("Check if [", "ec_point_formats", "the extension is not sent back, as RFC 8422 allows")],
    ),
    script(
        "record-layer-fragmentation",
        Rsa,
        AEAD,
        &[
            ("", "decode_error", MANY_RECORDS),
            ("", "illegal_parameter", BIG_HELLO),
            ("maximum size", "ValueError", SCRIPT_CANNOT),
        ],
    ),
    script("renegotiation-disabled", Rsa, AEAD, &[]),
    script(
        "rsa-pss-sigs-on-certificate-verify",
        ClientRsa,
        "",
        &[("rsa_pss_pss_", "\"illegal_parameter\"", ANOTHER_ALERT)],
    ),
    script("sessionID-resumption", Stateful, "-d", &[]),
    script("session-ticket-resumption", Rsa, "-d", &[("", "no_renegotiation", NO_RENEGOTIATION)]),
    script(
        "ssl-death-alert",
        Rsa,
        "-d",
        &[("SSL Death Alert with getting alert", "Unexpected closure", WITHOUT_ALERT)],
    ),
    script("sslv2-force-cipher", Rsa, "", &[]),
    script("sslv2-force-cipher-3des", Rsa, "", &[]),
    script("sslv2-force-cipher-non3des", Rsa, "", &[]),
    script("sslv2-force-export-cipher", Rsa, "", &[]),
    script(
        "sslv2hello-protocol",
        Rsa,
        "-d",
        &[("SSLv2 Client Hello", "unexpected_message", "no ClientHello in the form of SSL 2")],
    ),
    script(
        "truncating-of-client-hello",
        Rsa,
        AEAD,
        &[
            ("hello truncate", "\"handshake_failure\"", ANOTHER_ALERT),
            ("", "\"illegal_parameter\"", BIG_HELLO),
            ("max pad", "ValueError", SCRIPT_CANNOT),
        ],
    ),
    script(
        "unsupported-curve-fallback",
        Rsa,
        "",
        &[(
            "check for unsupported curve",
            "handshake_failure",
            "there is no other key exchange to fall back to",
        )],
    ),
    script("version-numbers", Rsa, AEAD, &[]),
    script("zero-length-data", Rsa, AEAD, &[]),
];

/// Excluded scripts by the start of their names, with reasons.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("SSLv3-padding", "no SSL 3"),
    ("aesccm", NO_SUCH_SUITE),
    ("atypical-padding", "no CBC"),
    ("bleichenbacher-", "no RSA key exchange"),
    ("certificate-verify-malformed-sig", "wants signatures with SHA-1 to be taken"),
    ("cve-2004-0079", "no RSA key exchange"),
    ("cve-2016-2107", "no CBC"),
    ("dhe-", "no DHE"),
    ("dsa-", "no DSA"),
    ("ecdhe-", "wants ec_point_formats to be sent back"),
    ("ecdsa-sig-flexibility", "wants signatures with SHA-1"),
    ("eddsa-", "wants a certificate of Ed25519"),
    ("empty-extensions", "wants a handshake without extensions"),
    ("encrypt-then-mac", "no CBC"),
    ("export-ciphers-rejected", "no RSA key exchange; testssl tries the same suites"),
    ("extensions", "no RSA key exchange"),
    ("ffdhe-", "no DHE"),
    ("fuzzed-MAC", "no CBC"),
    ("fuzzed-finished", "no RSA key exchange"),
    ("fuzzed-padding", "no CBC"),
    ("fuzzed-plaintext", "what it makes is malformed only with CBC"),
    ("heartbeat", "no heartbeat; see no-heartbeat"),
    ("invalid-rsa-", "no RSA key exchange"),
    ("lucky13", "no CBC"),
    ("message-duplication", "no RSA key exchange"),
    ("ocsp-stapling", "wants renegotiation; stapling has scenarios of its own"),
    ("openssl-3712", "no renegotiation"),
    ("record-size-limit", "the extension is not offered"),
    ("renegotiation-changed-", "no renegotiation"),
    (
        "renegotiation-disabled-client-cert",
        "wants the certificate to be asked for in a renegotiation",
    ),
    ("resumption-with-wrong-ciphers", "no CBC"),
    ("rsa-sigs-", "wants signatures with SHA-1 to be taken"),
    ("serverhello-random", "no RSA key exchange"),
    ("sslv2-connection", "wants SSL 2; the sslv2-force- scripts show that there is none"),
    ("sig-algs", "no RSA key exchange, no renegotiation"),
    ("signature-algorithms", "no RSA key exchange"),
    ("truncating-of-finished", "no RSA key exchange"),
    ("truncating-of-kRSA", "no RSA key exchange"),
    ("x25519", "wants DHE as well"),
    ("tls13-client-certificate-compression", "certificates are not compressed"),
    ("tls13-dhe-shared-secret-padding", "measures time, and wants x448"),
    ("tls13-ecdhe-brainpool-curves", NO_SUCH_GROUP),
    ("tls13-ecdsa-brainpool-", "wants a certificate of a curve that is not taken"),
    ("tls13-eddsa", "wants a certificate of Ed25519 or Ed448"),
    ("tls13-ffdhe-", "no DHE"),
    ("tls13-minerva", "measures time"),
    ("tls13-mldsa-", "wants a certificate of ML-DSA"),
    ("tls13-non-support", "wants a server without TLS 1.3"),
    ("tls13-post-handshake-auth", "clients show certificates in the handshake or not at all"),
    ("tls13-psk_", "no keys agreed beforehand"),
    ("tls13-rsapss-signatures", "wants a certificate of RSASSA-PSS"),
];
