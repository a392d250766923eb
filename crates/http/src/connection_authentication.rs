//! Authentication that belongs to a connection instead of a request: NTLM, and the schemes that may carry it or
//! behave like it (RFC 4559 section 6). A server that has authenticated a connection takes every further request on it
//! for one of the same user.

use crate::chars::{is_token_byte, list};

/// The schemes. `Kerberos` and `Nego2` are old names of what `Negotiate` carries.
const SCHEMES: [&[u8]; 4] = [b"ntlm", b"negotiate", b"kerberos", b"nego2"];

/// Whether credentials (`Authorization`, `Proxy-Authorization`) authenticate the connection.
pub(crate) fn is_by_credentials(value: &[u8]) -> bool {
    is_scheme(value)
}

/// The fields that have credentials.
const NAMES: [&[u8]; 2] = [b"authorization", b"proxy-authorization"];

/// Whether a field of a request has such credentials.
pub fn is_credentials(name: &[u8], value: &[u8]) -> bool {
    NAMES.iter().any(|it| it.eq_ignore_ascii_case(name))
        && is_by_credentials(value.trim_ascii_start())
}

/// Whether a name of this length may be of a field with credentials.
#[inline]
pub(crate) fn may_be_name(bytes: usize) -> bool {
    NAMES.iter().any(|it| it.len() == bytes)
}

/// Whether challenges (`WWW-Authenticate`, `Proxy-Authenticate`) begin or continue such an authentication. Commas
/// within quotes are not told apart from others, so a text in quotes may look like a scheme: that costs only the reuse
/// of a connection. `true` is the value of `Persistent-Auth`, by which a server says that the connection is
/// authenticated.
pub(crate) fn is_by_challenge(value: &[u8]) -> bool {
    list(value).any(|element| is_scheme(element) || element.eq_ignore_ascii_case(b"true"))
}

/// Whether the first token is a scheme of this kind.
fn is_scheme(text: &[u8]) -> bool {
    let length = text.iter().position(|byte| !is_token_byte(*byte)).unwrap_or(text.len());
    SCHEMES.iter().any(|scheme| text[..length].eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_connection() {
        for (value, expected) in [
            ("NTLM TlRMTVNTUAAB", true),
            ("ntlm", true),
            ("Negotiate YII=", true),
            ("NEGOTIATE\tYII=", true),
            ("Kerberos YII=", true),
            ("Nego2 x", true),
            ("Basic TlRMTQ==", false),
            ("Bearer NTLM", false),
            ("NTLMX a", false),
            ("", false),
        ] {
            assert_eq!(is_by_credentials(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn challenges_of_a_connection() {
        for (value, expected) in [
            ("NTLM", true),
            ("Negotiate, NTLM", true),
            ("Basic realm=\"a, b\", charset=\"UTF-8\", NTLM", true),
            ("Bearer,negotiate YII=", true),
            (" , ,\tNegotiate", true),
            ("true", true),
            ("Basic realm=\"NTLM\"", false),
            ("Digest nonce=ntlm, qop=auth", false),
            ("NTLMv3", false),
            ("false", false),
            ("", false),
        ] {
            assert_eq!(is_by_challenge(value.as_bytes()), expected, "{value}");
        }
    }

    #[test]
    fn credentials_are_in_two_fields() {
        for (name, value, expected) in [
            ("Authorization", "Negotiate YII=", true),
            ("proxy-authorization", " NTLM TlRM", true),
            ("X-Authorization", "Negotiate YII=", false),
            ("Authorization", "Bearer Negotiate", false),
        ] {
            assert_eq!(
                is_credentials(name.as_bytes(), value.as_bytes()),
                expected,
                "{name}: {value}"
            );
        }
    }
}
