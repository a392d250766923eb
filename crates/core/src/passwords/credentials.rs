//! User and password as clients send them: `Authorization: Basic …` (RFC 7617).

use data_encoding::{BASE64, BASE64_NOPAD};
use weir_http::message::RequestHead;

/// Maximum length of a user name in bytes.
pub const USER_BYTES_MAX: usize = 256;
/// Maximum length of a password in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// Maximum length of user name and password in base64.
const ENCODED_BYTES_MAX: usize = (USER_BYTES_MAX + 1 + PASSWORD_BYTES_MAX).div_ceil(3) * 4;

/// The credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the user.
    pub user: Box<[u8]>,
    /// The password.
    pub password: Box<[u8]>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Credentials")
    }
}

impl Credentials {
    /// The credentials of a request. `None`: no credentials, invalid ones, or several fields.
    pub fn of(head: &RequestHead, input: &[u8]) -> Option<Self> {
        let is_it = |field: &&weir_http::message::Field| {
            field.name.of(input).eq_ignore_ascii_case(b"authorization")
        };
        let mut found = head.fields.iter().filter(is_it);
        let value = found.next()?.value.of(input);
        if found.next().is_some() {
            return None;
        }
        Self::parse(value)
    }

    fn parse(value: &[u8]) -> Option<Self> {
        const SCHEME: &[u8] = b"Basic";
        let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
        if !scheme.eq_ignore_ascii_case(SCHEME) || rest.first() != Some(&b' ') {
            return None;
        }
        let encoded = rest.trim_ascii();
        if encoded.len() > ENCODED_BYTES_MAX {
            return None;
        }
        let decoded = match encoded.ends_with(b"=") || encoded.len().is_multiple_of(4) {
            true => BASE64.decode(encoded),
            false => BASE64_NOPAD.decode(encoded),
        };
        let decoded = decoded.ok()?;
        let colon = memchr::memchr(b':', &decoded)?;
        let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
        let is_sound = !user.is_empty()
            && user.len() <= USER_BYTES_MAX
            && password.len() <= PASSWORD_BYTES_MAX
            && !decoded.iter().any(u8::is_ascii_control);
        is_sound.then(|| Self { user: user.into(), password: password.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials() {
        let encode = |text: &str| BASE64.encode(text.as_bytes());
        let long = |user: usize, password: usize| {
            format!("Basic {}", encode(&format!("{}:{}", "u".repeat(user), "p".repeat(password))))
        };
        let all = format!("{}:{}", "u".repeat(USER_BYTES_MAX), "p".repeat(PASSWORD_BYTES_MAX));
        for (value, expected) in [
            // RFC 7617 sections 2 and 2.1
            ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".into(), Some("Aladdin:open sesame")),
            ("Basic dGVzdDoxMjPCow==".into(), Some("test:123\u{a3}")),
            ("basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ".into(), Some("Aladdin:open sesame")),
            (format!("Basic {}", encode("a:b:c")), Some("a:b:c")),
            (format!("Basic {}", encode("a:")), Some("a:")),
            (long(USER_BYTES_MAX, PASSWORD_BYTES_MAX), Some(all.as_str())),
            (long(USER_BYTES_MAX + 1, 1), None),
            (long(1, PASSWORD_BYTES_MAX + 1), None),
            (long(1, 1_000_000), None),
            (format!("Basic {}", encode(":b")), None),
            (format!("Basic {}", encode("ab")), None),
            (format!("Basic {}", encode("a:\0")), None),
            (format!("Basic {}", encode("a\n:b")), None),
            ("Basic".into(), None),
            ("Basic ".into(), None),
            ("Basic *".into(), None),
            ("Bearer YTpi".into(), None),
            ("BasicYTpi".into(), None),
            (String::new(), None),
        ] {
            let found = Credentials::parse(value.as_bytes()).map(|it| {
                let parts = [&*it.user, b":", &*it.password].concat();
                String::from_utf8(parts).unwrap()
            });
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }
}
