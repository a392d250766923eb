//! Whether a response is to be compressed.
//!
//! | property of the response | result |
//! |---|---|
//! | status | compressed: 200 to 203, 207, 4xx and 5xx but 416; not without content (1xx, 204, 304), not partial (206), no redirection |
//! | 206, 304 | the fields that 200 would have (RFC 9110 sections 15.3.7 and 15.4.5), as far as they are known: 304 mostly has no Content-Type |
//! | method | any; a response to HEAD gets the fields that GET would have got, and no length |
//! | client of HTTP/1.0 | unchanged: without chunks only the end of the connection would mark the end |
//! | Content-Encoding (but `identity`) | unchanged: no second coding |
//! | Cache-Control: no-transform, of either side | unchanged |
//! | Content-Range | unchanged |
//! | a digest: Content-MD5, Content-Digest, Repr-Digest, Digest, in the head or announced as a trailer | unchanged: the digest proves these bytes, and weir must not drop it |
//! | Content-Type not in [`Rules::types`], missing or duplicate | unchanged |
//! | length known and less than [`Rules::min_size_bytes`] | unchanged; an unknown length counts as large enough |
//!
//! A response that another client would have got compressed has `Vary: Accept-Encoding`.

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

/// Which responses are compressed, and how. [`Rules::default`] has the default codings and the default minimum size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Codings on offer, best first, each once. With the same weight in Accept-Encoding the first wins.
    pub offered: Vec<(Coding, Level)>,
    /// Content shorter than this stays as it is.
    pub min_size_bytes: u64,
    /// How far a [`crate::Budget`] may lower the level; `None`: down to no compression.
    pub level_min: Option<Level>,
    /// Types of content that are compressed.
    pub types: MediaTypes,
}

/// Below this there is little to gain: it fits a packet or two anyway.
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
    /// The coding for this client among those on offer.
    fn choose<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Choice {
        let mut codings = [Coding::Gzip; Coding::COUNT];
        let count = self.offered.len().min(Coding::COUNT);
        for (slot, (coding, _)) in std::iter::zip(&mut codings, &self.offered) {
            *slot = *coding;
        }
        accept_encoding(values, &codings[..count])
    }

    /// The level of a coding; `None`: it is not on offer.
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
        /// As configured; [`crate::Budget`] may lower it.
        level: Level,
        /// When the encoder must output its data.
        flush: FlushWhen,
    },
    /// The response is not compressed.
    Identity {
        /// Another client would have got it compressed: caches have to know.
        vary: bool,
    },
}

/// When an encoder must output the data that it has taken ([`crate::Flush::Sync`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushWhen {
    /// At the end only: the length is known, so the member is not waiting for anything.
    End,
    /// Whenever everything that the member has sent so far is in: the length is not known, so this may be an
    /// event stream, or a page whose first half is to be seen while the member works on the second.
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

/// Whether a response of this status has a content, and all of it.
fn has_content(status: u16) -> bool {
    matches!(status, 200..=203 | 207 | 400..=415 | 417..=599)
}
