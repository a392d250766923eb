//! `limits`: how much is served, in all and per client.

use crate::decode::Spanned;
use crate::rate::{RATE_MAX, Rate};
use crate::raw::Timeout;
use crate::scalar::{Duration, MIB, SECOND, Text, Whole};
use crate::shapes::Connections;

/// Keys that one table can hold: 16 bytes each, twice.
const ENTRIES_MAX: u64 = 16 * MIB;

/// So many at once.
pub(crate) type Burst = Whole<u32, 1, RATE_MAX>;

section! {
    /// Limits of a virtual server. They are looked at before anything that is costly.
    Limits at "virtual_servers.NAME.limits" {
        /// Client connections at a time, over all workers; with `type: udp` sessions. One more gets 503 and is closed; the datagrams of one more session are dropped. Default: no limit.
        optional connections: Connections;
        /// New client connections per second, or sessions; `30/m`: in another time. One more is closed. Default: no limit.
        optional connections_per_second: Rate;
        /// Requests under way at a time, over all workers; those that wait for a member count. One more gets 429 with Retry-After. Default: no limit.
        optional requests: Connections;
        /// Requests per second; `5/m` and `10/5m`: in another time. One more gets 429 with Retry-After. Default: no limit.
        optional requests_per_second: Rate;
        /// Requests that may come at once after a pause. Default: those of a tenth of a second, at least 1; of a rate in a longer time all.
        optional burst: Burst;
        /// Limits per client, or per whatever tells requests apart.
        optional per_key: Vec<Spanned<RateLimit>>;
    }
    later []
}

section! {
    /// Limits for each value of a key; at least one of `requests_per_second`, `requests`, `connections_per_second` and `connections`. Without `key`, those on connections count by the address that connects, the others by the client's, which trusted proxies may name.
    RateLimit at "virtual_servers.NAME.limits.per_key[]" {
        /// TEXT whose value is counted by. An empty value is not limited. Default: the client's address.
        optional key: Text;
        /// Without `key`: clients whose IPv4 addresses begin with the same so many bits count together.
        default prefix_v4: Whole<u8, 0, 32> = Whole(32);
        /// The same for IPv6.
        default prefix_v6: Whole<u8, 0, 128> = Whole(64);
        /// Requests per second; `5/m` and `10/5m`: in another time.
        optional requests_per_second: Rate;
        /// Requests under way at a time.
        optional requests: Connections;
        /// New client connections per second, or in another time (`30/m`). One more is closed. In `limits` without `key`; in a rule that connections follow.
        optional connections_per_second: Rate;
        /// Client connections at a time. One more is closed. In `limits` without `key`; in a rule that connections follow.
        optional connections: Connections;
        /// Requests that may come at once after a pause. Default: those of a tenth of a second, at least 1; of a rate in a longer time all.
        optional burst: Burst;
        /// What happens to a request beyond it. Only a rate can be waited for.
        default exceed: Exceed = Exceed::Reject;
        /// With `exceed: delay`: how long a request may be held back; beyond it is rejected.
        default delay_max: Timeout = Duration(SECOND);
        /// Keys that are counted at a time; when there are more, the one that is nearest to being forgotten anyway is.
        default entries_max: Whole<u32, 1, ENTRIES_MAX> = Whole(1 << 17);
    }
    later []
}

choice! {
    /// What happens to a request beyond a limit.
    Exceed {
        /// It gets 429 with Retry-After.
        Reject = "reject",
        /// It waits until the limit allows it.
        Delay = "delay",
        /// Its connection is closed.
        Close = "close",
    }
    later [] maps []
}
