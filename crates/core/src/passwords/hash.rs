//! Hashes of passwords: bcrypt, and Argon2 (RFC 9106) in the form of PHC strings.

use std::fmt;
use std::sync::LazyLock;

use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::constant_time;
use data_encoding::{BASE64_NOPAD, Encoding, Specification};

/// Maximum cost of bcrypt: one check then takes a core for seconds.
pub const BCRYPT_COST_MAX: u32 = 15;
/// Maximum memory of one Argon2 check.
pub const ARGON2_MEMORY_KIB_MAX: u32 = 256 * 1024;
/// Maximum product of the memory and the passes of Argon2.
pub const ARGON2_WORK_KIB_MAX: u64 = 8 * ARGON2_MEMORY_KIB_MAX as u64;

/// Minimum cost of bcrypt.
const BCRYPT_COST_MIN: u32 = 4;
/// Maximum length of a bcrypt key in bytes: the password and the zero byte behind it.
const BCRYPT_PASSWORD_BYTES_MAX: usize = 72;
/// Number of bytes of a bcrypt hash that are written.
const BCRYPT_HASH_BYTES: usize = 23;
/// Number of characters of a bcrypt salt.
const BCRYPT_SALT_CHARACTERS: usize = 22;
/// Maximum number of Argon2 lanes.
const ARGON2_LANES_MAX: u32 = 16;
/// Permitted lengths of an Argon2 salt and hash in bytes.
const ARGON2_BYTES: std::ops::RangeInclusive<usize> = 8..=64;

/// The base64 alphabet of bcrypt. Bits after the last byte may have any value.
static BCRYPT: LazyLock<Encoding> = LazyLock::new(|| {
    let mut form = Specification::new();
    form.symbols.push_str("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
    form.check_trailing_bits = false;
    form.encoding().expect("64 symbols")
});

/// A password hash.
pub(super) struct Hash {
    text: Box<[u8]>,
    how: HashScheme,
}

enum HashScheme {
    Bcrypt { cost: u32, salt: [u8; 16], hash: [u8; BCRYPT_HASH_BYTES] },
    Argon2(Box<OfArgon2>),
}

struct OfArgon2 {
    argon2: Argon2<'static>,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// The reason why a hash cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashError {
    /// The hash is MD5, SHA-1 or DES, or another weak hash of crypt.
    Weak(&'static str),
    /// The text is not a hash; perhaps a plain password.
    Plain,
    /// The hash is truncated, or contains invalid characters.
    Malformed(&'static str),
    /// A check would take too long.
    TooDear(&'static str),
}

impl HashError {
    /// How to correct the error.
    pub fn help(self) -> &'static str {
        match self {
            Self::Weak(_) | Self::Plain => {
                "make it anew with `htpasswd -B`, or as `$argon2id$…`: weir takes bcrypt and Argon2"
            }
            Self::Malformed(_) => "copy the line anew, or make it anew with `htpasswd -B`",
            Self::TooDear(_) => "make it anew at a lower cost: 50 to 100 ms for a check are usual",
        }
    }
}

impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weak(which) => write!(f, "the hash is of {which}, which weir does not take"),
            Self::Plain => f.write_str("the part after the `:` is not a hash"),
            Self::Malformed(which) => write!(f, "the hash of {which} is malformed"),
            Self::TooDear(why) => f.write_str(why),
        }
    }
}

impl Hash {
    /// Parses a hash.
    pub fn parse(text: &[u8]) -> Result<Self, HashError> {
        let plain = std::str::from_utf8(text).map_err(|_| HashError::Plain)?;
        let how = if let Some(rest) = plain.strip_prefix("$2") {
            bcrypt(rest)?
        } else if let Some(rest) = plain.strip_prefix("$argon2") {
            HashScheme::Argon2(Box::new(argon2(rest)?))
        } else {
            return Err(match plain {
                _ if plain.starts_with("$apr1$") || plain.starts_with("$1$") => {
                    HashError::Weak("MD5")
                }
                _ if plain.starts_with("{SHA}") => HashError::Weak("SHA-1"),
                _ if plain.starts_with("$5$") => HashError::Weak("SHA-256 (crypt)"),
                _ if plain.starts_with("$6$") => HashError::Weak("SHA-512 (crypt)"),
                _ if plain.starts_with("$y$") => HashError::Weak("yescrypt"),
                _ => HashError::Plain,
            });
        };
        Ok(Self { text: text.into(), how })
    }

