//! Cookies that a product sets, for requests of returning clients.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The time limit for an answer. Products under callgrind need it.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Number of bytes searched in an answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Sends this many requests as new clients; returns the received cookies without duplicates, in the form of a request's
/// Cookie field.
pub fn learn(address: SocketAddr, path: &str, count: usize) -> Result<Vec<String>, String> {
    let mut cookies = Vec::new();
    for _ in 0..count {
        let answer = ask(address, path).map_err(|error| format!("{address}: {error}"))?;
        let cookie = set_cookie(&answer)
            .ok_or_else(|| format!("{address} set no cookie: {:?}", answer.lines().next()))?;
        if !cookies.contains(&cookie) {
            cookies.push(cookie);
        }
    }
    Ok(cookies)
}

/// Sends one request as a new client; returns the raw answer.
pub fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// `NAME=value` of the first Set-Cookie field.
fn set_cookie(answer: &str) -> Option<String> {
    let head = answer.split("\r\n\r\n").next()?;
    let field = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("set-cookie").then(|| value.trim())
    })?;
    let cookie = field.split(';').next()?.trim();
    cookie.contains('=').then(|| cookie.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn cookies_are_found_in_heads() {
        let check = |answer: &str, expected: Option<&str>| {
            assert_eq!(set_cookie(answer).as_deref(), expected, "{answer}");
        };
        check("HTTP/1.1 200 OK\r\nset-cookie: SRV=m1; path=/\r\n\r\n", Some("SRV=m1"));
        check("HTTP/1.1 200 OK\r\nSet-Cookie:SRV=\"m1\"\r\n\r\n", Some("SRV=\"m1\""));
        check("HTTP/1.1 200 OK\r\n\r\nSet-Cookie: SRV=m1\r\n", None);
        check("HTTP/1.1 200 OK\r\nSet-Cookie: ; path=/\r\n\r\n", None);
    }

    #[test]
    fn each_cookie_is_learned_once() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let server = std::thread::spawn(move || {
            for turn in 0..5 {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut asked = [0; 1_024];
                let length = stream.read(&mut asked).expect("a request");
                assert!(asked[..length].starts_with(b"GET /128 HTTP/1.1\r\n"));
                let cookie =
                    if turn < 4 { format!("Set-Cookie: SRV=m{}\r\n", turn % 2) } else { "".into() };
                let answer = format!("HTTP/1.1 200 OK\r\n{cookie}Content-Length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).expect("the client listens");
            }
        });
        assert_eq!(learn(address, "/128", 4), Ok(vec!["SRV=m0".into(), "SRV=m1".into()]));
        let error = learn(address, "/128", 1).expect_err("there is none");
        assert!(error.contains("set no cookie: Some(\"HTTP/1.1 200 OK\")"), "{error}");
        server.join().expect("the server's assertions hold");
    }
}
