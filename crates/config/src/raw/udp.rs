//! `type: udp`: datagrams that are relayed unchanged.

use crate::raw::Timeout;
use crate::scalar::{Duration, SECOND, Whole};

/// Most datagrams of one session.
const DATAGRAMS_MAX: u64 = 1_000_000;
/// Largest `amplification_max`.
const AMPLIFICATION_MAX: u64 = 100_000;

/// Most sessions that one socket serves.
const SESSIONS_PER_SOCKET_MAX: u64 = 10_000;

/// A number of datagrams.
pub(crate) type Datagrams<const MIN: u64> = Whole<u32, MIN, DATAGRAMS_MAX>;

section! {
    /// UDP sessions (`type: udp`). A session is the traffic from one address and port of a client. weir sends it to one member, and sends the member's datagrams back to that address and port.
    UdpProfile at "profiles.udp.NAME" {
        /// Maximum time without a datagram in either direction.
        default idle_timeout: Timeout = Duration(30 * SECOND);
        /// Maximum number of client datagrams in one session. A further datagram begins another session, possibly with another member. `1`: each datagram is its own session, as for DNS, RADIUS and syslog. Default: no limit.
        optional datagrams: Datagrams<1>;
        /// With `datagrams`: the session ends after this many answers. `0`: no answer is expected, as for syslog. Default: as many as `datagrams`.
        optional responses: Datagrams<0>;
        /// With `datagrams`: number of sessions that use one socket to a member, one after the other. `1`: each session has its own socket. With `datagrams: 1`, a larger number saves CPU; see [udp.md](udp.md#many-queries).
        default sessions_per_socket_max: Whole<u32, 1, SESSIONS_PER_SOCKET_MAX> = Whole(1);
        /// Maximum number of bytes that a client gets for each byte that it has sent in a session; further answers are dropped. This limits attacks with forged source addresses (amplification). Default: no limit.
        optional amplification_max: Whole<u32, 1, AMPLIFICATION_MAX>;
    }
    later []
}
