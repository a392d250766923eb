//! `path`: how the path of a request is normalised for members and rules.

use crate::scalar::{Keyword, WordOr};

/// `keep`.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep;

impl Keyword for Keep {
    const WORD: &'static str = "keep";
}

/// `keep` for the whole path, or settings for its parts.
pub(crate) type PathOr = WordOr<Keep, Path>;

section! {
    /// Treatment of elements of a path that servers interpret differently. weir always removes dot-segments (`..`, `%2e%2e`), after it has applied the settings below.
    Path at "profiles.http.NAME.path" {
        /// Repeated slashes: `//`.
        default repeated_slashes: RepeatedSlashes = RepeatedSlashes::Merge;
        /// Encoded slashes: `%2F`. Default: `keep` at a virtual server where nothing decides by the path (no `policies`, no rules of your own that read the path, no exclusions and no `openapi` in `waf`, and no other virtual server hands requests to it), otherwise `refuse`.
        optional encoded_slashes: EncodedSlashes;
        /// Backslashes: `\` and `%5C`.
        default backslashes: Backslashes = Backslashes::Refuse;
        /// Path parameters: the text after a `;` in a segment.
        default parameters: Parameters = Parameters::Keep;
        /// NUL bytes: `%00`.
        default nul: Nul = Nul::Refuse;
    }
    later []
}

choice! {
    /// Treatment of `//`.
    RepeatedSlashes {
        /// Repeated slashes become one slash, as in nginx, Apache httpd and Tomcat.
        Merge = "merge",
        /// The member gets them unchanged, except at the start of the path; rules see one slash.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// Treatment of `%2F`.
    EncodedSlashes {
        /// The request gets 400.
        Refuse = "refuse",
        /// `%2F` becomes a slash.
        Decode = "decode",
        /// The member gets `%2F`, rules see a slash. A `%2F` next to a dot-segment or in path parameters is refused.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// Treatment of a backslash.
    Backslashes {
        /// The request gets 400.
        Refuse = "refuse",
        /// Backslashes become slashes, as servers on Windows interpret them.
        Slash = "slash",
        /// The member and the rules get `%5C`. Do not use it for members on Windows: they interpret `%5C` as a slash.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// Treatment of the text after a semicolon.
    Parameters {
        /// The member gets parameters, rules do not see them. Parameters of a dot-segment (`..;x`), and of an empty segment that is not the last one (`/;x/a`), are refused.
        Keep = "keep",
        /// Neither the member nor rules get parameters.
        Remove = "remove",
        /// The request gets 400.
        Refuse = "refuse",
    }
    later [] maps []
}

choice! {
    /// Treatment of `%00`.
    Nul {
        /// The request gets 400.
        Refuse = "refuse",
        /// The member gets `%00`.
        Keep = "keep",
    }
    later [] maps []
}
