//! The user of a request.

/// The user of a request, kept for its response and its log line.
#[derive(Debug, Default)]
pub struct Identity {
    /// `request.user`; empty: no user was authenticated by name.
    pub user: Box<[u8]>,
    /// The user name at the virtual server of the listener, if another virtual server decides with users of its own.
    pub entered_as: Box<[u8]>,
    /// The time of the decision, in seconds since 1970: rules for the response evaluate tokens at the same time.
    pub unix_s: Option<u64>,
}
