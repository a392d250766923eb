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
    /// Sessions of datagrams (`type: udp`). A session is the traffic from one address and port of a client. weir sends it to one member, and sends the member's datagrams back to that address and port.
    UdpProfile at "profiles.udp.NAME" {
        /// How long a session may be idle, without a datagram in either direction.
        default idle_timeout: Timeout = Duration(30 * SECOND);
        /// Most datagrams of the client in one session. The next datagram begins another session, perhaps with another member. `1`: each datagram is its own session, as for DNS, RADIUS and syslog. Default: any number.
        optional datagrams: Datagrams<1>;
        /// With `datagrams`: the number of answers that end a session. `0`: no answer is expected, as for syslog. Default: as many as `datagrams`.
        optional responses: Datagrams<0>;
        /// With `datagrams`: how many sessions use one socket to a member, one after the other. `1`: each session has its own socket. A larger number saves CPU if each query is a session; see [udp.md](udp.md#many-queries).
        default sessions_per_socket_max: Whole<u32, 1, SESSIONS_PER_SOCKET_MAX> = Whole(1);
        /// Most bytes that a client gets for each byte that it has sent in a session; further answers are dropped. This limits attacks with forged source addresses (amplification). Default: no limit.
        optional amplification_max: Whole<u32, 1, AMPLIFICATION_MAX>;
    }
    later []
}
