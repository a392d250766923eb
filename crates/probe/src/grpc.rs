//! The health service of gRPC (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>): one call of
//! `grpc.health.v1.Health/Check` on its own connection. Each message has a single field, so the code here encodes and
//! decodes it itself.

use std::fmt::Write as _;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, TE, USER_AGENT};
use hyper_util::rt::{TokioExecutor, TokioIo};
use weir_config::snapshot::GrpcProbe;
use weir_core::monitor::ProbeOutcome;

use super::connection::Connection;
use super::failure::{Deadline, Failure, Step};

const PATH: &str = "/grpc.health.v1.Health/Check";
/// Maximum size of a response. A response has 7 bytes, and later versions may add fields.
const RESPONSE_BYTES_MAX: usize = 4 * 1024;
/// Size of the prefix: a flag for compression, and the message's length in 4 bytes.
const PREFIX_BYTES: usize = 5;
/// The status of a successful RPC.
const STATUS_OK: &str = "0";

/// Calls the service and judges the answer.
pub(super) async fn ask(
    stream: Connection,
    probe: &GrpcProbe,
    host: &str,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let scheme = if probe.tls.is_some() { "https" } else { "http" };
    let request = hyper::Request::post(format!("{scheme}://{host}{PATH}"))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .header(USER_AGENT, concat!("weir/", env!("CARGO_PKG_VERSION"), " (monitor)"))
        .body(Full::new(Bytes::from(request(&probe.service))))
        .map_err(|error| Failure::Malformed(format!("cannot be asked for: {error}")))?;
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let connecting = builder.handshake(TokioIo::new(stream));
    let connected = deadline.within(Step::Waiting, connecting).await?;
    let (mut sender, connection) = connected.map_err(|error| failure(&error))?;
    let exchange = async {
        let response = deadline.within(Step::Waiting, sender.send_request(request)).await?;
        let response = response.map_err(|error| failure(&error))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(Failure::Status(status));
        }
        let (head, body) = response.into_parts();
        judge(&head.headers, deadline.within(Step::Reading, read(body)).await??)
    };
    // As in `http`, the exchange and the connection end with this function.
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        result = &mut exchange => result,
        _ = &mut connection => exchange.await,
    }
}

/// Reads the message and the trailers. A message that does not say SERVING decides at once, also if the server never ends
/// the call.
async fn read(body: Incoming) -> Result<(Bytes, HeaderMap), Failure> {
    let mut body = Limited::new(body, RESPONSE_BYTES_MAX);
    let (mut message, mut trailers) = (Vec::new(), HeaderMap::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.downcast::<hyper::Error>() {
            Ok(error) => failure(&error),
            Err(error) => Failure::Malformed(error.to_string()),
        })?;
        match frame.into_data() {
            Ok(data) => message.extend_from_slice(&data),
            Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
        }
        if is_whole(&message) {
            served(&message)?;
        }
    }
    Ok((message.into(), trailers))
}

/// Whether a message has the length in its prefix, or more.
fn is_whole(message: &[u8]) -> bool {
    let Some((&[_, a, b, c, d], rest)) = message.split_at_checked(PREFIX_BYTES) else {
        return false;
    };
    rest.len() >= u32::from_be_bytes([a, b, c, d]) as usize
}

