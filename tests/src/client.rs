//! A raw HTTP/1.1 client, which sends exactly the bytes of a scenario.

use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::wire::{Framing, Head, Reader};

/// One final response.
#[derive(Debug, Clone, Default)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// Status line and headers.
    pub head: Head,
    /// The received part of the body.
    pub body: Vec<u8>,
    /// The trailer fields of a chunked body.
    pub trailers: Head,
    /// Whether the body ended as its framing requires; false for a truncated body.
    pub complete: bool,
    /// Whether the close of the connection ended the body.
    pub until_close: bool,
    /// The interim responses before this one.
    pub interim: Vec<Head>,
}

impl Response {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Panics unless this is a complete response with this status.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{:?} {:?}", self.head, self.text());
        assert!(self.complete, "cut short: {:?}", self.head);
        self
    }
}

/// A client connection.
#[derive(Debug)]
pub struct Client {
    reader: Reader,
}

impl Client {
    /// Connects, with timeouts so that no scenario hangs.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address)
            .unwrap_or_else(|error| panic!("connecting to {address}: {error}"))
    }

    /// Connects; for scenarios that expect a possible refusal.
    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, crate::STEP_TIMEOUT)?;
        stream.set_nodelay(true)?;
        Self::over(stream)
    }

    /// Connects from this loopback address.
    #[track_caller]
    pub fn connect_from(address: SocketAddr, source: IpAddr) -> Self {
        Self::try_connect_from(address, source).expect("a connection")
    }

    /// Connects from this loopback address; for scenarios that expect a possible refusal.
    pub fn try_connect_from(address: SocketAddr, source: IpAddr) -> io::Result<Self> {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket(family, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::new(source, 0))?;
        connect(&socket, &address)?;
        Self::over(TcpStream::from(socket))
    }

    /// Connects to a unix socket. Its kernel buffers are small and do not grow.
    #[track_caller]
    pub fn connect_unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path)
            .unwrap_or_else(|error| panic!("connecting to {}: {error}", path.display()));
        // Both are stream sockets. The types of std differ only in their addresses.
        Self::over(TcpStream::from(OwnedFd::from(stream))).expect("timeouts")
    }

    fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(crate::STEP_TIMEOUT))?;
        stream.set_write_timeout(Some(crate::STEP_TIMEOUT))?;
        Ok(Self { reader: Reader::new(stream) })
    }

    /// The socket.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.reader.stream()
    }

    /// The buffered reader.
    pub fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Sends bytes.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.try_send(bytes).expect("sending a request");
        self
    }

    /// Sends bytes; for scenarios in which the proxy may have closed.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream().write_all(bytes.as_ref())
    }

    /// Sends FIN.
    pub fn finish(&mut self) -> &mut Self {
        self.stream().shutdown(Shutdown::Write).expect("half-closing");
        self
    }

    /// Closes with RST, like a crashing client.
    pub fn reset(mut self) {
        rustix::net::sockopt::set_socket_linger(self.stream(), Some(std::time::Duration::ZERO))
            .expect("SO_LINGER");
    }

    /// Sends a GET request; panics without a complete response.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let response = self.response();
        assert!(response.complete, "cut short: {response:?}");
        response
    }

    /// Sends a POST request with Content-Length; panics without a complete response.
    #[track_caller]
    pub fn post(&mut self, path: &str, body: &[u8]) -> Response {
        let length = body.len();
        self.send(format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"
        ));
        self.send(body);
        self.response()
    }

    /// Reads the response to a request other than HEAD.
    #[track_caller]
    pub fn response(&mut self) -> Response {
        self.try_response(false).expect("a response")
    }

    /// Reads the response to HEAD.
    #[track_caller]
    pub fn head_response(&mut self) -> Response {
        self.try_response(true).expect("a response")
    }

    /// Reads the next final response. An error if the connection ends before its head.
    pub fn try_response(&mut self, to_head: bool) -> io::Result<Response> {
        let mut response = Response::default();
        let no_head = || io::Error::new(io::ErrorKind::UnexpectedEof, "closed without a response");
        loop {
            response.head = self.reader.head()?.ok_or_else(no_head)?;
            response.status = status_of(&response.head)?;
            if response.status >= 200 || response.status == 101 {
                break;
            }
            response.interim.push(std::mem::take(&mut response.head));
        }
        if to_head || matches!(response.status, 101 | 204 | 304) {
            response.complete = true;
            return Ok(response);
        }
        let framing = response.head.framing().unwrap_or(Framing::UntilClose);
        response.until_close = framing == Framing::UntilClose;
        let body = &mut response.body;
        if let Ok(trailers) = self.reader.body(framing, |bytes| body.extend_from_slice(bytes)) {
            response.trailers = trailers;
            response.complete = true;
        }
        Ok(response)
    }

    /// Panics unless the proxy closes the connection without sending more data.
    #[track_caller]
    pub fn assert_closed(&mut self) {
        let rest = self.reader.rest();
        assert!(rest.is_empty(), "more bytes: {:?}", String::from_utf8_lossy(&rest));
        let error = self.stream().take_error().expect("SO_ERROR");
        assert!(
            !matches!(&error, Some(error) if error.kind() == io::ErrorKind::WouldBlock),
            "still open"
        );
    }
}

fn status_of(head: &Head) -> io::Result<u16> {
    let invalid =
        || io::Error::new(io::ErrorKind::InvalidData, format!("status line {:?}", head.start));
    let rest = head.start.strip_prefix("HTTP/1.1 ").ok_or_else(invalid)?;
    rest.get(..3).and_then(|digits| digits.parse().ok()).ok_or_else(invalid)
}
