//! A strict reader of DER (ITU-T X.690), for the short structures of OCSP, which need no library.

/// A sequence of encoded values.
#[derive(Debug, Clone, Copy)]
pub struct Der<'a>(&'a [u8]);

/// INTEGER
pub const INTEGER: u8 = 0x02;
/// BIT STRING
pub const BIT_STRING: u8 = 0x03;
/// OCTET STRING
pub const OCTET_STRING: u8 = 0x04;
/// NULL
pub const NULL: u8 = 0x05;
/// OBJECT IDENTIFIER
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// ENUMERATED
pub const ENUMERATED: u8 = 0x0a;
/// GeneralizedTime
pub const GENERALIZED_TIME: u8 = 0x18;
/// SEQUENCE
pub const SEQUENCE: u8 = 0x30;
/// The tag of a constructed, context-specific type with this number.
pub const fn tagged(number: u8) -> u8 {
    0xa0 | number
}

/// A value: its tag, its contents, and its complete encoding.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    /// The tag byte.
    pub tag: u8,
    /// The contents.
    pub content: &'a [u8],
    /// The complete encoding.
    pub whole: &'a [u8],
}

impl<'a> Der<'a> {
    /// A reader of the values in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether no more values follow.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next value.
    pub fn any(&mut self) -> Option<Value<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        // The supported structures have no multi-byte tags.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let is_short = digits.first().is_none_or(|&digit| digit == 0) || digits.len() > 4;
            let length = digits.iter().fold(0, |sum, &digit| (sum << 8) | usize::from(digit));
            // DER requires the shortest form of a length.
            if is_short || length < 0x80 {
                return None;
            }
            (length, rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Value { tag, content, whole })
    }

    /// Reads the contents of the next value, which must have this type.
    pub fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.any().filter(|value| value.tag == tag).map(|value| value.content)
    }

    /// Like [`Self::take`], but does nothing if the next value has another type.
    pub fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let found = ahead.take(tag)?;
        *self = ahead;
        Some(found)
    }

    /// Reads the next value, a SEQUENCE, and returns a reader of its contents.
    pub fn sequence(&mut self) -> Option<Self> {
        self.take(SEQUENCE).map(Self)
    }
}

/// Encodes a value of this type.
pub fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let digits = length.to_be_bytes();
    let digits = &digits[digits.iter().take_while(|&&digit| digit == 0).count()..];
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        out.push(0x80 | digits.len() as u8);
        out.extend_from_slice(digits);
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Parses a GeneralizedTime in the form of RFC 5280 section 4.1.2.5.2, `YYYYMMDDHHMMSSZ`, to seconds since 1970.
pub fn unix_s(text: &[u8]) -> Option<i64> {
    let (digits, b"Z") = text.split_at_checked(14)? else { return None };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        digits[range].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'))
    };
    let (year, month, day) = (number(0..4), number(4..6), number(6..8));
    let (hour, minute, second) = (number(8..10), number(10..12), number(12..14));
    let is_sound = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_sound || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 in the proleptic Gregorian calendar. Years start in March here.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let inner = value(INTEGER, &[&[5]]);
        let long = value(OCTET_STRING, &[&[7; 300]]);
        let both = value(SEQUENCE, &[&inner, &long]);
        let mut der = Der::new(&both);
        let mut inside = der.sequence().expect("a sequence");
        assert!(der.is_empty());
        assert_eq!(inside.optional(OCTET_STRING), None);
        assert_eq!(inside.optional(INTEGER), Some(&[5][..]));
        let last = inside.any().expect("one more");
        assert_eq!((last.tag, last.content, last.whole), (OCTET_STRING, &[7; 300][..], &long[..]));
        assert!(inside.any().is_none());
        for cut in 0..both.len() {
            assert!(Der::new(&both[..cut]).any().is_none(), "{cut}");
        }
        for wrong in [&[0x30, 0x80][..], &[0x30, 0x81, 1, 0], &[0x30, 0x82, 0, 1, 0], &[0x1f, 1, 0]]
        {
            assert!(Der::new(wrong).any().is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn times() {
        let check = |text: &str, expected| assert_eq!(unix_s(text.as_bytes()), expected, "{text}");
        check("19700101000000Z", Some(0));
        check("20000229235959Z", Some(951_868_799));
        check("20261122021500Z", Some(1_795_313_700));
        check("19691231235959Z", Some(-1));
        check("20261322021500Z", None);
        check("20261122241500Z", None);
        check("2026112202150Z", None);
        check("20261122021500+", None);
        check("2026112202150xZ", None);
        check("20261122021500.5Z", None);
    }
}
