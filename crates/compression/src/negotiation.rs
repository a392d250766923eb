//! Selects the coding for a client: Accept-Encoding (RFC 9110 section 12.5.3).
//!
//! An item that does not follow the grammar is ignored, as if it had not been sent: `gzip;q=2` accepts
//! nothing and refuses nothing. If a coding is listed more than once, the lowest weight counts, so that a client never
//! gets a coding that it refuses.

use weir_http::{list, trim_ows};

use crate::coding::Coding;

/// The selected coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This coding.
    Coding(Coding),
    /// The content as it is.
    Identity,
    /// The client refuses the unencoded content, and every offered coding. RFC 9110 permits a server to send refused
    /// content, and that helps a client more than 406: it gets the unencoded content.
    Nothing,
}

impl Choice {
    /// The coding, if it is one.
    pub fn coding(self) -> Option<Coding> {
        match self {
            Self::Coding(coding) => Some(coding),
            Self::Identity | Self::Nothing => None,
        }
    }
}

/// In thousandths: `q=0.25` is 250.
type Weight = u16;

/// The default weight of an item.
const WEIGHT_MAX: Weight = 1000;

/// The weights of each coding in the fields, if listed.
#[derive(Debug, Clone, Copy, Default)]
struct Weights {
    codings: [Option<Weight>; Coding::COUNT],
    identity: Option<Weight>,
    others: Option<Weight>,
}

impl Weights {
    fn note(&mut self, name: &[u8], weight: Weight) {
        let slot = if name == b"*" {
            &mut self.others
        } else if name.eq_ignore_ascii_case(b"identity") {
            &mut self.identity
        } else if let Some(coding) = Coding::named(name) {
            &mut self.codings[coding.index()]
        } else {
            return;
        };
        *slot = Some(slot.map_or(weight, |before| before.min(weight)));
    }

    fn of(&self, coding: Coding) -> Weight {
        self.codings[coding.index()].or(self.others).unwrap_or(0)
    }
}

/// The coding for a client, by the values of its Accept-Encoding fields and the offered codings, best first.
///
/// Without a field the client gets the unencoded content: RFC 9110 would allow any coding, but such a client may not
/// support any. An empty field asks for unencoded content. Among codings with the same weight, the first on offer wins.
/// A coding is preferred to unencoded content, unless that has a greater weight, by name or by `*`.
pub fn accept_encoding<'v>(values: impl Iterator<Item = &'v [u8]>, offered: &[Coding]) -> Choice {
    let mut weights = Weights::default();
    for item in values.flat_map(list) {
        if let Some((name, weight)) = read_item(item) {
            weights.note(name, weight);
        }
    }
    let mut best: Option<(Coding, Weight)> = None;
    for &coding in offered {
        let weight = weights.of(coding);
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((coding, weight));
        }
    }
    let identity = weights.identity.or(weights.others);
    match (best, identity) {
        (Some((_, weight)), Some(identity)) if identity > weight => Choice::Identity,
        (Some((coding, _)), _) => Choice::Coding(coding),
        (None, Some(0)) => Choice::Nothing,
        (None, _) => Choice::Identity,
    }
}

/// `codings [ OWS ";" OWS "q=" qvalue ]`. Names that are not tokens match no coding, so they need no test.
fn read_item(item: &[u8]) -> Option<(&[u8], Weight)> {
    let Some(at) = item.iter().position(|byte| *byte == b';') else {
        return Some((item, WEIGHT_MAX));
    };
    let (name, weight) = (trim_ows(&item[..at]), trim_ows(&item[at + 1..]));
    let [b'q' | b'Q', b'=', value @ ..] = weight else {
        return None;
    };
    Some((name, read_qvalue(value)?))
}

