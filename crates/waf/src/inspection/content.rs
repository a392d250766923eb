//! What the bytes of a body say about its format.

/// What rules and bytes say about a body.
#[derive(Debug, Default)]
pub struct Content {
    /// Bytes that are kept: the first ones until they say something, and all of a body that is judged as a whole.
    pub kept: Vec<u8>,
    /// Whether rules judge a body by what its bytes are, beside what its type says.
    pub is_judged: bool,
    /// What the first bytes say, if the type says nothing.
    pub kind: Kind,
}

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Nothing yet.
    #[default]
    Unknown,
    /// The body is judged as text.
    Text,
    /// The body is an image or the like: code in it is looked for.
    Media,
    /// The body is in a binary format and is not judged.
    Binary,
}
