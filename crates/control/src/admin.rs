//! The admin listener: the API for operators and programs, metrics for monitoring systems, a probe for load balancers.
//!
//! `/health` and `/metrics` have conventional paths; everything else is below `/v1`. [`table`] lists all routes; the
//! OpenAPI document at `/v1/openapi.json` is generated from the same list. [docs/api.md](../../../docs/api.md) is for
//! users.
//!
//! | listener | access | rights without a token |
//! |---|---|---|
//! | unix socket (0600) | processes of weir's user | everything |
//! | loopback address | processes of this host | reading |
//! | other address, only with TLS | everyone | `/health` |
//!
//! A request passes [`gate`] (limits, `Host`, `Origin`, credentials), then its [`route`] (role, media types, query,
//! body), then its handler.
//!
//! **Architecture invariant:** data ports do not serve the API, and the data path never waits for it. A change of a
//! member's state writes one byte; all larger changes go to the supervisor.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::middleware::from_fn_with_state;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use weir_config::snapshot::Address;

pub use connections::CONNECTIONS_MAX;
use connections::{Connections, PER_SOURCE_MAX, PER_USER_MAX, Place, Source};
use context::Context;
use handover::Listener;
pub(crate) use handover::OpenConnections;
use lifetime::Lifetime;
use peer::{NetworkPeer, Peer};
use placed_connection::PlacedConnection;
use problem::Problem;
use refusal::{Calls, Refusals};
use weir_event_loop::error_text::io_error_text;
use weir_tls::certificate::holder_names;

use crate::events::Events;
use crate::observed_state::ObservedState;

mod answer;
mod ask;
pub mod audit;
mod board;
mod changes;
mod connections;
mod context;
mod dashboard;
mod explain;
mod files;
mod firewall;
mod flows;
mod gate;
mod handover;
mod host;
mod last_refusal;
mod lifetime;
mod login;
mod login_failures;
mod login_user;
mod member_change;
pub mod open_streams;
mod openapi;
mod page;
mod peer;
mod placed_connection;
mod pools;
mod problem;
mod process;
mod refusal;
mod reload;
mod reports;
mod requests;
pub mod route;
mod sampler;
mod servers;
mod sessions;
pub mod shared;
mod sources;
mod streams;
mod table;
mod tags;
pub mod token;
mod upgrade;

/// Maximum size of a request's head.
pub const HEAD_SIZE_MAX: usize = 16 * 1024;

/// Maximum number of header fields in a request.
pub const HEADERS_MAX: usize = 64;

/// Timeout for a complete request head, and for the next request on a connection.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum lifetime of a connection, even if its client does not read. In a stream, the time restarts with each event that
/// the client receives.
pub const CONNECTION_TIME_MAX: Duration = Duration::from_secs(120);

/// Minimum interval between events about refused connections.
const TURNED_AWAY_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after a failure to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The hint for unknown paths.
const PATHS: &str = "/v1/openapi.json lists all paths: /v1/status, /v1/virtual-servers, /v1/pools, /metrics, /health, …";

/// A running admin listener. Dropping it stops accepting.
#[derive(Debug)]
pub struct Admin {
    address: Address,
    accepting: JoinHandle<()>,
    /// The task that samples counters for rates.
    sampling: JoinHandle<()>,
    /// The socket file and its inode, so that another process's file is never removed.
    socket_file: Option<(PathBuf, u64)>,
    /// A duplicate of the listener for another process.
    duplicate: OwnedFd,
    connections: Connections,
}

impl Admin {
    /// Binds the address and begins to serve. Must be called within a tokio runtime.
    pub async fn start(
        address: &Address,
        observed: Arc<ObservedState>,
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
        observed: Arc<ObservedState>,
        events: Events,
    ) -> io::Result<Self> {
        let sampled = Arc::clone(&observed);
        let context = Context { observed, events };
        let service = Service {
            router: router(context.clone()),
            context,
            connections: Connections::default(),
        };
        let connections = service.connections.clone();
        let duplicate = listener.duplicate()?;
        let (address, accepting, socket_file) = match listener {
            Listener::Tcp(listener) => {
                let socket = listener.local_addr()?;
                let (address, is_loopback) = (Address::Socket(socket), socket.ip().is_loopback());
                let accepting = tokio::spawn(service.accept(async move || {
                    let (stream, address) = listener.accept().await?;
                    let peer = NetworkPeer { address, is_loopback, certificate: None };
                    Ok((stream, Peer::Network(peer)))
                }));
                (address, accepting, None)
            }
            Listener::Unix(listener, path, inode) => {
                let accepting = tokio::spawn(service.accept(async move || {
                    loop {
                        let (stream, _) = listener.accept().await?;
                        let peer = Peer::of_socket(&stream);
                        // Its data path would give clients the rights of this socket. The configuration refuses that
                        // destination; a link that was made later would be another way to it.
                        if !peer.is_this_process() {
                            return Ok((stream, peer));
                        }
                    }
                }));
                (asked.clone(), accepting, Some((path, inode)))
            }
        };
        let sampling = tokio::spawn(sampler::sample(sampled));
        Ok(Self { address, accepting, sampling, socket_file, duplicate, connections })
    }