    /// The hash as it is written in the file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the password matches the hash. Slow on purpose.
    pub fn verifies(&self, password: &[u8]) -> bool {
        match &self.how {
            HashScheme::Bcrypt { cost, salt, hash } => {
                // A zero byte follows the password if there is room for it.
                let mut key = password[..password.len().min(BCRYPT_PASSWORD_BYTES_MAX)].to_vec();
                if key.len() < BCRYPT_PASSWORD_BYTES_MAX {
                    key.push(0);
                }
                let found = ::bcrypt::bcrypt(*cost, *salt, &key);
                is_same(&found[..BCRYPT_HASH_BYTES], hash)
            }
            HashScheme::Argon2(of) => {
                let mut found = vec![0; of.hash.len()];
                let made = of.argon2.hash_password_into(password, &of.salt, &mut found);
                made.is_ok() && is_same(&found, &of.hash)
            }
        }
    }
}

fn is_same(one: &[u8], other: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(one, other).is_ok()
}

/// Parses the text after `$2`: `y$05$`, 22 characters of salt, 31 of hash.
fn bcrypt(rest: &str) -> Result<HashScheme, HashError> {
    const MALFORMED: HashError = HashError::Malformed("bcrypt");
    let mut parts = rest.split('$');
    let (version, cost, text) = match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(version), Some(cost), Some(text), None) => (version, cost, text),
        _ => return Err(MALFORMED),
    };
    let is_number = cost.len() == 2 && cost.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(version, "a" | "b" | "y") || !is_number || !text.is_ascii() {
        return Err(MALFORMED);
    }
    let cost: u32 = cost.parse().map_err(|_| MALFORMED)?;
    if cost < BCRYPT_COST_MIN {
        return Err(MALFORMED);
    }
    if cost > BCRYPT_COST_MAX {
        return Err(HashError::TooDear("the cost of the hash is above 15"));
    }
    let (salt, hash) = text.split_at_checked(BCRYPT_SALT_CHARACTERS).ok_or(MALFORMED)?;
    let decode = |text: &str| BCRYPT.decode(text.as_bytes()).map_err(|_| MALFORMED);
    let salt = decode(salt)?.try_into().map_err(|_| MALFORMED)?;
    let hash = decode(hash)?.try_into().map_err(|_| MALFORMED)?;
    Ok(HashScheme::Bcrypt { cost, salt, hash })
}

