//! The objects of the origin: of any size, made of blocks that are generated once.
//!
//! The last segment of a path names the object: a size in bytes, or with `k` (1,024) or `m` (1,048,576), and optionally
//! an extension for the type: `/128`, `/5k`, `/pictures/16k.png`, `/128k.html`.

/// Size of a block. It exceeds gzip's window, so larger objects compress as well as one block.
const BLOCK_BYTES: usize = 256 * 1024;
/// The largest object.
pub const OBJECT_BYTES_MAX: u64 = 1 << 40;

/// The compressible part of [`html_block`].
const MARKUP: &[u8] =
    b"<tr class=\"row even\"><td class=\"name\">Weirgate</td><td class=\"value\">\
decides how much water goes which way</td></tr>\n";
/// Characters of the incompressible part: six bits of information in eight.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The blocks of objects.
#[derive(Debug)]
pub struct Blocks {
    plain: Vec<u8>,
    html: Vec<u8>,
}

/// An object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// The size of the object.
    pub bytes: u64,
    /// The type of the object.
    pub kind: Kind,
}

/// The type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No extension, or an unknown one.
    Plain,
    /// `.html`: with the configured compressibility.
    Html,
    /// `.png`
    Png,
    /// `.json`
    Json,
}

impl Kind {
    /// Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain",
            Self::Html => "text/html; charset=utf-8",
            Self::Png => "image/png",
            Self::Json => "application/json",
        }
    }
}

impl Object {
    /// The object with that path; `None` if the path names no object.
    pub fn named(path: &[u8]) -> Option<Self> {
        let path = std::str::from_utf8(path).ok()?;
        let name = path.rsplit('/').next()?;
        let (size, ending) = name.split_once('.').unwrap_or((name, ""));
        let (digits, factor) = match size.as_bytes().last()? {
            b'k' => (&size[..size.len() - 1], 1 << 10),
            b'm' => (&size[..size.len() - 1], 1 << 20),
            _ => (size, 1),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let bytes = digits.parse::<u64>().ok()?.checked_mul(factor)?;
        let kind = match ending {
            "html" | "htm" => Kind::Html,
            "png" => Kind::Png,
            "json" => Kind::Json,
            _ => Kind::Plain,
        };
        (bytes <= OBJECT_BYTES_MAX).then_some(Self { bytes, kind })
    }
}

impl Blocks {
    /// Creates the blocks. Gzip saves about the share `html_saving` (0 to 0.95) of the HTML block.
    pub fn new(html_saving: f64) -> Self {
        let plain = b"weirgate".iter().copied().cycle().take(BLOCK_BYTES).collect();
        Self { plain, html: html_block(html_saving) }
    }

    /// Bytes of `object` from `offset` on: at most `length_max`, and at most to the end of a block.
    pub fn run(&self, object: Object, offset: u64, length_max: usize) -> &[u8] {
        let block = if object.kind == Kind::Html { &self.html } else { &self.plain };
        let start = (offset % block.len() as u64) as usize;
        let left = object.bytes.saturating_sub(offset);
        let length = (block.len() - start).min(length_max);
        let length = usize::try_from(left).map_or(length, |left| length.min(left));
        &block[start..start + length]
    }
}

/// Markup mixed with as much noise as gives this saving. Gzip needs 6 bits per 8-bit character of noise, and little for
/// repeated markup.
fn html_block(saving: f64) -> Vec<u8> {
    const NOISE_COST: f64 = 0.765;
    const MARKUP_COST: f64 = 0.012;
    let share = ((1.0 - saving - MARKUP_COST) / (NOISE_COST - MARKUP_COST)).clamp(0.0, 1.0);
    let mut block =
        b"<!DOCTYPE html><html><head><title>Weirgate</title></head><body><table>\n".to_vec();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut noise, mut total) = (0.0, 0.0);
    while block.len() < BLOCK_BYTES {
        total += MARKUP.len() as f64;
        block.extend_from_slice(MARKUP);
        while noise < share * total && share > 0.0 && block.len() < BLOCK_BYTES {
            // The upper bits of xorshift64* (Vigna 2016) are good random bits.
            random ^= random >> 12;
            random ^= random << 25;
            random ^= random >> 27;
            let digit = random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 58;
            block.push(DIGITS[digit as usize]);
            noise += 1.0;
            total += 1.0;
        }
    }
    block.truncate(BLOCK_BYTES);
    block
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn paths_name_objects() {
        let check = |path: &str, expected: Option<(u64, Kind)>| {
            let expected = expected.map(|(bytes, kind)| Object { bytes, kind });
            assert_eq!(Object::named(path.as_bytes()), expected, "{path}");
        };
        check("/128", Some((128, Kind::Plain)));
        check("/0", Some((0, Kind::Plain)));
        check("/a/b/5k", Some((5_120, Kind::Plain)));
        check("/2m.bin", Some((2 << 20, Kind::Plain)));
        check("/1.png", Some((1, Kind::Png)));
        check("/128k.html", Some((131_072, Kind::Html)));
        check("/16k.json", Some((16_384, Kind::Json)));
        for bad in
            ["", "/", "/k", "/-1", "/+5", "/1g", "/x.html", "/99999999999999999999", "/9999999m"]
        {
            check(bad, None);
        }
    }

    #[test]
    fn runs_make_up_the_object() {
        let blocks = Blocks::new(0.75);
        for kind in [Kind::Plain, Kind::Html] {
            let object = Object { bytes: 600_001, kind };
            let mut whole = Vec::new();
            loop {
                let run = blocks.run(object, whole.len() as u64, 65_536);
                if run.is_empty() {
                    break;
                }
                whole.extend_from_slice(run);
            }
            assert_eq!(whole.len(), 600_001);
            assert_eq!(whole[..1_000], whole[BLOCK_BYTES..BLOCK_BYTES + 1_000]);
        }
    }

    #[test]
    fn the_checksum_of_html_is_that_of_what_is_served() {
        let blocks = Blocks::new(super::super::HTML_SAVING);
        for bytes in [0, 1, 131_072, 600_001] {
            let object = Object { bytes, kind: Kind::Html };
            let mut whole = Vec::new();
            while (whole.len() as u64) < bytes {
                whole.extend_from_slice(blocks.run(object, whole.len() as u64, 7_777));
            }
            assert_eq!(super::super::html_crc32(bytes), crc32fast::hash(&whole), "{bytes}");
        }
    }

    /// As in the reports: gzip at level 5 reduces 128 KB to a quarter.
    #[test]
    fn html_of_the_report_becomes_a_quarter() {
        let block = html_block(super::super::HTML_SAVING);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
        gzip.write_all(&block[..128 * 1024]).unwrap();
        let share = gzip.finish().unwrap().len() as f64 / (128.0 * 1024.0);
        assert!((0.24..0.26).contains(&share), "{share}");
    }

    #[test]
    fn html_is_as_compressible_as_asked() {
        for saving in [0.3, 0.5, 0.75, 0.9] {
            let block = html_block(saving);
            for bytes in [32 * 1024, 128 * 1024] {
                let mut gzip =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
                gzip.write_all(&block[..bytes]).unwrap();
                let size = gzip.finish().unwrap().len();
                let found = 1.0 - size as f64 / bytes as f64;
                assert!(
                    (found - saving).abs() < 0.03,
                    "{bytes} bytes: {found:.3} instead of {saving}"
                );
            }
        }
    }
}
