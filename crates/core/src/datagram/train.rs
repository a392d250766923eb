//! Datagrams as they travel: whose they are, and several at once.

use std::net::{IpAddr, SocketAddr};

/// Largest train that a kernel takes at once.
pub const TRAIN_BYTES_MAX: usize = 65_000;
/// Datagrams of a train that it divides at most (`UDP_MAX_SEGMENTS` of older kernels).
const TRAIN_COUNT_MAX: usize = 64;

/// Datagrams that travel together: each of the same size, but the last may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Train<'a> {
    /// All of them, one behind the other.
    pub bytes: &'a [u8],
    /// The size of each datagram but the last.
    pub size: usize,
}

impl<'a> Train<'a> {
    /// A single datagram.
    #[inline]
    pub fn one(bytes: &'a [u8]) -> Self {
        Self { bytes, size: bytes.len().max(1) }
    }

    /// How many datagrams it has: at least one, which may be empty.
    #[inline]
    pub fn count(&self) -> usize {
        self.bytes.len().div_ceil(self.size.max(1)).max(1)
    }

    /// The first of them.
    #[inline]
    pub fn first(&self) -> &'a [u8] {
        &self.bytes[..self.size.min(self.bytes.len())]
    }

    /// The first ones, up to this count, and the others.
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

    /// As many trains as the kernel takes at once, each.
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

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let nothing = self.bytes.is_empty().then_some(&b""[..]);
        nothing.into_iter().chain(self.bytes.chunks(self.size.max(1)))
    }
}

/// Where datagrams of a client come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// The client.
    pub client: SocketAddr,
    /// Which address of this host it has asked; `None`: that of its listener.
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
