//! `acme`: certificates from an authority, by ACME.

use crate::scalar::Text;
use crate::shapes::{Directory, FilePath, Mailbox};

section! {
    /// Certificates from an authority, by ACME (RFC 8555). A virtual server uses them with [`acme`](#virtual_serversnametlscertificates) in its `tls.certificates`.
    Acme at "acme" {
        /// The authority: the URL of its directory. Default: Let's Encrypt. Its test environment is `https://acme-staging-v02.api.letsencrypt.org/directory`.
        default directory: Directory = Directory::default();
        /// The mailbox that the authority writes to. Default: none.
        optional email: Mailbox;
        /// Whether you agree to the authority's terms of service. Without it there are no certificates.
        required agree_to_terms: bool;
        /// Trusted authorities for the connection to `directory`, in PEM. Default: those of the system.
        optional ca: FilePath;
        /// How weir proves that it serves a name.
        default challenge: Challenge = Challenge::Http01;
        /// The kind of private key. Each certificate has its own.
        default key: KeyKind = KeyKind::EcdsaP256;
        /// The kind of certificate, for an authority that offers several (for example `shortlived`). Default: the authority's default.
        optional profile: Text;
        /// Your account at the authority's shop, for authorities that need one. Default: none.
        optional external_account: ExternalAccount;
    }
    later []
}

section! {
    /// An account outside of ACME (RFC 8555 section 7.3.4). The authority gives you both values.
    ExternalAccount at "acme.external_account" {
        /// The key identifier.
        required id: Text;
        /// A file with the HMAC key in base64url. It is needed once: when the ACME account is created.
        required key_file: FilePath;
    }
    later []
}

choice! {
    /// How weir proves that it serves a name.
    Challenge {
        /// The authority sends a request to port 80 of the name. Every virtual server of `type: http` without `tls` answers it.
        Http01 = "http-01",
        /// The authority begins a handshake at port 443 of the name. Every virtual server with such certificates answers it.
        TlsAlpn01 = "tls-alpn-01",
    }
    later ["dns-01"] maps []
}

choice! {
    /// The kind of a private key.
    KeyKind {
        /// ECDSA with P-256.
        EcdsaP256 = "ecdsa-p256",
        /// ECDSA with P-384.
        EcdsaP384 = "ecdsa-p384",
        /// RSA with 2048 bits.
        Rsa2048 = "rsa-2048",
        /// RSA with 3072 bits.
        Rsa3072 = "rsa-3072",
        /// RSA with 4096 bits.
        Rsa4096 = "rsa-4096",
    }
    later [] maps []
}
