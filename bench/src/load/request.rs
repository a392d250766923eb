//! The bytes of requests.

use std::net::SocketAddr;

use super::plan::{RequestLines, Target};

/// A request that is sent repeatedly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSpec {
    /// The server's address.
    pub address: SocketAddr,
    /// The method.
    pub method: String,
    /// The value of the Host field.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// Further fields. A field Host, User-Agent or Accept replaces the default one.
    pub fields: Vec<(String, String)>,
    /// The body. Content-Length is written if there is a body, or if the method usually has one.
    pub body: Vec<u8>,
}

impl RequestSpec {
    /// A GET request with the default fields.
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

    /// Writes the request's bytes into a target with this weight.
    pub fn into_target(self, weight: u32) -> Target {
        Target {
            address: self.address,
            request: self.bytes(false),
            last_request: self.bytes(true),
            lines: self.lines(),
            is_head: self.method == "HEAD",
            weight,
        }
    }

    fn is_given(&self, name: &str) -> bool {
        self.fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
    }

    fn lines(&self) -> RequestLines {
        let ours = [("user-agent", "weir-bench"), ("accept", "*/*")];
        let ours = ours.into_iter().filter(|(name, _)| !self.is_given(name));
        let given = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let is_host = |name: &str| name.eq_ignore_ascii_case("host");
        // RFC 9113 section 8.3.1: clients send the authority as :authority, not as Host.
        let host = self.fields.iter().find(|(name, _)| is_host(name));
        let fields = ours.chain(given).filter(|(name, _)| !is_host(name));
        RequestLines {
            method: self.method.clone().into(),
            authority: host.map_or(&self.authority, |(_, value)| value).clone().into(),
            path: self.path.clone().into(),
            fields: fields
                .map(|(name, value)| (name.to_ascii_lowercase().into(), value.into()))
                .collect(),
        }
    }

    fn bytes(&self, is_last: bool) -> Vec<u8> {
        let is_given = |name: &str| self.is_given(name);
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
        // RFC 9110 section 8.6: methods that usually have a body send Content-Length even if the body is empty.
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
    #[test]
    fn requests_have_lines_of_http2() {
        let mut spec = RequestSpec::get("127.0.0.1:80".parse().unwrap(), "/a?b");
        spec.fields = [("Accept", "text/html"), ("Host", "shop")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let lines = spec.lines();
        let fields: Vec<_> = lines
            .fields
            .iter()
            .map(|(name, value)| [name, value].map(|text| String::from_utf8_lossy(text)))
            .collect();
        assert_eq!(fields, [["user-agent", "weir-bench"], ["accept", "text/html"]]);
        assert_eq!([&lines.method, &lines.authority, &lines.path], [&b"GET"[..], b"shop", b"/a?b"]);
    }
}
