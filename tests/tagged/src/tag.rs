//! Text in which every block of 16 bytes identifies its exchange, part, and position in that part.
//!
//! A block consists of 16 hexadecimal digits: 64 bits with number, part and position, mixed by a keyed permutation. So
//! blocks of different exchanges, parts or positions differ, shifted bytes are no valid block, and a misplaced block reveals
//! its exchange. Digits are valid in paths, host names, headers, cookies and bodies, and can be compressed.

use std::fmt::{self, Write};

/// Length of a block.
pub const BLOCK_BYTES: usize = 16;

/// Number of bits for the position in a part, in blocks: bodies of up to 16 MiB.
const PLACE_BITS: u32 = 20;
/// Number of bits for the part.
const PART_BITS: u32 = 4;
/// Number of constant bits, so that arbitrary digits are rarely mistaken for a block.
const MARK_BITS: u32 = 4;
const MARK: u64 = 0b1010;

/// The number of an exchange, unique in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(pub u64);

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:09x}", self.0)
    }
}

/// A part of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The host.
    Host = 1,
    /// The path.
    Path,
    /// The query.
    Query,
    /// A header of the request, or the key of a WebSocket.
    RequestField,
    /// A cookie of the request.
    Cookie,
    /// The credentials.
    Authorization,
    /// The request's body.
    RequestBody,
    /// A trailer of the request.
    RequestTrailer,
    /// A header of an interim response.
    Interim,
    /// A header of the response.
    ResponseField,
    /// A cookie or the entity tag of the response.
    ResponseMark,
    /// The response's body.
    ResponseBody,
    /// A trailer of the response.
    ResponseTrailer,
    /// The client's half of a tunnel.
    Up,
    /// The member's half of a tunnel.
    Down,
}

const PARTS: [Part; 15] = [
    Part::Host,
    Part::Path,
    Part::Query,
    Part::RequestField,
    Part::Cookie,
    Part::Authorization,
    Part::RequestBody,
    Part::RequestTrailer,
    Part::Interim,
    Part::ResponseField,
    Part::ResponseMark,
    Part::ResponseBody,
    Part::ResponseTrailer,
    Part::Up,
    Part::Down,
];

/// The key of the permutation.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    before: u64,
    after: u64,
}

/// The multiplier, which is odd and therefore invertible.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR_INVERSE: u64 = inverse(FACTOR);

/// The multiplicative inverse modulo 2^64, by Newton's method.
const fn inverse(factor: u64) -> u64 {
    let mut found = factor;
    let mut round = 0;
    while round < 5 {
        found = found.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(found)));
        round += 1;
    }
    found
}

/// The eight hexadecimal digits of 32 bits, computed in parallel in one word.
fn digits(bits: u32) -> [u8; 8] {
    let word = u64::from(bits);
    let word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    let word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    let word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // Adding six carries into the next bit for digits above nine, which are letters.
    let letters = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (word + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'9' - 1)).to_be_bytes()
}

impl Key {
    /// The key for a seed.
    pub fn new(seed: u64) -> Self {
        let before = seed.wrapping_mul(FACTOR) ^ 0x5bf0_3635_dcf9_8b5a;
        Self { before, after: before.rotate_left(29).wrapping_mul(FACTOR) }
    }

    fn mixed(self, word: u64) -> u64 {
        let word = (word ^ self.before).wrapping_mul(FACTOR);
        let word = (word ^ (word >> 32)).wrapping_mul(FACTOR);
        word ^ (word >> 32) ^ self.after
    }

    fn unmixed(self, word: u64) -> u64 {
        let word = word ^ self.after;
        let word = (word ^ (word >> 32)).wrapping_mul(FACTOR_INVERSE);
        (word ^ (word >> 32)).wrapping_mul(FACTOR_INVERSE) ^ self.before
    }

