//! Transformations that replace the whole value: digests and the length.

use md5::{Digest, Md5};
use sha1::Sha1;

/// Length of an MD5 digest.
pub(super) const MD5_LEN: usize = 16;

/// Length of a SHA-1 digest.
pub(super) const SHA1_LEN: usize = 20;

/// Maximum number of digits of a length.
pub(super) const LENGTH_DIGITS_MAX: usize = usize::MAX.ilog10() as usize + 1;

/// MD5 as raw bytes; `hexEncode` converts it to text.
pub(super) fn md5(input: &[u8], output: &mut Vec<u8>) -> bool {
    output.extend_from_slice(&Md5::digest(input));
    true
}

/// SHA-1 as raw bytes.
pub(super) fn sha1(input: &[u8], output: &mut Vec<u8>) -> bool {
    output.extend_from_slice(&Sha1::digest(input));
    true
}

/// The number of bytes, in decimal digits.
pub(super) fn length(input: &[u8], output: &mut Vec<u8>) -> bool {
    let mut digits = [b'0'; LENGTH_DIGITS_MAX];
    let mut rest = input.len();
    let mut count = 0;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    output.extend_from_slice(digits.get(LENGTH_DIGITS_MAX - count..).unwrap_or_default());
    true
}
