//! `compression`: which responses are compressed for clients, and how hard.

use crate::scalar::{GIB, KIB, Off, Size, Text, Whole, WordOr};

section! {
    /// Which responses are compressed for clients that take them so, and how hard.
    Compression at "virtual_servers.NAME.compression" {
        /// gzip, or `off`. Default level: 5.
        optional gzip: WordOr<Off, CodingSettings>;
        /// Zstandard, or `off`. Default level: 3.
        optional zstd: WordOr<Off, CodingSettings>;
        /// Brotli, or `off`. Default level: 3.
        optional brotli: WordOr<Off, CodingSettings>;
        /// Shorter responses go as they are.
        default min_size: Size<0, GIB> = Size(KIB);
        /// How far the level falls when a worker runs out of time: no further than to this one, or in the end to no compression at all (`off`). Default: `off`.
        optional level_min: WordOr<Off, Whole<u8, 1, 9>>;
        /// Media types that are compressed: `text/html`, `text/*`, `+json` for all that end so. Default: those that get smaller: text, scripts, JSON, XML, SVG, WebAssembly, fonts that are not compressed themselves.
        optional types: Vec<crate::decode::Spanned<Text>>;
    }
    later []
}

section! {
    /// How hard an encoder tries.
    CodingSettings at "virtual_servers.NAME.compression.gzip" {
        /// From 1, fast, to 9, small. When a worker runs out of time the level falls, before requests wait.
        optional level: Whole<u8, 1, 9>;
    }
    later []
}