    fn block(self, id: Id, part: Part, place: usize) -> [u8; BLOCK_BYTES] {
        let word = id.0 << (PART_BITS + PLACE_BITS + MARK_BITS)
            | (part as u64) << (PLACE_BITS + MARK_BITS)
            | (place as u64 & ((1 << PLACE_BITS) - 1)) << MARK_BITS
            | MARK;
        let mixed = self.mixed(word);
        let mut block = [0; BLOCK_BYTES];
        let (high, low) = block.split_at_mut(BLOCK_BYTES / 2);
        high.copy_from_slice(&digits((mixed >> 32) as u32));
        low.copy_from_slice(&digits(mixed as u32));
        block
    }

    /// Decodes a block; `None`: these bytes are no valid block.
    pub fn read(self, block: &[u8]) -> Option<(Id, Part, usize)> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if block.len() != BLOCK_BYTES || !block.iter().all(is_digit) {
            return None;
        }
        let text = std::str::from_utf8(block).ok()?;
        let word = self.unmixed(u64::from_str_radix(text, 16).ok()?);
        let place = (word >> MARK_BITS) as usize & ((1 << PLACE_BITS) - 1);
        let part = (word >> (PLACE_BITS + MARK_BITS)) as usize & ((1 << PART_BITS) - 1);
        let part = PARTS.get(part.checked_sub(1)?)?;
        let is_marked = word & ((1 << MARK_BITS) - 1) == MARK;
        is_marked.then_some((Id(word >> (PART_BITS + PLACE_BITS + MARK_BITS)), *part, place))
    }

    /// Fills `out` with the text of a part, starting at `offset`.
    pub fn fill(self, id: Id, part: Part, offset: usize, out: &mut [u8]) {
        let cut = offset.next_multiple_of(BLOCK_BYTES) - offset;
        let (first, rest) = out.split_at_mut(cut.min(out.len()));
        if !first.is_empty() {
            let block = self.block(id, part, offset / BLOCK_BYTES);
            first.copy_from_slice(&block[BLOCK_BYTES - cut..][..first.len()]);
        }
        let next = (offset + cut) / BLOCK_BYTES;
        for (place, out) in (next..).zip(rest.chunks_mut(BLOCK_BYTES)) {
            out.copy_from_slice(&self.block(id, part, place)[..out.len()]);
        }
    }

    /// The text of a part, starting at block `first`.
    pub fn text(self, id: Id, part: Part, first: usize, blocks: usize) -> String {
        let mut text = Vec::with_capacity(blocks * BLOCK_BYTES);
        for place in first..first + blocks {
            text.extend_from_slice(&self.block(id, part, place));
        }
        String::from_utf8(text).expect("digits")
    }

    /// The first bytes of a part.
    pub fn bytes(self, id: Id, part: Part, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.fill(id, part, 0, &mut bytes);
        bytes
    }

    /// The exchanges with blocks in arbitrary bytes, without repetition.
    pub fn owners(self, bytes: &[u8], is_known: impl Fn(Id) -> bool) -> Vec<Id> {
        let mut owners = Vec::new();
        let mut at = 0;
        while at + BLOCK_BYTES <= bytes.len() {
            let found = self.read(&bytes[at..at + BLOCK_BYTES]).filter(|(id, ..)| is_known(*id));
            at += if found.is_some() { BLOCK_BYTES } else { 1 };
            if let Some((id, ..)) = found
                && !owners.contains(&id)
            {
                owners.push(id);
            }
        }
        owners
    }

    /// A description of the blocks in arbitrary bytes. Only exchanges that pass `is_known` are included. Consecutive blocks
    /// are one entry.
    pub fn sights(self, bytes: &[u8], is_known: impl Fn(Id) -> bool) -> String {
        let mut told = String::new();
        let mut at = 0;
        while at + BLOCK_BYTES <= bytes.len() {
            let found = self.read(&bytes[at..at + BLOCK_BYTES]).filter(|(id, ..)| is_known(*id));
            let Some((id, part, place)) = found else {
                at += 1;
                continue;
            };
            let from = at;
            let mut next = place;
            while self.read(bytes.get(at..at + BLOCK_BYTES).unwrap_or_default())
                == Some((id, part, next))
            {
                (at, next) = (at + BLOCK_BYTES, next + 1);
            }
            let _ = writeln!(told, "  {from}..{at}: {id} {part:?}, blocks {place}..{next}");
        }
        told
    }
}

