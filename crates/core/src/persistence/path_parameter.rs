//! Session ids in the path: `/shop;jsessionid=0A1B2C.node1/cart` (Jakarta Servlet 6.0 section 7.1.3).

/// The value of the first path parameter with this `name` in the path that is sent to the member.
///
/// A parameter belongs to a path segment and follows a semicolon (RFC 3986 section 3.3). Names are compared byte by byte, as
/// servlet containers do. `%3B` does not count as a semicolon, because the canonical path leaves it encoded and the member
/// receives the same path.
pub fn path_parameter<'a>(path: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    path.split(|byte| *byte == b'/')
        .flat_map(|segment| segment.split(|byte| *byte == b';').skip(1))
        .find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix(b"="))
}

/// The session id in the value of a path parameter, or of the cookie with the same name. The route that a servlet container
/// appends after the last dot (Tomcat's `jvmRoute`) is removed, because it changes when the session moves. Quotes around a
/// cookie's value, which some containers write, are removed, too.
pub fn session_id(value: &[u8]) -> &[u8] {
    let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    let value = unquoted.unwrap_or(value);
    let dot = value.iter().rposition(|byte| *byte == b'.');
    &value[..dot.unwrap_or(value.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_paths() {
        let check = |path: &str, expected: Option<&str>| {
            let found = path_parameter(path.as_bytes(), b"jsessionid");
            assert_eq!(found, expected.map(str::as_bytes), "{path}");
        };
        check("/", None);
        check("*", None);
        check("", None);
        check("/a;jsessionid=1", Some("1"));
        check("/a;jsessionid=1.n/b", Some("1.n"));
        check("/a;x=y;jsessionid=1;z", Some("1"));
        check("/;jsessionid=1", Some("1"));
        check("/a;x/b;jsessionid=1", Some("1"));
        check("/a;jsessionid=1/b;jsessionid=2", Some("1"));
        check("/a;jsessionid=", Some(""));
        check("/a;jsessionid=a=b", Some("a=b"));
        check("/a;jsessionid", None);
        check("/a;JSESSIONID=1", None);
        check("/a;xjsessionid=1", None);
        check("/a;jsessionidx=1", None);
        check("/jsessionid=1", None);
        check("jsessionid=1;", None);
        check("/a%3Bjsessionid=1", None);
    }

    #[test]
    fn session_ids_are_without_routes() {
        let check = |value: &str, expected: &str| {
            assert_eq!(session_id(value.as_bytes()), expected.as_bytes(), "{value}");
        };
        check("0A1B", "0A1B");
        check("0A1B.node1", "0A1B");
        check("0A.1B.node1", "0A.1B");
        check("0A1B.", "0A1B");
        check(".node1", "");
        check("\"0A1B.node1\"", "0A1B");
        check("\"0A1B", "\"0A1B");
        check("\"", "\"");
        check("", "");
    }
}
