//! weir's own HTTP/1 requests, each on its own connection.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Bytes};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::Error as TlsError;
use weir_event_loop::random;
use weir_tls::explain;

/// Maximum size of a response head in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The reason why a request failed.
#[derive(Debug)]
pub enum AskError {
    /// The response is invalid HTTP, or the connection failed.
    Http(BrokenExchange),
    /// The response has this status, not 200.
    Status(u16),
    /// The response body exceeds its limit.
    TooLong,
}

/// A failed exchange. Its text is that of the TLS alert, if one ended the connection: with TLS 1.3, a server refuses a client
/// after the handshake.
#[derive(Debug)]
pub struct BrokenExchange(hyper::Error);

impl fmt::Display for BrokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut source = self.0.source();
        while let Some(error) = source {
            let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            if let Some(tls) = inner.and_then(|inner| inner.downcast_ref::<TlsError>()) {
                return f.write_str(&explain(tls));
            }
            source = error.source();
        }
        self.0.fmt(f)
    }
}

/// Sends a request. Returns the body of a response with status 200; other statuses are errors.
pub async fn ask<B>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<B>,
    body_bytes_max: usize,
) -> Result<Bytes, AskError>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let response = exchange(stream, request, body_bytes_max).await?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(AskError::Status(status.as_u16())),
    }
}

/// Sends a request. Returns the response with any status. If the body of an error response cannot be read, it is empty.
pub async fn exchange<B>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<B>,
    body_bytes_max: usize,
) -> Result<Response<Bytes>, AskError>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (parts, body) = response.into_parts();
        let body = match Limited::new(body, body_bytes_max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) if !parts.status.is_success() => Bytes::new(),
            Err(error) => {
                let error = error.downcast();
                return Err(error.map_or(AskError::TooLong, |error| broken(*error)));
            }
        };
        Ok(Response::from_parts(parts, body))
    };
    // The connection must be polled while the exchange waits. It may end first.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        result = &mut exchange => result,
        _ = &mut connection => exchange.await,
    }
}

fn broken(error: hyper::Error) -> AskError {
    AskError::Http(BrokenExchange(error))
}

/// The pause after this number of consecutive failures, within these bounds. It grows with each failure, and is shortened at
/// random by up to a quarter.
pub fn until_retry(failures: u32, bounds: RangeInclusive<Duration>) -> Duration {
    let factor = 1 << failures.saturating_sub(1).min(16);
    let pause = bounds.start().saturating_mul(factor).min(*bounds.end());
    let spread_ms = u64::try_from(pause.as_millis() / 4).unwrap_or(u64::MAX).max(1);
    pause - Duration::from_millis(random::number() % spread_ms)
}
