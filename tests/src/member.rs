//! Members with a scripted behaviour, which record their requests.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::gate::Gate;
use crate::wire::{Framing, Head, Reader};

/// Maximum size of a body that the harness keeps. A handler that reads bodies itself gets larger ones.
const BODY_BYTES_KEPT_MAX: u64 = 16 * 1024 * 1024;

/// A request as the member received it.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Request line and headers.
    pub head: Head,
    /// The decoded body, unless the handler reads it itself.
    pub body: Vec<u8>,
    /// Trailers of a chunked body.
    pub trailers: Head,
    /// Index of the member's connection, from 0.
    pub connection: usize,
}

impl Request {
    /// The method: the first word of the request line.
    pub fn method(&self) -> &str {
        self.head.start.split(' ').next().unwrap_or_default()
    }

    /// The target: the second word of the request line.
    pub fn target(&self) -> &str {
        self.head.start.split(' ').nth(1).unwrap_or_default()
    }
}

/// Whether a connection stays open after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Stays open for the next request.
    KeepAlive,
    /// Closed with FIN.
    Close,
    /// Closed with RST.
    Reset,
}

/// A request, and the connection for the response.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request. It contains the body unless the member is [`Member::streaming`].
    pub request: Request,
    reader: &'a mut Reader,
}

impl Exchange<'_> {
    /// Sends raw bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.stream().write_all(bytes.as_ref())
    }

    /// Sends a response with status 200 and Content-Length.
    pub fn answer(&mut self, body: impl AsRef<[u8]>) -> io::Result<Then> {
        let body = body.as_ref();
        let mut message =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        message.extend_from_slice(body);
        self.send(message)?;
        Ok(Then::KeepAlive)
    }

    /// Responds with the request itself, head and body, as text.
    pub fn echo(&mut self) -> io::Result<Then> {
        let mut text = format!("{}\r\n", self.request.head.start);
        for (name, value) in &self.request.head.fields {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.request.body);
        self.answer(bytes)
    }

    /// Reads the request's body, for handlers of [`Member::streaming`].
    pub fn read_body(&mut self, take: impl FnMut(&[u8])) -> io::Result<Head> {
        let framing = self.request.head.framing().unwrap_or(Framing::Length(0));
        self.reader.body(framing, take)
    }

    /// Received bytes without any framing (for tunnels); 0 at the end.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.some(buffer)
    }

    /// The socket, for a half-close or socket options.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.reader.stream()
    }
}

#[derive(Debug, Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    open: Mutex<Vec<(usize, TcpStream)>>,
    bytes: AtomicUsize,
    stopping: AtomicBool,
}

/// Locks a list. If a handler panicked, its scenario has failed anyway.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A member with one thread per connection.
#[derive(Debug)]
pub struct Member {
    address: SocketAddr,
    seen: Arc<Seen>,
    acceptor: Option<thread::JoinHandle<()>>,
}

impl Member {
    /// A member that reads each complete request and lets the handler respond.
    pub fn new(
        handler: impl Fn(&mut Exchange) -> io::Result<Then> + Send + Sync + 'static,
    ) -> Self {
        Self::on(loopback(), true, handler)
    }

    /// A member whose handler gets the head and reads the body itself.
    pub fn streaming(
        handler: impl Fn(&mut Exchange) -> io::Result<Then> + Send + Sync + 'static,
    ) -> Self {
        Self::on(loopback(), false, handler)
    }

    /// A member that responds to every request with the request.
    pub fn echo() -> Self {
        Self::new(|exchange| exchange.echo())
    }

    /// A member that responds to every request with its name.
    pub fn named(name: &'static str) -> Self {
        Self::new(move |exchange| exchange.answer(name))
    }

    /// A member that responds with `name` once the flag is set.
    pub fn gated(name: &'static str) -> (Self, Arc<Gate>) {
        let is_shut = Arc::new(Gate::default());
        let gate = Arc::clone(&is_shut);
        let member = Self::new(move |exchange| {
            gate.pass();
            exchange.answer(name)
        });
        (member, is_shut)
    }

