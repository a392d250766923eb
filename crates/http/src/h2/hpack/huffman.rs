//! The Huffman code of RFC 7541 appendix B.
//!
//! The code is canonical: it follows from the code lengths, ordered by length and then by symbol. Decoding looks up eleven
//! bits at a time, which contain up to two symbols. Longer codes, of bytes that are rare in fields, are found by comparison
//! with the first code of each length.

use super::HpackError;

/// Bits of each symbol's code; the last is the end-of-string symbol.
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const SYMBOLS: usize = 257;

/// The end-of-string symbol, which must not occur in a string.
const END: u16 = 256;

const CODE_LENGTH_MAX: usize = 30;

/// The shortest code, in bits. So decoding lengthens a string by at most 8/5.
const CODE_LENGTH_MIN: usize = 5;

/// The tables of the canonical code for decoding.
struct Canonical {
    /// The symbols, sorted by length and then by value.
    order: [u16; SYMBOLS],
    /// The position in `order` where the codes of a length start.
    offset: [u16; CODE_LENGTH_MAX + 1],
    /// The first code of a length.
    first: [u32; CODE_LENGTH_MAX + 1],
    /// One past the last code of a length, in the upper bits of a 32-bit word.
    end: [u64; CODE_LENGTH_MAX + 1],
}

static CANONICAL: Canonical = canonical();
static CODES: [u32; SYMBOLS] = codes();

const fn canonical() -> Canonical {
    let mut result = Canonical {
        order: [0; SYMBOLS],
        offset: [0; CODE_LENGTH_MAX + 1],
        first: [0; CODE_LENGTH_MAX + 1],
        end: [0; CODE_LENGTH_MAX + 1],
    };
    let (mut code, mut placed, mut length) = (0_u32, 0, CODE_LENGTH_MIN);
    while length <= CODE_LENGTH_MAX {
        result.first[length] = code;
        result.offset[length] = placed as u16;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                result.order[placed] = symbol as u16;
                placed += 1;
                code += 1;
            }
            symbol += 1;
        }
        result.end[length] = (code as u64) << (32 - length);
        code <<= 1;
        length += 1;
    }
    assert!(placed == SYMBOLS);
    result
}

const fn codes() -> [u32; SYMBOLS] {
    let canonical = canonical();
    let mut codes = [0; SYMBOLS];
    let mut place = 0;
    while place < SYMBOLS {
        let symbol = canonical.order[place] as usize;
        let length = LENGTHS[symbol] as usize;
        codes[symbol] = canonical.first[length] + (place as u32 - canonical.offset[length] as u32);
        place += 1;
    }
    codes
}

/// Number of bits per lookup.
const LOOKUP_BITS: usize = 11;

/// The symbols at the start of eleven bits; empty if the bits start with a longer code.
#[derive(Clone, Copy)]
struct DecodedSymbols {
    symbols: [u8; 2],
    /// Number of symbols.
    count: u8,
    /// Number of bits of these symbols.
    bits: u8,
}

static LOOKUP: [DecodedSymbols; 1 << LOOKUP_BITS] = lookup();

const fn lookup() -> [DecodedSymbols; 1 << LOOKUP_BITS] {
    let canonical = canonical();
    let mut table = [DecodedSymbols { symbols: [0; 2], count: 0, bits: 0 }; 1 << LOOKUP_BITS];
    let mut index = 0;
    while index < table.len() {
        let window = (index as u32) << (32 - LOOKUP_BITS);
        let (symbol, length) = find(&canonical, window, CODE_LENGTH_MIN);
        if length <= LOOKUP_BITS {
            table[index] =
                DecodedSymbols { symbols: [symbol as u8, 0], count: 1, bits: length as u8 };
            let (next, next_length) = find(&canonical, window << length, CODE_LENGTH_MIN);
            if length + next_length <= LOOKUP_BITS {
                table[index].symbols[1] = next as u8;
                table[index].count = 2;
                table[index].bits += next_length as u8;
            }
        }
        index += 1;
    }
    table
}

/// The symbol whose code is at the start of `window`, and the length of the code. The code is complete, so there always is
/// such a symbol.
const fn find(canonical: &Canonical, window: u32, length_min: usize) -> (u16, usize) {
    let mut length = length_min;
    while length < CODE_LENGTH_MAX && window as u64 >= canonical.end[length] {
        length += 1;
    }
    let place = (window >> (32 - length)) - canonical.first[length];
    (canonical.order[canonical.offset[length] as usize + place as usize], length)
}

