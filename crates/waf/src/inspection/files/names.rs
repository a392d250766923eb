//! What names and types of files claim.

use crate::body::is_image;

/// Maximum length of a recording that is looked at when it is the whole body. Longer ones are usual, and bodies that are
/// looked at are held.
const RECORDING_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Extensions of documents that browsers run.
pub(super) const DOCUMENTS: [&str; 11] =
    ["html", "htm", "xhtml", "xht", "mhtml", "svg", "svgz", "xml", "xsl", "xslt", "hta"];

/// Extensions of images and other media.
pub(super) const MEDIA: [&str; 37] = [
    "png", "apng", "jpg", "jpeg", "jpe", "jfif", "gif", "bmp", "dib", "webp", "avif", "heic",
    "heif", "ico", "cur", "cer", "tif", "tiff", "psd", "pdf", "woff", "woff2", "ttf", "otf", "mp3",
    "mp4", "m4a", "m4v", "mov", "avi", "mkv", "webm", "ogg", "oga", "ogv", "wav", "flac",
];
/// The first of them that are sound or video, which are often longer than what is held.
const RECORDINGS_FROM: usize = 24;
pub(super) const MEDIA_TYPES: [&str; 5] = ["image/", "audio/", "video/", "font/", "/pdf"];

/// The extension of a file name in lower case.
pub(super) fn extension(name: &[u8]) -> &[u8] {
    let start = name.iter().rposition(|byte| matches!(byte, b'/' | b'\\')).map_or(0, |at| at + 1);
    let name = name.get(start..).unwrap_or_default().trim_ascii_end();
    name.iter().rposition(|byte| *byte == b'.').map_or(&[], |at| &name[at + 1..])
}

/// Extensions of programs that servers run.
const PROGRAMS: [&str; 22] = [
    "php", "php3", "php4", "php5", "php7", "php8", "phtml", "pht", "phar", "inc", "jsp", "jspx",
    "asp", "aspx", "ashx", "asmx", "ascx", "cgi", "cfm", "cfc", "shtml", "stm",
];

/// A body in a binary format.
pub(in super::super) struct Upload<'a> {
    /// Its first bytes.
    pub look: &'a [u8],
    pub media_type: &'a [u8],
    /// The names that it may have: the end of the path, and the values of headers.
    pub names: &'a [&'a [u8]],
    /// Its length, if it is known.
    pub bytes: Option<u64>,
}

/// Whether code is looked for in a body: in images and the like, by their first bytes, types or names.
pub(in super::super) fn upload_of(upload: &Upload<'_>) -> bool {
    let media_type = upload.media_type.to_ascii_lowercase();
    let is_type = |word: &str| memchr::memmem::find(&media_type, word.as_bytes()).is_some();
    let has_extension = |list: &[&str]| {
        upload.names.iter().any(|name| {
            let name = name.to_ascii_lowercase();
            let name = name.trim_ascii_end();
            let extension = extension(name.strip_suffix(b"\"").unwrap_or(name));
            list.iter().any(|it| it.as_bytes() == extension)
        })
    };
    let (others, recordings) = MEDIA.split_at(RECORDINGS_FROM);
    let is_short = upload.bytes.is_some_and(|bytes| bytes <= RECORDING_BYTES_MAX);
    is_image(upload.look)
        || has_extension(others)
        || has_extension(&PROGRAMS)
        || ["image/", "font/", "/pdf"].into_iter().any(is_type)
        || (is_short && (has_extension(recordings) || is_type("audio/") || is_type("video/")))
}
