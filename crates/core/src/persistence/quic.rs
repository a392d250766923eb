//! Connection IDs of QUIC, as far as every version has them (RFC 8999): a client that changes its address goes on using one that
//! its server has given it, so that says to which member it belongs.

/// Longest ID of the versions that there are (RFC 9000 section 17.2).
pub const ID_BYTES_MAX: usize = 20;

/// The first bit: a long header, which tells the lengths of its IDs.
const LONG_HEADER: u8 = 0x80;
/// The first byte and the version.
const ID_LENGTH_AT: usize = 5;

/// For which connection a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination<'a> {
    /// The ID.
    Whole(&'a [u8]),
    /// The ID begins here; how long it is, its server alone knows.
    Begins(&'a [u8]),
}

/// For which connection a datagram is, by its first packet. `None`: it cannot be one of QUIC.
pub fn destination(datagram: &[u8]) -> Option<Destination<'_>> {
    let (first, rest) = datagram.split_first()?;
    if first & LONG_HEADER == 0 {
        return Some(Destination::Begins(rest));
    }
    id_at(datagram, ID_LENGTH_AT).map(|(id, _)| Destination::Whole(id))
}

/// The ID that its sender has chosen for itself, where a datagram tells it. An empty one names no connection.
pub fn source(datagram: &[u8]) -> Option<&[u8]> {
    let first = datagram.first()?;
    let version = datagram.get(1..ID_LENGTH_AT)?;
    // In the negotiation of versions the server says back what its client has chosen.
    if first & LONG_HEADER == 0 || version == [0; 4] {
        return None;
    }
    let (_, behind) = id_at(datagram, ID_LENGTH_AT)?;
    id_at(datagram, behind).map(|(id, _)| id).filter(|id| !id.is_empty())
}

/// The ID whose length stands here, and what is behind it.
fn id_at(datagram: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = usize::from(*datagram.get(at)?);
    if length > ID_BYTES_MAX {
        return None;
    }
    let end = at + 1 + length;
    Some((datagram.get(at + 1..end)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long header with these IDs.
    fn long(version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
        let mut out = vec![0xC3];
        out.extend(version.to_be_bytes());
        for id in [destination, source] {
            out.push(id.len() as u8);
            out.extend(id);
        }
        out.extend(b"rest");
        out
    }

    #[test]
    fn headers() {
        let initial = long(1, b"to", b"from");
        assert_eq!(destination(&initial), Some(Destination::Whole(b"to")));
        assert_eq!(source(&initial), Some(&b"from"[..]));
        let short = b"\x40identity and more";
        assert_eq!(destination(short), Some(Destination::Begins(b"identity and more")));
        assert_eq!(source(short), None);
        assert_eq!(source(&long(0, b"to", b"from")), None, "a negotiation of versions");
        assert_eq!(source(&long(1, b"to", b"")), None);
        assert_eq!(destination(&long(1, &[7; 21], b"")), None, "too long");
        assert_eq!((destination(b""), source(b"")), (None, None));
    }

    #[test]
    fn whatever_is_cut_off_is_not_read() {
        let initial = long(1, b"to", b"from");
        for length in 0..initial.len() {
            let part = &initial[..length];
            assert_eq!(
                destination(part).is_some_and(|it| it == Destination::Whole(b"to")),
                length >= 8
            );
            assert_eq!(source(part).is_some(), length >= 13, "{length}");
        }
    }
}
