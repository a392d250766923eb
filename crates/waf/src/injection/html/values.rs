//! Attribute values that run scripts: URLs and styles.

/// Maximum number of bytes of a URL that are inspected, not counting ignored characters.
const SCHEME_BYTES_MAX: usize = 24;

/// Schemes of URLs that run as scripts.
const SCRIPT_SCHEMES: &[&[u8]] =
    &[b"javascript:", b"vbscript:", b"livescript:", b"mocha:", b"view-source:"];

/// Scripts that do nothing, which editors put into links.
const EMPTY_SCRIPTS: &[&[u8]] = &[
    b"javascript:",
    b"javascript:;",
    b"javascript:void(0)",
    b"javascript:void(0);",
    b"javascript:void0",
];

/// Media types of `data:` URLs that cannot contain scripts.
const HARMLESS_DATA: &[&[u8]] = &[
    b"data:image/png",
    b"data:image/jpeg",
    b"data:image/jpg",
    b"data:image/gif",
    b"data:image/webp",
    b"data:image/avif",
    b"data:image/x-icon",
    b"data:font/",
    b"data:audio/",
    b"data:video/",
    b"data:text/plain",
];

/// Parts of a style that run a script, or load a file that does.
const STYLE_MARKS: &[&[u8]] = &[
    b"expression(",
    b"behavior:",
    b"behaviour:",
    b"binding:",
    b"javascript:",
    b"vbscript:",
    b"@import",
    b"include-source:",
];

/// The kind of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Address {
    /// Harmless in this attribute.
    Plain,
    /// A document that a browser loads when it follows the URL.
    Document,
    /// A script.
    Script,
}

/// The kind of a URL, by its scheme.
pub(super) fn address(value: &[u8]) -> Address {
    let may_begin = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'j' | b'v' | b'l' | b'm' | b'd' | b'&' | b'`' | b'"' | b'\'' | 0..=b' ' | 0x7f..);
    if !value.first().is_some_and(may_begin) {
        return Address::Plain;
    }
    let start = Start::of(value);
    let begins = |scheme: &&[u8]| start.bytes().starts_with(scheme);
    if start.is_whole && EMPTY_SCRIPTS.contains(&start.bytes()) {
        Address::Plain
    } else if SCRIPT_SCHEMES.iter().any(begins) {
        Address::Script
    } else if begins(&&b"data:"[..]) && !HARMLESS_DATA.iter().any(begins) {
        Address::Document
    } else {
        Address::Plain
    }
}

/// Whether the value is a whole URL of HTTPS with the name of a host.
pub(super) fn is_of_another_site(value: &[u8]) -> bool {
    const SCHEME: &[u8] = b"https://";
    // In a string of JSON, the quotes are escaped.
    let value = value.strip_prefix(b"\\\"").unwrap_or(value);
    let Some((scheme, rest)) = value.split_at_checked(SCHEME.len()) else { return false };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let host = rest.get(..end).unwrap_or_default();
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':');
    scheme.eq_ignore_ascii_case(SCHEME) && host.contains(&b'.') && host.iter().all(is_of_name)
}

/// Whether the whole value is a URL with a script: the text after the scheme is not prose.
pub(super) fn is_script_address(value: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', value.get(..SCHEME_BYTES_MAX * 2).unwrap_or(value))
    else {
        return false;
    };
    let after = value.get(colon + 1..).unwrap_or_default();
    let begins = after.first().is_some_and(|byte| !byte.is_ascii_whitespace());
    begins
        && address(value) == Address::Script
        && after.iter().any(|byte| matches!(byte, b'(' | b'=' | b'`'))
}

/// Whether a style runs a script. Comments, backslashes and blanks within it are ignored.
pub(super) fn style_runs_script(style: &[u8]) -> bool {
    let mut window = Window::default();
    let mut rest = style;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'/' && after.first() == Some(&b'*') {
            let inner = after.get(1..).unwrap_or_default();
            let end = memchr::memmem::find(inner, b"*/").map_or(inner.len(), |length| length + 2);
            rest = inner.get(end..).unwrap_or_default();
        } else if byte > b' ' && byte != b'\\' {
            window.push(byte.to_ascii_lowercase());
            if STYLE_MARKS.iter().any(|mark| window.ends_with(mark)) {
                return true;
            }
        }
    }
    false
}

