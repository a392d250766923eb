//! Decoders. Where possible, they are not from the author of the encoder under test.

use std::io::Read;

/// Decodes `encoded` up to its end, or to the place where it is truncated. Returns the data, and whether the encoding
/// ended properly. `coding` is the value of Content-Encoding.
pub fn decode(coding: &str, encoded: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let whole = match coding {
        "gzip" => read_all(flate2::read::GzDecoder::new(encoded), &mut out),
        "br" => read_all(brotli_decompressor::Decompressor::new(encoded, 4096), &mut out),
        "zstd" => decode_zstd(encoded, &mut out),
        _ => false,
    };
    (out, whole)
}

fn read_all(mut reader: impl Read, out: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return true,
            Ok(read) => out.extend_from_slice(&buffer[..read]),
            Err(_) => return false,
        }
    }
}

fn decode_zstd(encoded: &[u8], out: &mut Vec<u8>) -> bool {
    let mut context = zstd_safe::DCtx::create();
    let mut input = zstd_safe::InBuffer::around(encoded);
    loop {
        out.reserve(4096);
        let (taken, written) = (input.pos, out.len());
        let mut output = zstd_safe::OutBuffer::around_pos(out, written);
        match context.decompress_stream(&mut output, &mut input) {
            Ok(0) => return input.pos == encoded.len(),
            Ok(_) if input.pos == taken && out.len() == written => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
