//! The admin listener: read-only views for people, scripts and scrapers.
//!
//! | path | what |
//! |---|---|
//! | `/health` | 200 `ok` while the process serves, 503 `draining` while it ends |
//! | `/metrics` | Prometheus text |
//! | `/status` | JSON |
//!
//! **Architecture invariant:** nothing can be changed here, and no data port reaches it. A TCP address
//! should be loopback; a unix socket belongs to weir's user alone (0600).

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use weir_config::snapshot::Address;

use crate::events::Events;
use crate::metrics;
use crate::observed::Observed;
use crate::status::Status;
use weir_dataplane::error_text::io_error_text;

/// Connections at a time; further ones are closed at once, counted and told.
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

/// What is answered to any other path.
const PATHS: &str = "There is nothing at this path. There is:\n\
    /health   200 while weir serves, 503 while it drains\n\
    /metrics  Prometheus text\n\
    /status   JSON\n";

/// A running admin listener; it stops accepting when this is dropped.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    accepting: JoinHandle<()>,
    /// The socket file to remove, and its inode, so that no other process' file is removed.
    socket_file: Option<(PathBuf, u64)>,
}

impl Admin {
    /// Binds the address and answers on it from now on. Must be called within a tokio runtime.
    pub async fn start(
        address: &Address,
        observed: Arc<Observed>,
        events: Events,
    ) -> io::Result<Self> {
        let service = Service {
            router: router(Arc::clone(&observed)),
            observed,
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            events,
        };
        match address {
            Address::Socket(socket) => {
                let listener = TcpListener::bind(socket).await?;
                let address = Address::Socket(listener.local_addr()?);
                let accepting = tokio::spawn(
                    service.accept(async move || listener.accept().await.map(|(stream, _)| stream)),
                );
                Ok(Self { address, accepting, socket_file: None })
            }
            Address::Unix(path) => {
                let (listener, inode) = bind_unix(path).await?;
                let accepting = tokio::spawn(
                    service.accept(async move || listener.accept().await.map(|(stream, _)| stream)),
                );
                Ok(Self {
                    address: address.clone(),
                    accepting,
                    socket_file: Some((path.clone(), inode)),
                })
            }
        }
    }

    /// Where it listens; the port is the real one if 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some((path, inode)) = &self.socket_file
            && std::fs::metadata(path).is_ok_and(|metadata| metadata.ino() == *inode)
        {
            // Whoever removed it first did what was wanted.
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

fn router(observed: Arc<Observed>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics_text))
        .route("/status", get(status_json))
        .fallback(async || (StatusCode::NOT_FOUND, PATHS))
        .with_state(observed)
}

async fn health(State(observed): State<Arc<Observed>>) -> (StatusCode, &'static str) {
    if observed.draining.load(Relaxed) {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn metrics_text(State(observed): State<Arc<Observed>>) -> Response {
    off_thread(move || (metrics::CONTENT_TYPE, metrics::encode(&observed).into_bytes())).await
}

async fn status_json(State(observed): State<Arc<Observed>>) -> Response {
    off_thread(move || {
        let mut json = serde_json::to_vec_pretty(&Status::of(&observed)).unwrap_or_default();
        json.push(b'\n');
        ("application/json", json)
    })
    .await
}

/// Builds an answer on another thread: with thousands of members it takes milliseconds, and the
/// monitors are to keep their times.
async fn off_thread(build: impl FnOnce() -> (&'static str, Vec<u8>) + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(build).await {
        Ok((media_type, body)) => ([(header::CONTENT_TYPE, media_type)], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// What serves connections.
#[derive(Clone)]
struct Service {
    router: Router,
    observed: Arc<Observed>,
    permits: Arc<Semaphore>,
    events: Events,
}

impl Service {
    async fn accept<S>(self, next: impl AsyncFn() -> io::Result<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut told = false;
        let mut turned_away_told: Option<Instant> = None;
        loop {
            match next().await {
                Ok(stream) => {
                    told = false;
                    let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                        self.observed.admin_turned_away.fetch_add(1, Relaxed);
                        if turned_away_told.is_none_or(|at| at.elapsed() >= TURNED_AWAY_INTERVAL) {
                            turned_away_told = Some(Instant::now());
                            let what = format_args!(
                                "turns connections away: {CONNECTIONS_MAX} are open already"
                            );
                            self.events.warning("admin listener", what);
                        }
                        continue;
                    };
                    let router = self.router.clone();
                    tokio::spawn(async move {
                        serve(stream, router).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut told, true) {
                        let what = format_args!("cannot accept: {}", io_error_text(&error));
                        self.events.warning("admin listener", what);
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
