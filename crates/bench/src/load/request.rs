//! Requests as they go over the wire.

use std::net::SocketAddr;

use super::plan::Target;

/// A request to be sent again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// Where to connect to.
    pub address: SocketAddr,
    /// The method.
    pub method: String,
    /// What Host says.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Further fields; one that is named Host, User-Agent or Accept takes the place of ours.
    pub fields: Vec<(String, String)>,
    /// The body; its Content-Length is written where there is one, and for methods that expect one.
    pub body: Vec<u8>,
}

impl RequestSpec {
    /// A GET without anything special.
    pub fn get(address: SocketAddr, path: &str) -> Self {
        Self {
            address,
            method: "GET".to_owned(),
            authority: address.to_string(),
            path: path.to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    /// The bytes, to be asked for by `weight`.
    pub fn into_target(self, weight: u32) -> Target {
        Target {
            address: self.address,
            request: self.bytes(false),
            last_request: self.bytes(true),
            is_head: self.method == "HEAD",
            weight,
        }
    }

    fn bytes(&self, is_last: bool) -> Vec<u8> {
        let is_given =
            |name: &str| self.fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let mut field = |name: &str, value: &str| {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push_str("\r\n");
        };
        let ours =
            [("Host", self.authority.as_str()), ("User-Agent", "weir-bench"), ("Accept", "*/*")];
        for (name, value) in ours {
            if !is_given(name) {
                field(name, value);
            }
        }
        for (name, value) in &self.fields {
            field(name, value);
        }
        // RFC 9110 section 8.6: a method that is known to have a body says so even when it is empty.
        if !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH") {
            field("Content-Length", &self.body.len().to_string());
        }
        if is_last {
            field("Connection", "close");
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_written_whole() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let text = |spec: &RequestSpec, is_last| String::from_utf8(spec.bytes(is_last)).unwrap();
        let mut spec = RequestSpec::get(address, "/a?b");
        let ours = "User-Agent: weir-bench\r\nAccept: */*\r\n";
        assert_eq!(
            text(&spec, false),
            format!("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:80\r\n{ours}\r\n")
        );
        assert_eq!(
            text(&spec, true),
            format!("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:80\r\n{ours}Connection: close\r\n\r\n")
        );
        spec.method = "POST".to_owned();
        spec.fields = vec![("host".to_owned(), "shop".to_owned())];
        spec.body = b"ab".to_vec();
        assert_eq!(
            text(&spec, false),
            format!("POST /a?b HTTP/1.1\r\n{ours}host: shop\r\nContent-Length: 2\r\n\r\nab")
        );
    }
}
