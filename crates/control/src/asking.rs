//! One of weir's own HTTP/1 requests, on its own connection.

use std::ops::RangeInclusive;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use hyper::Request;
use hyper::body::{Body, Bytes};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::random::random;

/// Maximum size of the head of an answer.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// The reason why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// Invalid HTTP, or the connection failed.
    Http(hyper::Error),
    /// A status other than 200.
    Status(u16),
    /// The body exceeds its limit.
    TooLong,
}

/// Sends a request. Returns the body of an answer with status 200.
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
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(AskError::Http)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(AskError::Http)?;
        if response.status() != hyper::StatusCode::OK {
            return Err(AskError::Status(response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), body_bytes_max).collect().await;
        body.map(|body| body.to_bytes()).map_err(|error| {
            error.downcast().map_or(AskError::TooLong, |error| AskError::Http(*error))
        })
    };
    // The connection must be polled while the exchange waits, and may end first.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        result = &mut exchange => result,
        _ = &mut connection => exchange.await,
    }
}

/// The pause after this many failures in a row, within these bounds: longer with each failure, and varied by up to a
/// quarter.
pub fn until_retry(failures: u32, bounds: RangeInclusive<Duration>) -> Duration {
    let factor = 1 << failures.saturating_sub(1).min(16);
    let pause = bounds.start().saturating_mul(factor).min(*bounds.end());
    let spread_ms = u64::try_from(pause.as_millis() / 4).unwrap_or(u64::MAX).max(1);
    pause - Duration::from_millis(random() % spread_ms)
}
