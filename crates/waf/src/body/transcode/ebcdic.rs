//! EBCDIC. Letters, digits and most signs are the same in all code pages; `!`, brackets, braces and a few others differ.

/// The share of bytes that may be no text of EBCDIC: one in this number.
const FOREIGN_SHARE: usize = 20;

/// The characters that are the same in nearly all code pages, by the byte of the first of each row.
const ROWS: [(u8, &[u8]); 22] = [
    (0x40, b" "),
    (0x4b, b".<(+"),
    (0x50, b"&"),
    (0x5c, b"*);"),
    (0x60, b"-/"),
    (0x6b, b",%_>?"),
    (0x7a, b":"),
    (0x7d, b"'=\""),
    (0x7b, b"#@"),
    (0x79, b"`"),
    (0x5b, b"$"),
    (0x81, b"abcdefghi"),
    (0x91, b"jklmnopqr"),
    (0xa1, b"~stuvwxyz"),
    (0xc0, b"{ABCDEFGHI"),
    (0xd0, b"}JKLMNOPQR"),
    (0xe0, b"\\"),
    (0xe2, b"STUVWXYZ"),
    (0xf0, b"0123456789"),
    (0x05, b"\t"),
    // CR; line feed, and the line end of EBCDIC's own.
    (0x0d, b"\r"),
    (0x25, b"\n"),
];

/// The characters of code pages that differ. Others of the same family have the same signs of markup.
pub(super) const PAGES: [&[(u8, u8)]; 6] = [
    // 037, 1140, 424: United States, Israel.
    &[(0x5a, b'!'), (0x4f, b'|'), (0xba, b'['), (0xbb, b']'), (0xb0, b'^')],
    // 500, 1148, 875, 871: international, Greece.
    &[(0x4f, b'!'), (0xbb, b'|'), (0x4a, b'['), (0x5a, b']'), (0x5f, b'^')],
    // 1047, 924: open systems.
    &[(0x5a, b'!'), (0x4f, b'|'), (0xad, b'['), (0xbd, b']'), (0x5f, b'^')],
    // 273, 1141: Germany.
    &[
        (0x4f, b'!'),
        (0xbb, b'|'),
        (0x63, b'['),
        (0xfc, b']'),
        (0x5f, b'^'),
        (0x43, b'{'),
        (0xdc, b'}'),
        (0xec, b'\\'),
        (0xb5, b'@'),
        (0x59, b'~'),
    ],
    // 284, 1145: Spain.
    &[(0xbb, b'!'), (0x4f, b'|'), (0x4a, b'['), (0x5a, b']'), (0xba, b'^'), (0x69, b'#')],
    // 1026: Turkey.
    &[
        (0x4f, b'!'),
        (0xbb, b'|'),
        (0x68, b'['),
        (0xac, b']'),
        (0x5f, b'^'),
        (0x48, b'{'),
        (0x8c, b'}'),
        (0xdc, b'\\'),
        (0xfc, b'"'),
        (0xec, b'#'),
        (0xae, b'@'),
        (0xad, b'$'),
        (0xcc, b'~'),
    ],
];

/// The character for a byte without one in ASCII.
const OTHER: u8 = b'?';

pub(super) fn common() -> [u8; 256] {
    let mut table = [OTHER; 256];
    for (first, characters) in ROWS {
        for (place, character) in table[usize::from(first)..].iter_mut().zip(characters) {
            *place = *character;
        }
    }
    table[0x15] = b'\n';
    table
}

/// Whether the first bytes are a text in EBCDIC: `<` and a sign or letter behind it, or nearly only letters, digits and signs.
pub(super) fn fits(look: &[u8]) -> bool {
    let is_blank = |byte: &&u8| matches!(byte, 0x40 | 0x05 | 0x0d | 0x25 | 0x15 | 0x0b | 0x0c);
    let blanks = look.iter().take_while(is_blank).count();
    // `<?xml`, `<!D` with the exclamation marks of the code pages.
    match &look[blanks..] {
        [0x4c, 0x6f, 0xa7, 0x94, 0x93, ..] | [0x4c, 0x5a | 0x4f | 0xbb, 0xc4 | 0x60, ..] => {
            return true;
        }
        _ => {}
    }
    if std::str::from_utf8(look).is_ok() || look.len() < 8 {
        return false;
    }
    let table = common();
    let is_known = |byte: &&u8| table[usize::from(**byte)] != OTHER || **byte == 0x6f;
    let is_letter =
        |byte: &&u8| **byte >= 0x80 && table[usize::from(**byte)].is_ascii_alphanumeric();
    let foreign = look.len() - look.iter().filter(is_known).count();
    let letters = look.iter().filter(is_letter).count();
    foreign * FOREIGN_SHARE <= look.len() && letters * 5 >= look.len() * 2
}

/// The text as each of the code pages has it.
pub(super) fn readings(text: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for page in PAGES {
        let mut table = common();
        page.iter().for_each(|(byte, character)| table[usize::from(*byte)] = *character);
        let reading = text.iter().map(|byte| table[usize::from(*byte)]).collect();
        if !all.contains(&reading) {
            all.push(reading);
        }
    }
    all
}