/// `( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )` (RFC 9110 section 12.4.2).
fn read_qvalue(value: &[u8]) -> Option<Weight> {
    let (whole, decimals) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let mut thousandths: Weight = 0;
    for place in 0..3 {
        let digit = match decimals.get(place) {
            Some(digit @ b'0'..=b'9') => digit - b'0',
            Some(_) => return None,
            None => 0,
        };
        thousandths = thousandths * 10 + Weight::from(digit);
    }
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(WEIGHT_MAX),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GZIP: Choice = Choice::Coding(Coding::Gzip);
    const ZSTD: Choice = Choice::Coding(Coding::Zstd);
    const BROTLI: Choice = Choice::Coding(Coding::Brotli);
    const IDENTITY: Choice = Choice::Identity;
    const NOTHING: Choice = Choice::Nothing;

    /// The offered codings, in this order.
    const OFFERED: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    fn choose(value: &str, offered: &[Coding]) -> Choice {
        accept_encoding([value.as_bytes()].into_iter(), offered)
    }

    #[test]
    fn one_field_with_everything_on_offer() {
        for (value, expected) in [
            ("", IDENTITY),
            (" ", IDENTITY),
            (",", IDENTITY),
            ("gzip", GZIP),
            ("GZIP", GZIP),
            ("x-gzip", GZIP),
            ("X-Gzip;q=0.1", GZIP),
            ("br", BROTLI),
            ("zstd", ZSTD),
            ("deflate", IDENTITY),
            ("compress, deflate", IDENTITY),
            ("identity", IDENTITY),
            ("*", ZSTD),
            // The values of browsers, curl and Python's requests.
            ("gzip, deflate, br, zstd", ZSTD),
            ("gzip, deflate, br", BROTLI),
            ("deflate, gzip, br, zstd", ZSTD),
            ("gzip, deflate", GZIP),
            // Weights.
            ("gzip;q=1, zstd;q=0.5", GZIP),
            ("gzip;q=1.000, zstd;q=0.999", GZIP),
            ("gzip;q=0.5, zstd;q=0.5", ZSTD),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", BROTLI),
            ("gzip;q=1.0, *;q=0.5", GZIP),
            ("gzip;q=0.001", GZIP),
            ("gzip;Q=0.3, br;q=0.2", GZIP),
            ("gzip ; q=0.3\t,\tbr ;\tq=0.2", GZIP),
            ("gzip;q=0", IDENTITY),
            ("gzip;q=0.", IDENTITY),
            ("gzip;q=0.000", IDENTITY),
            ("gzip;q=1.", GZIP),
            ("zstd;q=0, *", BROTLI),
            ("zstd;q=0, br;q=0.0, *;q=0.2", GZIP),
            // identity and `*`.
            ("identity;q=0", NOTHING),
            ("*;q=0", NOTHING),
            ("identity;q=0, *;q=0", NOTHING),
            ("gzip, *;q=0", GZIP),
            ("gzip, identity;q=0", GZIP),
            ("gzip;q=0.1, identity;q=0", GZIP),
            ("identity;q=0.5, *;q=0", IDENTITY),
            ("identity, *;q=0", IDENTITY),
            ("identity;q=0.5, gzip;q=0.4", IDENTITY),
            ("identity;q=0.5, gzip;q=0.5", GZIP),
            ("identity;q=0.5, gzip;q=0.6", GZIP),
            ("identity;q=0.9, *;q=0.1", IDENTITY),
            ("identity;q=0, *", ZSTD),
            ("deflate, identity;q=0", NOTHING),
            // Listed twice: the lowest weight counts.
            ("gzip, gzip;q=0", IDENTITY),
            ("gzip;q=0, x-gzip", IDENTITY),
            ("*, *;q=0", NOTHING),
            // Malformed items are ignored.
            ("gzip;q=", IDENTITY),
            ("gzip;q=2", IDENTITY),
            ("gzip;q=1.001", IDENTITY),
            ("gzip;q=0.0001", IDENTITY),
            ("gzip;q=-1", IDENTITY),
            ("gzip;q=.5", IDENTITY),
            ("gzip;q=0,5", IDENTITY),
            ("gzip;q=01", IDENTITY),
            ("gzip;q=\"1\"", IDENTITY),
            ("gzip;q =1", IDENTITY),
            ("gzip;q= 1", IDENTITY),
            ("gzip;level=9", IDENTITY),
            ("gzip;q=1;q=1", IDENTITY),
            ("gzip;", IDENTITY),
            (";q=1", IDENTITY),
            ("gzip br", IDENTITY),
            ("gzip;q=2, br", BROTLI),
            ("identity;q=x", IDENTITY),
            (", ,gzip,, ", GZIP),
            ("\"gzip\"", IDENTITY),
            ("gzip\u{e4}", IDENTITY),
        ] {
            assert_eq!(choose(value, &OFFERED), expected, "{value:?}");
        }
    }

    #[test]
    fn the_servers_order_decides_among_equals() {
        use Coding::{Brotli, Gzip, Zstd};
        let everything = "gzip, br, zstd";
        for (value, offered, expected) in [
            (everything, &[Gzip, Zstd, Brotli][..], GZIP),
            (everything, &[Brotli, Zstd], BROTLI),
            (everything, &[], IDENTITY),
            ("zstd;q=0.9, br", &[Zstd, Brotli], BROTLI),
            ("zstd;q=0.9, br", &[Zstd], ZSTD),
            ("br", &[Gzip], IDENTITY),
            ("br, *;q=0.1", &[Gzip], GZIP),
            ("br, identity;q=0", &[Gzip], NOTHING),
            ("gzip;q=0.1, *;q=0.5", &[Gzip], IDENTITY),
        ] {
            assert_eq!(choose(value, offered), expected, "{value:?} of {offered:?}");
        }
    }

    #[test]
    fn several_fields_are_one_list() {
        let choose = |values: &[&str]| {
            accept_encoding(values.iter().map(|value| value.as_bytes()), &OFFERED)
        };
        assert_eq!(choose(&[]), IDENTITY);
        assert_eq!(choose(&["deflate", "gzip"]), GZIP);
        assert_eq!(choose(&["gzip", "br;q=0.5"]), GZIP);
        assert_eq!(choose(&["gzip", "*;q=0", "gzip;q=0"]), NOTHING);
    }
}
