//! A request to try rules on.

use std::path::Path;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub struct Trial {
    pub method: String,
    pub target: String,
    pub protocol: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What browsers send with every request.
const USUAL_HEADERS: [(&str, &str); 3] = [
    ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "en"),
];

impl Trial {
    /// One for a URL, as a browser would send it.
    pub fn of_url(
        url: &str,
        method: Option<&str>,
        headers: &[String],
        data: Option<&str>,
    ) -> Result<Self, String> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(end);
        if host.is_empty() {
            return Err(format!("`{url}` names no host: as in https://shop.example/cart?id=1"));
        }
        let target = match target {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        if target.contains(|char: char| char.is_ascii_whitespace() || char.is_control()) {
            return Err(format!("`{url}` has a blank in it: write it as %20 or +"));
        }
        let target = target.split('#').next().unwrap_or_default().to_owned();
        let mut all = vec![("Host".to_owned(), host.to_owned())];
        for line in headers {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| format!("`{line}` is no header: as in 'Cookie: a=b'"))?;
            all.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let usual = USUAL_HEADERS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, value) in usual {
            if !has(&all, &name) {
                all.push((name, value));
            }
        }
        let body = data.unwrap_or_default().as_bytes().to_vec();
        if data.is_some() {
            if !has(&all, "content-type") {
                all.push(("Content-Type".into(), "application/x-www-form-urlencoded".into()));
            }
            all.push(("Content-Length".into(), body.len().to_string()));
        }
        let method = method.unwrap_or(if data.is_some() { "POST" } else { "GET" });
        Ok(Self { method: method.into(), target, protocol: "HTTP/1.1".into(), headers: all, body })
    }

    /// One from a file: a request as HTTP/1 sends it, with line ends of either kind.
    pub fn of_file(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::of_bytes(&bytes).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    fn of_bytes(bytes: &[u8]) -> Result<Self, String> {
        let find = |wanted: &[u8]| bytes.windows(wanted.len()).position(|it| it == wanted);
        let (end, gap) = match (find(b"\r\n\r\n"), find(b"\n\n")) {
            (Some(long), Some(short)) if short < long => (short, 2),
            (Some(long), _) => (long, 4),
            (None, Some(short)) => (short, 2),
            (None, None) => (bytes.len(), 0),
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').collect();
        let [method, target, protocol] = words.as_slice() else {
            return Err(format!("`{first}` is no request line: as in GET /cart HTTP/1.1"));
        };
        let mut headers = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) =
                line.split_once(':').ok_or_else(|| format!("`{line}` is no header line"))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Self {
            method: (*method).to_owned(),
            target: (*target).to_owned(),
            protocol: (*protocol).to_owned(),
            headers,
            body: bytes.get(end + gap..).unwrap_or_default().to_vec(),
        })
    }
}

fn has(headers: &[(String, String)], wanted: &str) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_requests() {
        for (url, host, target) in [
            ("https://a.example/x?y=1#z", "a.example", "/x?y=1"),
            ("a.example", "a.example", "/"),
            ("http://a.example:8080?q", "a.example:8080", "/?q"),
        ] {
            let trial = Trial::of_url(url, None, &[], None).expect(url);
            assert_eq!((trial.headers[0].1.as_str(), trial.target.as_str()), (host, target));
            assert_eq!(trial.method, "GET");
        }
        let form = Trial::of_url("a/b", None, &["X: y ".into()], Some("c=d")).expect("a form");
        assert_eq!((form.method.as_str(), form.body.as_slice()), ("POST", &b"c=d"[..]));
        assert!(form.headers.contains(&("X".into(), "y".into())));
        assert!(form.headers.contains(&("Content-Length".into(), "3".into())));
        for (url, header) in [("/only", ""), ("https:///x", ""), ("a/b c", ""), ("a/b", "nothing")]
        {
            let headers = [header.to_owned()];
            let headers = if header.is_empty() { &headers[..0] } else { &headers[..] };
            assert!(Trial::of_url(url, None, headers, None).is_err(), "{url} {header}");
        }
    }

    #[test]
    fn files_are_requests() {
        let expected = Trial {
            method: "POST".into(),
            target: "/a".into(),
            protocol: "HTTP/1.1".into(),
            headers: vec![("Host".into(), "h".into()), ("X".into(), "y:z".into())],
            body: b"b\n\nc".to_vec(),
        };
        for text in [
            "POST /a HTTP/1.1\r\nHost: h\r\nX: y:z\r\n\r\nb\n\nc",
            "POST /a HTTP/1.1\nHost: h\nX: y:z\n\nb\n\nc",
        ] {
            assert_eq!(Trial::of_bytes(text.as_bytes()).expect(text), expected);
        }
        for text in ["", "GET /", "GET / HTTP/1.1\nno header"] {
            assert!(Trial::of_bytes(text.as_bytes()).is_err(), "{text}");
        }
    }
}