/// Appends the decoded text of `input` (RFC 7541 section 5.2).
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let start = out.len();
    // One byte more than the longest text, because symbols are written in pairs.
    out.resize(start + input.len() * 8 / CODE_LENGTH_MIN + 2, 0);
    let text = &mut out[start..];
    // The bits that are not decoded yet, highest first, and their number.
    let (mut window, mut available) = (0_u64, 0_usize);
    let (mut rest, mut length) = (input, 0);
    loop {
        if available < 32 {
            let Some((chunk, tail)) = rest.split_first_chunk::<4>() else { break };
            window |= u64::from(u32::from_be_bytes(*chunk)) << (32 - available);
            available += 32;
            rest = tail;
        }
        let found = LOOKUP[(window >> (64 - LOOKUP_BITS)) as usize];
        let (taken, bits) = if found.count > 0 {
            text[length..length + 2].copy_from_slice(&found.symbols);
            (usize::from(found.count), usize::from(found.bits))
        } else {
            let (symbol, bits) = find(&CANONICAL, (window >> 32) as u32, LOOKUP_BITS + 1);
            if symbol == END {
                return Err(HpackError::Huffman);
            }
            text[length] = symbol as u8;
            (1, bits)
        };
        length += taken;
        window <<= bits;
        available -= bits;
    }
    for byte in rest {
        window |= u64::from(*byte) << (56 - available);
        available += 8;
    }
    length += decode_tail(window, available, &mut text[length..])?;
    out.truncate(start + length);
    Ok(())
}

/// Decodes the last bits, and checks the padding: fewer than eight bits, all ones.
fn decode_tail(
    mut window: u64,
    mut available: usize,
    text: &mut [u8],
) -> Result<usize, HpackError> {
    let mut length = 0;
    while available > 0 {
        let padded = window | (u64::MAX >> available);
        if available < 8 && padded == u64::MAX {
            // No code of this length is all ones.
            return Ok(length);
        }
        let found = LOOKUP[(padded >> (64 - LOOKUP_BITS)) as usize];
        if found.count > 0 && usize::from(found.bits) <= available {
            text[length..length + 2].copy_from_slice(&found.symbols);
            length += usize::from(found.count);
            window <<= found.bits;
            available -= usize::from(found.bits);
            continue;
        }
        let (symbol, bits) = find(&CANONICAL, (padded >> 32) as u32, CODE_LENGTH_MIN);
        if bits > available || symbol == END {
            return Err(HpackError::Huffman);
        }
        text[length] = symbol as u8;
        length += 1;
        window <<= bits;
        available -= bits;
    }
    Ok(length)
}

/// The encoded size of `text` in bytes.
#[inline]
pub(super) fn encoded_size(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded `text`.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // The bits that are not written yet, lowest last, and their number: below 32 before each symbol.
    let (mut window, mut pending) = (0_u64, 0);
    for byte in text {
        let symbol = usize::from(*byte);
        window = window << LENGTHS[symbol] | u64::from(CODES[symbol]);
        pending += usize::from(LENGTHS[symbol]);
        if pending >= 32 {
            pending -= 32;
            out.extend_from_slice(&((window >> pending) as u32).to_be_bytes());
        }
    }
    // Ones fill the last byte: the start of the end-of-string symbol.
    let padding = (8 - pending % 8) % 8;
    window = window << padding | ((1 << padding) - 1);
    let bytes = (pending + padding) / 8;
    out.extend_from_slice(&window.to_be_bytes()[8 - bytes..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = b"before".to_vec();
        decode(input, &mut out)?;
        Ok(out.strip_prefix(b"before").expect("appended").to_vec())
    }

    #[test]
    fn texts_of_the_standard() {
        // RFC 7541 appendix C.4 and C.6.
        for (text, code) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("custom-value", "25a849e95bb8e8b4bf"),
            ("302", "6402"),
            ("private", "aec3771a4b"),
            ("Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"),
            ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
            (
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
                "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            ),
        ] {
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, code, "{text}");
            assert_eq!(encoded_size(text.as_bytes()), out.len());
            assert_eq!(decoded(&out).as_deref(), Ok(text.as_bytes()));
        }
    }

    #[test]
    fn every_pair_of_bytes_comes_back() {
        for first in 0..=255 {
            for second in (0..=255).step_by(5) {
                for text in [&[first, second][..], &[b'a', first, b'0', second, first, first]] {
                    let mut out = Vec::new();
                    encode(text, &mut out);
                    assert_eq!(out.len(), encoded_size(text));
                    assert_eq!(decoded(&out).as_deref(), Ok(text), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn malformed_codes() {
        for (code, why) in [
            (&[0xff, 0xff, 0xff, 0xff][..], "end of string"),
            (&[0xff], "a byte of padding"),
            (&[0xf8, 0xff], "a byte of padding behind a symbol"),
            (&[0x00], "padding of zeros"),
            (&[0x1e], "padding that ends in a zero"),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "end of string within"),
            (&[0xf8, 0xff, 0xff, 0xff, 0xff, 0xf8], "end of string behind a symbol"),
        ] {
            assert_eq!(decoded(code), Err(HpackError::Huffman), "{why}");
        }
        assert_eq!(decoded(&[]).as_deref(), Ok(&b""[..]));
        assert_eq!(decoded(&[0x07]).as_deref(), Ok(&b"0"[..]));
    }
}
