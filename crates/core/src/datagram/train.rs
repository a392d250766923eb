//! Datagrams in transit: their addresses, and several datagrams at once.

use std::net::{IpAddr, SocketAddr};

/// Maximum size of a train that a kernel accepts.
pub const TRAIN_BYTES_MAX: usize = 65_000;
/// Maximum number of datagrams in a train (`UDP_MAX_SEGMENTS` of older kernels).
const TRAIN_COUNT_MAX: usize = 64;

/// A train of datagrams, all of the same size except the last, which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train<'a> {
    /// All datagrams, concatenated.
    pub bytes: &'a [u8],
    /// The size of each datagram except the last.
    pub size: usize,
}

impl<'a> Train<'a> {
    /// A single datagram.
    #[inline]
    pub fn one(bytes: &'a [u8]) -> Self {
        Self { bytes, size: bytes.len().max(1) }
    }

    /// The number of datagrams: at least one, which may be empty.
    #[inline]
    pub fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.size.max(1)).max(1)
    }

    /// The first datagram.
    #[inline]
    pub fn first(&self) -> &'a [u8] {
        &self.bytes[..self.size.min(self.bytes.len())]
    }

    /// Splits after this number of datagrams.
    pub fn split(&self, count: usize) -> (Option<Self>, Option<Self>) {
        if count == 0 {
            return (None, Some(*self));
        }
        if count >= self.count() {
            return (Some(*self), None);
        }
        let (head, tail) = self.bytes.split_at(count * self.size);
        (Some(Self { bytes: head, size: self.size }), Some(Self { bytes: tail, size: self.size }))
    }

    /// Splits the train into trains that the kernel accepts.
    pub fn parts(self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let train = rest.take()?;
            let fits = (TRAIN_BYTES_MAX / train.size.max(1)).clamp(1, TRAIN_COUNT_MAX);
            let (head, tail) = train.split(fits);
            rest = tail;
            head
        })
    }

    /// The datagrams one by one.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let nothing = self.bytes.is_empty().then_some(&b""[..]);
        nothing.into_iter().chain(self.bytes.chunks(self.size.max(1)))
    }
}

/// The addresses of a client's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The client's address.
    pub client: SocketAddr,
    /// The destination address on this host; `None`: the listener's address.
    pub local: Option<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_are_divided_at_datagrams() {
        let train = Train { bytes: b"aabbc", size: 2 };
        assert_eq!(train.count(), 3);
        assert_eq!(train.iter().collect::<Vec<_>>(), [&b"aa"[..], b"bb", b"c"]);
        let (head, tail) = train.split(2);
        assert_eq!(head.map(|it| it.bytes), Some(&b"aabb"[..]));
        assert_eq!(tail.map(|it| it.bytes), Some(&b"c"[..]));
        assert_eq!(train.split(0), (None, Some(train)));
        assert_eq!(train.split(3), (Some(train), None));
    }

    #[test]
    fn an_empty_datagram_is_one() {
        let train = Train::one(b"");
        assert_eq!((train.count(), train.first()), (1, &b""[..]));
        assert_eq!(train.iter().collect::<Vec<_>>(), [b""]);
        assert_eq!(train.split(1), (Some(train), None));
    }
}
