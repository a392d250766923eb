//! HTTP/1.1 and HTTP/1.0 (RFC 9112).
