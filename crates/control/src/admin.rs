//! The admin listener: views for people, scripts and scrapers, and run-time changes of members.
//!
//! | path | response |
//! |---|---|
//! | `/health` | 200 `ok` while the process serves, 503 `starting` before and `draining` while it ends |
//! | `/metrics` | Prometheus text |
//! | `/status` | JSON |
//! | `/pools`, `/pools/POOL`, `/pools/POOL/members/ADDRESS` | JSON, see `admin/pools.rs` |
//! | `POST /pools/POOL/members/ADDRESS` | sets the member's state; over a unix socket only |
//! | `POST /reload`, `/reloads/NUMBER` | reloads the file; over a unix socket only |
//! | `POST /upgrade`, `/upgrades/NUMBER` | replaces the process by another one; over a unix socket only |
//! | `/l4/flows`, `POST /l4/flows/end` | flows of the packet path, see `admin/flows.rs` |
//!
//! **Architecture invariant:** no data port reaches it. Over TCP it is read-only, and only for weir's own host names
//! (`admin/host.rs`). A unix socket belongs to weir's user alone (0600): everyone who may open it may change the state of
//! members. A TCP address should be loopback.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use weir_config::snapshot::Address;

use crate::events::Events;
use crate::metrics;
use crate::observed::Observed;
use crate::status::Status;
use handover::Listener;
pub(crate) use handover::OpenConnections;
use weir_dataplane::error_text::io_error_text;

mod flows;
mod handover;
mod host;
mod pools;
mod problem;
mod reload;
mod sampling;
mod upgrade;

/// Most simultaneous connections; further ones are closed at once, counted and reported.
pub const CONNECTIONS_MAX: usize = 64;

/// Bytes of a request's head.
pub const HEAD_SIZE_MAX: usize = 16 * 1024;

/// Fields of a request's head.
pub const HEADERS_MAX: usize = 64;

/// For a request's head to be complete, and for the next request on a connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection is closed after this time, whatever happens on it: a reader that does not read cannot
/// hold it for ever.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(120);

/// At most one event about connections that were turned away in this time.
const TURNED_AWAY_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The response to any other path.
const PATHS: &str = "There is nothing at this path. There is:\n\
    /health   200 while weir serves, 503 before that and while it drains\n\
    /metrics  Prometheus text\n\
    /status   JSON\n\
    /pools    JSON; also /pools/POOL and /pools/POOL/members/ADDRESS, percent-encoded\n\
    /l4/flows JSON: flows of virtual servers of type fast_l4\n";

/// A running admin listener; it stops accepting when this is dropped.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    accepting: JoinHandle<()>,
    /// Takes samples for rates.
    sampling: JoinHandle<()>,
    /// The socket file to remove, and its inode, so that no other process' file is removed.
    socket_file: Option<(PathBuf, u64)>,
    /// Of the listener, for another process.
    duplicate: OwnedFd,
    /// For connections: those that are open have one each.
    permits: Arc<Semaphore>,
}

impl Admin {
    /// Binds the address and answers on it from now on. Must be called within a tokio runtime.
    pub async fn start(
        address: &Address,
        observed: Arc<Observed>,
        events: Events,
    ) -> io::Result<Self> {
        match address {
            Address::Socket(socket) | Address::Udp(socket) => {
                let listener = TcpListener::bind(socket).await?;
                Self::serve(address, Listener::Tcp(listener), observed, events)
            }
            Address::Unix(path) => {
                let (listener, inode) = bind_unix(path).await?;
                Self::serve(
                    address,
                    Listener::Unix(listener, path.clone(), inode),
                    observed,
                    events,
                )
            }
        }
    }

    fn serve(
        asked: &Address,
        listener: Listener,
        observed: Arc<Observed>,
        events: Events,
    ) -> io::Result<Self> {
        let sampled = Arc::clone(&observed);
        let context = Context { observed, events, last_refusal: Arc::default() };
        let service = Service {
            router: router(context.clone()),
            context,
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        };
        let permits = Arc::clone(&service.permits);
        let duplicate = listener.duplicate()?;
        let (address, accepting, socket_file) = match listener {
            Listener::Tcp(listener) => {
                let address = Address::Socket(listener.local_addr()?);
                let accepting = tokio::spawn(service.accept(async move || {
                    listener.accept().await.map(|(stream, _)| (stream, Peer::Network))
                }));
                (address, accepting, None)
            }
            Listener::Unix(listener, path, inode) => {
                let accepting = tokio::spawn(service.accept(async move || {
                    let (stream, _) = listener.accept().await?;
                    let peer = Peer::of_socket(&stream);
                    Ok((stream, peer))
                }));
                (asked.clone(), accepting, Some((path, inode)))
            }
        };
        let sampling = tokio::spawn(sampling::sample(sampled));
        Ok(Self { address, accepting, sampling, socket_file, duplicate, permits })
    }

