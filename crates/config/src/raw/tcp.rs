//! `type: tcp`: connections that are relayed as they are.

use crate::decode::Spanned;
use crate::raw::Timeout;
use crate::scalar::{Duration, MINUTE, Name, SECOND};
use crate::shapes::ServerName;

section! {
    /// Timeouts of connections that are relayed (`type: tcp`).
    TcpProfile at "profiles.tcp.NAME" {
        /// A connection without a byte in either direction; both ends are then reset. A side that is slow to take what it was sent is not idle.
        default idle_timeout: Timeout = Duration(5 * MINUTE);
        /// Until a client has said what is looked at before its connection is relayed: the header of the PROXY protocol, or the ClientHello for `by_server_name`. Then it is closed.
        default hello_timeout: Timeout = Duration(10 * SECOND);
    }
    later []
}

section! {
    /// Where connections go that ask for some names.
    ServerNamePool at "virtual_servers.NAME.by_server_name" {
        /// The names that clients ask for; `*.` at the front stands for one label.
        required names: Vec<Spanned<ServerName>>;
        /// The pool that they get.
        required pool: Name;
    }
    later []
}
