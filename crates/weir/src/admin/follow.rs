//! A client that follows a stream of server-sent events.

use http_body_util::{BodyExt as _, Full};
use hyper::Method;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::signal::unix::{SignalKind, signal};

use super::address::AdminAddress;
use super::client::Client;
use super::error::Error;

/// Maximum size of an event.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Maximum size of a response that is not a stream.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The reason for the end of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum FollowEnd {
    /// Stopped by a signal or by the callback.
    Stopped,
    /// weir closed the stream.
    ByWeir,
    /// The connection was lost.
    Lost,
}

/// Whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowNext {
    On,
    Stop,
}

impl Client {
    /// Passes name and data of each event at `path` to `take`, until `take` stops, a signal arrives or the stream ends.
    pub fn follow(
        &self,
        path: &str,
        mut take: impl FnMut(&str, &str) -> FollowNext,
    ) -> Result<FollowEnd, Error> {
        let request = self.request(Method::GET, path).body(Full::new(Bytes::new()));
        let request = request.map_err(|error| self.no_answer(error))?;
        self.runtime.block_on(async {
            let interrupted = signal(SignalKind::interrupt()).map_err(Error::System)?;
            let terminated = signal(SignalKind::terminate()).map_err(Error::System)?;
            let (mut interrupted, mut terminated) = (interrupted, terminated);
            tokio::select! {
                ended = self.events(request, &mut take) => ended,
                _ = interrupted.recv() => Ok(FollowEnd::Stopped),
                _ = terminated.recv() => Ok(FollowEnd::Stopped),
            }
        })
    }

    async fn events(
        &self,
        request: hyper::Request<Full<Bytes>>,
        take: &mut impl FnMut(&str, &str) -> FollowNext,
    ) -> Result<FollowEnd, Error> {
        match &self.address {
            AdminAddress::Unix(path) => {
                let stream = self.in_time(UnixStream::connect(path)).await?;
                self.exchange_events(
                    stream.map_err(|error| self.unreachable(error))?,
                    request,
                    take,
                )
                .await
            }
            AdminAddress::Tcp(address) => {
                let stream = self.in_time(TcpStream::connect(address)).await?;
                self.exchange_events(
                    stream.map_err(|error| self.unreachable(error))?,
                    request,
                    take,
                )
                .await
            }
            AdminAddress::Tls(address) => {
                let stream = self.in_time(self.secure(address)).await??;
                self.exchange_events(stream, request, take).await
            }
        }
    }

    async fn exchange_events(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: hyper::Request<Full<Bytes>>,
        take: &mut impl FnMut(&str, &str) -> FollowNext,
    ) -> Result<FollowEnd, Error> {
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| self.no_answer(error))?;
        let exchange = async {
            let response = self.in_time(sender.send_request(request)).await?;
            let response = response.map_err(|error| self.no_answer(error))?;
            let status = response.status().as_u16();
            if status == 200 {
                return self.take_events(response.into_body(), take).await;
            }
            let body = http_body_util::Limited::new(response.into_body(), ANSWER_BYTES_MAX);
            let body = self.in_time(body.collect()).await?;
            let body = body.map_err(|error| self.no_answer(error))?;
            Err(Error::of_answer(status, &body.to_bytes()))
        };
        tokio::pin!(exchange, connection);
        tokio::select! {
            biased;
            result = &mut exchange => result,
            _ = &mut connection => exchange.await,
        }
    }

    /// The result of something that must not take longer than an answer.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        tokio::time::timeout(self.patience, work).await.map_err(|_| self.late())
    }

    async fn take_events(
        &self,
        mut body: Incoming,
        take: &mut impl FnMut(&str, &str) -> FollowNext,
    ) -> Result<FollowEnd, Error> {
        let mut parser = Parser::default();
        // weir sends a comment every 10 seconds, so a long silence means that it is gone.
        loop {
            let frame = match self.in_time(body.frame()).await {
                Err(_) => return Ok(FollowEnd::Lost),
                Ok(None) => return Ok(FollowEnd::ByWeir),
                Ok(Some(frame)) => frame,
            };
            let Ok(frame) = frame else { return Ok(FollowEnd::Lost) };
            let Ok(data) = frame.into_data() else { continue };
            parser.text.extend_from_slice(&data);
            while let Some((name, data)) = parser.next() {
                if take(&name, &data) == FollowNext::Stop {
                    return Ok(FollowEnd::Stopped);
                }
            }
            if parser.text.len() > EVENT_BYTES_MAX {
                return Err(self.no_answer("an event without an end"));
            }
        }
    }
}

/// Parses a stream of events.
#[derive(Default)]
struct Parser {
    text: Vec<u8>,
}

impl Parser {
    /// The next event with data: name and data.
    fn next(&mut self) -> Option<(String, String)> {
        loop {
            let end = self.text.windows(2).position(|two| two == b"\n\n")?;
            let event: Vec<u8> = self.text.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event);
            let value = |field: &str| {
                let mut lines = event.lines();
                let found = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
                found.map(|value| value.trim_start().to_owned())
            };
            if let Some(data) = value("data") {
                return Some((value("event").unwrap_or_default(), data));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    use super::super::credentials::Credentials;
    use super::*;

    /// A client of a listener that sends `answer` to each connection, and keeps it open if it `hangs`.
    fn client_of(name: &str, answer: &'static str, hangs: bool) -> Client {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}.sock", std::process::id()));
        // A process with the same process id may have left it.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
                if hangs {
                    open.push(stream);
                }
            }
        });
        let address = AdminAddress::Unix(path);
        let mut client = Client::new(address, Credentials::default()).unwrap();
        client.patience = Duration::from_millis(200);
        client
    }

    #[test]
    fn a_listener_that_hangs_is_left() {
        let client = client_of("silent", "", true);
        let error = client.follow("/v1/logs", |_, _| FollowNext::On).unwrap_err().to_string();
        assert!(error.contains("no answer within 200ms"), "{error}");
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n:\n\n\r\n";
        let client = client_of("hanging", head, true);
        assert_eq!(client.follow("/v1/logs", |_, _| FollowNext::On).unwrap(), FollowEnd::Lost);
    }

    #[test]
    fn a_list_that_never_ends_is_left() {
        let mut client = client_of(
            "endless",
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 24\r\n\r\n{\"items\":[1],\"next\":\"a\"}",
            false,
        );
        client.patience = Duration::from_secs(10);
        let error = client.list("/v1/pools").unwrap_err().to_string();
        assert!(error.contains("a list without an end"), "{error}");
    }

    #[test]
    fn events_are_taken_apart_wherever_they_are_cut() {
        let stream =
            ":\n\nevent: request\ndata: {\"id\":1}\n\n:\n\nevent: end\ndata: {}\n\nevent: x";
        for cut in 0..stream.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                parser.text.extend_from_slice(part.as_bytes());
                events.extend(std::iter::from_fn(|| parser.next()));
            }
            let expected = [("request", "{\"id\":1}"), ("end", "{}")];
            assert_eq!(events, expected.map(|(name, data)| (name.to_owned(), data.to_owned())));
        }
    }
}
