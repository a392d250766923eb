//! Attributes of RADIUS packets (RFC 2865 sections 3 and 5).
//!
//! ```text
//! code (1)  identifier (1)  length (2)  authenticator (16)  attributes …
//! attribute: number (1)  length (1)  value (length - 2)
//! vendor-specific attribute: 26  length (1)  vendor (4)  { number (1)  length (1)  value }…
//! ```

use weir_http::message::Span;

use super::span;

/// Size of the header before the attributes.
pub const HEADER_BYTES: usize = 20;
/// Maximum size of a packet.
pub const PACKET_BYTES_MAX: usize = 4096;

/// The attribute for vendor-specific attributes.
const VENDOR_SPECIFIC: u8 = 26;
/// Size of an attribute's number and length.
const ATTRIBUTE_HEADER_BYTES: usize = 2;
/// Size of a vendor's number.
const VENDOR_BYTES: usize = 4;

/// The value of the first attribute with this number. `None`: no such attribute, or not a RADIUS packet. In a packet
/// with a malformed attribute, only the attributes before it are found.
pub fn attribute(datagram: &[u8], number: u8) -> Option<Span> {
    attributes(datagram)?.find(|found| found.number == number).map(|found| found.value)
}

/// The value of a vendor's first attribute with this number, in the layout that RFC 2865 section 5.26 recommends. Vendor
/// attributes with another layout are skipped.
pub fn vendor_attribute(datagram: &[u8], vendor: u32, number: u8) -> Option<Span> {
    let of_vendors = attributes(datagram)?.filter(|found| found.number == VENDOR_SPECIFIC);
    let of_vendor = of_vendors.filter_map(|found| {
        let start = found.value.start as usize;
        let value = found.value.of(datagram);
        let named = u32::from_be_bytes(*value.first_chunk::<VENDOR_BYTES>()?);
        let at = start + VENDOR_BYTES;
        (named == vendor).then(|| Attributes { bytes: &datagram[..start + value.len()], at })
    });
    of_vendor
        .filter(|attributes| attributes.are_whole())
        .flatten()
        .find(|found| found.number == number)
        .map(|found| found.value)
}

/// The attributes of a packet; `None`: not a RADIUS packet. Data beyond the packet's length is padding.
fn attributes(datagram: &[u8]) -> Option<Attributes<'_>> {
    let header = datagram.first_chunk::<HEADER_BYTES>()?;
    let [code, _, length @ ..] = *header.first_chunk::<4>()?;
    let length = usize::from(u16::from_be_bytes(length));
    if code == 0 || !(HEADER_BYTES..=PACKET_BYTES_MAX).contains(&length) {
        return None;
    }
    Some(Attributes { bytes: datagram.get(..length)?, at: HEADER_BYTES })
}

/// Iterates over the attributes, up to the end or the first malformed one.
#[derive(Clone)]
struct Attributes<'d> {
    bytes: &'d [u8],
    at: usize,
}

struct Attribute {
    number: u8,
    value: Span,
}

impl Attributes<'_> {
    /// Whether the attributes fill the data exactly, without a malformed one.
    fn are_whole(&self) -> bool {
        let mut rest = self.clone();
        while rest.next().is_some() {}
        rest.at == rest.bytes.len()
    }
}

