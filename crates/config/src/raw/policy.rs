//! `policies` and `data_sets`: rules for requests, and lists for their conditions.

use crate::decode::{OneOrMany, Spanned};
use crate::endpoint::Endpoint;
use crate::raw::limit::RateLimit;
use crate::scalar::{Duration, GIB, KIB, MIB, Name, Off, Size, Text, WordOr};
use crate::shapes::{
    AnyText, AutoOr, FieldName, FieldTexts, FilePath, HeaderPatterns, Items, PoolChoice,
    RedirectStatus, Replacements, Rewrite, Share, StatusCode,
};
use crate::variants::Kind;

section! {
    /// An ordered list of rules. Virtual servers list policies by name under `policies`.
    Policy at "policies.NAME" {
        /// Selection of the rules to run.
        default strategy: Strategy = Strategy::FirstMatch;
        /// The rules, in order.
        required rules: Vec<Spanned<Rule>>;
    }
    later []
}

choice! {
    /// Selection of the rules to run.
    Strategy {
        /// weir runs the first rule whose condition holds; then this policy ends. The next policies in the virtual server's list still run.
        FirstMatch = "first_match",
        /// weir runs every rule whose condition holds.
        AllMatch = "all_match",
    }
    later [] maps []
}

section! {
    /// One rule: a condition, and actions that run when it holds. With `type: tcp`, rules run for connections, and only these actions are available: `pool`, `member`, `persistence`, `rate_limit`, `log`, `trace`, `close` and `reset`.
    Rule at "policies.NAME.rules[]" {
        /// The rule's name in metrics and messages. Default: its number.
        optional name: Name;
        /// The condition: an expression ([docs/expressions.md](expressions.md)). It reads the request before changes by rules; after the action `virtual_server`, the request that was handed over. If it reads `response.*`, the rule applies to the response. Default: the rule always applies.
        optional when: Text;
        /// The actions, in order.
        required then: Vec<Spanned<Action>>;
    }
    later []
}

