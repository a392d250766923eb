//! The HTTP part of a probe: one request on its own connection.

use data_encoding::BASE64;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, HOST, HeaderName, USER_AGENT};
use hyper_util::rt::TokioIo;
use weir_config::snapshot::{BodyMatch, Credentials, DrainAnswer, HttpProbe};
use weir_core::monitor::ProbeOutcome;

use super::answer::{BODY_SIZE_MAX, has};
use super::connection::Connection;
use super::failure::{Deadline, Failure, Step};

/// Maximum size of a response head in bytes.
const HEAD_SIZE_MAX: usize = 32 * 1024;

/// Sends the request and judges the answer.
pub(super) async fn ask(
    stream: Connection,
    probe: &HttpProbe,
    host: &str,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let request = request(probe, host)?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(HEAD_SIZE_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failure(&error, Step::Waiting))?;
    let exchange = async {
        let response = deadline.within(Step::Waiting, sender.send_request(request)).await?;
        let response = response.map_err(|error| failure(&error, Step::Waiting))?;
        let status = response.status().as_u16();
        let is_in = |ranges: &[(u16, u16)]| {
            ranges.iter().any(|&(first, last)| (first..=last).contains(&status))
        };
        let may_drain = |answer: &&DrainAnswer| answer.status.as_deref().is_none_or(is_in);
        let drain_on = probe.drain_on.as_ref().filter(may_drain);
        let is_expected = is_in(&probe.expect_status);
        let drains_by_body = drain_on.is_some_and(|answer| answer.body.is_some());
        let body = if drains_by_body || (is_expected && probe.expect_body.is_some()) {
            // A text that has come decides, before the body ends. A pattern may be about its end.
            let asks = drain_on.and_then(|answer| answer.body.as_ref());
            let text = match asks.or(probe.expect_body.as_ref()) {
                Some(text @ BodyMatch::Substring(_)) => Some(text),
                _ => None,
            };
            let decides = |came: &[u8]| text.is_some_and(|text| has(came, text));
            read_body(response.into_body(), decides, deadline).await?
        } else {
            Vec::new()
        };
        let holds = |expected: &Option<_>| expected.as_ref().is_none_or(|text| has(&body, text));
        if drain_on.is_some_and(|answer| holds(&answer.body)) {
            return Ok(ProbeOutcome::Drain);
        }
        if !is_expected {
            return Err(Failure::Status(status));
        }
        if holds(&probe.expect_body) { Ok(ProbeOutcome::Passed) } else { Err(Failure::Body) }
    };
    // The connection must be polled while the exchange waits. If the connection ends first, after it has delivered all
    // received data, the exchange continues alone. Both end with this function.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        result = &mut exchange => result,
        _ = &mut connection => exchange.await,
    }
}

/// The request: configured fields, and default fields that are not configured.
fn request(probe: &HttpProbe, host: &str) -> Result<Request<Full<Bytes>>, Failure> {
    /// Default fields, which some servers require.
    const OWN: [(HeaderName, &str); 2] =
        [(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION"), " (monitor)")), (ACCEPT, "*/*")];
    let mut request = Request::builder()
        .method(probe.method.as_str())
        .uri(&*probe.path)
        .header(HOST, host)
        .header(CONNECTION, "close");
    for (name, value) in &probe.fields {
        request = request.header(&**name, value.expose());
    }
    for (name, value) in OWN {
        if !probe.fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name.as_str())) {
            request = request.header(name, value);
        }
    }
    if let Some(Credentials { user, password }) = &probe.credentials {
        let pair = format!("{user}:{}", password.expose());
        request =
            request.header(AUTHORIZATION, format!("Basic {}", BASE64.encode(pair.as_bytes())));
    }
    let body = Full::new(Bytes::copy_from_slice(&probe.body));
    // The error contains no field values.
    request.body(body).map_err(|error| Failure::Malformed(format!("cannot be asked for: {error}")))
}

/// Reads the body, or its first [`BODY_SIZE_MAX`] bytes, until `decides` is true for what has come. A body that does not end
/// in time is judged by what has come: it is an answer.
async fn read_body(
    mut body: Incoming,
    decides: impl Fn(&[u8]) -> bool,
    deadline: Deadline,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::with_capacity(body.size_hint().lower().min(BODY_SIZE_MAX as u64) as usize);
    while bytes.len() < BODY_SIZE_MAX && !decides(&bytes) {
        let frame = match deadline.within(Step::Reading, body.frame()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) if !bytes.is_empty() => break,
            Err(timeout) => return Err(timeout),
        };
        let frame = frame.map_err(|error| failure(&error, Step::Reading))?;
        if let Some(data) = frame.data_ref() {
            let wanted = data.len().min(BODY_SIZE_MAX - bytes.len());
            bytes.extend_from_slice(&data[..wanted]);
        }
    }
    Ok(bytes)
}

fn failure(error: &hyper::Error, step: Step) -> Failure {
    if error.is_parse() || error.is_parse_too_large() {
        return Failure::Malformed(error.to_string());
    }
    // Incomplete messages, resets and closed connections are reported alike.
    Failure::Closed(step)
}
