//! Sessions: relayed connections, tunnels (WebSockets) and sessions of datagrams.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::network::network_or_null;

/// Maximum age in filters: ten years.
pub const AGE_SECONDS_MAX: u64 = 10 * 366 * 24 * 60 * 60;

/// The kind of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionType {
    /// A connection of a virtual server of type tcp.
    Tcp,
    /// A tunnel after a request, such as a WebSocket.
    Tunnel,
    /// A session of a virtual server of type udp.
    Udp,
}

impl SessionType {
    /// All of them.
    const ALL: [Self; 3] = [Self::Tcp, Self::Tunnel, Self::Udp];

    /// The word in documents and queries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tunnel => "tunnel",
            Self::Udp => "udp",
        }
    }
}

/// Selects sessions. A missing key matches any value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsToEnd {
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<SessionType>,
    /// The virtual server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_server: Option<String>,
    /// The pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The address of a member as shown, or its IP address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// An address or a network.
    // Without `default`, a schema of its own makes a key required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "network_or_null")]
    pub client: Option<String>,
    /// The minimum age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "age_or_null")]
    pub age_seconds_min: Option<u64>,
    /// Selects all sessions; only without other keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub all: bool,
}

fn age_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "null"], "minimum": 0, "maximum": AGE_SECONDS_MAX })
}

fn known_type<'de, D: Deserializer<'de>>(answer: D) -> Result<Option<SessionType>, D::Error> {
    let word = String::deserialize(answer)?;
    Ok(SessionType::ALL.into_iter().find(|kind| kind.as_str() == word))
}

/// The selected sessions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// The sessions.
    pub items: Vec<Session>,
    /// Whether the list was cut at `limit`.
    pub more: bool,
}

/// A session.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Session {
    /// The kind.
    // `None`: one that only a newer weir has. It is never sent.
    #[serde(deserialize_with = "known_type")]
    #[schemars(with = "SessionType")]
    pub r#type: Option<SessionType>,
    /// The virtual server.
    pub virtual_server: String,
    /// The pool.
    pub pool: String,
    /// `null`: it has no member yet.
    pub member: Option<String>,
    /// `null`: it came by a unix socket.
    pub client: Option<String>,
    /// The time since its beginning.
    pub age_seconds: u64,
    /// Bytes from the client.
    pub bytes_received: u64,
    /// Bytes to the client.
    pub bytes_sent: u64,
    /// The number of its worker.
    pub worker: usize,
}

/// The number of sessions that were ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EndedSessions {
    /// The number.
    pub sessions: u64,
}
