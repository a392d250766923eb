//! Users and the hashes of their passwords, from a file as `htpasswd` writes it, and the credentials that clients send.
//!
//! A hash is slow on purpose: checking a password takes tens of milliseconds, which workers must not do. [`Users::tag`]
//! is quick: it identifies logins that were checked before.

mod credentials;
mod hash;

use std::collections::HashMap;
use std::fmt;

use aws_lc_rs::{digest, hmac};
use foldhash::fast::FixedState;

use crate::unseen::unseen;
use hash::Hash;

pub use credentials::{Credentials, PASSWORD_BYTES_MAX, USER_BYTES_MAX};
pub use hash::{ARGON2_MEMORY_KIB_MAX, ARGON2_WORK_KIB_MAX, BCRYPT_COST_MAX, HashError};

/// Maximum size of a file with users in bytes.
pub const USERS_BYTES_MAX: usize = 4 << 20;
/// Maximum number of users in a file.
pub const USERS_MAX: usize = 20_000;
/// The byte order mark of UTF-8, which would be part of a name.
const BOM: &[u8] = b"\xef\xbb\xbf";
/// Length of the tag of a user with a password in bytes.
pub const TAG_BYTES: usize = digest::SHA256_OUTPUT_LEN;

/// Users and the hashes of their passwords.
pub struct Users {
    /// The hash is not keyed: the names come from a file of the operator.
    numbers: HashMap<Box<[u8]>, u32, FixedState>,
    hashes: Vec<Hash>,
}

impl fmt::Debug for Users {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} users", self.hashes.len())
    }
}

/// A mistake in a line of a file with users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsersError {
    /// The line number, from 1; 0: the error concerns the whole file.
    pub line: usize,
    /// The mistake.
    pub what: LineError,
}

/// A kind of mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineError {
    /// The line has no colon.
    NoColon,
    /// The user name is empty.
    NoName,
    /// The name is longer than any client can send.
    LongName,
    /// The name has control characters.
    Control,
    /// There is a byte order mark.
    ByteOrderMark,
    /// The name begins or ends with white space.
    Space,
    /// The name has a character that nobody sees.
    Unseen(char),
    /// An earlier line has the same user.
    Twice,
    /// The hash cannot be used.
    Hash(HashError),
    /// The file has no user.
    Nobody,
    /// The file has too many users.
    TooMany,
}

impl LineError {
    /// How to correct the error.
    pub fn help(&self) -> &'static str {
        match self {
            Self::ByteOrderMark => "save the file as UTF-8 without a byte order mark",
            Self::Unseen(_) => "write the line anew: no client sends this character",
            Self::Space => "remove it: clients would have to send it, too",
            Self::NoColon | Self::NoName | Self::LongName | Self::Control => {
                "a line is `user:hash`; `htpasswd -B FILE USER` writes one"
            }
            Self::Twice => "remove one of them",
            Self::Hash(error) => error.help(),
            Self::Nobody => "`htpasswd -B FILE USER` adds one",
            Self::TooMany => "divide them among several authentications",
        }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoColon => f.write_str("there is no `:` between user and hash"),
            Self::NoName => f.write_str("there is no user before the `:`"),
            Self::LongName => write!(f, "the name is longer than {USER_BYTES_MAX} bytes"),
            Self::Control => f.write_str("the name has control characters"),
            Self::ByteOrderMark => f.write_str("there is a byte order mark (EF BB BF)"),
            Self::Space => f.write_str("there is white space before or behind the user's name"),
            Self::Unseen(found) => {
                write!(f, "the name has the unseen character U+{:04X}", u32::from(*found))
            }
            Self::Twice => f.write_str("the user is in an earlier line, too"),
            Self::Hash(error) => error.fmt(f),
            Self::Nobody => f.write_str("there is no user in it"),
            Self::TooMany => write!(f, "there are more than {USERS_MAX} users"),
        }
    }
}