    /// The address that it listens on, with the real port if 0 was configured.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.accepting.abort();
        self.sampling.abort();
        if let Some((path, inode)) = &self.socket_file
            && std::fs::metadata(path).is_ok_and(|metadata| metadata.ino() == *inode)
        {
            // An error means that the file is gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds a unix socket that only weir's user can connect to, at no moment anyone else.
///
/// The file takes its place by a rename out of a private directory: its mode is right before anyone can
/// see it, and a file that a process which died left behind is replaced.
async fn bind_unix(path: &Path) -> io::Result<(UnixListener, u64)> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "a file that is not a socket is there",
            ));
        }
        Ok(_) if UnixStream::connect(path).await.is_ok() => {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        _ => {}
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let directory = PathBuf::from(name);
    // One that a process of the same number left behind.
    let _ = std::fs::remove_dir_all(&directory);
    DirBuilder::new().mode(0o700).create(&directory)?;
    let bound = bind_within(&directory, path);
    std::fs::remove_dir_all(&directory)?;
    bound
}

fn bind_within(directory: &Path, path: &Path) -> io::Result<(UnixListener, u64)> {
    let temporary = directory.join("s");
    let listener = UnixListener::bind(&temporary)?;
    std::fs::set_permissions(&temporary, Permissions::from_mode(0o600))?;
    let inode = std::fs::metadata(&temporary)?.ino();
    std::fs::rename(&temporary, path)?;
    Ok((listener, inode))
}

/// The state that requests are answered from.
#[derive(Debug, Clone)]
struct Context {
    observed: Arc<Observed>,
    events: Events,
    last_refusal: Arc<host::LastRefusal>,
}

/// The peer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// Everyone who reaches the port.
    Network,
    /// A process that may open the unix socket.
    Local(Option<Credentials>),
}

/// A local process, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Credentials {
    user: u32,
    process: Option<i32>,
}

impl Peer {
    /// The peer of a unix socket. An unknown peer (it has gone already) has the same rights: the socket's mode decides.
    fn of_socket(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        Self::Local(
            credentials.map(|found| Credentials { user: found.uid(), process: found.pid() }),
        )
    }
}

fn router(context: Context) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics_text))
        .route("/status", get(status_json))
        .merge(pools::routes())
        .merge(flows::routes())
        .merge(reload::routes())
        .merge(upgrade::routes())
        .fallback(async || (StatusCode::NOT_FOUND, PATHS))
        .layer(from_fn_with_state(context.clone(), host::check))
        .with_state(context)
}

async fn health(State(Context { observed, .. }): State<Context>) -> (StatusCode, &'static str) {
    if observed.draining.load(Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if observed.starting.load(Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "starting\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn metrics_text(State(Context { observed, .. }): State<Context>) -> Response {
    off_thread(move || {
        let media_type = [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)];
        (media_type, metrics::encode(&observed)).into_response()
    })
    .await
}

async fn status_json(State(Context { observed, .. }): State<Context>) -> Response {
    off_thread(move || json(StatusCode::OK, &Status::of(&observed))).await
}

/// A JSON document, with a line feed at its end for terminals.
fn json(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec_pretty(document) {
        Ok(mut text) => {
            text.push(b'\n');
            (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Builds an answer on another thread: with thousands of members it takes milliseconds, and the
/// monitors are to keep their times.
async fn off_thread(build: impl FnOnce() -> Response + Send + 'static) -> Response {
    let built = tokio::task::spawn_blocking(build).await;
    built.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// Serves connections.
#[derive(Clone)]
struct Service {
    router: Router,
    context: Context,
    permits: Arc<Semaphore>,
}

impl Service {
    async fn accept<S>(self, next: impl AsyncFn() -> io::Result<(S, Peer)>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Context { observed, events, .. } = self.context;
        let mut told = false;
        let mut turned_away_told: Option<Instant> = None;
        loop {
            match next().await {
                Ok((stream, peer)) => {
                    told = false;
                    let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                        observed.admin_turned_away.fetch_add(1, Relaxed);
                        if turned_away_told.is_none_or(|at| at.elapsed() >= TURNED_AWAY_INTERVAL) {
                            turned_away_told = Some(Instant::now());
                            let what = format_args!(
                                "turns connections away: {CONNECTIONS_MAX} are open already"
                            );
                            events.warning("admin listener", what);
                        }
                        continue;
                    };
                    let router = self.router.clone().layer(Extension(peer));
                    tokio::spawn(async move {
                        serve(stream, router).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        let what = format_args!("cannot accept: {}", io_error_text(&error));
                        events.warning("admin listener", what);
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Serves one connection. How it ends is the client's affair.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_SIZE_MAX)
        .max_headers(HEADERS_MAX);
    let connection =
        builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ = tokio::time::timeout(CONNECTION_TIME_MAX, connection).await;
}

#[cfg(test)]
mod tests;
