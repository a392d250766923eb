//! The protocols of a product toward clients, beyond plain HTTP/1.1.

use std::path::PathBuf;

use crate::run::certificates::{Certificate, Key};

/// The protocol toward clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Front {
    /// TLS, with a certificate of this key.
    pub key: Option<Key>,
    /// HTTP/2: with TLS by ALPN, without TLS by prior knowledge.
    pub http2: bool,
    /// The product compresses responses.
    pub gzip: Option<GzipClass>,
}

/// Compression level of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GzipClass {
    /// Level 5, as in the reports. HAProxy's library has only one level.
    Level5,
    /// At most level 5: a product may reduce the level under load, down to 1.
    Level5AtMost,
    /// The fastest level: 1.
    Fastest,
}

impl GzipClass {
    /// The configured level.
    pub fn level(self) -> u32 {
        match self {
            Self::Level5 | Self::Level5AtMost => 5,
            Self::Fastest => 1,
        }
    }

    /// The lowest level that a product may use instead.
    fn level_min(self) -> u32 {
        match self {
            Self::Level5 => 5,
            Self::Level5AtMost | Self::Fastest => 1,
        }
    }
}

impl Front {
    /// TLS with a certificate of this key.
    pub const fn secure(key: Key) -> Self {
        Self { key: Some(key), http2: false, gzip: None }
    }

    /// Whether clients need more than plain HTTP/1.1.
    pub fn is_more(self) -> bool {
        self != Self::default()
    }

    /// Feature names for `@IF` in templates.
    pub(super) fn marks(self) -> Vec<&'static str> {
        let marks = [
            (self.key.is_some(), "TLS"),
            (self.http2, "HTTP2"),
            (!self.http2, "HTTP1"),
            (self.gzip.is_some(), "GZIP"),
        ];
        marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, mark)| mark).collect()
    }

    /// Template values.
    pub(super) fn words(self, certificate: Option<&Certificate>) -> [(&'static str, String); 5] {
        let path = |of: fn(&Certificate) -> &PathBuf| {
            certificate.map(|it| of(it).display().to_string()).unwrap_or_default()
        };
        [
            ("CERTIFICATE", path(|it| &it.chain)),
            ("KEY", path(|it| &it.key)),
            ("BOTH", path(|it| &it.both)),
            ("LEVEL", self.gzip.map_or(0, GzipClass::level).to_string()),
            ("LEVEL_MIN", self.gzip.map_or(0, GzipClass::level_min).to_string()),
        ]
    }
}
