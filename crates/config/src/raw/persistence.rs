//! `persistence`: keeps a client on one member.

use crate::raw::Timeout;
use crate::raw::policy::SameSite;
use crate::scalar::{DAY, Duration, MIB, MINUTE, Name, SECOND, Text, Whole};
use crate::shapes::{AutoOr, FieldName, FilePath};
use crate::variants::Kind;

/// Most clients of one table: 16 bytes each, twice.
const ENTRIES_MAX: u64 = 16 * MIB;

variants! {
    /// Persistence: requests of one client go to the same member.
    Persistence at "persistence.NAME" by PersistenceType {
        /// How weir identifies a client.
        required kind as "type" for all: PersistenceType;
        /// The name of the cookie (default `WEIR`) or path parameter (default `jsessionid`). An inserted cookie has exactly this name. It contains one token per pool, at most 32.
        optional name for [Cookie, PathParameter]: FieldName;
        /// The origin of the cookie.
        default mode for [Cookie]: CookieMode = CookieMode::Insert;
        /// For an inserted cookie: its path.
        default path for [Cookie]: Text = Text("/".into());
        /// For an inserted cookie: its domain. Default: the host of the request.
        optional domain for [Cookie]: Text;
        /// For an inserted cookie: its lifetime, at most 400 days (the limit of browsers). Default: until the browser is closed.
        optional max_age for [Cookie]: Duration<SECOND, { 400 * DAY }>;
        /// `Secure` of an inserted cookie: browsers send it only over TLS. `auto`: set if the request came over TLS.
        default secure for [Cookie]: AutoOr = AutoOr::Auto;
        /// `HttpOnly` of an inserted cookie: scripts cannot read it.
        default http_only for [Cookie]: bool = true;
        /// `SameSite` of an inserted cookie: whether browsers send it with cross-site requests. Default: `SameSite` is not set.
        optional same_site for [Cookie]: SameSite;
        /// `true`: members get the inserted cookie. `false`: weir removes it from requests, and also cookies with another name that hold a token of a configured pool.
        default to_member for [Cookie]: bool = false;
        /// For an inserted cookie: a file with keys, shared by several instances. The first key signs; all keys are accepted. Default: one key, kept in `state_dir`.
        optional key_file for [Cookie]: FilePath;
        /// IPv4 addresses that share this many leading bits count as one.
        default prefix_v4 for [SourceAddress, DestinationAddress]: Whole<u8, 0, 32> = Whole(32);
        /// As `prefix_v4`, for IPv6.
        default prefix_v6 for [SourceAddress, DestinationAddress]: Whole<u8, 0, 128> = Whole(128);
        /// Lifetime of an entry of the table after its last request or datagram.
        default timeout for [SourceAddress, DestinationAddress, Learned, Quic]: Timeout = Duration(3 * MINUTE);
        /// Maximum number of entries of the table. A full table drops the entry that would expire first.
        default entries_max for [SourceAddress, DestinationAddress, Learned, Quic]: Whole<u32, 1, ENTRIES_MAX> = Whole(1 << 17);
        /// With `true`, virtual servers that use this entry and the same pool share the table.
        default across_virtual_servers for [SourceAddress, DestinationAddress, Learned]: bool = false;
        /// The position of the server ID in the members' connection IDs. weir then also recognises connection IDs that the member creates later. Default: weir recognises a client by the complete first connection ID of the member.
        optional server_id for [Quic]: ServerId;
        /// A template (TEXT) that reads the request. Its value identifies the client. An empty value means no persistence.
        optional of for [Hash, Learned]: Text;
        /// A template (TEXT) that reads the response, for example `${response.cookies['SESSION']}`. weir stores its value with the member that sent the response. Later requests with this value in `of` go to that member. An empty value is not stored. Default: weir stores the value of `of` with the member that gets the first request with it.
        optional learn for [Learned]: Text;
        /// The name of another entry in `persistence`, used if this one has no member for a request. Default: none.
        optional fallback for all: Name;
    }
    later []
}

section! {
    /// The position of a member's server ID in the QUIC connection IDs that it creates (as with QUIC-LB in plain text).
    ServerId at "persistence.NAME.server_id" {
        /// Number of bytes before the server ID.
        default offset: Whole<u8, 0, 19> = Whole(1);
        /// Length of the server ID, in bytes.
        required length: Whole<u8, 1, 20>;
    }
    later []
}

choice! {
    /// How weir identifies a client.
    PersistenceType {
        /// By a cookie.
        Cookie = "cookie",
        /// By the client's address, in a table.
        SourceAddress = "source_address",
        /// By the address that the client connected to, in a table.
        DestinationAddress = "destination_address",
        /// By a value that a member has sent in a response, or that the client has sent, in a table.
        Learned = "learned",
        /// By the QUIC connection ID that the member has created (`type: udp`). The client keeps its member when its address changes.
        Quic = "quic",
        /// By a hash of a value of the request.
        Hash = "hash",
        /// By a parameter in the path (`;jsessionid=…`), or the cookie with the same name in upper case.
        PathParameter = "path_parameter",
    }
    later [] maps []
}

impl Kind for PersistenceType {
    const OF: &'static str = "a persistence";
}

choice! {
    /// The origin of the cookie.
    CookieMode {
        /// weir sets its own cookie.
        Insert = "insert",
        /// The application sets the cookie, and weir selects the member by its value.
        Passive = "passive",
    }
    later [] maps []
}
