//! Integers with a prefix (RFC 7541 section 5.1).

use super::HpackError;

/// Maximum number of bytes after the prefix. Four permit numbers up to 2^28 + 254, more than any accepted index, length or
/// table size. A number that is padded with zeros to more bytes is refused too.
const CONTINUATION_BYTES_MAX: usize = 4;

/// Reads the number that starts at `at` with a prefix of `prefix_bits` bits.
#[inline(always)]
pub(super) fn read(input: &[u8], at: &mut usize, prefix_bits: u8) -> Result<usize, HpackError> {
    let mask = (1_usize << prefix_bits) - 1;
    let first = usize::from(*input.get(*at).ok_or(HpackError::Truncated)?) & mask;
    *at += 1;
    if first < mask {
        return Ok(first);
    }
    read_continuation(input, at, first)
}

#[cold]
fn read_continuation(input: &[u8], at: &mut usize, first: usize) -> Result<usize, HpackError> {
    let mut number = first;
    for place in 0..CONTINUATION_BYTES_MAX {
        let byte = *input.get(*at).ok_or(HpackError::Truncated)?;
        *at += 1;
        number += usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(HpackError::Integer)
}

/// Appends `number`. `first` contains the bits of the first byte that are not part of the prefix.
#[inline]
pub(super) fn write(number: usize, prefix_bits: u8, first: u8, out: &mut Vec<u8>) {
    let mask = (1_usize << prefix_bits) - 1;
    if number < mask {
        return out.push(first | number as u8);
    }
    out.push(first | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_standard() {
        // RFC 7541 appendix C.1.
        for (number, prefix_bits, bytes) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 0b1001_1010, 0b0000_1010]),
            (42, 8, &[42]),
            (127, 7, &[127, 0]),
            (126, 7, &[126]),
        ] {
            let mut out = Vec::new();
            write(number, prefix_bits, 0, &mut out);
            assert_eq!(out, bytes);
            let mut at = 0;
            assert_eq!(read(bytes, &mut at, prefix_bits), Ok(number));
            assert_eq!(at, bytes.len());
        }
    }

    #[test]
    fn every_prefix_reads_what_it_wrote() {
        for prefix_bits in 4..=8 {
            for number in (0..600).chain([16_383, 16_384, 1 << 20, 1 << 27, 1 << 28]) {
                let mut out = Vec::new();
                write(number, prefix_bits, 0, &mut out);
                let mut at = 0;
                assert_eq!(read(&out, &mut at, prefix_bits), Ok(number), "{prefix_bits}");
                for cut in 0..out.len() {
                    assert_eq!(read(&out[..cut], &mut 0, prefix_bits), Err(HpackError::Truncated));
                }
            }
        }
    }

    #[test]
    fn numbers_without_end_are_refused() {
        let endless = [0x1f, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(read(&endless, &mut 0, 5), Err(HpackError::Integer));
        let largest = [0x1f, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(read(&largest, &mut 0, 5), Ok(31 + (1 << 28) - 1));
    }
}