/// Checks the received bytes of a part.
#[derive(Debug, Clone)]
pub struct Checker {
    key: Key,
    id: Id,
    part: Part,
    offset: usize,
}

impl Checker {
    /// A checker for a part from its start.
    pub fn new(key: Key, id: Id, part: Part) -> Self {
        Self { key, id, part, offset: 0 }
    }

    /// Number of received bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Checks the next bytes. An error contains the position of the first wrong byte.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let block = self.key.block(self.id, self.part, self.offset / BLOCK_BYTES);
            if let Some((part, rest)) = bytes.split_first_chunk()
                && self.offset.is_multiple_of(BLOCK_BYTES)
                && *part == block
            {
                self.offset += BLOCK_BYTES;
                bytes = rest;
                continue;
            }
            let expected = &block[self.offset % BLOCK_BYTES..];
            let (part, rest) = bytes.split_at(expected.len().min(bytes.len()));
            if !expected.starts_with(part) {
                let right = expected.iter().zip(part).take_while(|(one, other)| one == other);
                let at = self.offset + right.count();
                return Err(format!("{:?} of {}: wrong byte at {at}", self.part, self.id));
            }
            self.offset += part.len();
            bytes = rest;
        }
        Ok(())
    }
}

#[test]
fn blocks_say_whose_they_are() {
    let key = Key::new(7);
    for id in [0, 1, 0xf_ffff_ffff] {
        for place in [0, 1, (1 << PLACE_BITS) - 1] {
            let block = key.block(Id(id), Part::Down, place);
            assert_eq!(key.read(&block), Some((Id(id), Part::Down, place)));
        }
    }
    assert_eq!(key.read(b"0123456789abcdeg"), None);
}

#[test]
fn shifted_repeated_and_foreign_bytes_are_found() {
    let key = Key::new(7);
    let (id, part) = (Id(5), Part::RequestBody);
    let body = key.bytes(id, part, 1_000);
    let check = |bytes: &[u8]| {
        let mut checker = Checker::new(key, id, part);
        bytes.chunks(33).try_for_each(|chunk| checker.take(chunk))
    };
    assert_eq!(check(&body), Ok(()));
    for (from, to) in [(0, 0), (3, 5), (3, 16), (15, 17), (16, 32), (31, 1_000)] {
        let mut part_of_it = vec![0; to - from];
        key.fill(id, part, from, &mut part_of_it);
        assert_eq!(part_of_it, body[from..to]);
    }
    assert!(check(&body[1..]).is_err());
    assert!(check(&body[BLOCK_BYTES..]).is_err());
    assert!(check(&[&body[..160], &body[144..]].concat()).is_err());
    assert!(check(&key.bytes(Id(6), part, 1_000)).is_err());
    assert!(check(&key.bytes(id, Part::ResponseBody, 1_000)).is_err());
}

#[test]
fn foreign_blocks_are_told_by_their_runs() {
    let key = Key::new(7);
    let bytes = [b"HTTP/1.1 200".to_vec(), key.bytes(Id(9), Part::Cookie, 32)].concat();
    let told = key.sights(&bytes, |id| id.0 < 100);
    assert_eq!(told, "  12..44: 000000009 Cookie, blocks 0..2\n");
    assert_eq!(key.owners(&bytes, |id| id.0 < 100), [Id(9)]);
    assert_eq!(key.owners(&bytes, |id| id.0 < 9), []);
}
