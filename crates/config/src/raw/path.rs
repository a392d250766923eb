//! `path`: what members and rules see of a request's path.

use crate::scalar::{Keyword, WordOr};

/// `keep`.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep;

impl Keyword for Keep {
    const WORD: &'static str = "keep";
}

/// All of a path, or how its parts are taken.
pub(crate) type PathOr = WordOr<Keep, Path>;

section! {
    /// What becomes of the parts of a path that servers read differently. Dot-segments (`..`, `%2e%2e`) are always removed, after all of these. `refuse` answers the request with 400.
    Path at "profiles.http.NAME.path" {
        /// `//`. `merge`: it is one slash, as for nginx, Apache httpd and Tomcat. `keep`: the member gets it as it is, but for the one at the start; rules see one slash.
        default repeated_slashes: RepeatedSlashes = RepeatedSlashes::Merge;
        /// `%2F`. `decode`: it is a slash. `keep`: the member gets `%2F`, rules see a slash; beside dots and in parameters it is refused.
        default encoded_slashes: EncodedSlashes = EncodedSlashes::Refuse;
        /// `\` and `%5C`. `slash`: it is a slash, as for servers on Windows. `keep`: the member gets `%5C`, and rules see `%5C`; not for members on Windows, which take it for a slash.
        default backslashes: Backslashes = Backslashes::Refuse;
        /// What stands behind a `;` in a segment. `keep`: the member gets it, rules do not see it; behind dots, or as all of a segment that others follow, it is refused. `remove`: nobody gets it.
        default parameters: Parameters = Parameters::Keep;
        /// `%00`. `keep`: the member gets it.
        default nul: Nul = Nul::Refuse;
    }
    later []
}

choice! {
    /// What becomes of `//`.
    RepeatedSlashes {
        /// It is one slash.
        Merge = "merge",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// What becomes of `%2F`.
    EncodedSlashes {
        /// The request is refused.
        Refuse = "refuse",
        /// It is a slash.
        Decode = "decode",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// What becomes of a backslash.
    Backslashes {
        /// The request is refused.
        Refuse = "refuse",
        /// It is a slash.
        Slash = "slash",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}

choice! {
    /// What becomes of what stands behind a semicolon.
    Parameters {
        /// It stays.
        Keep = "keep",
        /// It goes.
        Remove = "remove",
        /// The request is refused.
        Refuse = "refuse",
    }
    later [] maps []
}

choice! {
    /// What becomes of `%00`.
    Nul {
        /// The request is refused.
        Refuse = "refuse",
        /// It stays.
        Keep = "keep",
    }
    later [] maps []
}
