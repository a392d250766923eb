//! `limits`: limits in total and per client.

use crate::decode::Spanned;
use crate::rate::{RATE_MAX, Rate};
use crate::raw::{Timeout, VirtualServerType};
use crate::scalar::{Duration, MIB, SECOND, Text, Whole};
use crate::shapes::Connections;

/// Most keys of one table: 16 bytes each, twice.
const ENTRIES_MAX: u64 = 16 * MIB;

/// A burst: requests at once.
pub(crate) type Burst = Whole<u32, 1, RATE_MAX>;

variants! {
    /// Limits of a virtual server. weir checks them before authentication, the web application firewall and other costly work.
    Limits at "virtual_servers.NAME.limits" by VirtualServerType {
        /// Maximum number of open client connections, over all workers; with `type: udp`, of sessions. Further connections are closed, with `type: http` after a 503; datagrams of further sessions are dropped. Default: no limit.
        optional connections for all: Connections;
        /// New client connections (or sessions) per second; `30/m` is a rate per minute. Further connections are closed; datagrams of further sessions are dropped. Default: no limit.
        optional connections_per_second for all: Rate;
        /// Maximum number of open requests, over all workers, including waiting ones. Further requests get 429 with `Retry-After`. Default: no limit.
        optional requests for [Http]: Connections;
        /// Requests per second; `5/m` and `10/5m` are rates over other times. Further requests get 429 with `Retry-After`. Default: no limit.
        optional requests_per_second for [Http]: Rate;
        /// For `requests_per_second`: maximum number of requests at once after a pause (bucket size). Default: for a rate per second, a tenth of it, at least 1; for a rate over a longer time, such as `10/5m`, its count (10).
        optional burst for [Http]: Burst;
        /// Limits per client, or per value of another key. Default: none.
        optional per_key for all: Vec<Spanned<RateLimit>>;
    }
    plain [Tcp, Udp, FastL4]
    later []
}

variants! {
    /// Separate limits for each value of a key. Set at least one of `requests_per_second`, `requests`, `connections_per_second` and `connections`. Without `key`, connections are counted by the address of the connection's peer, and requests by the client's address (see `client_address`).
    RateLimit at "virtual_servers.NAME.limits.per_key[]" by VirtualServerType {
        /// A template (TEXT) whose value is the key. Requests with an empty value are not limited. Default: the client's address; for connections, the peer's address.
        optional key for [Http]: Text;
        /// Without `key`: clients whose IPv4 addresses share this many leading bits count as one.
        default prefix_v4 for all: Whole<u8, 0, 32> = Whole(32);
        /// As `prefix_v4`, for IPv6.
        default prefix_v6 for all: Whole<u8, 0, 128> = Whole(64);
        /// Requests per second; `5/m` and `10/5m` are rates over other times. Default: no limit.
        optional requests_per_second for [Http]: Rate;
        /// Maximum number of open requests. Default: no limit.
        optional requests for [Http]: Connections;
        /// New client connections per second; `30/m` is a rate per minute. Further ones are closed. In `limits`, set it only in an entry without `key`. In a `rate_limit` action, it is allowed only in `connection_policies` and in policies of `type: tcp`. Default: no limit.
        optional connections_per_second for all: Rate;
        /// Maximum number of open client connections. Further ones are closed. In `limits`, set it only in an entry without `key`. In a `rate_limit` action, it is allowed only in `connection_policies` and in policies of `type: tcp`. Default: no limit.
        optional connections for all: Connections;
        /// For `requests_per_second`: maximum number of requests at once after a pause (bucket size). Default: for a rate per second, a tenth of it, at least 1; for a rate over a longer time, such as `10/5m`, its count (10).
        optional burst for [Http]: Burst;
        /// Treatment of a request above the limit.
        default exceed for [Http]: Exceed = Exceed::Reject;
        /// With `exceed: delay`: maximum delay. A request that would wait longer is rejected.
        default delay_max for [Http]: Timeout = Duration(SECOND);
        /// Maximum number of tracked key values. A full table drops the value that would expire first.
        default entries_max for all: Whole<u32, 1, ENTRIES_MAX> = Whole(1 << 17);
    }
    plain [Tcp, Udp, FastL4]
    later []
}

choice! {
    /// Treatment of a request above a limit.
    Exceed {
        /// The request gets 429 with `Retry-After`.
        Reject = "reject",
        /// The request waits until the limit allows it; this needs `requests_per_second`.
        Delay = "delay",
        /// The connection of the request is closed.
        Close = "close",
    }
    later [] maps []
}
