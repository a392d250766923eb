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
    /// Treatment of path parts that servers read differently. Dot-segments (`..`, `%2e%2e`) are always removed, after all of these. `refuse` answers the request with 400.
    Path at "profiles.http.NAME.path" {
        /// `//`. `merge`: it becomes one slash, as in nginx, Apache httpd and Tomcat. `keep`: the member gets it unchanged, except at the start of the path; rules see one slash.
        default repeated_slashes: RepeatedSlashes = RepeatedSlashes::Merge;
        /// `%2F`. `decode`: it becomes a slash. `keep`: the member gets `%2F`, rules see a slash; a `%2F` next to a dot-segment or in path parameters is refused.
        default encoded_slashes: EncodedSlashes = EncodedSlashes::Refuse;
        /// `\` and `%5C`. `slash`: it becomes a slash, as servers on Windows read it. `keep`: the member and the rules get `%5C`; do not use it for members on Windows, which read it as a slash.
        default backslashes: Backslashes = Backslashes::Refuse;
        /// Path parameters: the text after a `;` in a segment. `keep`: the member gets them, rules do not see them; refused are parameters of a dot-segment (`..;x`), and of an empty segment that is not the last one (`/;x/a`). `remove`: neither the member nor rules get them.
        default parameters: Parameters = Parameters::Keep;
        /// `%00`. `keep`: the member gets it.
        default nul: Nul = Nul::Refuse;
    }
    later []
}

choice! {
    /// Treatment of `//`.
    RepeatedSlashes {
        /// It becomes one slash.
        Merge = "merge",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// Treatment of `%2F`.
    EncodedSlashes {
        /// The request is refused.
        Refuse = "refuse",
        /// It becomes a slash.
        Decode = "decode",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// Treatment of a backslash.
    Backslashes {
        /// The request is refused.
        Refuse = "refuse",
        /// It becomes a slash.
        Slash = "slash",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// Treatment of the text after a semicolon.
    Parameters {
        /// It stays.
        Keep = "keep",
        /// It is removed.
        Remove = "remove",
        /// The request is refused.
        Refuse = "refuse",
    }
    later [] maps []
}

choice! {
    /// Treatment of `%00`.
    Nul {
        /// The request is refused.
        Refuse = "refuse",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}
