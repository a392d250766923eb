//! The protocols of a product toward clients beyond plain HTTP/1.1.

use std::path::PathBuf;

use crate::run::certificates::{Certificate, Key};

/// The protocol for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Front {
    /// TLS, with a certificate of this key.
    pub key: Option<Key>,
    /// HTTP/2: by ALPN over TLS, with prior knowledge without.
    pub http2: bool,
    /// Responses are compressed.
    pub gzip: Option<GzipClass>,
}

/// How hard a product tries to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GzipClass {
    /// Level 5, as the reports had it; HAProxy's library has one level alone.
    Level5,
    /// As `Level5`, and down to level 1 if a product reduces it under load.
    Level5AtMost,
    /// The fastest that there is: level 1.
    Fastest,
}

impl GzipClass {
    /// Its level.
    pub fn level(self) -> u32 {
        match self {
            Self::Level5 | Self::Level5AtMost => 5,
            Self::Fastest => 1,
        }
    }

    /// The lowest that a product may take in its place.
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

    /// Whether it is more than plain HTTP/1.1.
    pub fn is_more(self) -> bool {
        self != Self::default()
    }

    /// Its words in templates.
    pub(super) fn marks(self) -> Vec<&'static str> {
        let marks = [
            (self.key.is_some(), "TLS"),
            (self.http2, "HTTP2"),
            (!self.http2, "HTTP1"),
            (self.gzip.is_some(), "GZIP"),
        ];
        marks.into_iter().filter(|(is_there, _)| *is_there).map(|(_, mark)| mark).collect()
    }

    /// Words of templates.
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
