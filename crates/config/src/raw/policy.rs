//! `policies` and `data_sets`: rules for requests, and lists for their conditions.

use crate::address::Endpoint;
use crate::decode::{OneOrMany, Spanned};
use crate::raw::limit::RateLimit;
use crate::scalar::{Duration, GIB, KIB, MIB, Name, Off, Size, Text, WordOr};
use crate::shapes::{
    AnyText, AutoOr, FieldName, FieldTexts, FilePath, HeaderPatterns, Items, PoolChoice,
    Replacements, Rewrite, Share, StatusCode,
};

section! {
    /// An ordered list of rules. Virtual servers list policies by name under `policies`.
    Policy at "policies.NAME" {
        /// The rules that run.
        default strategy: Strategy = Strategy::FirstMatch;
        /// The rules, in order.
        required rules: Vec<Spanned<Rule>>;
    }
    later []
}

choice! {
    /// Which rules of a policy are followed.
    Strategy {
        /// Only the first rule whose condition holds; then this policy ends. The next policies in the virtual server's list still run.
        FirstMatch = "first_match",
        /// Every rule whose condition holds.
        AllMatch = "all_match",
    }
    later [] maps []
}

section! {
    /// One rule: a condition, and actions that run when it holds. With `type: tcp`, rules run for connections, and only these actions are available: `pool`, `member`, `persistence`, `rate_limit`, `log`, `trace`, `close` and `reset`.
    Rule at "policies.NAME.rules[]" {
        /// The rule's name in metrics and messages. Default: its number.
        optional name: Name;
        /// The condition: an expression ([docs/expressions.md](expressions.md)). It always reads the original request, or the request as another virtual server has handed it over. If it reads `response.*`, the rule applies to the response. Default: the rule always applies.
        optional when: Text;
        /// The actions, in order.
        required then: Vec<Spanned<Action>>;
    }
    later []
}

