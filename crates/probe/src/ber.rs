//! The parts of BER (ITU-T X.690) that LDAP needs: definite lengths, tags of one byte.

/// Maximum number of bytes of a length in its long form.
const LENGTH_BYTES_MAX: usize = 4;

/// An element: its tag, the length of its content, and the content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    match content.len() {
        length @ 0..=127 => bytes.push(length as u8),
        length => {
            let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
            let leading = length.iter().take_while(|byte| **byte == 0).count();
            bytes.push(0x80 | (length.len() - leading) as u8);
            bytes.extend_from_slice(&length[leading..]);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

/// An element that contains other elements.
pub(super) fn of(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// A non-negative number, as an INTEGER or an ENUMERATED.
pub(super) fn number(tag: u8, value: u32) -> Vec<u8> {
    // If the first bit were set, the number would be negative.
    let bytes = [&[0][..], &value.to_be_bytes()].concat();
    let needed = |index: &usize| bytes[*index] != 0 || bytes[index + 1] >= 0x80;
    let start = (0..bytes.len() - 1).find(needed).unwrap_or(bytes.len() - 1);
    element(tag, &bytes[start..])
}

/// The meaning of a length's first byte: the length itself, or the number of its bytes. `None`: neither.
pub(super) fn short_length(first: u8) -> Option<Result<usize, usize>> {
    match usize::from(first) {
        length @ 0..=0x7f => Some(Ok(length)),
        long => Some(Err(long & 0x7f)).filter(|_| (1..=LENGTH_BYTES_MAX).contains(&(long & 0x7f))),
    }
}

/// A length in its long form, of at most [`LENGTH_BYTES_MAX`] bytes.
pub(super) fn long_length(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
}

/// A sequence of elements. It ends before a malformed element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a>(pub &'a [u8]);

impl<'a> Elements<'a> {
    /// The next element: its tag and content.
    pub fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match short_length(first)? {
            Ok(length) => (length, rest),
            Err(count) => {
                let (length, rest) = rest.split_at_checked(count)?;
                (long_length(length), rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The content of the next element, if it has this tag.
    pub fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content) = self.next()?;
        (found == tag).then_some(content)
    }

    /// The next element as a non-negative number.
    pub fn number(&mut self, tag: u8) -> Option<u32> {
        let content = self.take(tag)?;
        let is_sound = (1..=4).contains(&content.len()) && content[0] < 0x80;
        is_sound.then(|| content.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let check = |value, expected: &[u8]| {
            let bytes = number(2, value);
            assert_eq!(bytes, expected, "{value}");
            let read = Elements(&bytes).number(2);
            assert_eq!(read, Some(value).filter(|value| *value <= i32::MAX as u32));
        };
        check(0, &[2, 1, 0]);
        check(127, &[2, 1, 127]);
        check(128, &[2, 2, 0, 128]);
        check(256, &[2, 2, 1, 0]);
        check(0x7fff_ffff, &[2, 4, 0x7f, 0xff, 0xff, 0xff]);
        check(u32::MAX, &[2, 5, 0, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn lengths() {
        for (length, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (256, &[4, 0x82, 1, 0]),
            (65_536, &[4, 0x83, 1, 0, 0]),
        ] {
            let bytes = element(4, &vec![7; length]);
            assert_eq!(&bytes[..head.len()], head);
            assert_eq!(Elements(&bytes).take(4), Some(&vec![7; length][..]));
        }
    }

    #[test]
    fn what_is_broken_is_no_element() {
        let nothing: [&[u8]; 11] = [
            &[],
            &[4],
            &[4, 1],
            &[4, 0x80, 0, 0],
            &[4, 0x85, 0, 0, 0, 0, 0],
            &[4, 0xff],
            &[4, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[4, 0x84, 0xff, 0xff, 0xff],
            &[4, 0x82, 1],
            &[4, 0x81, 2, 1],
            &[4, 127, 1],
        ];
        for bytes in nothing {
            assert_eq!(Elements(bytes).next(), None, "{bytes:?}");
        }
        for bytes in [&[2, 0][..], &[2, 1, 0x80], &[2, 5, 0, 0, 0, 0, 1], &[10, 1, 1]] {
            assert_eq!(Elements(bytes).number(2), None, "{bytes:?}");
        }
    }
}
