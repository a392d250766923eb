//! `type: tcp`: connections that are relayed unchanged.

use crate::decode::Spanned;
use crate::raw::Timeout;
use crate::scalar::{Duration, MINUTE, Name, SECOND};
use crate::shapes::ServerName;

section! {
    /// Timeouts of relayed connections (`type: tcp`).
    TcpProfile at "profiles.tcp.NAME" {
        /// How long a connection may be idle, without a byte in either direction; then both ends are reset. A connection is not idle while one side is slow to receive.
        default idle_timeout: Timeout = Duration(5 * MINUTE);
        /// How long weir waits for client data that it needs before relaying: the PROXY header, or the ClientHello for `by_server_name`. After this time, the connection is closed.
        default hello_timeout: Timeout = Duration(10 * SECOND);
    }
    later []
}

section! {
    /// The pool for some server names.
    ServerNamePool at "virtual_servers.NAME.by_server_name" {
        /// The server names that clients send; `*.` at the front stands for one label.
        required names: Vec<Spanned<ServerName>>;
        /// The pool for these names.
        required pool: Name;
    }
    later []
}
