//! The path resolution of common servers, and a corpus of spellings. This file does not use the code under test. In
//! `tests/tests/paths/`, real servers read the same corpus.

/// A kind of server, by its path resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// nginx: decodes, merges slashes and removes dot-segments.
    Nginx,
    /// Apache httpd: as nginx, but an encoded slash is not a separator, and is refused if it remains at the end.
    Apache,
    /// Tomcat and similar servers: remove parameters, decode, merge slashes and remove dot-segments.
    Tomcat,
    /// Programs that follow the URL standard of browsers, like most programs for Node: remove dot-segments, do not merge
    /// slashes, and decode last.
    Url,
}

pub const SERVERS: [Server; 4] = [Server::Nginx, Server::Apache, Server::Tomcat, Server::Url];

/// A byte of a decoded path, or a special value. [`SEMICOLON`] is a semicolon that was not encoded.
type Character = u16;
const SEMICOLON: Character = 0x13b;
/// An encoded slash, for servers that distinguish it from other slashes.
const ENCODED_SLASH: Character = 0x12f;
const SLASH: Character = b'/' as Character;
const DOT: Character = b'.' as Character;

/// The path as a server resolves it, decoded and without parameters; `None`: the server refuses the path.
pub fn resolve(server: Server, path: &[u8]) -> Option<Vec<u8>> {
    let resolved = read(server, path)?;
    Some(to_bytes(&without_parameters(&resolved, SEMICOLON, SLASH)))
}

/// As [`resolve`], but with parameters, for servers that treat them as part of a name.
pub fn resolve_whole(server: Server, path: &[u8]) -> Option<Vec<u8>> {
    read(server, path).map(|resolved| to_bytes(&resolved))
}

fn to_bytes(path: &[Character]) -> Vec<u8> {
    path.iter().map(|character| *character as u8).collect()
}

fn read(server: Server, path: &[u8]) -> Option<Vec<Character>> {
    let refuses: &[&[u8]] = match server {
        Server::Nginx => &[b"%00"],
        Server::Tomcat => &[b"%00", b"%2f", b"%5c", b"\\"],
        Server::Apache | Server::Url => &[],
    };
    if refuses.iter().any(|it| path.windows(it.len()).any(|at| at.eq_ignore_ascii_case(it))) {
        return None;
    }
    match server {
        Server::Nginx => normalise(&decode(path)?),
        Server::Apache => {
            let mut decoded = decode(path)?;
            // This is checked at the end, because a refused character may be in a removed segment.
            let is_refused = |character: &Character| matches!(*character, 0 | ENCODED_SLASH);
            mark_encoded_slashes(path, &mut decoded);
            normalise(&decoded).filter(|path| !path.iter().any(is_refused))
        }
        Server::Tomcat => normalise(&decode(&without_parameters(path, b';', b'/'))?),
        Server::Url => resolve_as_url(path),
    }
}

/// Removes the text from each semicolon up to the next slash.
fn without_parameters<T: Copy + PartialEq>(path: &[T], semicolon: T, slash: T) -> Vec<T> {
    let mut is_parameter = false;
    let is_kept = |character: &T| {
        is_parameter = *character == semicolon || (is_parameter && *character != slash);
        !is_parameter
    };
    path.iter().copied().filter(is_kept).collect()
}

/// Merges repeated slashes.
pub fn merged(path: &[u8]) -> Vec<u8> {
    let mut merged = path.to_vec();
    merged.dedup_by(|one, other| *one == b'/' && *other == b'/');
    merged
}

/// The unique URI spelling of a decoded path.
pub fn spell(path: &[u8]) -> String {
    let mut text = String::new();
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,=:@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Marks encoded slashes. `decoded`: the decoded form of `path`.
fn mark_encoded_slashes(path: &[u8], decoded: &mut [Character]) {
    let mut at = 0;
    for character in decoded {
        if path[at] == b'%' && *character == SLASH {
            *character = ENCODED_SLASH;
        }
        at += if path[at] == b'%' { 3 } else { 1 };
    }
}

/// Decodes a path; `None`: it has an invalid escape.
fn decode(path: &[u8]) -> Option<Vec<Character>> {
    let mut decoded = Vec::new();
    let mut rest = path;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match *byte {
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                decoded.push(u8::from_str_radix(digits, 16).ok()?.into());
                rest = &rest[2..];
            }
            b';' => decoded.push(SEMICOLON),
            byte => decoded.push(byte.into()),
        }
    }
    Some(decoded)
}

