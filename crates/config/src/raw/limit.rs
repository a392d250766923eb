//! `limits`: limits in total and per client.

use crate::decode::Spanned;
use crate::rate::{RATE_MAX, Rate};
use crate::raw::Timeout;
use crate::scalar::{Duration, MIB, SECOND, Text, Whole};
use crate::shapes::Connections;

/// Most keys of one table: 16 bytes each, twice.
const ENTRIES_MAX: u64 = 16 * MIB;

/// A burst: requests at once.
pub(crate) type Burst = Whole<u32, 1, RATE_MAX>;

section! {
    /// Limits of a virtual server. They are checked before any costly work.
    Limits at "virtual_servers.NAME.limits" {
        /// Most open client connections, over all workers; with `type: udp` sessions. Further connections get 503 and are closed; datagrams of further sessions are dropped. Default: no limit.
        optional connections: Connections;
        /// New client connections (or sessions) per second; `30/m` is a rate per minute. Further ones are closed. Default: no limit.
        optional connections_per_second: Rate;
        /// Most open requests, over all workers, including waiting ones. Further ones get 429 with Retry-After. Default: no limit.
        optional requests: Connections;
        /// Requests per second; `5/m` and `10/5m` are rates over other times. Further ones get 429 with Retry-After. Default: no limit.
        optional requests_per_second: Rate;
        /// Requests that may arrive at once after a pause (bucket size). Default: a tenth of `requests_per_second`, at least 1; for a rate over a longer time, its whole number (10 for `10/5m`).
        optional burst: Burst;
        /// Limits per client, or per value of another key. Default: none.
        optional per_key: Vec<Spanned<RateLimit>>;
    }
    later []
}

section! {
    /// Limits for each value of a key, at least one of `requests_per_second`, `requests`, `connections_per_second` and `connections`. Without `key`, connections are counted by the address of the connection's peer, and requests by the client's address (which trusted proxies may set).
    RateLimit at "virtual_servers.NAME.limits.per_key[]" {
        /// A template (TEXT) whose value is the key. An empty value is not limited. Default: the client's address.
        optional key: Text;
        /// Without `key`: clients whose IPv4 addresses share this many leading bits count as one.
        default prefix_v4: Whole<u8, 0, 32> = Whole(32);
        /// The same for IPv6.
        default prefix_v6: Whole<u8, 0, 128> = Whole(64);
        /// Requests per second; `5/m` and `10/5m` are rates over other times. Default: no limit.
        optional requests_per_second: Rate;
        /// Most open requests. Default: no limit.
        optional requests: Connections;
        /// New client connections per second; `30/m` is a rate per minute. Further ones are closed. In `limits`, it cannot be combined with `key`. In rules, it is allowed only if they run for connections. Default: no limit.
        optional connections_per_second: Rate;
        /// Most open client connections. Further ones are closed. In `limits`, it cannot be combined with `key`. In rules, it is allowed only if they run for connections. Default: no limit.
        optional connections: Connections;
        /// Requests that may arrive at once after a pause (bucket size). Default: a tenth of `requests_per_second`, at least 1; for a rate over a longer time, its whole number (10 for `10/5m`).
        optional burst: Burst;
        /// What happens to a request above the limit.
        default exceed: Exceed = Exceed::Reject;
        /// With `exceed: delay`: how long a request may be delayed; if it would take longer, it is rejected.
        default delay_max: Timeout = Duration(SECOND);
        /// Most keys that are counted at the same time. If there are more, the key that would expire next is dropped.
        default entries_max: Whole<u32, 1, ENTRIES_MAX> = Whole(1 << 17);
    }
    later []
}

choice! {
    /// What happens to a request above a limit.
    Exceed {
        /// It gets 429 with Retry-After.
        Reject = "reject",
        /// It waits until the limit allows it; this needs `requests_per_second`.
        Delay = "delay",
        /// Its connection is closed.
        Close = "close",
    }
    later [] maps []
}
