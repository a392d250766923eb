//! Definitions of documents that do no harm: those that publishers of formats keep, and entities that are addresses or
//! characters.
//!
//! **Architecture invariant:** the parser of XML and the operator `@detectXXE` use the same list, so a document is judged
//! alike as a body, as a file and as a value.

/// The hosts of organisations whose definitions documents name, without `www.`.
const PUBLISHERS: [&str; 43] = [
    "adobe.com",
    "apache.org",
    "apple.com",
    "bea.com",
    "cdn.apple-mapkit.com",
    "checkstyle.org",
    "cobertura.sourceforge.net",
    "cxml.org",
    "daisy.org",
    "docbook.org",
    "docs.oasis-open.org",
    "dtd.nlm.nih.gov",
    "eclipse.org",
    "editeur.org",
    "freedesktop.org",
    "gnome.org",
    "hibernate.org",
    "hibernate.sourceforge.net",
    "ibatis.apache.org",
    "idpf.org",
    "jakarta.apache.org",
    "jats.nlm.nih.gov",
    "java.sun.com",
    "jboss.org",
    "musicxml.org",
    "my.netscape.com",
    "mybatis.org",
    "ncbi.nlm.nih.gov",
    "netbeans.org",
    "oasis-open.org",
    "openmobilealliance.org",
    "openstreetmap.org",
    "puppycrawl.com",
    "rssboard.org",
    "schemas.opengis.net",
    "springframework.org",
    "struts.apache.org",
    "testng.org",
    "tiles.apache.org",
    "w3.org",
    "wapforum.org",
    "xml.apache.org",
    "xml.cxml.org",
];

/// Entities of the usual definitions that stand for characters of ASCII, and so could hide an attack. Those that XML
/// predefines are resolved anyway.
const ASCII_ENTITIES: [&str; 39] = [
    "DiacriticalGrave",
    "Hat",
    "NewLine",
    "Tab",
    "UnderBar",
    "VerticalLine",
    "ast",
    "bne",
    "bsol",
    "colon",
    "comma",
    "commat",
    "dollar",
    "equals",
    "excl",
    "fjlig",
    "grave",
    "lbrace",
    "lbrack",
    "lcub",
    "lowbar",
    "lpar",
    "lsqb",
    "midast",
    "num",
    "nvgt",
    "nvlt",
    "percnt",
    "period",
    "plus",
    "quest",
    "rbrace",
    "rbrack",
    "rcub",
    "rpar",
    "rsqb",
    "semi",
    "sol",
    "verbar",
];

/// Whether an external definition does no harm by its address: a publisher keeps it, or it is a file beside the document or in
/// a folder for definitions. Other folders may have files of other people, and a query may fetch any address.
pub fn is_published(address: &[u8]) -> bool {
    let address = address.trim_ascii();
    if address.eq_ignore_ascii_case(b"about:legacy-compat") || is_beside(address) {
        return true;
    }
    let rest = without_prefix(address, b"https://").or_else(|| without_prefix(address, b"http://"));
    let Some(rest) = rest else { return false };
    let rest = without_prefix(rest, b"www.").unwrap_or(rest);
    let is_path = |path: &[u8]| path.starts_with(b"/") && path.iter().all(|it| is_of_path(*it));
    PUBLISHERS.iter().any(|host| without_prefix(rest, host.as_bytes()).is_some_and(is_path))
}

fn is_of_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./+~".contains(&byte)
}

/// Whether an address is that of a definition beside the document: `report.dtd`, `DTD/xhtml1-strict.dtd`, `../dtd/book.dtd`.
fn is_beside(address: &[u8]) -> bool {
    let extension = address.len().checked_sub(4).and_then(|at| address.get(at..));
    if !extension.is_some_and(|it| it.eq_ignore_ascii_case(b".dtd"))
        || !address.iter().all(|it| is_of_path(*it))
    {
        return false;
    }
    let mut folders = address.rsplit(|byte| *byte == b'/').skip(1);
    let is_of_definitions =
        |folder: &[u8]| folder.eq_ignore_ascii_case(b"dtd") || folder.eq_ignore_ascii_case(b"dtds");
    folders.next().is_none_or(is_of_definitions) && folders.all(|folder| folder == b"..")
}