impl Users {
    /// The users of a file; empty lines and lines that begin with `#` are ignored.
    ///
    /// # Errors
    /// The first mistake. No message contains a hash.
    pub fn parse(text: &[u8]) -> Result<Self, UsersError> {
        let mut users = Self { numbers: HashMap::default(), hashes: Vec::new() };
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            users.add(line).map_err(|what| UsersError { line: index + 1, what })?;
        }
        match users.hashes.is_empty() {
            true => Err(UsersError { line: 0, what: LineError::Nobody }),
            false => Ok(users),
        }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), LineError> {
        if line.windows(BOM.len()).any(|window| window == BOM) {
            return Err(LineError::ByteOrderMark);
        }
        let colon = memchr::memchr(b':', line).ok_or(LineError::NoColon)?;
        let (name, hash) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() {
            return Err(LineError::NoName);
        }
        if name.len() > USER_BYTES_MAX {
            return Err(LineError::LongName);
        }
        if name.iter().any(u8::is_ascii_control) {
            return Err(LineError::Control);
        }
        if name.trim_ascii() != name {
            return Err(LineError::Space);
        }
        if let Some(found) = unseen(&String::from_utf8_lossy(name)) {
            return Err(LineError::Unseen(found));
        }
        let hash = Hash::parse(hash).map_err(LineError::Hash)?;
        if self.hashes.len() == USERS_MAX {
            return Err(LineError::TooMany);
        }
        let number = self.hashes.len() as u32;
        if self.numbers.insert(name.into(), number).is_some() {
            return Err(LineError::Twice);
        }
        self.hashes.push(hash);
        Ok(())
    }

    /// Whether the password is the user's. The check takes as long for an unknown user: the hash of another user, always the
    /// same one, is checked instead.
    pub fn check(&self, name: &[u8], password: &[u8]) -> bool {
        let known = self.numbers.get(name).copied();
        let stand_in = || {
            let digest = digest::digest(&digest::SHA256, name);
            let first: u64 =
                digest.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            (first % self.hashes.len() as u64) as u32
        };
        let number = known.unwrap_or_else(stand_in);
        let is_right = self.hashes[number as usize].verifies(password);
        known.is_some() && is_right
    }

    /// The tag of a user with this password. It depends on the hash in the file and on `key`, and cannot be computed
    /// without the key. `None`: there is no such user.
    pub fn tag(&self, key: &hmac::Key, name: &[u8], password: &[u8]) -> Option<[u8; TAG_BYTES]> {
        let hash = &self.hashes[*self.numbers.get(name)? as usize];
        let mut context = hmac::Context::with_key(key);
        // Each part is preceded by its length, so that two different lists of parts never give the same message.
        for part in [hash.text(), name, password] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(context.sign().as_ref());
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `secret`, `other` and `third`, as htpasswd, Python and the reference implementation write them.
    const FILE: &str = "# staff\n\
        ann:$2y$05$NlwuYNGNZ9v6UMNxd9VTfeb2NOxSEnQTZqDm6u3tpzN7PfnAdcSLa\r\n\
        \n\
        bob:$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzYWx0$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";

    #[test]
    fn lines() {
        let hash = "$2y$05$NlwuYNGNZ9v6UMNxd9VTfeb2NOxSEnQTZqDm6u3tpzN7PfnAdcSLa";
        let long = "a".repeat(USER_BYTES_MAX + 1);
        for (text, line, what) in [
            ("ann".into(), 1, LineError::NoColon),
            (format!("\n\n:{hash}"), 3, LineError::NoName),
            (format!("{long}:{hash}"), 1, LineError::LongName),
            (format!("a\tb:{hash}"), 1, LineError::Control),
            (format!("\u{feff}a:{hash}"), 1, LineError::ByteOrderMark),
            (format!("\u{feff}# staff\na:{hash}"), 1, LineError::ByteOrderMark),
            (format!("a:{hash}\n\u{feff}b:{hash}"), 2, LineError::ByteOrderMark),
            (format!("a:{hash}\n b:{hash}"), 2, LineError::Space),
            (format!("a :{hash}"), 1, LineError::Space),
            (format!("a:{hash}\n\u{a0}b:{hash}"), 2, LineError::Unseen('\u{a0}')),
            (format!("a:{hash}\nb\u{2028}:{hash}"), 2, LineError::Unseen('\u{2028}')),
            (format!("a\u{200b}b:{hash}"), 1, LineError::Unseen('\u{200b}')),
            (format!("a\u{85}:{hash}"), 1, LineError::Unseen('\u{85}')),
            (format!("a:{hash}\n#\na:{hash}"), 3, LineError::Twice),
            ("a:secret".into(), 1, LineError::Hash(HashError::Plain)),
            (String::new(), 0, LineError::Nobody),
            ("# nobody\n".into(), 0, LineError::Nobody),
        ] {
            let error = Users::parse(text.as_bytes()).unwrap_err();
            assert_eq!(error, UsersError { line, what }, "{text}");
            assert!(!error.what.to_string().contains("secret") && !error.what.help().is_empty());
        }
        assert_eq!(Users::parse(FILE.as_bytes()).unwrap().hashes.len(), 2);
    }

    #[test]
    fn an_unknown_user_is_checked_like_a_known_one() {
        let hash = "$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i";
        let users = Users::parse(format!("ann:{hash}\nbob:{hash}\n").as_bytes()).unwrap();
        assert!(users.check(b"ann", b"abc") && users.check(b"bob", b"abc"));
        assert!(!users.check(b"ann", b"abd"));
        // Passwords for unknown users are compared with another user's hash, and are never accepted.
        for nobody in [&b""[..], b"Ann", b"eve", b"ann "] {
            assert!(!users.check(nobody, b"abc"));
        }
    }

    #[test]
    fn a_tag_stands_for_user_password_and_hash() {
        let users = Users::parse(FILE.as_bytes()).unwrap();
        let key = |byte: u8| hmac::Key::new(hmac::HMAC_SHA256, &[byte; 32]);
        let tag =
            |name: &str, password: &str| users.tag(&key(1), name.as_bytes(), password.as_bytes());
        let ann = tag("ann", "secret").unwrap();
        assert_eq!(tag("ann", "secret"), Some(ann));
        assert_eq!(tag("nobody", "secret"), None);
        assert_ne!(users.tag(&key(2), b"ann", b"secret"), Some(ann));
        let others = [tag("ann", "secre"), tag("ann", "other"), tag("bob", "secret")];
        assert!(others.iter().all(|other| other.is_some_and(|other| other != ann)));
        // The password in the file has changed.
        let changed = FILE.replace("NlwuYNGN", "NlwuYNGM");
        let changed = Users::parse(changed.as_bytes()).unwrap();
        assert_ne!(changed.tag(&key(1), b"ann", b"secret"), Some(ann));
    }
}
