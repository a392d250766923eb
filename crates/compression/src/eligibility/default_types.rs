//! The content types that are compressed by default.

use weir_http::media_types::MediaTypes;

/// Types that are usually compressed: texts, text-based data formats, and the few binary formats that are not compressed
/// themselves. Event streams are among `text/*`: they are flushed after every event (see [`super::FlushWhen`]), so no event
/// waits in an encoder.
pub const DEFAULT_TYPES: [&str; 20] = [
    "text/*",
    "+json",
    "+xml",
    "+text",
    "application/json",
    "application/javascript",
    "application/x-javascript",
    "application/xml",
    "application/x-ndjson",
    "application/yaml",
    "application/toml",
    "application/rtf",
    "application/wasm",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "font/ttf",
    "font/otf",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];

/// The default types as a list.
pub fn default_types() -> MediaTypes {
    MediaTypes::parse(DEFAULT_TYPES).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_by_default() {
        let types = default_types();
        for (content_type, expected) in [
            ("text/html; charset=utf-8", true),
            ("text/css", true),
            ("text/javascript", true),
            ("text/event-stream", true),
            ("application/json", true),
            ("application/ld+json", true),
            ("application/rss+xml", true),
            ("image/svg+xml", true),
            ("application/wasm", true),
            ("font/ttf", true),
            ("font/woff2", false),
            ("image/png", false),
            ("image/webp", false),
            ("video/mp4", false),
            ("application/zip", false),
            ("application/pdf", false),
            ("application/octet-stream", false),
            ("application/grpc", false),
            ("multipart/byteranges; boundary=x", false),
        ] {
            assert_eq!(types.contain(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}