/// Whether the text of an entity does no harm: the address of a namespace, or one character that is not of ASCII.
pub fn is_plain_text(text: &[u8]) -> bool {
    let is_address = [&b"http://"[..], b"https://", b"urn:"]
        .iter()
        .any(|start| without_prefix(text, start).is_some());
    let is_of_address = |byte: &u8| byte.is_ascii_graphic() && !b"<>&%\"'()\\,`".contains(byte);
    (is_address && text.iter().all(is_of_address)) || is_character(text)
}

/// Whether a text is one character that is not of ASCII, or a reference to one.
fn is_character(text: &[u8]) -> bool {
    if (1..=4).contains(&text.len()) && text.iter().all(|byte| !byte.is_ascii()) {
        return true;
    }
    let Some(number) = text.strip_prefix(b"&#").and_then(|it| it.strip_suffix(b";")) else {
        return false;
    };
    let (digits, radix) = match number {
        [b'x', digits @ ..] => (digits, 16),
        _ => (number, 10),
    };
    let number = digits.iter().try_fold(0_u32, |number, digit| {
        let digit = char::from(*digit).to_digit(radix)?;
        number.checked_mul(radix)?.checked_add(digit)
    });
    number.is_some_and(|number| number >= 0xa0)
}

/// Whether an entity of a published definition stands for a character of ASCII.
pub(super) fn is_of_ascii(entity: &[u8]) -> bool {
    ASCII_ENTITIES.iter().any(|it| it.as_bytes() == entity)
}

/// The rest of a text behind a prefix, in any case of letters.
fn without_prefix<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishers_are_known() {
        for (address, expected) in [
            ("http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd", true),
            ("HTTPS://W3.org/x", true),
            ("http://www.apple.com/DTDs/PropertyList-1.0.dtd", true),
            ("http://xml.cxml.org/schemas/cXML/1.2.014/cXML.dtd", true),
            (" about:legacy-compat", true),
            ("report.dtd", true),
            ("xmltv-1.0.DTD", true),
            ("DTD/xhtml1-strict.dtd", true),
            ("../../dtds/book.dtd", true),
            ("/dtd/x.dtd", false),
            ("a/dtd/x.dtd", false),
            ("", false),
            (".dtd/x", false),
            ("x", false),
            ("../../etc/passwd", false),
            ("uploads/x.dtd", false),
            ("../x.dtd", false),
            ("http://www.w3.org/services/html2txt?url=http://evil.example/", false),
            ("http://www.w3.org/a%2fb", false),
            ("http://www.w3.org/a\\b", false),
            ("/etc/x.dtd", false),
            ("//evil.example/x.dtd", false),
            ("file:///etc/x.dtd", false),
            ("file:x.dtd", false),
            ("a.php?x.dtd", false),
            ("\\\\evil\\x.dtd", false),
            ("http://evil.example/x.dtd", false),
            ("http://w3.org.evil.example/x.dtd", false),
            ("http://w3.org@evil.example/", false),
            ("http://w3.org:x@evil.example/", false),
            ("http://www.w3.org", false),
            ("http://evil-w3.org/", false),
            ("ftp://www.w3.org/x", false),
            ("jar:http://www.w3.org/x!/y", false),
        ] {
            assert_eq!(is_published(address.as_bytes()), expected, "{address}");
        }
    }

    #[test]
    fn plain_entities_are_known() {
        for (text, expected) in [
            ("http://www.w3.org/2000/svg", true),
            ("https://a.example/ns#", true),
            ("urn:a:b", true),
            ("&#160;", true),
            ("&#xa0;", true),
            ("&#8212;", true),
            ("\u{a0}", true),
            ("\u{20ac}", true),
            ("", false),
            ("a", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("http://a.example/<script>", false),
            ("http://a.example/&b;", false),
            ("http://a.example/ b", false),
            ("http://a.example/a('b')", false),
            ("&#39;", false),
            ("&#x26;", false),
            ("&#+160;", false),
            ("&#160;&#160;", false),
            ("&a;", false),
        ] {
            assert_eq!(is_plain_text(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(ASCII_ENTITIES.is_sorted());
    }
}