one_of! {
    /// The actions of a rule. `TEXT` below is a template: `${…}` in it is replaced by the value of an expression, `$$` stands for a dollar sign.
    Action at "policies.NAME.rules[].then[]" {
        /// The pool for the request, or with `type: tcp` for the connection: its name, or names with weights: `{ blue: 95, green: 5 }`. With weights, weir distributes each request separately, unless persistence or balancing by a hash keeps a client in one pool ([rollouts.md](rollouts.md#canary-some-clients-first)). If several rules set the pool, the last one applies.
        Pool as "pool": PoolChoice;
        /// The address of a member of the selected pool. This member gets the request or connection, without balancing. If it is not available, or not in this pool, weir selects another member.
        Member as "member": Endpoint;
        /// Requires valid credentials: the name of an entry in `authentication`. A request without them is refused: with 401, or with `type: external` by the response of the service. No further action or rule then runs.
        Authenticate as "authenticate": Name;
        /// Sends a copy of the request to another pool. The response to the copy is discarded.
        Mirror as "mirror": Mirror;
        /// Hands the request, as earlier rules have changed it, to another virtual server of type `http`. That virtual server processes it like a request of its own clients. Later rules can only change the response.
        VirtualServer as "virtual_server": Name;
        /// Responds with a redirect. Later rules can only change this response. In a rule that reads the response, it replaces the response.
        Redirect as "redirect": Redirect;
        /// weir responds itself; no member gets the request. Later rules can only change this response. In a rule that reads the response, it replaces the response.
        Respond as "respond": Respond;
        /// A new path: TEXT, or a pattern with a replacement for each match. weir changes the path after the last policy, and normalises the new path. If the new path is invalid or has a dot-segment (`/..`), the client gets 500.
        RewritePath as "rewrite_path": Rewrite;
        /// A new query, without the question mark: TEXT, or a pattern with a replacement for each match. An empty result removes the query.
        RewriteQuery as "rewrite_query": Rewrite;
        /// A new `Host` for the member: TEXT, or a pattern with a replacement for each match.
        RewriteHost as "rewrite_host": Rewrite;
        /// Sets request headers to TEXT. Headers with the same name are replaced.
        SetHeader as "set_header": FieldTexts;
        /// Adds request headers. Headers with the same name stay.
        AddHeader as "add_header": FieldTexts;
        /// Removes request headers for the member; `X-Internal-*` matches all names with this prefix.
        RemoveHeader as "remove_header": OneOrMany<Spanned<FieldName>>;
        /// Changes the values of request headers by a pattern. A missing header stays missing.
        ReplaceHeader as "replace_header": HeaderPatterns;
        /// Sets response headers to TEXT. Headers with the same name are replaced.
        SetResponseHeader as "set_response_header": FieldTexts;
        /// Adds response headers. Headers with the same name stay.
        AddResponseHeader as "add_response_header": FieldTexts;
        /// Removes response headers for the client; `X-Internal-*` matches all names with this prefix.
        RemoveResponseHeader as "remove_response_header": OneOrMany<Spanned<FieldName>>;
        /// Changes the values of response headers by a pattern.
        ReplaceResponseHeader as "replace_response_header": HeaderPatterns;
        /// Changes the `Location` of responses: to TEXT, or by a pattern with a replacement for each match. (For redirects of members to themselves, use `rewrite_location` of the `http` profile.)
        RewriteLocation as "rewrite_location": Rewrite;
        /// Replaces text in response bodies.
        ReplaceResponseBody as "replace_response_body": ReplaceBody;
        /// Sets a cookie at the client.
        SetCookie as "set_cookie": SetCookie;
        /// Sets attributes of cookies that members and earlier rules set.
        SetCookieAttributes as "set_cookie_attributes": SetCookieAttributes;
        /// Removes request cookies for the member.
        RemoveCookie as "remove_cookie": OneOrMany<Spanned<FieldName>>;
        /// The persistence of the request: the name of an entry in `persistence`. `off`: no persistence.
        Persistence as "persistence": WordOr<Off, Name>;
        /// The compression of the response.
        Compression as "compression": NoCompression;
        /// The mode of the web application firewall for this request; it overrides `mode` of the virtual server's `waf`. If several rules set it, the last one applies. Without `waf` on the virtual server, it has no effect.
        Waf as "waf": WafMode;
        /// A limit on requests; with `type: tcp` and in `connection_policies`, on connections. A request above it gets 429, unless `exceed` is set. A connection above it is closed.
        RateLimit as "rate_limit": RateLimit;
        /// Writes TEXT as a line into the event log.
        Log as "log": Text;
        /// Adds TEXT to the log field `marks` of the access log.
        Trace as "trace": Text;
    }
    words {
        /// Closes the connection without a response.
        Close = "close";
        /// Resets the connection.
        Reset = "reset";
    }
}