impl Iterator for Attributes<'_> {
    type Item = Attribute;

    fn next(&mut self) -> Option<Attribute> {
        let [number, length] =
            *self.bytes.get(self.at..)?.first_chunk::<ATTRIBUTE_HEADER_BYTES>()?;
        let end = self.at + usize::from(length);
        if usize::from(length) < ATTRIBUTE_HEADER_BYTES || end > self.bytes.len() {
            return None;
        }
        let value = span(self.at + ATTRIBUTE_HEADER_BYTES, end);
        self.at = end;
        Some(Attribute { number, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with these attributes and the correct length.
    fn packet(code: u8, attributes: &[u8]) -> Vec<u8> {
        let length = u16::try_from(HEADER_BYTES + attributes.len()).expect("a short packet");
        let mut packet = vec![code, 7];
        packet.extend(length.to_be_bytes());
        packet.extend([0xaa; 16]);
        packet.extend(attributes);
        packet
    }

    fn check(packet: &[u8], number: u8, expected: Option<&[u8]>) {
        let found = attribute(packet, number);
        assert_eq!(found.map(|value| value.of(packet)), expected, "{number} of {packet:?}");
    }

    /// RFC 2865 section 7.1: nemo requests access.
    #[test]
    fn the_sample_of_the_standard() {
        let sample = data_encoding::HEXLOWER
            .decode(
                b"010000380f403f9473978057bd83d5cb98f4227a01066e656d6f02120dbe708d93d413ce3196e43f782a0aee\
                  0406c0a80110050600000003",
            )
            .expect("hexadecimal digits");
        check(&sample, 1, Some(b"nemo"));
        check(&sample, 4, Some(&[192, 168, 1, 16]));
        check(&sample, 5, Some(&[0, 0, 0, 3]));
        check(&sample, 44, None);
        for length in 0..sample.len() {
            check(&sample[..length], 1, None);
        }
    }

    #[test]
    fn the_first_of_several_counts() {
        let packet = packet(4, b"\x2c\x05one\x2c\x05two\x01\x02\x28\x06\0\0\0\x01");
        check(&packet, 44, Some(b"one"));
        check(&packet, 1, Some(b""));
        check(&packet, 40, Some(b"\0\0\0\x01"));
    }

    #[test]
    fn lengths_are_checked() {
        let sound = packet(4, b"\x01\x05joe\x2c\x05one");
        let with_length = |length: u16| {
            let mut packet = sound.clone();
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet
        };
        check(&sound, 44, Some(b"one"));
        check(&with_length(19), 1, None);
        check(&with_length(31), 1, None);
        check(&with_length(4097), 1, None);
        // Data after the packet is padding, not an attribute.
        check(&with_length(25), 1, Some(b"joe"));
        check(&with_length(25), 44, None);
        check(&packet(0, b"\x01\x05joe"), 1, None);
        for broken in [&b"\x2c\x00"[..], b"\x2c\x01", b"\x2c\x06one", b"\x2c"] {
            check(&packet(4, &[b"\x01\x05joe", broken].concat()), 1, Some(b"joe"));
            check(&packet(4, &[b"\x01\x05joe", broken].concat()), 44, None);
            check(&packet(4, &[broken, b"\x01\x05joe"].concat()), 1, None);
        }
    }

    #[test]
    fn attributes_of_vendors() {
        let check = |attributes: &[u8], vendor, number, expected: Option<&[u8]>| {
            let packet = packet(1, attributes);
            let found = vendor_attribute(&packet, vendor, number);
            assert_eq!(found.map(|value| value.of(&packet)), expected, "{attributes:?}");
        };
        let cisco = b"\x1a\x0f\0\0\0\x09\x01\x04ab\x02\x05cde";
        check(cisco, 9, 1, Some(b"ab"));
        check(cisco, 9, 2, Some(b"cde"));
        check(cisco, 9, 3, None);
        check(cisco, 311, 1, None);
        let two = b"\x1a\x0a\0\0\x01\x37\x0b\x04xx\x1a\x0a\0\0\0\x09\x01\x04yy";
        check(two, 9, 1, Some(b"yy"));
        check(two, 311, 11, Some(b"xx"));
        for broken in [
            &b"\x1a\x05\0\0\x09"[..],
            b"\x1a\x0a\0\0\0\x09\x01\x05ab",
            b"\x1a\x0a\0\0\0\x09\x01\x03ab",
            b"\x1a\x0a\0\0\0\x09\x01\x00ab",
        ] {
            check(broken, 9, 1, None);
            check(&[broken, cisco].concat(), 9, 1, Some(b"ab"));
        }
    }
}