/// Judges a response. A failed RPC may have its status in the head, and no message.
fn judge(
    head: &HeaderMap,
    (message, trailers): (Bytes, HeaderMap),
) -> Result<ProbeOutcome, Failure> {
    let of = |name: &str| trailers.get(name).or_else(|| head.get(name));
    let text = |name: &str| of(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let status = text("grpc-status");
    if status != STATUS_OK {
        return Err(Failure::Rpc(told(status, text("grpc-message"))));
    }
    served(&message)
}

/// Judges a whole message with its prefix.
fn served(message: &[u8]) -> Result<ProbeOutcome, Failure> {
    let message = match message.split_at_checked(PREFIX_BYTES) {
        Some((&[0, a, b, c, d], message))
            if u32::from_be_bytes([a, b, c, d]) as usize == message.len() =>
        {
            message
        }
        _ => return Err(Failure::Malformed("not one uncompressed gRPC message".into())),
    };
    match serving_status(message) {
        Some(1) => Ok(ProbeOutcome::Passed),
        Some(0) => Err(Failure::Serving("UNKNOWN")),
        Some(2) => Err(Failure::Serving("NOT_SERVING")),
        Some(3) => Err(Failure::Serving("SERVICE_UNKNOWN")),
        _ => Err(Failure::Malformed("not a HealthCheckResponse".into())),
    }
}

/// The error of an RPC as text: `NOT_FOUND: unknown service shop`.
fn told(status: &str, message: &str) -> String {
    let mut told = match status {
        "" => "no grpc-status".to_owned(),
        "5" => "NOT_FOUND".to_owned(),
        "12" => "UNIMPLEMENTED, the server has no health service".to_owned(),
        "14" => "UNAVAILABLE".to_owned(),
        other => format!("status {other}"),
    };
    if !message.is_empty() {
        // Writing to a String does not fail.
        let _ = write!(told, ": {message}");
    }
    told
}

/// The message `HealthCheckRequest { service }` with its prefix.
fn request(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        // Field 1, length-delimited.
        message.push(0x0a);
        put_varint(service.len() as u64, &mut message);
        message.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![0];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.append(&mut message);
    bytes
}

/// Field 1 of `HealthCheckResponse`, or 0 if it is missing; `None`: not such a message.
fn serving_status(mut message: &[u8]) -> Option<u64> {
    let mut status = 0;
    while !message.is_empty() {
        let key = take_varint(&mut message)?;
        match (key >> 3, key & 7) {
            (1, 0) => status = take_varint(&mut message)?,
            (_, 0) => drop(take_varint(&mut message)?),
            (_, 1) => message = message.get(8..)?,
            (_, 2) => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                message = message.get(length..)?;
            }
            (_, 5) => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(status)
}

fn put_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn failure(error: &hyper::Error) -> Failure {
    if error.is_closed() || error.is_canceled() || error.is_incomplete_message() {
        return Failure::Closed(Step::Waiting);
    }
    // This error also occurs if the server speaks only HTTP/1.
    Failure::Malformed(format!("not HTTP/2: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        assert_eq!(request(""), [0, 0, 0, 0, 0]);
        assert_eq!(request("shop"), *b"\0\0\0\0\x06\x0a\x04shop");
        let long = "s".repeat(300);
        let bytes = request(&long);
        assert_eq!(bytes[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 0x02]);
        assert_eq!(bytes.len(), 5 + 303);
    }

    #[test]
    fn responses() {
        let check = |message: &[u8], expected| {
            assert_eq!(serving_status(message), expected, "{message:?}");
        };
        check(b"", Some(0));
        check(&[0x08, 1], Some(1));
        check(&[0x08, 2], Some(2));
        // Unknown fields of every wire type.
        check(&[0x10, 0xff, 1, 0x08, 1], Some(1));
        check(&[0x12, 2, 9, 9, 0x08, 1], Some(1));
        check(&[0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 1, 0x15, 0, 0, 0, 0], Some(1));
        // Truncated fields, a number that is too long, an unknown wire type.
        check(&[0x08], None);
        check(&[0x12, 9, 0], None);
        check(&[0x0b], None);
        check(&[0xff; 20], None);
    }

    #[test]
    fn answers_are_judged() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect::<HeaderMap>()
        };
        let check = |head, message: &'static [u8], trailers, expected: &str| {
            let message = Bytes::from_static(message);
            let told = match judge(&headers(head), (message, headers(trailers))) {
                Ok(outcome) => format!("{outcome:?}"),
                Err(failure) => failure.to_string(),
            };
            assert_eq!(told, expected);
        };
        let fine: &[(&str, &str)] = &[("grpc-status", "0")];
        check(&[], b"\0\0\0\0\x02\x08\x01", fine, "Passed");
        check(&[], b"\0\0\0\0\x02\x08\x02", fine, "the health service says NOT_SERVING");
        check(&[], b"\0\0\0\0\0", fine, "the health service says UNKNOWN");
        let not_one = "malformed response: not one uncompressed gRPC message";
        check(&[], b"", fine, not_one);
        check(&[], b"\x01\0\0\0\x02\x08\x01", fine, not_one);
        check(&[], b"\0\0\0\0\x09\x08\x01", fine, not_one);
        let unknown: &[(&str, &str)] = &[("grpc-status", "5"), ("grpc-message", "unknown service")];
        let told = "the health service failed: NOT_FOUND: unknown service";
        check(&[], b"", unknown, told);
        check(unknown, b"", &[], told);
        check(&[], b"\0\0\0\0\x02\x08\x01", &[], "the health service failed: no grpc-status");
    }
}
