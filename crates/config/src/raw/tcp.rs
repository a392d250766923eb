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
        /// `true`: weir resets both ends of the connections of a member when its monitors report it as down, when it is disabled, or when it leaves its pool. Clients then connect again, to another member; databases with a primary need this. A drained member keeps its connections. weir notices such a change within about 200 ms, also for connections that were open before a reload. `false`: the connections stay.
        default reset_on_service_down: bool = false;
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
