//! The first and last step of every request. First: limits on its source, `Host`, `Origin`, credentials. Last: common
//! header fields and the audit log.
//!
//! A web page can make its visitor's browser send requests to this listener. Therefore `Host` is checked
//! ([`super::host`]); `Origin` must be the listener's own; no answer permits other origins to read it (CORS); and
//! changes need the media type of JSON, which a page of another origin cannot send without permission.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context as TaskContext, Poll};

use axum::Extension;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};

use super::audit::{AuditedRequest, AuditedResult};
use super::connections::{Busy, Place};
use super::peer::{Caller, NetworkPeer, Peer};
use super::problem::Problem;
use super::{Context, host, login};

/// Identifies a request in its answer and in the audit log.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(super) async fn pass(
    State(context): State<Context>,
    Extension(peer): Extension<Arc<Peer>>,
    place: Option<Extension<Arc<Place>>>,
    mut request: Request,
    next: Next,
) -> Response {
    let busy = place.map(|Extension(place)| place.request());
    let shared = &context.observed.admin;
    let id = shared.next_request();
    let is_change = !request.method().is_safe();
    let mut response = match let_in(&context, &peer, &request) {
        Err(problem) => problem.into_response(),
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            match is_change {
                false => next.run(request).await,
                true => change(context.clone(), caller, id.clone(), request, next).await,
            }
        }
    };
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // An id consists of hexadecimal digits and a hyphen, so it is a valid value.
    headers.extend(HeaderValue::from_str(&id).ok().map(|id| (REQUEST_ID, id)));
    response.map(|body| Body::new(BodyWithBusy { body, _busy: busy }))
}

/// Carries out a change and writes its line of the audit log. A change continues if its client disconnects, so both run in a
/// task of their own.
async fn change(
    context: Context,
    caller: Caller,
    id: String,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let work = tokio::spawn(async move {
        let mut response = next.run(request).await;
        let outcome = response.extensions_mut().remove::<AuditedResult>().unwrap_or_default();
        if caller.role.is_some() {
            let asked = AuditedRequest { id: &id, method: method.as_str(), path: &path };
            let status = response.status().as_u16();
            context.observed.admin.audit.write(&asked, &caller, status, &outcome);
        }
        response
    });
    // A panic is a defect; the event log has its text.
    let failed = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the change failed");
    work.await.unwrap_or_else(|error| failed(error).into_response())
}

/// The body of an answer; the request is over when it is dropped.
struct BodyWithBusy {
    body: Body,
    _busy: Option<Busy>,
}

impl HttpBody for BodyWithBusy {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn let_in(context: &Context, peer: &Peer, request: &Request) -> Result<Caller, Problem> {
    let observed = &context.observed;
    if let Peer::Network(NetworkPeer { address, .. }) = peer {
        let shared = &observed.admin;
        shared.sources.request(address.ip(), shared.now_us()).map_err(|wait| {
            shared.requests_limited.fetch_add(1, Relaxed);
            Problem::too_many("too many requests from this address", wait)
        })?;
    }
    host::check(context, peer, request)?;
    check_origin(peer, request.headers())?;
    login::log_in(observed, &context.events, peer, request.headers())
}

/// Refuses requests of pages from other origins. No pages use the unix socket.
fn check_origin(peer: &Peer, headers: &HeaderMap) -> Result<(), Problem> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let scheme = if peer.is_secure() { "https" } else { "http" };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let own = host.map(|host| format!("{scheme}://{}", host.to_ascii_lowercase()));
    let is_own = own.is_some_and(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()));
    if is_own && origins.next().is_none() && matches!(peer, Peer::Network(_)) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "requests with another `Origin` come from web pages, and are refused",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins() {
        let network = |is_loopback| {
            let address = "127.0.0.1:9".parse().expect("an address");
            Peer::Network(NetworkPeer { address, is_loopback, certificate: None })
        };
        let check = |peer: &Peer, host: &'static str, origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            headers.append(ORIGIN, HeaderValue::from_static(origin));
            check_origin(peer, &headers).is_ok()
        };
        assert!(check(&network(true), "localhost:9900", "http://localhost:9900"));
        assert!(check(&network(true), "LocalHost:9900", "http://localhost:9900"));
        assert!(check(&network(false), "weir.example:8443", "https://weir.example:8443"));
        for (peer, host, origin) in [
            (network(true), "localhost:9900", "https://localhost:9900"),
            (network(true), "localhost:9900", "http://localhost"),
            (network(true), "localhost:9900", "null"),
            (network(true), "localhost:9900", ""),
            (network(true), "localhost:9900", "http://localhost:9900.evil.example"),
            (network(false), "weir.example", "http://weir.example"),
            (Peer::Local(None), "weir", "http://weir"),
        ] {
            assert!(!check(&peer, host, origin), "{host} {origin}");
        }
        let mut twice = HeaderMap::new();
        twice.insert(HOST, HeaderValue::from_static("localhost"));
        twice.append(ORIGIN, HeaderValue::from_static("http://localhost"));
        twice.append(ORIGIN, HeaderValue::from_static("http://localhost"));
        assert!(check_origin(&network(true), &twice).is_err());
        assert!(check_origin(&network(true), &HeaderMap::new()).is_ok());
    }
}
