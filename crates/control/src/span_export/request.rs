//! An OTLP request (`opentelemetry/proto/collector/trace/v1/trace_service.proto`) with encoded spans.

use weir_telemetry::protobuf::{Fields, Message, Value};

/// The parts of a request around its spans.
pub struct Request<'a> {
    /// `service.name`.
    pub service_name: &'a str,
}

impl Request<'_> {
    /// The body. `spans`: encoded fields `spans` of `ScopeSpans`.
    pub fn encode(&self, spans: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(spans.len() + 512);
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        let host = rustix::system::uname();
        let host = host.nodename().to_bytes();
        let process = std::process::id();
        let instance = [host, b"-", process.to_string().as_bytes()].concat();
        Message::new(&mut out).message(1, |resource_spans| {
            resource_spans.message(1, |resource| {
                put_attribute(resource, "service.name", self.service_name.as_bytes());
                put_attribute(resource, "service.version", version);
                put_attribute(resource, "service.instance.id", &instance);
                put_attribute(resource, "host.name", host);
            });
            resource_spans.message(2, |scope_spans| {
                scope_spans.message(1, |scope| {
                    scope.text(1, b"weir");
                    scope.text(2, version);
                });
                scope_spans.fields(spans);
            });
        });
        out
    }
}

fn put_attribute(resource: &mut Message<'_>, key: &str, value: &[u8]) {
    resource.message(1, |pair| {
        pair.text(1, key.as_bytes());
        pair.message(2, |any| any.text(1, value));
    });
}

/// The number of refused spans in a response, and the reason. An unreadable response refuses none.
pub fn refused(response: &[u8]) -> (u64, String) {
    let (mut refused, mut reason) = (0, String::new());
    for (field, value) in Fields(response) {
        let (1, Value::Bytes(partial)) = (field, value) else { continue };
        for (field, value) in Fields(partial) {
            match (field, value) {
                (1, Value::Number(number)) => refused = number,
                (2, Value::Bytes(text)) => reason = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
    }
    (refused, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses() {
        let response = |refused: u64, reason: &str| {
            let mut out = Vec::new();
            Message::new(&mut out).message(1, |partial| {
                partial.number(1, refused);
                partial.text(2, reason.as_bytes());
            });
            out
        };
        assert_eq!(refused(&response(3, "too long")), (3, "too long".to_owned()));
        assert_eq!(refused(b""), (0, String::new()));
        for text in [&b"{}"[..], b"\x0a\xff", b"\x0a\x02\x08", b"not this"] {
            assert_eq!(refused(text).0, 0, "{text:?}");
        }
    }
}
