//! The layer at which a product works: HTTP, bytes of connections, or datagrams.

use super::Service;

/// The layer at which the virtual servers of a scene work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layer {
    /// HTTP requests.
    #[default]
    Http,
    /// TCP connections, relayed as a whole.
    Tcp,
    /// TCP connections. Weir forwards their packets; other products relay them as with `Tcp`.
    Packets,
    /// Datagrams, relayed by sockets.
    Udp(Sessions),
}

/// The time for which a client's datagrams go to the same member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// A session ends with the first answer.
    OneShot,
    /// A session lasts while the client sends queries.
    Kept,
}

impl Layer {
    /// Selects the template for this layer: HTTP, TCP or UDP.
    pub(super) fn of_three(self, [http, tcp, udp]: [&str; 3]) -> &str {
        match self {
            Self::Http => http,
            Self::Tcp | Self::Packets => tcp,
            Self::Udp(_) => udp,
        }
    }

    /// The name of the session setting in templates.
    pub(super) fn mark(self) -> Option<&'static str> {
        match self {
            Self::Udp(Sessions::OneShot) => Some("ONE_SHOT"),
            Self::Udp(Sessions::Kept) => Some("SESSIONS"),
            Self::Http | Self::Tcp | Self::Packets => None,
        }
    }
}

/// Reason for a product that relays connections and does not support datagrams.
pub(super) fn no_datagrams(service: &Service) -> Option<String> {
    matches!(service.layer, Layer::Udp(_)).then(|| "it does not relay datagrams".into())
}
