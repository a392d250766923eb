//! JSON Web Tokens for tests.

use std::path::Path;
use std::process::Command;

use crate::temp::TempDir;
use crate::tools;

/// An issuer that signs with keys made by openssl.
pub struct Issuer {
    /// The folder of the keys.
    pub folder: TempDir,
}

/// Base64 for URLs, without padding (RFC 4648 section 5).
pub fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * digit)) as usize & 63]));
        }
    }
    out
}

fn openssl(folder: &Path, arguments: &str) -> String {
    let program = tools::find("openssl").expect("openssl");
    tools::run(Command::new(program).args(arguments.split(' ')).current_dir(folder))
}

impl Issuer {
    /// Makes the keys.
    pub fn new(name: &str) -> Self {
        let folder = TempDir::new(name);
        openssl(folder.path(), "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out rsa.pem");
        openssl(folder.path(), "genpkey -algorithm ED25519 -out ed.pem");
        Self { folder }
    }

    /// The key set with both keys, `rsa` and `ed`.
    pub fn key_set(&self) -> String {
        let modulus = openssl(self.folder.path(), "rsa -in rsa.pem -noout -modulus");
        let digits = modulus.trim().strip_prefix("Modulus=").expect("a modulus");
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        let n: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        openssl(self.folder.path(), "pkey -in ed.pem -pubout -outform DER -out ed.der");
        let ed = std::fs::read(self.folder.path().join("ed.der")).expect("a public key");
        let (n, x) = (base64url(&n), base64url(&ed[ed.len() - 32..]));
        format!(
            r#"{{"keys":[{{"kty":"RSA","kid":"rsa","n":"{n}","e":"AQAB"}},{{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"{x}"}}]}}"#
        )
    }

    /// A token with this header, signed by openssl.
    pub fn sign(&self, header: &str, claims: &str, arguments: &str) -> String {
        let signed = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
        std::fs::write(self.folder.path().join("signed"), &signed).expect("a file");
        openssl(self.folder.path(), arguments);
        let signature = std::fs::read(self.folder.path().join("signature")).expect("a signature");
        format!("{signed}.{}", base64url(&signature))
    }

    /// A token with these claims, signed with RS256 by the key `rsa`.
    pub fn rs256(&self, claims: &str) -> String {
        let arguments = "dgst -sha256 -sign rsa.pem -out signature signed";
        self.sign(r#"{"alg":"RS256","kid":"rsa"}"#, claims, arguments)
    }

    /// A token with these claims, signed with EdDSA by the key `ed`.
    pub fn eddsa(&self, claims: &str) -> String {
        let arguments = "pkeyutl -sign -rawin -inkey ed.pem -in signed -out signature";
        self.sign(r#"{"alg":"EdDSA","kid":"ed"}"#, claims, arguments)
    }
}
