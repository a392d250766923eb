//! A minimal WebSocket client and member (RFC 6455): text frames of up to 125 bytes, with a constant key.

use std::io::{self, Read};
use std::net::SocketAddr;

use crate::client::Client;
use crate::member::{Exchange, Member, Then};

/// The nonce from RFC 6455 section 1.3, and the server's response to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

/// An open WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    client: Client,
}

impl WebSocket {
    /// Upgrades a new connection; panics unless the status is 101.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap_or_else(|error| panic!("upgrading: {error}"))
    }

    /// Upgrades a new connection; for scenarios in which this may fail.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let mut client = Client::try_connect(address)?;
        client.try_send(format!(
            "GET /chat HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n\r\n"
        ))?;
        let response = client.try_response(false)?;
        let granted = response.status == 101
            && response.head.field("sec-websocket-accept") == Some(ACCEPT)
            && response.head.has_token("connection", "upgrade")
            && response.head.has_token("upgrade", "websocket");
        match granted {
            true => Ok(Self { client }),
            false => Err(io::Error::other(format!("{:?} {:?}", response.head, response.text()))),
        }
    }

    /// Sends a text and returns the received text.
    pub fn echo(&mut self, text: &str) -> io::Result<String> {
        self.send(TEXT, text.as_bytes())?;
        let (kind, payload) = read_frame(&mut ReadBuffered(&mut self.client))?;
        if kind != TEXT {
            return Err(io::Error::other(format!("frame {kind:#x} instead of a text")));
        }
        Ok(String::from_utf8_lossy(&payload).into_owned())
    }

    /// Performs the closing handshake. True if the other side answered and closed.
    pub fn close(mut self) -> bool {
        let closed = self.send(CLOSE, &1000_u16.to_be_bytes());
        let answer = closed.and_then(|()| read_frame(&mut ReadBuffered(&mut self.client)));
        matches!(answer, Ok((CLOSE, _))) && self.client.reader().rest().is_empty()
    }

    fn send(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let masked = payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        let mut frame = vec![kind, 0x80 | small(payload.len())];
        frame.extend(MASK);
        frame.extend(masked);
        self.client.try_send(frame)
    }
}

/// A member that accepts every upgrade and echoes texts.
pub fn echo_member() -> Member {
    Member::new(serve)
}

/// The handler of [`echo_member`]. It echoes other requests too.
pub fn serve(exchange: &mut Exchange) -> io::Result<Then> {
    if !exchange.request.head.has_token("upgrade", "websocket") {
        return exchange.echo();
    }
    exchange.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    ))?;
    loop {
        let (kind, payload) = read_frame(&mut Received(exchange))?;
        let mut frame = vec![kind, small(payload.len())];
        frame.extend(payload);
        exchange.send(frame)?;
        if kind == CLOSE {
            return Ok(Then::Close);
        }
    }
}

fn small(length: usize) -> u8 {
    u8::try_from(length).ok().filter(|&length| length <= 125).expect("a frame of up to 125 bytes")
}

fn read_frame(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut start = [0; 2];
    from.read_exact(&mut start)?;
    let mut mask = [0; 4];
    if start[1] & 0x80 != 0 {
        from.read_exact(&mut mask)?;
    }
    let mut payload = vec![0; usize::from(start[1] & 0x7f)];
    from.read_exact(&mut payload)?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok((start[0], payload))
}

struct Received<'a, 'b>(&'a mut Exchange<'b>);

impl Read for Received<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.receive(buffer)
    }
}

/// Reads the bytes that the client's reader has buffered, then the socket.
struct ReadBuffered<'a>(&'a mut Client);

impl Read for ReadBuffered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.reader().some(buffer)
    }
}