/// Merges slashes and removes dot-segments; `None`: the path leads above the root.
fn normalise(path: &[Character]) -> Option<Vec<Character>> {
    let segments = path.strip_prefix(&[SLASH])?.split(|it| *it == SLASH);
    let mut kept: Vec<&[Character]> = Vec::new();
    let mut ends_in_slash = false;
    for segment in segments {
        ends_in_slash = true;
        match segment {
            [] => {}
            [DOT] => {}
            [DOT, DOT] => drop(kept.pop()?),
            name => {
                kept.push(name);
                ends_in_slash = false;
            }
        }
    }
    let mut path = Vec::new();
    for name in &kept {
        path.push(SLASH);
        path.extend_from_slice(name);
    }
    if ends_in_slash {
        path.push(SLASH);
    }
    Some(path)
}

/// The path state of the URL standard for special schemes. The application decodes the result.
fn resolve_as_url(path: &[u8]) -> Option<Vec<Character>> {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let dots = |name: &[u8]| {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase().replace("%2e", ".");
        [".", ".."].iter().position(|dots| *dots == name)
    };
    let mut kept: Vec<&[u8]> = Vec::new();
    let segments: Vec<&[u8]> = path.get(1..)?.split(is_slash).collect();
    for (at, name) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        let is_dots = dots(name);
        if is_dots == Some(1) {
            kept.pop();
        }
        match is_dots {
            None => kept.push(name),
            Some(_) if is_last => kept.push(b""),
            Some(_) => {}
        }
    }
    let path: Vec<u8> = kept.iter().flat_map(|name| [b"/", *name].concat()).collect();
    decode(&path)
}

/// Spellings that have bypassed access rules, or might do so.
pub const SPELLINGS: [&str; 62] = [
    "/",
    "/admin/x",
    "//admin/",
    "///admin",
    "/public/..%2fadmin/",
    "/%2fadmin/x",
    "/public/%2e%2e%2fadmin/x",
    "/public%2f../admin/x",
    "/public//../admin",
    "/public/.//../admin",
    "/.//admin",
    "/./admin",
    "/../admin",
    "/public/../../admin",
    "/public/..",
    "/public/.",
    "/public/%2e",
    "/public/%2e%2E/admin",
    "/public/.%2e/admin",
    "/public/%2E./admin/",
    "/%61dmin",
    "/%41DMIN",
    "/adm%69n/%78",
    "/%2561dmin",
    "/public/%252e%252e/admin",
    "/public/%252e%252e%252fadmin",
    "/public/%c0%ae%c0%ae/admin",
    "/public/%c0%ae%c0%ae%c0%afadmin",
    "/public/%e0%80%ae/admin",
    "/public/%ef%bc%8fadmin",
    "/public/.../admin",
    "/public/..../admin",
    "/admin./x",
    "/admin../x",
    "/admin%2e/x",
    "/admin%20/x",
    "/public/.. /admin",
    "/public/%2e%2e%20/admin",
    "/public/..%00/admin",
    "/admin%00.png",
    "/admin%0a",
    "/admin%09/x",
    "/public/..;/admin",
    "/public/..;x=1/admin",
    "/public/.;/admin",
    "/public/%2e%2e;/admin",
    "/public/..%3b/admin",
    "/;/admin",
    "/;x=1/admin",
    "/admin;x/y",
    "/admin;jsessionid=0A1B.node1",
    "/admin/;jsessionid=1",
    "/admin%3bx/y",
    "/a;x/../admin",
    "/public/..\\admin",
    "/public/..%5cadmin",
    "/public\\..\\admin",
    "/%5cadmin",
    "/%40admin/%2b%26%3d",
    "/a|b^c{d}[e]`/%7e",
    "/a%3fb%23c%25d",
    "/%C3%A9/%c3%a9",
];

/// Parts of generated spellings.
const PIECES: [&str; 36] = [
    "/", "/", "/", "//", "/.", "/..", "/./", "/../", ".", "..", "%2e", "%2E%2e", "%2f", "%2F",
    "%5c", "\\", ";", ";x=1", "%3b", "%00", "%25", "%252e", "%c0%af", "a", "admin", "B.", "...",
    "%26", "&", "|", "%61", "%5A", "~", "%7e", "+", "%20",
];

/// Generates a path from these parts. Each byte selects a part.
pub fn assemble(choices: &[u8]) -> String {
    let pieces = choices.iter().map(|choice| PIECES[usize::from(*choice) % PIECES.len()]);
    std::iter::once("/").chain(pieces).collect()
}