    /// The address of the listener, with the real port if 0 was configured.
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
            // An error means that the file was removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds a unix socket that only weir's user can open.
///
/// The socket is created in a private directory and then renamed into place. So its mode is right from the beginning,
/// and it replaces a stale socket of a dead process.
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
    // A process with the same process id may have left this directory.
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

fn router(context: Context) -> Router {
    let routes = table::routes().into_iter();
    let router =
        routes.fold(Router::new(), |router, route| router.route(route.path, route.routing()));
    router
        .merge(dashboard::routes())
        .fallback(async || Problem::not_found("there is nothing at this path").help(PATHS))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path does not have this method")
        })
        .layer(from_fn_with_state(context.clone(), gate::pass))
        .with_state(context)
}

/// Runs a function on another thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        let detail = "weir failed to answer, which is a defect of weir";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}

/// The service that answers requests of one connection.
#[derive(Clone)]
struct Service {
    router: Router,
    context: Context,
    connections: Connections,
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
                    let Some(place) = self.connections.place(Source::of(&peer)) else {
                        observed.admin.turned_away.fetch_add(1, Relaxed);
                        if turned_away_told.is_none_or(|at| at.elapsed() >= TURNED_AWAY_INTERVAL) {
                            turned_away_told = Some(Instant::now());
                            let what = format_args!(
                                "turns connections away: too many are open already (at most {CONNECTIONS_MAX}, {PER_SOURCE_MAX} of one source, and {PER_USER_MAX} of one local user)"
                            );
                            events.warning("admin listener", what);
                        }
                        continue;
                    };
                    if place.has_displaced() {
                        observed.admin.displaced.fetch_add(1, Relaxed);
                    }
                    let (router, observed) = (self.router.clone(), Arc::clone(&observed));
                    tokio::spawn(async move {
                        let place = Arc::new(place);
                        tokio::select! {
                            // This branch is first, because a connection without a place must not begin a request.
                            biased;
                            () = place.taken() => {}
                            () = serve(stream, peer, router, &observed, &place) => {}
                        }
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

/// Serves one connection. Errors of the client are ignored.
async fn serve<S>(
    stream: S,
    mut peer: Peer,
    router: Router,
    observed: &ObservedState,
    place: &Arc<Place>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Peer::Network(network) = &mut peer else {
        return serve_http(stream, peer, router, place).await;
    };
    if network.is_loopback {
        return serve_http(stream, peer, router, place).await;
    }
    // If the configuration has no TLS, this listener will be closed soon.
    let tls = observed.table().snapshot.admin.tls.as_ref().map(|tls| Arc::clone(&tls.config));
    let Some(tls) = tls else { return };
    let handshake = TlsAcceptor::from(tls).accept(stream);
    let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, handshake).await else { return };
    let certificates = stream.get_ref().1.peer_certificates();
    network.certificate =
        certificates.and_then(<[_]>::first).map(|shown| holder_names(shown).into());
    serve_http(stream, peer, router, place).await;
}

async fn serve_http<S>(stream: S, peer: Peer, router: Router, place: &Arc<Place>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_SIZE_MAX)
        .max_headers(HEADERS_MAX);
    let lifetime = Lifetime::begin();
    let calls = Calls::default();
    let stream = Refusals::new(PlacedConnection::new(stream, Arc::clone(place)), calls.clone());
    // What all requests of a connection have is added to each here: as layers, it would be a copy of all routes for each
    // connection, and several boxes for each request.
    let (peer, place) = (Arc::new(peer), Arc::clone(place));
    let router = TowerToHyperService::new(router);
    let of_connection = lifetime.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let extensions = request.extensions_mut();
        extensions.insert(Arc::clone(&place));
        extensions.insert(Arc::clone(&peer));
        extensions.insert(of_connection.clone());
        calls.clone().note(router.call(request))
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // This branch is first, because polling the connection may buffer events that the client has not received.
        biased;
        () = lifetime.over() => {}
        _ = connection => {}
    }
}

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod document_tests;
#[cfg(test)]
mod role_tests;
#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