/// Whether the sheet in a `style` element only describes how a page looks: it loads nothing and runs no script. `text` begins
/// within the tag. The element has to end at the next tag, so sheets do not overlap, and all of them are read in linear time.
pub(super) fn is_plain_sheet(text: &[u8]) -> bool {
    let Some(begin) = memchr::memchr(b'>', text) else { return false };
    let sheet = text.get(begin + 1..).unwrap_or_default().trim_ascii_start();
    let sheet = sheet.strip_prefix(b"<!--").unwrap_or(sheet);
    let Some(end) = memchr::memchr(b'<', sheet) else { return false };
    let (sheet, tag) = sheet.split_at(end);
    let is_end = tag.get(..7).is_some_and(|tag| tag.eq_ignore_ascii_case(b"</style"));
    let is_odd = |byte: &u8| matches!(byte, b'&' | b'\\' | b'`' | 0);
    let sheet = sheet.to_ascii_lowercase();
    let has = |mark: &[u8]| memchr::memmem::find(&sheet, mark).is_some();
    is_end
        && !sheet.iter().any(is_odd)
        && !LOADING.iter().any(|mark| has(mark))
        && !style_runs_script(&sheet)
}

/// Parts of a sheet that load something, or change how it is read.
const LOADING: &[&[u8]] = &[b"url", b"import", b"script", b"charset", b"namespace", b"attr"];

/// Whether an attribute of `meta` tells nothing but the charset, the program or the author of a page.
pub(super) fn is_plain_meta(name: &[u8], value: &[u8]) -> bool {
    // In a string of JSON, the quotes are escaped.
    let value = value.strip_prefix(b"\\\"").unwrap_or(value);
    let value = value.strip_suffix(b"\\\"").unwrap_or(value);
    let value = value.trim_ascii().to_ascii_lowercase();
    let has = |mark: &[u8]| memchr::memmem::find(&value, mark).is_some();
    let is_one_of = |list: &[&str]| list.iter().any(|it| it.as_bytes() == value);
    match name.to_ascii_lowercase().as_slice() {
        b"charset" => is_one_of(&["utf-8", "utf8", "us-ascii", "windows-1252", "iso-8859-1"]),
        b"http-equiv" => is_one_of(&["content-type", "content-language", "x-ua-compatible"]),
        b"name" => is_one_of(&["generator", "progid", "originator", "author", "viewport"]),
        b"content" => {
            ![&b"utf-7"[..], b"script", b"url", b"data:", b"<", b"&"].into_iter().any(has)
        }
        _ => false,
    }
}

/// The beginning of a URL, without control characters and with entities decoded.
struct Start {
    bytes: [u8; SCHEME_BYTES_MAX],
    length: usize,
    /// Whether it is all of the URL.
    is_whole: bool,
}

impl Start {
    fn of(value: &[u8]) -> Self {
        let mut start = Self { bytes: [0; SCHEME_BYTES_MAX], length: 0, is_whole: true };
        let mut rest = value;
        while let Some((byte, after)) = decode(rest) {
            rest = after;
            // Browsers ignore tabs and line ends anywhere, and further characters before the scheme. Some browsers treat a
            // backquote as a quote.
            let is_left_out = byte <= b' '
                || (start.length == 0 && (byte >= 0x7f || matches!(byte, b'`' | b'"' | b'\'')));
            if is_left_out {
                continue;
            }
            let Some(place) = start.bytes.get_mut(start.length) else {
                start.is_whole = false;
                break;
            };
            *place = byte.to_ascii_lowercase();
            start.length += 1;
        }
        start
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Maximum length of an entity: `&#x0000006a;`.
const ENTITY_BYTES_MAX: usize = 16;

/// The first character, with an entity decoded, and the rest of the text. The byte 0xff stands for a non-ASCII character.
fn decode(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, rest) = text.split_first()?;
    if first != b'&' {
        return Some((first, rest));
    }
    for (name, byte) in
        [(&b"colon;"[..], b':'), (b"Tab;", b'\t'), (b"NewLine;", b'\n'), (b"lpar;", b'(')]
    {
        if let Some(rest) = rest.strip_prefix(name) {
            return Some((byte, rest));
        }
    }
    let Some(number) = rest.strip_prefix(b"#") else {
        return Some((first, rest));
    };
    let (number, radix) = match number.split_first() {
        Some((b'x' | b'X', hexadecimal)) => (hexadecimal, 16),
        _ => (number, 10),
    };
    let digits = number
        .iter()
        .take(ENTITY_BYTES_MAX)
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    let (digits, rest) = number.split_at_checked(digits)?;
    let code = digits
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(radix))
        .fold(0_u32, |code, digit| code.saturating_mul(radix).saturating_add(digit));
    let byte = u8::try_from(code).ok().filter(u8::is_ascii).unwrap_or(0xff);
    Some((byte, rest.strip_prefix(b";").unwrap_or(rest)))
}

/// The last bytes of a style, for comparison with patterns.
#[derive(Default)]
struct Window {
    /// The last byte of the style is the last byte of the array.
    bytes: [u8; 16],
}

impl Window {
    fn push(&mut self, byte: u8) {
        self.bytes.rotate_left(1);
        if let Some(last) = self.bytes.last_mut() {
            *last = byte;
        }
    }

    fn ends_with(&self, mark: &[u8]) -> bool {
        self.bytes.ends_with(mark)
    }
}