one_of! {
    /// The actions of a rule. `TEXT` below is a template: `${…}` in it is replaced by the value of an expression, `$$` stands for a dollar sign.
    Action at "policies.NAME.rules[].then[]" {
        /// The pool for the request, or with `type: tcp` for the connection: its name, or names with weights: `{ blue: 95, green: 5 }`. If pools have weights, a client stays in its pool by persistence or by a hash. The last `pool` wins.
        Pool as "pool": PoolChoice;
        /// The member for the request or connection, instead of balancing: an address of the pool. If it is down, another member is selected.
        Member as "member": Endpoint;
        /// Requires valid credentials: the name of an authentication. Other requests get 401, and no further action or rule runs.
        Authenticate as "authenticate": Name;
        /// Sends a copy of the request to another pool. The response to the copy is discarded.
        Mirror as "mirror": Mirror;
        /// Hands the request to another virtual server of type `http`, which decides about it as if the request had come there. Ends the policies.
        VirtualServer as "virtual_server": Name;
        /// Answers with a redirect. Ends the policies. In a rule that reads the response, it replaces the response.
        Redirect as "redirect": Redirect;
        /// Answers instead of a member. Ends the policies. In a rule that reads the response, it replaces the response.
        Respond as "respond": Respond;
        /// A new path: TEXT, or a pattern with a replacement for each match. weir changes the path after the last policy, and normalises the new path.
        RewritePath as "rewrite_path": Rewrite;
        /// A new query, in the same way, without the question mark; empty: no query.
        RewriteQuery as "rewrite_query": Rewrite;
        /// A new `Host` for the member, in the same way.
        RewriteHost as "rewrite_host": Rewrite;
        /// Sets request fields to TEXT. Fields with the same name are replaced.
        SetHeader as "set_header": FieldTexts;
        /// Adds request fields. Fields with the same name stay.
        AddHeader as "add_header": FieldTexts;
        /// Removes request fields for the member; `X-Internal-*` matches all names with this prefix.
        RemoveHeader as "remove_header": OneOrMany<Spanned<FieldName>>;
        /// Changes the values of request fields by a pattern. A missing field stays missing.
        ReplaceHeader as "replace_header": HeaderPatterns;
        /// Sets response fields to TEXT. Fields with the same name are replaced.
        SetResponseHeader as "set_response_header": FieldTexts;
        /// Adds response fields. Fields with the same name stay.
        AddResponseHeader as "add_response_header": FieldTexts;
        /// Removes response fields for the client; `X-Internal-*` matches all names with this prefix.
        RemoveResponseHeader as "remove_response_header": OneOrMany<Spanned<FieldName>>;
        /// Changes the values of response fields by a pattern.
        ReplaceResponseHeader as "replace_response_header": HeaderPatterns;
        /// Changes the `Location` of responses by a pattern.
        RewriteLocation as "rewrite_location": Rewrite;
        /// Replaces text in response bodies.
        ReplaceResponseBody as "replace_response_body": ReplaceBody;
        /// Sets a cookie at the client.
        SetCookie as "set_cookie": SetCookie;
        /// Sets attributes of cookies that members set.
        SetCookieAttributes as "set_cookie_attributes": SetCookieAttributes;
        /// Removes request cookies for the member.
        RemoveCookie as "remove_cookie": OneOrMany<Spanned<FieldName>>;
        /// The persistence of the request: its name. `off`: none.
        Persistence as "persistence": WordOr<Off, Name>;
        /// The compression of the response.
        Compression as "compression": NoCompression;
        /// The mode of the web application firewall for this request; it overrides `mode` of the virtual server's `waf`. The last one wins. Without `waf` on the virtual server it has no effect.
        Waf as "waf": WafMode;
        /// A limit on requests, or with `type: tcp` on connections. A request above it gets 429; a connection above it is closed.
        RateLimit as "rate_limit": RateLimit;
        /// Writes TEXT as a line into the event log.
        Log as "log": Text;
        /// Adds TEXT to the field `marks` of the access log.
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
        /// None, even if the virtual server has `compression`.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// Copies of requests. weir sends the copy together with the request. The copy has the changes that rules made, and `X-Mirrored: 1`. A request with a body is copied when the body is complete, and only if the body has at most 16 KiB and arrived in pieces of at most 4 KiB. weir never waits for a copy: a copy that cannot be sent at once is dropped and counted.
    Mirror at "policies.NAME.rules[].then[].mirror" {
        /// The pool for the copies.
        required pool: Name;
        /// The share of requests that is copied: from 0.001% to 100%.
        default share: Share = Share(100_000);
    }
    later []
}

section! {
    /// A redirect.
    Redirect at "policies.NAME.rules[].then[].redirect" {
        /// The new URL or path: TEXT.
        required to: Text;
        /// Its status: 301, 302, 303, 307 or 308.
        default status: StatusCode = StatusCode(302);
    }
    later []
}

section! {
    /// A response of weir's own.
    Respond at "policies.NAME.rules[].then[].respond" {
        /// Its status.
        default status: StatusCode = StatusCode(200);
        /// Its body: TEXT. Default: none.
        optional body: Text;
        /// A file with its body, read with the configuration.
        optional file: FilePath;
        /// Its `Content-Type`. Default: by the file's name, else `text/plain; charset=utf-8`.
        optional content_type: Text;
        /// Further fields, with TEXT as values.
        optional headers: FieldTexts;
    }
    later []
}

section! {
    /// Replaces text in the body of a member's response while it streams: `strings`, or matches of a `regex`. Encoded bodies, partial responses (206) and gRPC calls stay unchanged.
    ReplaceBody at "policies.NAME.rules[].then[].replace_response_body" {
        /// Strings and their replacements. If several match at one place, the longest is used.
        optional strings: Replacements;
        /// A regular expression in the syntax of Rust's `regex` crate, over bytes. It cannot contain `^`, `$` and `\b`, and cannot match the empty text.
        optional regex: Text;
        /// The replacement for each match of `regex`: `$1` and `${name}` are captures, `$$` is a dollar sign.
        optional to: AnyText;
        /// The longest match in bytes. Longer text does not match. In an event stream, up to this many bytes may be held back.
        default match_size_max: Size<1, { 64 * KIB }> = Size(KIB);
        /// Media types of the bodies: `text/html`, `text/*`, or a suffix such as `+json`. Default: HTML, XHTML, CSS and JavaScript.
        optional types: Vec<Spanned<Text>>;
        /// The largest body that is rewritten. If the length is known and larger, the body stays unchanged. If the length is unknown, only the bytes up to this size are rewritten. Replacing also stops before the new body would exceed this size.
        default size_max: Size<1, GIB> = Size(8 * MIB);
    }
    later []
}

choice! {
    /// When browsers send a cookie with requests from other sites.
    SameSite {
        /// Never.
        Strict = "strict",
        /// When the user follows a link.
        Lax = "lax",
        /// Always; the cookie must be `secure`.
        None = "none",
    }
    later [] maps []
}

section! {
    /// A cookie for the client.
    SetCookie at "policies.NAME.rules[].then[].set_cookie" {
        /// Its name.
        required name: FieldName;
        /// Its value: TEXT.
        required value: Text;
        /// Its path.
        default path: Text = Text("/".into());
        /// Its domain. Default: the host of the request.
        optional domain: Text;
        /// Its lifetime. Default: until the browser is closed.
        optional max_age: Duration<0, { 400 * 24 * crate::scalar::HOUR }>;
        /// Whether browsers send it only over TLS. `auto`: if the request came over TLS.
        default secure: AutoOr = AutoOr::Auto;
        /// Whether it is hidden from scripts.
        default http_only: bool = true;
        /// Whether browsers send it with requests from other sites. Default: `SameSite` is not set.
        optional same_site: SameSite;
    }
    later []
}

section! {
    /// Attributes for cookies of members. The cookie of weir's own persistence has its own settings.
    SetCookieAttributes at "policies.NAME.rules[].then[].set_cookie_attributes" {
        /// Names of the cookies; `cart_*` matches all names with this prefix. Default: all.
        optional names: OneOrMany<Spanned<Text>>;
        /// Adds `Secure` to cookies without it: browsers send them only over TLS.
        default secure: bool = false;
        /// Adds `HttpOnly` to cookies without it: they are hidden from scripts.
        default http_only: bool = false;
        /// Sets `SameSite` to this value, even if the cookie has another value. It decides whether browsers send the cookie with requests from other sites. Default: unchanged.
        optional same_site: SameSite;
    }
    later []
}

section! {
    /// A named list for conditions and templates: `data['NAME']`. Each reload reads it again.
    DataSet at "data_sets.NAME" {
        /// The type of its items.
        required kind as "type": DataSetType;
        /// The items: a list, or for `map` a map.
        optional items: Items;
        /// A file with the items, one per line; for `map`, a key and a value separated by a space. Empty lines and lines that begin with `#` are ignored.
        optional file: FilePath;
    }
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

choice! {
    /// What happens to a request that rules would deny.
    WafMode {
        /// Requests are not inspected.
        Off = "off",
        /// The request is logged and passed on.
        Detect = "detect",
        /// The request is denied: the member does not get it.
        Block = "block",
    }
    later [] maps []
}