/// Parses the text after `$argon2`: `id$v=19$m=65536,t=3,p=4$salt$hash`.
fn argon2(rest: &str) -> Result<OfArgon2, HashError> {
    const MALFORMED: HashError = HashError::Malformed("Argon2");
    let parts: Vec<&str> = rest.split('$').collect();
    let (kind, version, costs, salt, hash) = match parts[..] {
        [kind, version, costs, salt, hash] => (kind, version, costs, salt, hash),
        _ => return Err(MALFORMED),
    };
    let algorithm = match kind {
        "id" => Algorithm::Argon2id,
        "i" => Algorithm::Argon2i,
        "d" => Algorithm::Argon2d,
        _ => return Err(MALFORMED),
    };
    if version != "v=19" {
        return Err(HashError::Weak("Argon2 before version 19"));
    }
    let mut numbers = costs.split(',');
    let mut number = |name: &str| {
        let text = numbers.next()?.strip_prefix(name)?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok())?
    };
    let (memory_kib, passes, lanes) = match (number("m="), number("t="), number("p=")) {
        (Some(memory_kib), Some(passes), Some(lanes)) => (memory_kib, passes, lanes),
        _ => return Err(MALFORMED),
    };
    if numbers.next().is_some() {
        return Err(MALFORMED);
    }
    if memory_kib > ARGON2_MEMORY_KIB_MAX {
        return Err(HashError::TooDear("the hash takes more than 256 MiB of memory (`m`)"));
    }
    if u64::from(memory_kib) * u64::from(passes) > ARGON2_WORK_KIB_MAX || lanes > ARGON2_LANES_MAX {
        return Err(HashError::TooDear("the hash takes too much work (`m` times `t`, or `p`)"));
    }
    let decode = |text: &str| {
        let bytes = BASE64_NOPAD.decode(text.as_bytes()).ok();
        bytes.filter(|bytes| ARGON2_BYTES.contains(&bytes.len())).ok_or(MALFORMED)
    };
    let (salt, hash) = (decode(salt)?, decode(hash)?);
    let params = Params::new(memory_kib, passes, lanes, Some(hash.len())).map_err(|_| MALFORMED)?;
    Ok(OfArgon2 { argon2: Argon2::new(algorithm, Version::V0x13, params), salt, hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Option<HashError> {
        Hash::parse(text.as_bytes()).err()
    }

    /// From jBCrypt's TestBCrypt.java, and from the reference implementation of Argon2 (test.c).
    #[test]
    fn hashes_of_other_implementations() {
        for (text, password) in [
            ("$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s.", ""),
            ("$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe", "a"),
            ("$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i", "abc"),
            (
                "$2y$06$.rCVZVOThsIa97pEDOxvGuRRgzG64bvtJ0938xuqzv18d3ZpQhstC",
                "abcdefghijklmnopqrstuvwxyz",
            ),
            (
                "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
                "password",
            ),
            (
                "$argon2i$v=19$m=256,t=2,p=2$c29tZXNhbHQ$T/XOJ2mh1/TIpJHfCdQan76Q5esCFVoT5MAeIM1Oq2E",
                "password",
            ),
        ] {
            let hash =
                Hash::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(hash.verifies(password.as_bytes()), "{text}");
            assert!(!hash.verifies(b"differentpassword"), "{text}");
            assert_eq!(hash.text(), text.as_bytes());
        }
    }

    #[test]
    fn bcrypt_looks_at_72_bytes() {
        let salt = [7; 16];
        let made = ::bcrypt::bcrypt(4, salt, &[b'a'; 72]);
        let hash = made[..BCRYPT_HASH_BYTES].try_into().unwrap();
        let hash = Hash { text: Box::default(), how: HashScheme::Bcrypt { cost: 4, salt, hash } };
        for (length, expected) in [(72, true), (73, true), (1024, true), (71, false), (0, false)] {
            assert_eq!(hash.verifies(&vec![b'a'; length]), expected, "{length}");
        }
    }

    #[test]
    fn hashes_that_are_refused() {
        let bcrypt = "$2y$06$.rCVZVOThsIa97pEDOxvGuRRgzG64bvtJ0938xuqzv18d3ZpQhstC";
        let argon2 =
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert_eq!((error(bcrypt), error(argon2)), (None, None));
        let of = |text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            error(&text.replacen(from, to, 1))
        };
        let malformed = Some(HashError::Malformed("bcrypt"));
        assert_eq!(of(bcrypt, "$2y$", "$2x$"), malformed);
        assert_eq!(of(bcrypt, "$06$", "$03$"), malformed);
        assert_eq!(of(bcrypt, "$06$", "$6$"), malformed);
        assert_eq!(of(bcrypt, "QhstC", "Qhst"), malformed);
        assert_eq!(of(bcrypt, "QhstC", "QhstCC"), malformed);
        assert_eq!(of(bcrypt, "QhstC", "Qhs*C"), malformed);
        assert_eq!(of(bcrypt, "QhstC", "Qhst$"), malformed);
        assert!(matches!(of(bcrypt, "$06$", "$16$"), Some(HashError::TooDear(_))));
        let malformed = Some(HashError::Malformed("Argon2"));
        assert_eq!(of(argon2, "argon2id", "argon2x"), malformed);
        assert_eq!(of(argon2, "m=256,", ""), malformed);
        assert_eq!(of(argon2, "m=256", "m=-1"), malformed);
        assert_eq!(of(argon2, "m=256", "m=1"), malformed);
        assert_eq!(of(argon2, "t=2", "t=0"), malformed);
        assert_eq!(of(argon2, "p=1", "p=1,q=1"), malformed);
        assert_eq!(of(argon2, "c29tZXNhbHQ", "c29t"), malformed);
        assert_eq!(of(argon2, "c29tZXNhbHQ$", ""), malformed);
        assert!(matches!(of(argon2, "v=19", "v=16"), Some(HashError::Weak(_))));
        for (from, to) in [("m=256", "m=262145"), ("t=2", "t=4294967295"), ("p=1", "p=17")] {
            assert!(matches!(of(argon2, from, to), Some(HashError::TooDear(_))), "{to}");
        }
        for (text, expected) in [
            ("$apr1$abc$def", HashError::Weak("MD5")),
            ("{SHA}abc", HashError::Weak("SHA-1")),
            ("$6$abc$def", HashError::Weak("SHA-512 (crypt)")),
            ("$5$abc$def", HashError::Weak("SHA-256 (crypt)")),
            ("$y$abc$def", HashError::Weak("yescrypt")),
            ("secret", HashError::Plain),
            ("", HashError::Plain),
        ] {
            assert_eq!(error(text), Some(expected), "{text}");
        }
    }
}
