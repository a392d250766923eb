//! Extensible priorities (RFC 9218).

use crate::chars::trim_ows;

/// The urgency of a response, and whether a client can use parts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// The client can use parts of the response before it is complete.
    pub incremental: bool,
}

impl Priority {
    /// The default (section 4).
    pub const DEFAULT: Self = Self { urgency: 3, incremental: false };

    /// Parses the value of a Priority field or of PRIORITY_UPDATE: a dictionary of RFC 8941, of which `u` and `i` are
    /// used. Values out of range or of the wrong type are ignored, as section 4 requires; a value that is not a
    /// dictionary has no effect.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::DEFAULT;
        for member in value.split(|byte| *byte == b',') {
            let member = trim_ows(member);
            // The parameters of a dictionary member have no meaning here.
            let end = memchr::memchr(b';', member).unwrap_or(member.len());
            match trim_ows(&member[..end]) {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=5", 5, true),
            ("u=5, i=?0", 5, false),
            ("i=?1", 3, true),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=1.5", 3, false),
            ("u=2, u=4", 4, false),
            ("u=1;x=2, i;y", 1, true),
            ("u = 1", 3, false),
            ("nonsense", 3, false),
        ] {
            let expected = Priority { urgency, incremental };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
        }
    }
}
