//! The HTTP part of a probe: one GET on a connection of its own.

use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use weir_config::snapshot::{BodyMatch, HttpProbe};

use super::{BODY_SIZE_MAX, Deadline, Failure, Step};

/// Bytes of a response head.
const HEAD_SIZE_MAX: usize = 32 * 1024;

/// What an HTTP probe can talk over.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// Sends the GET and judges the answer.
pub(super) async fn ask(
    stream: impl Stream,
    probe: &HttpProbe,
    host: &str,
    deadline: Deadline,
) -> Result<(), Failure> {
    let request = hyper::Request::get(&*probe.path)
        .header(HOST, host)
        .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION"), " (monitor)"))
        .header(ACCEPT, "*/*")
        .header(CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| Failure::Malformed(format!("cannot be asked for: {error}")))?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_SIZE_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failure(&error, Step::Waiting))?;
    let exchange = async {
        let response = deadline.within(Step::Waiting, sender.send_request(request)).await?;
        let response = response.map_err(|error| failure(&error, Step::Waiting))?;
        let status = response.status().as_u16();
        if !probe.expect_status.iter().any(|&(first, last)| (first..=last).contains(&status)) {
            return Err(Failure::Status(status));
        }
        let Some(expected) = &probe.expect_body else {
            return Ok(());
        };
        let body = deadline.within(Step::Reading, read_body(response.into_body())).await??;
        if matches(expected, &body) { Ok(()) } else { Err(Failure::Body) }
    };
    // The connection has to be driven while the exchange waits. It may end first, once it has handed
    // over all that it read; then the exchange goes on alone. Both end with this function.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        result = &mut exchange => result,
        _ = &mut connection => exchange.await,
    }
}

/// The body, or its first [`BODY_SIZE_MAX`] bytes.
async fn read_body(mut body: Incoming) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(body.size_hint().lower().min(BODY_SIZE_MAX as u64) as usize);
    while bytes.len() < BODY_SIZE_MAX
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| failure(&error, Step::Reading))?;
        if let Some(data) = frame.data_ref() {
            let wanted = data.len().min(BODY_SIZE_MAX - bytes.len());
            bytes.extend_from_slice(&data[..wanted]);
        }
    }
    Ok(bytes)
}

fn matches(expected: &BodyMatch, body: &[u8]) -> bool {
    match expected {
        BodyMatch::Substring(text) => contains(body, text.as_bytes()),
        BodyMatch::Regex(regex) => regex.is_match(body),
    }
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || memchr::memmem::find(body, text).is_some()
}

fn failure(error: &hyper::Error, step: Step) -> Failure {
    if error.is_parse() || error.is_parse_too_large() {
        return Failure::Malformed(error.to_string());
    }
    // Incomplete messages, resets and closed connections are one thing to the reader of the log.
    Failure::Closed(step)
}

#[cfg(test)]
mod tests {
    use super::contains;

    #[test]
    fn substrings() {
        for (body, text, expected) in [
            ("status: ok\n", "ok", true),
            ("status: ok", "OK", false),
            ("", "", true),
            ("", "x", false),
            ("ok", "okay", false),
        ] {
            assert_eq!(contains(body.as_bytes(), text.as_bytes()), expected, "{body:?} {text:?}");
        }
    }
}
