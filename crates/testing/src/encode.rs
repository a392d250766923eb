//! Encoders of content codings, for data that tests send.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

/// Encodes `plain` with a coding of Content-Encoding, or with `raw-deflate`: deflate without the zlib frame that HTTP
/// requires.
///
/// # Panics
///
/// If the coding is unknown.
pub fn encode(coding: &str, plain: &[u8]) -> Vec<u8> {
    let level = Compression::default();
    match coding {
        "gzip" | "x-gzip" => written(GzEncoder::new(Vec::new(), level), plain, GzEncoder::finish),
        "deflate" => written(ZlibEncoder::new(Vec::new(), level), plain, ZlibEncoder::finish),
        "raw-deflate" => {
            written(DeflateEncoder::new(Vec::new(), level), plain, DeflateEncoder::finish)
        }
        "br" => {
            let writer = brotlic::CompressorWriter::new(Vec::new());
            written(writer, plain, |it| it.into_inner().map_err(std::io::Error::other))
        }
        "zstd" => {
            let mut out = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
            zstd_safe::compress(&mut out, plain, 3).expect("zstd has room");
            out
        }
        "identity" => plain.to_vec(),
        other => panic!("no encoder for {other}"),
    }
}

fn written<W: Write>(
    mut writer: W,
    plain: &[u8],
    finish: impl FnOnce(W) -> std::io::Result<Vec<u8>>,
) -> Vec<u8> {
    writer.write_all(plain).expect("memory takes all");
    finish(writer).expect("memory takes all")
}
