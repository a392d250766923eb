//! `type: tcp`: connections that are relayed unchanged.

use crate::decode::Spanned;
use crate::raw::Timeout;
use crate::scalar::{Duration, MINUTE, Name, SECOND};
use crate::shapes::ServerName;

section! {
    /// Timeouts of relayed connections (`type: tcp`).
    TcpProfile at "profiles.tcp.NAME" {
        /// Maximum time without a byte in either direction. After it, weir resets both ends. A connection is not idle while a slow receiver still reads waiting data.
        default idle_timeout: Timeout = Duration(5 * MINUTE);
        /// Maximum time for client data that weir needs before relaying: the PROXY header, or the ClientHello for `by_server_name`. After it, weir closes the connection.
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
