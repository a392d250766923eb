//! Checks that a measured firewall works.

use std::net::SocketAddr;

use super::cookies::ask;

/// An object's path with an SQL injection, which CRS detects at its first paranoia level.
const ATTACK: &str = "/shop/search/128?id=1%27%20or%20%271%27=%271%27%20--%20";

/// Fails with a reason if the firewall lets an attack through or the virtual server without a firewall blocks the
/// attack.
pub fn is_refused(guarded: SocketAddr, unguarded: SocketAddr) -> Result<(), String> {
    for (address, expected) in [(guarded, "403"), (unguarded, "200")] {
        let answer = ask(address, ATTACK).map_err(|error| format!("{address}: {error}"))?;
        let status = answer.split(' ').nth(1).unwrap_or("nothing");
        if status != expected {
            return Err(format!("an attack on {address} got {status}, not {expected}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Answers one request with this response.
    fn server(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 1_024]).expect("a request");
            stream.write_all(answer.as_bytes()).expect("an answer");
        });
        address
    }

    #[test]
    fn attacks_are_refused_with_a_firewall_and_pass_without() {
        let (refusal, success) = ("HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(is_refused(server(refusal), server(success)), Ok(()));
        let reason = is_refused(server(success), server(success)).expect_err("it got through");
        assert!(reason.ends_with("got 200, not 403"), "{reason}");
        assert!(is_refused(server(refusal), server(refusal)).is_err());
    }
}
