//! Probes of the gRPC health service.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use weir_config::snapshot::GrpcProbe;

use super::*;

/// The answer to a request: the message and `grpc-status`, which depend on the requested service.
fn answer(service: &[u8]) -> (&'static [u8], &'static str) {
    match service {
        b"\0\0\0\0\0" => (b"\0\0\0\0\x02\x08\x01", "0"),
        b"\0\0\0\0\x06\x0a\x04shop" | b"\0\0\0\0\x06\x0a\x04open" => (b"\0\0\0\0\x02\x08\x02", "0"),
        _ => (b"", "5"),
    }
}

async fn health(
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
    assert_eq!(request.headers()["content-type"], "application/grpc");
    assert_eq!(request.headers()["te"], "trailers");
    let asked = request.into_body().collect().await.unwrap().to_bytes();
    let (message, status) = answer(&asked);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    let body = Full::new(Bytes::from_static(message));
    if asked.ends_with(b"open") {
        // The call never ends.
        return Ok(Response::new(body.with_trailers(std::future::pending()).boxed_unsync()));
    }
    Ok(Response::new(body.with_trailers(async { Some(Ok(trailers)) }).boxed_unsync()))
}

async fn service() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(stream), service_fn(health)));
        }
    });
    Address::Socket(address)
}

async fn of_service(address: &Address, service: &str) -> String {
    let probe = GrpcProbe { service: service.into(), host: None, tls: None };
    result(address, MonitorKind::Grpc(probe)).await
}

#[tokio::test]
async fn the_status_decides() {
    let server = service().await;
    assert_eq!(of_service(&server, "").await, "passed");
    assert_eq!(of_service(&server, "shop").await, "the health service says NOT_SERVING");
    // The message decides, although the server keeps the call open.
    assert_eq!(of_service(&server, "open").await, "the health service says NOT_SERVING");
    assert_eq!(of_service(&server, "other").await, "the health service failed: NOT_FOUND");
}

/// A server that sends the same bytes on every connection.
async fn talkative(answer: &'static str) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1_024]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.read(&mut [0; 1_024]).await;
        }
    });
    Address::Socket(address)
}

#[tokio::test]
async fn other_servers_fail() {
    let http_1 = talkative("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
    let told = of_service(&http_1, "").await;
    assert!(told.contains("not HTTP/2"), "{told}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute = Address::Socket(listener.local_addr().unwrap());
    assert_eq!(of_service(&mute, "").await, "no answer in 300ms (waiting for the response)");
    drop(listener);
    assert_eq!(of_service(&mute, "").await, "connection refused");
}