choice! {
    /// The compression setting of a rule.
    NoCompression {
        /// No compression, even if the virtual server has `compression`.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// Copies of requests. weir sends the copy together with the request; for a request with a body, it first waits until the body is complete. A body is copied only if it has at most 16 KiB and arrived in pieces of at most 4 KiB. The copy has the changes that rules made, and `X-Mirrored: 1`. The request never waits for a copy: weir drops and counts a copy that cannot be sent at once.
    Mirror at "policies.NAME.rules[].then[].mirror" {
        /// The pool for the copies.
        required pool: Name;
        /// The share of requests that are copied.
        default share: Share = Share(100_000);
    }
    later []
}

section! {
    /// A redirect.
    Redirect at "policies.NAME.rules[].then[].redirect" {
        /// The new URL or path: TEXT.
        required to: Text;
        /// The status of the redirect: 301, 302, 303, 307 or 308.
        default status: RedirectStatus = RedirectStatus(302);
    }
    later []
}

section! {
    /// A response by weir itself.
    Respond at "policies.NAME.rules[].then[].respond" {
        /// The status of the response.
        default status: StatusCode = StatusCode(200);
        /// The body of the response: TEXT. Default: none.
        optional body: Text;
        /// A file with the body of the response, read with the configuration.
        optional file: FilePath;
        /// The `Content-Type` of the response. Default: the type of the file name's extension, otherwise `text/plain; charset=utf-8`.
        optional content_type: Text;
        /// Further headers, with TEXT as values.
        optional headers: FieldTexts;
    }
    later []
}

section! {
    /// Replaces text in the body of a member's response while it streams: `strings`, or matches of a `regex`. Encoded bodies, partial responses (206) and gRPC calls stay unchanged.
    ReplaceBody at "policies.NAME.rules[].then[].replace_response_body" {
        /// Strings and their replacements. If several strings match at the same position, weir replaces the longest one.
        optional strings: Replacements;
        /// A regular expression in the syntax of Rust's `regex` crate, over bytes. It cannot contain `^`, `$` and `\b`, and cannot match the empty text.
        optional regex: Text;
        /// The replacement for each match of `regex`: `$1` and `${name}` are captures, `$$` is a dollar sign.
        optional to: AnyText;
        /// Maximum length of a match in bytes; weir does not find a longer match. weir may hold back up to this many bytes of a body, also in event streams.
        default match_size_max: Size<1, { 64 * KIB }> = Size(KIB);
        /// Media types of the bodies: `text/html`, `text/*`, or a suffix such as `+json`. Default: HTML, XHTML, CSS and JavaScript.
        optional types: Vec<Spanned<Text>>;
        /// Maximum size of a body that is rewritten. If the length is known and larger, the body stays unchanged. If the length is unknown, only the bytes up to this size are rewritten. Replacement also stops when the new body would become larger than this size.
        default size_max: Size<1, GIB> = Size(8 * MIB);
    }
    later []
}

choice! {
    /// When browsers send a cookie with cross-site requests.
    SameSite {
        /// Never.
        Strict = "strict",
        /// Only for top-level navigation, for example when the user follows a link.
        Lax = "lax",
        /// Always; the cookie needs `secure`.
        None = "none",
    }
    later [] maps []
}

section! {
    /// A cookie for the client.
    SetCookie at "policies.NAME.rules[].then[].set_cookie" {
        /// The name of the cookie.
        required name: FieldName;
        /// The value of the cookie: TEXT.
        required value: Text;
        /// The path of the cookie.
        default path: Text = Text("/".into());
        /// The domain of the cookie. Default: the host of the request.
        optional domain: Text;
        /// The lifetime of the cookie. Default: until the browser is closed.
        optional max_age: Duration<0, { 400 * 24 * crate::scalar::HOUR }>;
        /// `Secure`: browsers send the cookie only over TLS. `auto`: set if the request came over TLS.
        default secure: AutoOr = AutoOr::Auto;
        /// `HttpOnly`: scripts cannot read the cookie.
        default http_only: bool = true;
        /// `SameSite`: whether browsers send the cookie with cross-site requests. Default: `SameSite` is not set.
        optional same_site: SameSite;
    }
    later []
}

section! {
    /// Attributes for cookies that members and earlier rules set. They do not apply to weir's persistence cookie; set those in `persistence`.
    SetCookieAttributes at "policies.NAME.rules[].then[].set_cookie_attributes" {
        /// Names of the cookies; `cart_*` matches all names with this prefix. Default: all.
        optional names: OneOrMany<Spanned<Text>>;
        /// Adds `Secure` to cookies without it: browsers send them only over TLS.
        default secure: bool = false;
        /// Adds `HttpOnly` to cookies without it: they are hidden from scripts.
        default http_only: bool = false;
        /// Sets `SameSite` to this value, even if the cookie has another value. It controls whether browsers send the cookie with cross-site requests. Default: unchanged.
        optional same_site: SameSite;
    }
    later []
}

variants! {
    /// A named list or map for conditions and templates: `data['NAME']`. Each reload reads its file again.
    DataSet at "data_sets.NAME" by DataSetType {
        /// The type of its items.
        required kind as "type" for all: DataSetType;
        /// The items: a list, or for `map` a map.
        optional items for all: Items;
        /// A file with the items, one per line; for `map`, a key and a value separated by a space. Empty lines and lines that begin with `#` are ignored.
        optional file for all: FilePath;
    }
    plain [Strings, Addresses, Map]
    later []
}

choice! {
    /// The type of a data set's items.
    DataSetType {
        /// Texts: `request.path in data['NAME']`, `request.path.startsWithAny(data['NAME'])`.
        Strings = "strings",
        /// Addresses and networks: `client.ip in data['NAME']`.
        Addresses = "addresses",
        /// Texts by key: `data['NAME'][request.host]`.
        Map = "map",
    }
    later [] maps []
}

impl Kind for DataSetType {
    const OF: &'static str = "a data set";
}

choice! {
    /// Treatment of a request that rules would deny.
    WafMode {
        /// The request is not inspected.
        Off = "off",
        /// A request that rules would deny is logged and passed on.
        Detect = "detect",
        /// A request that rules deny does not get to the member.
        Block = "block",
    }
    later [] maps []
}
