//! `persistence`: how requests of one client keep going to one member.

use crate::raw::Timeout;
use crate::raw::policy::SameSite;
use crate::scalar::{DAY, Duration, MIB, MINUTE, Name, SECOND, Text, Whole};
use crate::shapes::{AutoOr, FieldName, FilePath};

/// Clients that one table can hold: 16 bytes each, twice.
const ENTRIES_MAX: u64 = 16 * MIB;

section! {
    /// How requests of one client keep going to one member.
    Persistence at "persistence.NAME" {
        /// What tells one client from another.
        required kind as "type": PersistenceType;
        /// The name of the cookie (default `WEIR`) or path parameter (default `jsessionid`). An inserted cookie has exactly this name and holds a token for each pool, 32 at most.
        optional name: FieldName;
        /// Of a cookie: `insert`: weir sets one of its own. `passive`: the application sets it, and its value decides; nothing is set.
        default mode: CookieMode = CookieMode::Insert;
        /// Of an inserted cookie: its path.
        default path: Text = Text("/".into());
        /// Of an inserted cookie: its domain. Default: the host asked for.
        optional domain: Text;
        /// Of an inserted cookie: how long it lasts, at most 400 days, as browsers have it. Default: until the browser ends.
        optional max_age: Duration<SECOND, { 400 * DAY }>;
        /// Of an inserted cookie: whether it is sent over TLS only. `auto`: when the request came over TLS.
        default secure: AutoOr = AutoOr::Auto;
        /// Of an inserted cookie: whether it is kept from scripts.
        default http_only: bool = true;
        /// Of an inserted cookie: whether it is sent from other sites.
        optional same_site: SameSite;
        /// Of an inserted cookie: whether members get it. If not, they get no cookie with a token of a configured pool, whatever its name.
        default to_member: bool = false;
        /// Of an inserted cookie: a file with its keys, shared by several instances; the first key signs, all are honoured. Default: a key of its own that is kept in `state_dir`.
        optional key_file: FilePath;
        /// Of `source_address`: clients whose IPv4 addresses begin with the same so many bits are one.
        default prefix_v4: Whole<u8, 0, 32> = Whole(32);
        /// The same for IPv6.
        default prefix_v6: Whole<u8, 0, 128> = Whole(128);
        /// Of `source_address` and `quic`: how long after its last request or datagram a client is remembered.
        default timeout: Timeout = Duration(3 * MINUTE);
        /// Of `source_address` and `quic`: clients that are remembered at a time; when there are more, the one that was away longest is forgotten.
        default entries_max: Whole<u32, 1, ENTRIES_MAX> = Whole(1 << 17);
        /// Of `source_address`: whether virtual servers with the same pool share what is remembered.
        default across_virtual_servers: bool = false;
        /// Of `quic`: where members write a name of their own into each of their connection IDs. Then a client is also known by an ID that it got later. Default: the ID that a member has given at first counts as a whole.
        optional server_id: ServerId;
        /// Of `hash`: TEXT whose value tells clients apart; an empty one means no persistence.
        optional of: Text;
        /// What is tried when this one knows nothing of a request: the name of another.
        optional fallback: Name;
    }
    later []
}

section! {
    /// Where a member's own name stands in the connection IDs of QUIC that it gives (as with QUIC-LB in plain text).
    ServerId at "persistence.NAME.server_id" {
        /// Bytes of the ID before it.
        default offset: Whole<u8, 0, 19> = Whole(1);
        /// Bytes of it.
        required length: Whole<u8, 1, 20>;
    }
    later []
}

choice! {
    /// What tells one client from another.
    PersistenceType {
        /// A cookie.
        Cookie = "cookie",
        /// Its address, remembered in a table.
        SourceAddress = "source_address",
        /// The connection ID of QUIC that its member has given it (`type: udp`): it stays with a client whose address changes.
        Quic = "quic",
        /// A value of the request, hashed to a member.
        Hash = "hash",
        /// A parameter in the path (`;jsessionid=…`), or the cookie of the same name in upper case.
        PathParameter = "path_parameter",
    }
    later [] maps []
}

choice! {
    /// Whose cookie it is.
    CookieMode {
        /// Weir's own.
        Insert = "insert",
        /// The application's.
        Passive = "passive",
    }
    later [] maps []
}
