//! The embedded members: small HTTP servers; one is slow, and one flaps.
//!
//! Stopping a member has the effect of `kill -9`: its connections break at once, and new ones are refused until it is
//! started again.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use weir_control::events::Events;

use super::ports::{ReservedAddress, reusable};

/// Maximum number of connections per member; further ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 1_024;

/// Length of the kernel's queue of connections that were not accepted yet.
const LISTEN_BACKLOG: u32 = 256;

/// The response time of the slow member.
const SLOW_ANSWER: Duration = Duration::from_millis(60);

/// The response time of `/slow`.
const SLOW_PAGE: Duration = Duration::from_secs(1);

/// Maximum size of a response to `/bytes/N`.
const BYTES_MAX: usize = 1 << 20;

/// Time until the flapping member is stopped for the first time.
const FIRST_UP: Duration = Duration::from_secs(2);

/// Time between its restart and the next stop.
const UP: Duration = Duration::from_secs(12);

/// Time for which it is stopped.
const STOPPED: Duration = Duration::from_secs(4);

/// Pause after a failure to accept or listen.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The behaviour of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberBehaviour {
    Steady,
    Slow,
    Flapping,
}

/// The members, in the order of the configuration.
const ROLES: [(&str, MemberBehaviour); 4] = [
    ("quick-1", MemberBehaviour::Steady),
    ("quick-2", MemberBehaviour::Steady),
    ("slow", MemberBehaviour::Slow),
    ("flapping", MemberBehaviour::Flapping),
];

/// An embedded member.
#[derive(Debug)]
pub struct Member {
    /// The name in the demo.
    pub role: &'static str,
    port: ReservedAddress,
    manner: MemberBehaviour,
}

impl Member {
    /// Creates all members; they do not serve yet.
    pub fn all() -> io::Result<Vec<Self>> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let member = |(role, manner)| {
            let port = ReservedAddress::new(any)?;
            Ok(Self { role, port, manner })
        };
        ROLES.into_iter().map(member).collect()
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Serves forever, with the behaviour of this member.
    pub async fn serve(self, events: Events) {
        let page = Arc::new(Page {
            role: self.role,
            address: self.address(),
            pause: match self.manner {
                MemberBehaviour::Slow => SLOW_ANSWER,
                MemberBehaviour::Steady | MemberBehaviour::Flapping => Duration::ZERO,
            },
        });
        if self.manner != MemberBehaviour::Flapping {
            return listen(&page, &events).await;
        }
        let mut up = FIRST_UP;
        loop {
            // At the timeout, the listener and all connections are dropped.
            let _ = tokio::time::timeout(up, listen(&page, &events)).await;
            events.info("demo", format_args!("stops the {} member for {STOPPED:?}", page.role));
            tokio::time::sleep(STOPPED).await;
            events.info("demo", format_args!("starts the {} member", page.role));
            up = UP;
        }
    }
}

/// Listens, and serves connections forever.
async fn listen(page: &Arc<Page>, events: &Events) {
    let listener = loop {
        match reusable(page.address).and_then(|socket| socket.listen(LISTEN_BACKLOG)) {
            Ok(listener) => break listener,
            Err(error) => {
                events
                    .error("demo", format_args!("cannot start the {} member: {error}", page.role));
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            stream = accept(&listener), if connections.len() < CONNECTIONS_MAX => {
                connections.spawn(serve_connection(stream, Arc::clone(page)));
            }
        }
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // No descriptor is available, or the client has disconnected.
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, page: Arc<Page>) {
    // On failure, an answer in two segments is delayed until an acknowledgement, but still sent.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let page = Arc::clone(&page);
        async move { Ok::<_, Infallible>(page.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    // weir reports the end of the connection.
    let _ = connection.await;
}

/// A member's response.
struct Page {
    role: &'static str,
    address: SocketAddr,
    pause: Duration,
}

impl Page {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        // The health page is fast even if the application is slow.
        if path != "/healthz" {
            tokio::time::sleep(self.pause).await;
        }
        match path {
            "/" => text(StatusCode::OK, format!("Hello from {} at {}\n", self.role, self.address)),
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/headers" => text(StatusCode::OK, head_of(&request)),
            "/slow" => {
                tokio::time::sleep(SLOW_PAGE).await;
                let answer = format!("{} took {SLOW_PAGE:?}\n", self.role);
                text(StatusCode::OK, answer)
            }
            _ => match path.strip_prefix("/bytes/") {
                Some(count) => bytes(count),
                None => {
                    text(StatusCode::NOT_FOUND, "There are: / /headers /slow /bytes/N /healthz\n")
                }
            },
        }
    }
}

/// A response with this number of bytes: `0123456789012…`.
fn bytes(count: &str) -> Response<Full<Bytes>> {
    match count.parse() {
        Ok(count) if count <= BYTES_MAX => {
            let digits: Vec<u8> = (b'0'..=b'9').cycle().take(count).collect();
            text(StatusCode::OK, digits)
        }
        _ => text(StatusCode::BAD_REQUEST, format!("/bytes/N: N is a number up to {BYTES_MAX}\n")),
    }
}

/// The head of the request as received.
fn head_of(request: &Request<Incoming>) -> String {
    let mut head = format!("{} {}\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        // Writing to a string cannot fail.
        let _ = writeln!(head, "{name}: {value}");
    }
    head
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
