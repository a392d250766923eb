//! `type: udp`: datagrams that are relayed as they are.

use crate::raw::Timeout;
use crate::scalar::{Duration, SECOND, Whole};

/// Most datagrams of one session that can be waited for.
const DATAGRAMS_MAX: u64 = 1_000_000;
/// Largest bound on what comes for a byte.
const AMPLIFICATION_MAX: u64 = 100_000;

/// Most sessions that one socket serves.
const SESSIONS_PER_SOCKET_MAX: u64 = 10_000;

/// So many datagrams.
pub(crate) type Datagrams<const MIN: u64> = Whole<u32, MIN, DATAGRAMS_MAX>;

section! {
    /// Sessions of datagrams (`type: udp`): what one client sends from one port goes to one member, and what that sends back goes to the client.
    UdpProfile at "profiles.udp.NAME" {
        /// A session without a datagram in either direction ends after this time.
        default idle_timeout: Timeout = Duration(30 * SECOND);
        /// Datagrams of its client that a session takes; the next begins another session, perhaps at another member. `1`: each by itself, as with DNS, RADIUS and syslog. Default: any number.
        optional datagrams: Datagrams<1>;
        /// With `datagrams`: answers that end a session. `0`: none is waited for, as with syslog. Default: as many as `datagrams`.
        optional responses: Datagrams<0>;
        /// With `datagrams`: sessions that a socket to a member serves, one after the other. `1`: each session has its own. More save CPU where each query is a session; see [udp.md](udp.md#many-queries).
        default sessions_per_socket_max: Whole<u32, 1, SESSIONS_PER_SOCKET_MAX> = Whole(1);
        /// Bytes that a client gets at most for each byte that it has sent in a session; answers beyond are dropped. It bounds what a forged source address can do to others. Default: no limit.
        optional amplification_max: Whole<u32, 1, AMPLIFICATION_MAX>;
    }
    later []
}
