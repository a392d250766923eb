//! The layer at which a product works: HTTP, bytes of connections, or datagrams.

use super::Service;

/// The layer at which the virtual servers of a scene work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layer {
    /// Requests of HTTP.
    #[default]
    Http,
    /// Whole TCP connections.
    Tcp,
    /// Datagrams, by weir's packet path if there is one.
    Packets,
    /// Datagrams.
    Udp(Sessions),
}

/// How long the datagrams of a client go to the same member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// A session is over with the first answer.
    OneShot,
    /// It lasts while the client asks.
    Kept,
}

impl Layer {
    /// The one of three templates that is for this layer.
    pub(super) fn of_three(self, [http, tcp, udp]: [&str; 3]) -> &str {
        match self {
            Self::Http => http,
            Self::Tcp | Self::Packets => tcp,
            Self::Udp(_) => udp,
        }
    }

    /// The word for its sessions in templates.
    pub(super) fn mark(self) -> Option<&'static str> {
        match self {
            Self::Udp(Sessions::OneShot) => Some("ONE_SHOT"),
            Self::Udp(Sessions::Kept) => Some("SESSIONS"),
            Self::Http | Self::Tcp | Self::Packets => None,
        }
    }
}

/// For a product that relays connections and does not support datagrams.
pub(super) fn no_datagrams(service: &Service) -> Option<String> {
    matches!(service.layer, Layer::Udp(_)).then(|| "it does not relay datagrams".into())
}
