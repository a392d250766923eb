//! The format of recorded requests. README.md describes it.

use crate::send::Parts;

/// A request as the application received it.
#[derive(Debug, PartialEq, Eq)]
pub struct Recorded {
    method: Vec<u8>,
    target: Vec<u8>,
    protocol: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

/// Maximum number of bytes of a target or body that are shown.
const SHOWN_MAX: usize = 100;

impl Recorded {
    /// Calls `act` with the parts of the request.
    pub fn with_parts<T>(&self, act: impl FnOnce(&Parts<'_>) -> T) -> T {
        let headers: Vec<(&[u8], &[u8])> =
            self.headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        act(&Parts {
            method: &self.method,
            target: &self.target,
            protocol: &self.protocol,
            headers: &headers,
            body: &self.body,
        })
    }

    /// The request as one line, truncated.
    pub fn shown(&self) -> String {
        let cut = |bytes: &[u8]| -> String {
            String::from_utf8_lossy(bytes).escape_debug().take(SHOWN_MAX).collect()
        };
        format!("{} {} {}", cut(&self.method), cut(&self.target), cut(&self.body))
    }
}

/// Parses the requests of a file. The error is the index of the malformed request.
pub fn read(bytes: &[u8]) -> Result<Vec<Recorded>, usize> {
    let mut rest = bytes;
    let mut known: Vec<&[u8]> = Vec::new();
    let mut requests = Vec::new();
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        requests.push(next(&mut rest, &mut known).ok_or(at)?);
    }
    Ok(requests)
}

fn next<'a>(rest: &mut &'a [u8], known: &mut Vec<&'a [u8]>) -> Option<Recorded> {
    let mut words = line(rest)?.splitn(3, |byte| *byte == b' ').map(<[u8]>::to_vec);
    let (method, target, protocol) = (words.next()?, words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let text = line(rest)?;
        let field = match text {
            [] => break,
            [b'@', digits @ ..] => *known.get(number(digits)?)?,
            _ => {
                known.push(text);
                text
            }
        };
        let colon = field.iter().position(|byte| *byte == b':')?;
        headers.push((field[..colon].to_vec(), field[colon + 1..].trim_ascii().to_vec()));
    }
    let length = number(line(rest)?)?;
    let (body, behind) = rest.split_at_checked(length)?;
    *rest = behind.strip_prefix(b"\n")?;
    Some(Recorded { method, target, protocol, headers, body: body.to_vec() })
}

fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line)
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[test]
fn files_are_read() {
    let text = b"POST /a HTTP/1.1\nHost: h\nX:  y:z\n\n3\nb\nc\nGET /? HTTP/1.1\n@1\n\n0\n\n";
    let requests = read(text).expect("two requests");
    let parts = |bytes: &[&[u8]]| bytes.iter().map(|it| it.to_vec()).collect::<Vec<_>>();
    let field = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
    let [one, other] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!(parts(&[&one.method, &one.target, &one.body]), parts(&[b"POST", b"/a", b"b\nc"]));
    assert_eq!(one.headers, [field(b"Host", b"h"), field(b"X", b"y:z")]);
    assert_eq!((&other.headers[..], &other.body[..]), (&[field(b"X", b"y:z")][..], &b""[..]));
    for wrong in ["GET /", "GET / H\n\n", "GET / H\n@0\n\n0\n\n", "GET / H\n\n2\na\n"] {
        assert_eq!(read(wrong.as_bytes()), Err(0), "{wrong:?}");
    }
}
