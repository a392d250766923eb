//! `acme`: certificates from an authority, by ACME.

use crate::scalar::Text;
use crate::shapes::{Directory, FilePath, Mailbox};

section! {
    /// Certificates from an authority, by ACME (RFC 8555). A virtual server uses them with [`acme`](#virtual_serversnametlscertificates) in its `tls.certificates`.
    Acme at "acme" {
        /// The authority: the URL of its directory. Default: Let's Encrypt. Its test environment is `https://acme-staging-v02.api.letsencrypt.org/directory`.
        default directory: Directory = Directory::default();
        /// The email address for messages of the authority. Default: none.
        optional email: Mailbox;
        /// Your agreement to the authority's terms of service. Must be `true` to get certificates.
        required agree_to_terms: bool;
        /// Trusted authorities for the connection to `directory`, in PEM. Default: those of the system.
        optional ca: FilePath;
        /// How weir proves that it controls a host name.
        default challenge: Challenge = Challenge::Http01;
        /// The type of the private keys. Each certificate has its own key.
        default key: KeyKind = KeyKind::EcdsaP256;
        /// The type of certificate, for an authority that offers several (for example `shortlived`). Default: the authority's default.
        optional profile: Text;
        /// External account binding: your customer account with the authority, for authorities that require one. Default: none.
        optional external_account: ExternalAccount;
    }
    later []
}

section! {
    /// External account binding (RFC 8555 section 7.3.4). The authority gives you both values.
    ExternalAccount at "acme.external_account" {
        /// The key identifier.
        required id: Text;
        /// A file with the HMAC key in base64url. weir needs it only once, when it creates the ACME account.
        required key_file: FilePath;
    }
    later []
}

choice! {
    /// How weir proves that it controls a host name.
    Challenge {
        /// The authority sends a request to port 80 of the name. Every virtual server of `type: http` without `tls` answers it.
        Http01 = "http-01",
        /// The authority opens a TLS connection to port 443 of the name. Every virtual server with an `acme` certificate answers it.
        TlsAlpn01 = "tls-alpn-01",
    }
    later ["dns-01"] maps []
}

choice! {
    /// The type of a private key.
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
