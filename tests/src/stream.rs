//! Members for any protocol, whose handler is a closure with the socket. Also ClientHello records for clients.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A member with one thread per connection.
#[derive(Debug)]
pub struct StreamMember {
    address: SocketAddr,
    seen: Arc<Seen>,
    acceptor: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    open: AtomicUsize,
    stopping: AtomicBool,
}

impl StreamMember {
    /// A member whose handler serves each connection from start to end.
    pub fn new(handler: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("the listener's address");
        let (seen, handler) = (Arc::new(Seen::default()), Arc::new(handler));
        let shared = Arc::clone(&seen);
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stopping.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let (shared, handler) = (Arc::clone(&shared), Arc::clone(&handler));
                shared.open.fetch_add(1, Ordering::AcqRel);
                shared.connections.fetch_add(1, Ordering::AcqRel);
                thread::spawn(move || {
                    let timeout = Some(crate::STEP_TIMEOUT);
                    let _ = stream.set_read_timeout(timeout);
                    let _ = stream.set_write_timeout(timeout);
                    // An error of the handler closes the connection, which the peer detects.
                    let _ = handler(stream);
                    shared.open.fetch_sub(1, Ordering::AcqRel);
                });
            }
        });
        Self { address, seen, acceptor: Some(acceptor) }
    }

    /// A member that sends its name and then echoes the received bytes until the peer ends.
    pub fn echo(name: &'static str) -> Self {
        Self::new(move |mut stream| {
            stream.write_all(name.as_bytes())?;
            echo(&mut stream)
        })
    }

    /// A member that waits for a line, sends its name and the line, and closes.
    pub fn line(name: &'static str) -> Self {
        Self::new(move |mut stream| {
            let mut line = name.as_bytes().to_vec();
            let mut byte = [0; 1];
            while line.last() != Some(&b'\n') && stream.read(&mut byte)? == 1 {
                line.push(byte[0]);
            }
            stream.write_all(&line)
        })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of connections so far.
    pub fn connection_count(&self) -> usize {
        self.seen.connections.load(Ordering::Acquire)
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        self.seen.open.load(Ordering::Acquire)
    }

    /// Waits until this number of connections is open.
    #[track_caller]
    pub fn wait_for_open(&self, count: usize) {
        let what = format!("{count} connections are open");
        crate::eventually(&what, crate::STEP_TIMEOUT, || self.open_connections() == count);
    }
}

impl Drop for StreamMember {
    fn drop(&mut self) {
        self.seen.stopping.store(true, Ordering::Release);
        // Wakes up the accepting thread.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Echoes the received bytes until the peer ends.
pub fn echo(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    loop {
        match stream.read(&mut buffer)? {
            0 => return stream.shutdown(Shutdown::Write),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}

/// Closes with RST.
pub fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))
        .expect("SO_LINGER");
    drop(stream);
}

/// A ClientHello in one record, with this server name and `padding` bytes in an unknown extension.
pub fn client_hello(name: Option<&str>, padding: usize) -> Vec<u8> {
    let vector_16 = |content: &[u8]| {
        let length = u16::try_from(content.len()).expect("a short vector");
        [&length.to_be_bytes(), content].concat()
    };
    let extension =
        |kind: u16, content: &[u8]| [&kind.to_be_bytes()[..], &vector_16(content)].concat();
    let mut extensions = extension(0xfafa, &vec![0; padding]);
    if let Some(name) = name {
        let entry = [&[0][..], &vector_16(name.as_bytes())].concat();
        extensions.extend(extension(0, &vector_16(&entry)));
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]); // random
    body.push(0); // session id
    body.extend(vector_16(&[0x13, 0x01])); // cipher suites
    body.extend([1, 0]); // compression methods
    body.extend(vector_16(&extensions));
    let length = u32::try_from(body.len()).expect("a short message").to_be_bytes();
    let message = [&[1, length[1], length[2], length[3]][..], &body].concat();
    record(&message)
}

/// A handshake record.
pub fn record(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short record").to_be_bytes();
    [&[22, 3, 1][..], &length, content].concat()
}

/// Splits the message of a record into records of `size` bytes.
pub fn divided(hello: &[u8], size: usize) -> Vec<u8> {
    hello[5..].chunks(size).flat_map(record).collect()
}
