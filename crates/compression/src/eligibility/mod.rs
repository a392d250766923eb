//! Decides whether a response is compressed.
//!
//! | property of the response | result |
//! |---|---|
//! | status | compressed: 200 to 203, 207, 4xx and 5xx except 416; not: without content (1xx, 204, 304), partial content (206), redirections |
//! | 206, 304 | the fields that 200 would have (RFC 9110 sections 15.3.7 and 15.4.5), as far as known: 304 usually has no Content-Type |
//! | method | any; a response to HEAD gets the fields that a response to GET would have, and no length |
//! | client of HTTP/1.0 | unchanged: without chunked coding, only the end of the connection would mark the end |
//! | Content-Encoding (except `identity`) | unchanged: no second coding |
//! | Cache-Control: no-transform, in the request or the response | unchanged |
//! | Content-Range | unchanged |
//! | a digest: Content-MD5, Content-Digest, Repr-Digest, Digest, in the head or announced as a trailer | unchanged: the digest is for these bytes, and weir must not remove it |
//! | Content-Type not in [`Rules::types`], missing or duplicate | unchanged |
//! | length known and less than [`Rules::min_size_bytes`] | unchanged; an unknown length counts as large enough |
//!
//! A response that would be compressed for other clients has `Vary: Accept-Encoding`.

mod default_types;
mod facts;
#[cfg(test)]
mod tests;

use weir_http::message::Version;

use crate::coding::{Coding, Level};
use crate::negotiation::{Choice, accept_encoding};

pub use default_types::{DEFAULT_TYPES, default_types};
pub use facts::{RequestTraits, ResponseTraits};
pub use weir_http::media_types::{BadPattern, MediaTypes};

/// The rules for compression. [`Rules::default`] has the default codings and the default minimum size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The offered codings, best first, without duplicates. Of codings with the same weight in Accept-Encoding, the first is
    /// used.
    pub offered: Vec<(Coding, Level)>,
    /// Minimum size of compressed content.
    pub min_size_bytes: u64,
    /// The lowest level to which a [`crate::Budget`] may reduce the level; `None`: it may switch compression off.
    pub level_min: Option<Level>,
    /// The types of content that are compressed.
    pub types: MediaTypes,
}

/// Compression of smaller content saves little: it fits into one or two packets anyway.
const DEFAULT_MIN_SIZE_BYTES: u64 = 1024;

impl Default for Rules {
    fn default() -> Self {
        let level = |level| Level::new(level).unwrap_or(Level::MIN);
        Self {
            offered: vec![
                (Coding::Zstd, level(3)),
                (Coding::Brotli, level(3)),
                (Coding::Gzip, level(5)),
            ],
            min_size_bytes: DEFAULT_MIN_SIZE_BYTES,
            level_min: None,
            types: default_types(),
        }
    }
}

impl Rules {
    /// The coding for this client among the offered ones.
    fn choose<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Choice {
        let mut codings = [Coding::Gzip; Coding::COUNT];
        let count = self.offered.len().min(Coding::COUNT);
        for (slot, (coding, _)) in std::iter::zip(&mut codings, &self.offered) {
            *slot = *coding;
        }
        accept_encoding(values, &codings[..count])
    }

    /// The level of a coding; `None`: the coding is not offered.
    pub fn level(&self, coding: Coding) -> Option<Level> {
        self.offered.iter().find(|(offered, _)| *offered == coding).map(|(_, level)| *level)
    }
}

/// The decision about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The response is compressed.
    Compress {
        /// The coding.
        coding: Coding,
        /// The configured level; [`crate::Budget`] may reduce it.
        level: Level,
        /// When the encoder must output its data.
        flush: FlushWhen,
    },
    /// The response is not compressed.
    Identity {
        /// Whether other clients would get a compressed response, which caches must know.
        vary: bool,
    },
}

/// The time at which an encoder must output the data that it holds ([`crate::Flush::Sync`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushWhen {
    /// Only at the end: the length is known, so the member sends all data without waiting.
    End,
    /// Whenever all data received from the member is encoded: the length is unknown, so this may be an event stream, or a
    /// page whose first half should be visible while the member produces the second.
    Dry,
}

/// Decides about the response to a request.
pub fn decide(rules: &Rules, request: &RequestTraits, response: &ResponseTraits<'_>) -> Decision {
    if rules.offered.is_empty() || !may_compress(rules, response) {
        return Decision::Identity { vary: false };
    }
    if !has_content(response.status) {
        return Decision::Identity { vary: true };
    }
    let coding = request.choice.coding();
    let may_take = !request.no_transform && request.version >= Version::Http11;
    match coding.and_then(|coding| Some((coding, rules.level(coding)?))) {
        Some((coding, level)) if may_take => {
            let flush =
                if response.length_bytes.is_some() { FlushWhen::End } else { FlushWhen::Dry };
            Decision::Compress { coding, level, flush }
        }
        _ => Decision::Identity { vary: true },
    }
}

/// Whether some client could get this response compressed; for partial content, whether it could get the whole content
/// compressed.
fn may_compress(rules: &Rules, response: &ResponseTraits<'_>) -> bool {
    if response.is_encoded || response.has_digest || response.no_transform {
        return false;
    }
    let is_of_types = |content_type: &[u8]| rules.types.contain(content_type);
    let is_long = |bytes: u64| bytes > 0 && bytes >= rules.min_size_bytes;
    match response.status {
        206 => response.content_type.is_some_and(is_of_types),
        304 => response.content_type.is_none_or(is_of_types),
        status => {
            has_content(status)
                && !response.is_range
                && response.length_bytes.is_none_or(is_long)
                && response.content_type.is_some_and(is_of_types)
        }
    }
}

/// Whether a response with this status has complete content.
fn has_content(status: u16) -> bool {
    matches!(status, 200..=203 | 207 | 400..=415 | 417..=599)
}