    /// Waits until this number of requests has arrived.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) {
        crate::eventually("the member has them", crate::STEP_TIMEOUT, || {
            self.request_count() >= count
        });
    }

    /// A member that sends these bytes in response to any request, then closes.
    pub fn script(response: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self::new(move |exchange| exchange.send(&response).map(|()| Then::Close))
    }

    /// A member on a given address (an earlier member's address, or a leased one).
    pub fn on(
        address: SocketAddr,
        read_bodies: bool,
        handler: impl Fn(&mut Exchange) -> io::Result<Then> + Send + Sync + 'static,
    ) -> Self {
        let listener =
            TcpListener::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        let address = listener.local_addr().expect("the listener's address");
        let seen = Arc::new(Seen::default());
        let (shared, handler) = (Arc::clone(&seen), Arc::new(handler));
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopping.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (shared, handler) = (Arc::clone(&shared), Arc::clone(&handler));
                thread::spawn(move || serve(stream, &shared, read_bodies, &*handler));
            }
        });
        Self { address, seen, acceptor: Some(acceptor) }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All complete requests, the oldest first.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.seen.requests).clone()
    }

    /// Number of complete requests.
    pub fn request_count(&self) -> usize {
        locked(&self.seen.requests).len()
    }

    /// Number of connections so far.
    pub fn connection_count(&self) -> usize {
        self.seen.connections.load(Ordering::Acquire)
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        locked(&self.seen.open).len()
    }

    /// Whether any byte of a request head or body has arrived, even without a complete request.
    pub fn saw_anything(&self) -> bool {
        self.seen.bytes.load(Ordering::Acquire) > 0 || self.request_count() > 0
    }

    /// Closes every open connection, idle or not. The member continues to listen.
    pub fn close_connections(&self) {
        for (_, stream) in locked(&self.seen.open).iter() {
            // A closed connection needs no action.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Stops listening and closes all connections, like a killed server.
    pub fn kill(&mut self) {
        self.seen.stopping.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            // Wakes up the accepting thread.
            let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
            acceptor.join().expect("the member's acceptor");
        }
        self.close_connections();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn serve(
    stream: TcpStream,
    seen: &Seen,
    read_bodies: bool,
    handler: &(impl Fn(&mut Exchange) -> io::Result<Then> + ?Sized),
) {
    let connection = seen.connections.fetch_add(1, Ordering::AcqRel);
    let Ok(second) = stream.try_clone() else {
        return;
    };
    locked(&seen.open).push((connection, second));
    let mut reader = Reader::new(stream);
    // An error means that the proxy closed or reset the connection. The scenario checks the recorded requests.
    let then = requests(&mut reader, connection, seen, read_bodies, handler).unwrap_or(Then::Close);
    seen.bytes.fetch_add(reader.buffered().len(), Ordering::AcqRel);
    if then == Then::Reset {
        // Best effort: the socket may be closed already.
        let _ = rustix::net::sockopt::set_socket_linger(reader.stream(), Some(Duration::ZERO));
    }
    locked(&seen.open).retain(|&(number, _)| number != connection);
}

fn requests(
    reader: &mut Reader,
    connection: usize,
    seen: &Seen,
    read_bodies: bool,
    handler: &(impl Fn(&mut Exchange) -> io::Result<Then> + ?Sized),
) -> io::Result<Then> {
    reader.stream().set_nodelay(true)?;
    while let Some(head) = reader.head()? {
        let mut request = Request { head, connection, ..Request::default() };
        if read_bodies {
            if request.head.has_token("expect", "100-continue") {
                reader.stream().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            let framing = request.head.framing().unwrap_or(Framing::Length(0));
            let body = &mut request.body;
            request.trailers = reader.body(framing, |bytes| {
                if (body.len() as u64) < BODY_BYTES_KEPT_MAX {
                    body.extend_from_slice(bytes);
                }
            })?;
        }
        locked(&seen.requests).push(request.clone());
        let then = handler(&mut Exchange { request, reader })?;
        if then != Then::KeepAlive {
            return Ok(then);
        }
    }
    Ok(Then::Close)
}
