//! The ends of connections and sessions that are relayed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connections of a virtual server of type tcp, or sessions of type udp, by their end. The words are those of `termination` in the
/// access log.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Relayed {
    /// Both sides ended it in order.
    pub complete: u64,
    /// The client broke it, or closed it before it began.
    pub client_abort: u64,
    /// The member broke it.
    pub member_abort: u64,
    /// It was idle for too long.
    pub idle_timeout: u64,
    /// No member was available.
    pub no_member: u64,
    /// The members could not be reached.
    pub member_connect: u64,
    /// The wait for a member timed out.
    pub queue_timeout: u64,
    /// The required first data did not arrive in time.
    pub hello_timeout: u64,
    /// The first data was malformed.
    pub client_malformed: u64,
    /// No pool is configured for the server name.
    pub unknown_server_name: u64,
    /// It was reset because its member went out of service.
    pub member_down: u64,
    /// An operator ended it.
    pub operator: u64,
    /// It was cut because draining took too long.
    pub stopped: u64,
    /// Of all these: connections that the member ended within 10 seconds without sending a byte, by a reset or in place of an
    /// answer.
    pub unserved: u64,
}
