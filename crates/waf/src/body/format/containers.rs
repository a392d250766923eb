//! Formats of files, by the bytes at their beginning.
//!
//! A mark of letters alone would be easy to write before a text. So the fields behind it must be as in the format.

/// Whether the bytes begin a file of a known binary format.
pub(super) fn begins(look: &[u8]) -> bool {
    MARKS.iter().any(|mark| look.starts_with(mark)) || is_marked_by_text(look) || is_at_place(look)
}

/// Whether the bytes begin an image.
pub(super) fn begins_image(look: &[u8]) -> bool {
    let is_marked = MARKS[..IMAGES].iter().any(|mark| look.starts_with(mark));
    is_marked
        || match look {
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => true,
            [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => true,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => true,
            [0, 0, _, _, b'f', b't', b'y', b'p', kind @ ..] => {
                [&b"heic"[..], b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis"]
                    .iter()
                    .any(|it| kind.starts_with(it))
            }
            _ => false,
        }
}

/// The number of marks of images, which come first.
const IMAGES: usize = 13;

/// Marks with bytes that occur in no text.
const MARKS: [&[u8]; 42] = [
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR",
    b"\xff\xd8\xff",
    // TIFF, BigTIFF, and raw photos based on them.
    b"II*\0",
    b"MM\0*",
    b"II+\0\x08\0",
    b"MM\0+\0\x08",
    // Icons and cursors.
    b"\0\0\x01\0",
    b"\0\0\x02\0",
    // JPEG 2000, JPEG XL.
    b"\0\0\0\x0cjP  \r\n\x87\n",
    b"\xff\x4f\xff\x51",
    b"\xff\x0a",
    b"\0\0\0\x0cJXL \r\n\x87\n",
    // Photoshop.
    b"8BPS\0",
    // Archives.
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PK\x07\x08",
    b"\x1f\x8b\x08",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"\xed\xab\xee\xdb",
    // Documents of Office before 2007, SQLite, HDF5, Parquet's footer is text.
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"SQLite format 3\0",
    b"\x89HDF\r\n\x1a\n",
    // Programs.
    b"\x7fELF",
    b"\0asm",
    b"\xca\xfe\xba\xbe\0",
    b"\xcf\xfa\xed\xfe",
    b"dex\n035\0",
    // Fonts.
    b"\0\x01\0\0\0",
    b"OTTO\0",
    b"true\0",
    b"wOFF\0\x01\0\0",
    b"wOFFOTTO",
    b"wOF2\0\x01\0\0",
    b"ttcf\0",
    // Video and sound.
    b"\x1a\x45\xdf\xa3",
    b"\0\0\x01\xba",
    b"OggS\0",
    b"FLV\x01",
];

/// Marks of letters, with the bytes behind them.
fn is_marked_by_text(look: &[u8]) -> bool {
    match look {
        // The width and height of a picture of GIF follow, then flags, and a ratio that nobody uses.
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', _, _, _, _, _, _, 0, ..] => true,
        // The reserved fields of a bitmap, and the size of its header.
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, _, _, 0, 0, 12..=124, 0, 0, 0, ..] => true,
        [b'R', b'I', b'F', b'F' | b'X', size @ ..] | [b'F', b'O', b'R', b'M', size @ ..] => {
            matches!(size, [_, _, _, _, kind @ ..] if is_of_riff(kind))
        }
        [
            b'%',
            b'P',
            b'D',
            b'F',
            b'-',
            b'1' | b'2',
            b'.',
            b'0'..=b'9',
            b'\r' | b'\n' | b' ',
            ..,
        ] => true,
        // The version of a tag of MP3, and its size in four bytes of seven bits.
        [b'I', b'D', b'3', 2..=4, _, _, sizes @ ..] => {
            matches!(sizes, [0..=127, 0..=127, 0..=127, 0..=127, ..])
        }
        [b'f', b'L', b'a', b'C', 0 | 0x80, 0, 0, 0x22, ..] => true,
        [b'M', b'T', b'h', b'd', 0, 0, 0, 6, ..] => true,
        // bzip2, with its first block.
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => true,
        // Programs of Windows: the reserved words of the header are zero.
        [b'M', b'Z', rest @ ..] => {
            rest.get(26..34).is_some_and(|words| words.iter().all(|it| *it == 0))
        }
        // Frames of MPEG sound, ADTS: a sync word, and no reserved value behind it. `FF FE` would begin UTF-16.
        [0xff, 0xe2 | 0xe3 | 0xf0..=0xf3 | 0xf8..=0xfb, rate, ..] => {
            rate >> 4 != 0xf && (rate >> 2) & 3 != 3
        }
        // Windows Media.
        [0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11, ..] => true,
        // Files of MP4, QuickTime, HEIF and AVIF: the size of the first box, and its kind.
        [0, 0, _, _, kind @ ..] => {
            [&b"ftyp"[..], b"moov", b"mdat", b"free", b"skip", b"wide", b"styp"]
                .iter()
                .any(|it| kind.starts_with(it))
        }
        _ => false,
    }
}

fn is_of_riff(kind: &[u8]) -> bool {
    [&b"WEBPVP8"[..], b"WAVEfmt ", b"AVI LIST", b"ACONanih", b"AIFFCOMM", b"AIFCFVER", b"RMIDdata"]
        .iter()
        .any(|it| kind.starts_with(it))
}

/// Marks behind the beginning: archives of tar, and packets of a transport stream.
fn is_at_place(look: &[u8]) -> bool {
    let is_tar = look.get(257..262) == Some(b"ustar") && look[..257].contains(&0);
    let is_stream = look.len() > 376 && [0, 188, 376].iter().all(|at| look[*at] == 0x47);
    is_tar || is_stream
}
