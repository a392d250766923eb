//! HPACK for tests (RFC 7541), independent of the codec under test. It writes literals without indexing and without
//! Huffman coding, and reads everything.

use std::collections::VecDeque;
use std::sync::OnceLock;

/// A header line.
pub type Line = (Vec<u8>, Vec<u8>);

/// Writes a line as a literal without indexing (section 6.2.2).
pub fn write_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0x00);
    write_string(name, out);
    write_string(value, out);
}

/// Writes a line as a literal with incremental indexing (section 6.2.1). The line then has the index 62.
pub fn write_indexed_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0x40);
    write_string(name, out);
    write_string(value, out);
}

/// Writes a line as an index into the tables (section 6.1).
pub fn write_index(index: usize, out: &mut Vec<u8>) {
    write_integer(index, 7, 0x80, out);
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_integer(text.len(), 7, 0x00, out);
    out.extend_from_slice(text);
}

fn write_integer(value: usize, prefix_bits: u32, first: u8, out: &mut Vec<u8>) {
    let prefix_max = (1 << prefix_bits) - 1;
    if value < prefix_max {
        return out.push(first | value as u8);
    }
    out.push(first | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The decoder of one direction of a connection.
#[derive(Debug, Default)]
pub struct Decoder {
    table: VecDeque<Line>,
    size: usize,
    size_max: Option<usize>,
}

/// The default size of the table (section 4.2).
const TABLE_BYTES_DEFAULT: usize = 4096;

impl Decoder {
    /// Decodes a header block; panics if it is invalid.
    #[track_caller]
    pub fn read(&mut self, block: &[u8]) -> Vec<Line> {
        self.try_read(block).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Decodes a header block, or returns the error in it.
    pub fn try_read(&mut self, mut block: &[u8]) -> Result<Vec<Line>, String> {
        let mut lines = Vec::new();
        while let Some(&first) = block.first() {
            match first {
                0x80.. => {
                    let index = read_integer(&mut block, 7)?;
                    lines.push(self.line(index)?);
                }
                0x40.. => {
                    let line = self.literal(&mut block, 6)?;
                    self.size += entry_size(&line);
                    self.table.push_front(line.clone());
                    self.evict();
                    lines.push(line);
                }
                0x20.. => {
                    let size_max = read_integer(&mut block, 5)?;
                    if size_max > TABLE_BYTES_DEFAULT || !lines.is_empty() {
                        return Err(format!("the size of the table becomes {size_max}"));
                    }
                    self.size_max = Some(size_max);
                    self.evict();
                }
                _ => lines.push(self.literal(&mut block, 4)?),
            }
        }
        Ok(lines)
    }

    fn literal(&self, block: &mut &[u8], prefix_bits: u32) -> Result<Line, String> {
        let name = match read_integer(block, prefix_bits)? {
            0 => read_string(block)?,
            index => self.line(index)?.0,
        };
        Ok((name, read_string(block)?))
    }

    fn line(&self, index: usize) -> Result<Line, String> {
        let place = index.checked_sub(1).ok_or("index 0")?;
        if let Some((name, value)) = STATIC.get(place) {
            return Ok((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
        let entry = self.table.get(place - STATIC.len());
        entry.cloned().ok_or_else(|| format!("index {index} of {} entries", self.table.len()))
    }

    fn evict(&mut self) {
        while self.size > self.size_max.unwrap_or(TABLE_BYTES_DEFAULT) {
            let Some(line) = self.table.pop_back() else { return };
            self.size -= entry_size(&line);
        }
    }
}

/// The size of an entry (section 4.1).
fn entry_size((name, value): &Line) -> usize {
    name.len() + value.len() + 32
}

fn read_integer(block: &mut &[u8], prefix_bits: u32) -> Result<usize, String> {
    let prefix_max = (1 << prefix_bits) - 1;
    let mut value = usize::from(take(block)?) & prefix_max;
    if value == prefix_max {
        for shift in (0..35).step_by(7) {
            let byte = take(block)?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        return Err("an endless number".to_owned());
    }
    Ok(value)
}

fn read_string(block: &mut &[u8]) -> Result<Vec<u8>, String> {
    let is_coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = read_integer(block, 7)?;
    let (text, rest) = block.split_at_checked(length).ok_or("a text beyond the header block")?;
    *block = rest;
    if is_coded { decode(text) } else { Ok(text.to_vec()) }
}

fn take(block: &mut &[u8]) -> Result<u8, String> {
    let (first, rest) = block.split_first().ok_or("a header block that is cut")?;
    *block = rest;
    Ok(*first)
}

/// The tree of the Huffman code (appendix B). The code is canonical: shorter codes first, then by symbol. A node has an
/// entry for each bit: the next node, or a symbol plus [`LEAF`].
fn tree() -> &'static [[u16; 2]] {
    static TREE: OnceLock<Vec<[u16; 2]>> = OnceLock::new();
    TREE.get_or_init(|| {
        let mut order: Vec<usize> = (0..LENGTHS.len()).collect();
        order.sort_by_key(|symbol| LENGTHS[*symbol]);
        let mut nodes = vec![[0; 2]];
        let (mut code, mut length) = (0_u64, 0);
        for symbol in order {
            code <<= LENGTHS[symbol] - length;
            length = LENGTHS[symbol];
            let mut at = 0;
            for place in (1..length).rev() {
                let bit = (code >> place & 1) as usize;
                if nodes[at][bit] == 0 {
                    nodes[at][bit] = nodes.len() as u16;
                    nodes.push([0; 2]);
                }
                at = usize::from(nodes[at][bit]);
            }
            nodes[at][(code & 1) as usize] = LEAF + symbol as u16;
            code += 1;
        }
        nodes
    })
}

/// The lowest value in [`tree`] that is a symbol.
const LEAF: u16 = 0x8000;
/// The end-of-string symbol, which no string may contain.
const END_SYMBOL: u16 = 256;

/// The result of four bits from a node of [`tree`]: the next node, and the symbol that these bits complete, if any. Codes
/// are too long for two symbols in four bits.
#[derive(Debug, Clone, Copy, Default)]
struct Stride {
    next: u8,
    symbol: Option<u16>,
}

/// The stride for each node and each four bits.
fn strides() -> &'static [[Stride; 16]] {
    static STRIDES: OnceLock<Vec<[Stride; 16]>> = OnceLock::new();
    STRIDES.get_or_init(|| {
        let stride = |node: usize, bits: usize| {
            let (mut at, mut symbol) = (node as u16, None);
            for place in (0..4).rev() {
                at = tree()[usize::from(at)][bits >> place & 1];
                if at >= LEAF {
                    (at, symbol) = (0, Some(at - LEAF));
                }
            }
            Stride { next: at as u8, symbol }
        };
        let of_node = |node| std::array::from_fn(|bits| stride(node, bits));
        (0..tree().len()).map(of_node).collect()
    })
}

fn decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let strides = strides();
    let mut decoded = Vec::with_capacity(text.len() * 8 / 5);
    let mut at = 0;
    for byte in text {
        for bits in [byte >> 4, byte & 15] {
            let Stride { next, symbol } = strides[at][usize::from(bits)];
            at = usize::from(next);
            match symbol {
                None => {}
                Some(END_SYMBOL) => return Err("the end of a string within it".to_owned()),
                Some(symbol) => decoded.push(symbol as u8),
            }
        }
    }
    Ok(decoded)
}

/// Bits of each symbol's code.
const LENGTHS: [u8; 257] = [
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

/// The static table of appendix A.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(block: &[u8], decoder: &mut Decoder) -> Vec<(String, String)> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        decoder.read(block).into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn examples_of_rfc_7541_appendix_c_4_are_read() {
        let mut decoder = Decoder::default();
        let first = b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut expected = vec![
            pair(":method", "GET"),
            pair(":scheme", "http"),
            pair(":path", "/"),
            pair(":authority", "www.example.com"),
        ];
        assert_eq!(lines(first, &mut decoder), expected);
        let second = b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf";
        expected.push(pair("cache-control", "no-cache"));
        assert_eq!(lines(second, &mut decoder), expected);
    }

    #[test]
    fn nodes_have_numbers_of_a_byte() {
        assert_eq!(tree().len(), 256);
    }

    #[test]
    fn what_is_written_is_read() {
        let long = "x".repeat(5_000);
        let mut block = Vec::new();
        write_line(b"a", b"b", &mut block);
        write_indexed_line(b"c", b"d", &mut block);
        write_index(62, &mut block);
        write_line(b"long", long.as_bytes(), &mut block);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [pair("a", "b"), pair("c", "d"), pair("c", "d"), pair("long", &long)];
        assert_eq!(lines(&block, &mut Decoder::default()), expected);
    }
}
