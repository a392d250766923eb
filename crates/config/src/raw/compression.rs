//! `compression`: which responses are compressed for clients, and at which level.

use crate::scalar::{GIB, KIB, Off, Size, Text, Whole, WordOr};

section! {
    /// Compression of responses for clients that accept it: encodings, levels and media types.
    Compression at "virtual_servers.NAME.compression" {
        /// gzip. `off`: not used. Default level: 5.
        optional gzip: WordOr<Off, CodingSettings>;
        /// Zstandard. `off`: not used. Default level: 3.
        optional zstd: WordOr<Off, CodingSettings>;
        /// Brotli. `off`: not used. Default level: 3.
        optional brotli: WordOr<Off, CodingSettings>;
        /// Shorter responses are not compressed.
        default min_size: Size<0, GIB> = Size(KIB);
        /// The lowest level to which weir reduces compression when a worker is overloaded. `off`: weir may stop compressing. Default: `off`.
        optional level_min: WordOr<Off, Whole<u8, 1, 9>>;
        /// Media types that are compressed: `text/html`, `text/*`, or a suffix such as `+json`. Default: compressible types: text, scripts, JSON, XML, SVG, WebAssembly, uncompressed fonts.
        optional types: Vec<crate::decode::Spanned<Text>>;
    }
    later []
}

section! {
    /// The level of an encoder.
    CodingSettings at "virtual_servers.NAME.compression.gzip" {
        /// From 1 (fast) to 9 (small). An overloaded worker lowers the level, so that requests do not wait. Default: 5 for gzip, 3 for Zstandard and Brotli.
        optional level: Whole<u8, 1, 9>;
    }
    later []
}
