//! Files whose contents are valid only for a time, and are replaced by a reload.

use std::fmt;
use std::sync::Arc;

const DAY_S: i64 = 24 * 60 * 60;

/// A file is reported when it expires within this many days.
pub const EXPIRY_DAYS: i64 = 14;

/// A file with authorities, revocation lists or something else that expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatedFile {
    /// The path as in the configuration.
    pub path: Arc<str>,
    /// The kind of its contents.
    pub kind: DatedKind,
    /// The name of the item that expires first; for certificates and revocation lists, the subject or the issuer.
    pub name: Arc<str>,
    /// The earliest expiry, in seconds since 1970.
    pub until_unix_s: i64,
    /// The expiry of the item that expires last.
    pub last_until_unix_s: i64,
}

/// Kinds of contents that expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatedKind {
    /// A certificate that weir shows to members or other servers.
    Certificate,
    /// Trusted authorities.
    Authority,
    /// Lists of revoked certificates.
    RevocationList,
    /// An OCSP response.
    OcspResponse,
    /// Public keys of tokens.
    TokenKeys,
}

impl DatedKind {
    /// The word for labels and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Authority => "authority",
            Self::RevocationList => "revocation_list",
            Self::OcspResponse => "ocsp_response",
            Self::TokenKeys => "token_keys",
        }
    }

    /// The words for sentences.
    fn noun(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::Authority => "authority",
            Self::RevocationList => "revocation list (CRL) of",
            Self::OcspResponse => "OCSP response for",
            Self::TokenKeys => "token key",
        }
    }

    /// What its expiry means, and what to do.
    pub fn help(self) -> &'static str {
        match self {
            Self::Certificate => "renew it; a reload takes the new one",
            Self::Authority => "put the new one into the file and reload; chains through it fail",
            Self::RevocationList => {
                "get a new list and reload: while it is out of date, all clients of this authority are refused"
            }
            Self::OcspResponse => {
                "get a new one and reload, or set `ocsp: fetch`; it is not sent along"
            }
            Self::TokenKeys => "get the new key set and reload",
        }
    }
}

impl DatedFile {
    /// The number of whole days until the earliest expiry; negative: expired.
    pub fn days_left(&self, now_unix_s: i64) -> i64 {
        self.until_unix_s.saturating_sub(now_unix_s).div_euclid(DAY_S)
    }

    /// Whether it has expired, or does so soon.
    pub fn is_due(&self, now_unix_s: i64) -> bool {
        self.days_left(now_unix_s) < EXPIRY_DAYS
    }

    /// Whether it no longer serves its purpose. Of authorities, the others may still do.
    pub fn is_over(&self, now_unix_s: i64) -> bool {
        let until = match self.kind {
            DatedKind::Authority => self.last_until_unix_s,
            _ => self.until_unix_s,
        };
        until <= now_unix_s
    }

    /// The file and its expiry in words.
    pub fn told(&self, now_unix_s: i64) -> String {
        let Expiry(words) = Expiry::of(self.until_unix_s, now_unix_s);
        format!("{}: the {} {} {words}", self.path, self.kind.noun(), self.name)
    }
}

/// An expiry in words: `has expired 3 days ago`, `expires in 3 days`.
pub struct Expiry(pub String);

impl Expiry {
    /// An expiry at `until_unix_s`.
    pub fn of(until_unix_s: i64, now_unix_s: i64) -> Self {
        // Whole days, of the time that is left and of the time that has passed.
        let days = until_unix_s.saturating_sub(now_unix_s) / DAY_S;
        Self(if until_unix_s <= now_unix_s {
            match -days {
                0 => "has expired".to_owned(),
                1 => "has expired one day ago".to_owned(),
                days => format!("has expired {days} days ago"),
            }
        } else {
            match days {
                0 => "expires within a day".to_owned(),
                1 => "expires in one day".to_owned(),
                days => format!("expires in {days} days"),
            }
        })
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_in_words() {
        let now = 1_800_000_000;
        for (days, expected, is_due, is_over) in [
            (-10, "has expired 10 days ago", true, true),
            (-1, "has expired one day ago", true, true),
            (0, "has expired", true, true),
            (1, "expires in one day", true, false),
            (13, "expires in 13 days", true, false),
            (14, "expires in 14 days", false, false),
        ] {
            let until_unix_s = now + days * DAY_S;
            let file = DatedFile {
                path: "list.pem".into(),
                kind: DatedKind::RevocationList,
                name: "CN=root".into(),
                until_unix_s,
                last_until_unix_s: until_unix_s,
            };
            let told = format!("list.pem: the revocation list (CRL) of CN=root {expected}");
            assert_eq!(file.told(now), told);
            assert_eq!((file.is_due(now), file.is_over(now)), (is_due, is_over), "{days}");
        }
        assert_eq!(Expiry::of(now + 5, now).0, "expires within a day");
    }

    #[test]
    fn one_of_several_authorities_may_expire() {
        let file = DatedFile {
            path: "ca.pem".into(),
            kind: DatedKind::Authority,
            name: "CN=old".into(),
            until_unix_s: 10,
            last_until_unix_s: 1_000,
        };
        assert!(file.is_due(500) && !file.is_over(500) && file.is_over(1_000));
    }
}
