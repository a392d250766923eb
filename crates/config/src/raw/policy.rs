//! `policies` and `data_sets`: what is done with a request, and lists that conditions look into.

use crate::address::Endpoint;
use crate::decode::{OneOrMany, Spanned};
use crate::raw::limit::RateLimit;
use crate::scalar::{Duration, GIB, KIB, MIB, Name, Off, Size, Text, WordOr};
use crate::shapes::{
    AnyText, AutoOr, FieldName, FieldTexts, FilePath, HeaderPatterns, Items, PoolChoice,
    Replacements, Rewrite, StatusCode,
};

section! {
    /// An ordered list of rules that virtual servers name under `policies`.
    Policy at "policies.NAME" {
        /// `first_match`: the first rule whose condition holds is followed, and the policy has ended; those after it in the virtual server's list go on. `all_match`: every rule whose condition holds is followed.
        default strategy: Strategy = Strategy::FirstMatch;
        /// The rules, in order.
        required rules: Vec<Spanned<Rule>>;
    }
    later []
}

choice! {
    /// Which rules of a policy are followed.
    Strategy {
        /// The first whose condition holds.
        FirstMatch = "first_match",
        /// All whose condition holds.
        AllMatch = "all_match",
    }
    later [] maps []
}

section! {
    /// One rule: a condition and what to do when it holds. With `type: tcp` it sees connections: of the actions it can have `pool`, `member`, `persistence`, `rate_limit`, `log`, `trace`, `close` and `reset`.
    Rule at "policies.NAME.rules[]" {
        /// What it is called in metrics and messages. Default: its number.
        optional name: Name;
        /// The condition: an expression ([docs/expressions.md](expressions.md)). It always reads the request as it was received. One that reads `response.*` makes this a rule for the response. Default: the rule always holds.
        optional when: Text;
        /// What is done, in order.
        required then: Vec<Spanned<Action>>;
    }
    later []
}

one_of! {
    /// What a rule does. `TEXT` below is a template: `${…}` in it is replaced by the value of an expression, `$$` stands for a dollar.
    Action at "policies.NAME.rules[].then[]" {
        /// The pool that gets the request, or with `type: tcp` the connection: its name, or names with weights, by which they are shared out: `{ blue: 95, green: 5 }`. A client that persistence or a hash keeps at members stays in its pool. The last one counts.
        Pool as "pool": PoolChoice;
        /// The member that gets the request, or the connection, whatever the balancing says: an address of the pool. When it is down, another is picked.
        Member as "member": Endpoint;
        /// Lets in requests that show who they are from: the name of an authentication. Others are answered with 401, and neither the rest of this rule nor a later one is followed.
        Authenticate as "authenticate": Name;
        /// Answers with a redirection. Ends the policies. In a rule that reads the response it takes the place of that.
        Redirect as "redirect": Redirect;
        /// Answers in place of a member. Ends the policies. In a rule that reads the response it takes the place of that.
        Respond as "respond": Respond;
        /// Another path: TEXT, or a pattern and what takes the place of each match. Applied after the last policy and canonicalised again.
        RewritePath as "rewrite_path": Rewrite;
        /// Another query, in the same manner, without the question mark; empty: none.
        RewriteQuery as "rewrite_query": Rewrite;
        /// Another `Host` for the member, in the same manner.
        RewriteHost as "rewrite_host": Rewrite;
        /// Request fields, each with TEXT, in place of all that have its name.
        SetHeader as "set_header": FieldTexts;
        /// Request fields beside those of the same name.
        AddHeader as "add_header": FieldTexts;
        /// Request fields that the member does not get; `X-Internal-*` stands for all whose names begin so.
        RemoveHeader as "remove_header": OneOrMany<Spanned<FieldName>>;
        /// Request fields whose values are changed by a pattern; a field that is not there stays away.
        ReplaceHeader as "replace_header": HeaderPatterns;
        /// Response fields, each with TEXT, in place of all that have its name.
        SetResponseHeader as "set_response_header": FieldTexts;
        /// Response fields beside those of the same name.
        AddResponseHeader as "add_response_header": FieldTexts;
        /// Response fields that the client does not get; `X-Internal-*` stands for all whose names begin so.
        RemoveResponseHeader as "remove_response_header": OneOrMany<Spanned<FieldName>>;
        /// Response fields whose values are changed by a pattern.
        ReplaceResponseHeader as "replace_response_header": HeaderPatterns;
        /// The `Location` of responses, changed by a pattern.
        RewriteLocation as "rewrite_location": Rewrite;
        /// Text that is replaced in the body of the response, wherever it stands in it.
        ReplaceResponseBody as "replace_response_body": ReplaceBody;
        /// A cookie for the client.
        SetCookie as "set_cookie": SetCookie;
        /// Attributes of cookies that members set.
        SetCookieAttributes as "set_cookie_attributes": SetCookieAttributes;
        /// Request cookies that the member does not get.
        RemoveCookie as "remove_cookie": OneOrMany<Spanned<FieldName>>;
        /// How the request's client is kept at a member: the name of a persistence, or `off`.
        Persistence as "persistence": WordOr<Off, Name>;
        /// `off`: the response is not compressed, whatever the virtual server's `compression` says.
        Compression as "compression": NoCompression;
        /// What the web application firewall does with the request, whatever `mode` of the virtual server's `waf` says; the last one counts. Without `waf` there it does nothing.
        Waf as "waf": WafMode;
        /// A limit on requests, or of `type: tcp` on connections. A request beyond it is answered with 429, a connection is closed.
        RateLimit as "rate_limit": RateLimit;
        /// A line of TEXT in the event log.
        Log as "log": Text;
        /// A mark of TEXT in the access log's line (`marks`).
        Trace as "trace": Text;
    }
    words {
        /// Closes the connection without an answer.
        Close = "close";
        /// Resets the connection.
        Reset = "reset";
    }
}

choice! {
    /// What a rule says about compression.
    NoCompression {
        /// The response goes as it is.
        Off = "off",
    }
    later [] maps []
}

section! {
    /// A redirection.
    Redirect at "policies.NAME.rules[].then[].redirect" {
        /// The new URL or path: TEXT.
        required to: Text;
        /// Its status: 301, 302, 303, 307 or 308.
        default status: StatusCode = StatusCode(302);
    }
    later []
}

section! {
    /// An answer of weir's own.
    Respond at "policies.NAME.rules[].then[].respond" {
        /// Its status.
        default status: StatusCode = StatusCode(200);
        /// Its body: TEXT. Default: none.
        optional body: Text;
        /// A file with its body, read with the configuration.
        optional file: FilePath;
        /// Its `Content-Type`. Default: by the file's name, else `text/plain; charset=utf-8`.
        optional content_type: Text;
        /// Further fields, each with TEXT.
        optional headers: FieldTexts;
    }
    later []
}

section! {
    /// What is replaced in the body of a member's response while it streams: `strings`, or what matches a `regex`. One that is encoded, a part (206) and a gRPC call pass as they are.
    ReplaceBody at "policies.NAME.rules[].then[].replace_response_body" {
        /// Strings, each with the text that takes its place. Of several that begin at one place the longest counts.
        optional strings: Replacements;
        /// A regular expression in the syntax of Rust's `regex` crate, over bytes. It has no `^`, `$` and `\b`, and does not match the empty text.
        optional regex: Text;
        /// What takes the place of each match of `regex`: `$1` and `${name}` are what it captured, `$$` is a dollar.
        optional to: AnyText;
        /// The most bytes of one match; of an event stream so many may wait for more to come. What would be longer is no match.
        default match_size_max: Size<1, { 64 * KIB }> = Size(KIB);
        /// Media types of the bodies: `text/html`, `text/*`, `+json` for all that end so. Default: HTML, XHTML, CSS and JavaScript.
        optional types: Vec<Spanned<Text>>;
        /// A body of known length that is longer passes as it is. Of another one, what comes behind so many bytes does, and what comes behind the place from where on replacing would make it longer.
        default size_max: Size<1, GIB> = Size(8 * MIB);
    }
    later []
}

choice! {
    /// When a browser sends a cookie from other sites.
    SameSite {
        /// Never.
        Strict = "strict",
        /// When a link is followed.
        Lax = "lax",
        /// Always; such a cookie must be `secure`.
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
        /// Its domain. Default: the host asked for.
        optional domain: Text;
        /// How long it lasts. Default: until the browser ends.
        optional max_age: Duration<0, { 400 * 24 * crate::scalar::HOUR }>;
        /// Whether it is sent over TLS only. `auto`: when the request came over TLS.
        default secure: AutoOr = AutoOr::Auto;
        /// Whether it is kept from scripts.
        default http_only: bool = true;
        /// Whether it is sent from other sites.
        optional same_site: SameSite;
    }
    later []
}

section! {
    /// Attributes that cookies of members get. The cookie of weir's own persistence has its own settings.
    SetCookieAttributes at "policies.NAME.rules[].then[].set_cookie_attributes" {
        /// Names of the cookies; `cart_*` stands for all that begin so. Default: all.
        optional names: OneOrMany<Spanned<Text>>;
        /// `Secure` is added to those that lack it: they are sent over TLS only.
        default secure: bool = false;
        /// `HttpOnly` is added to those that lack it: they are kept from scripts.
        default http_only: bool = false;
        /// `SameSite` gets this value, whatever it was: whether they are sent from other sites.
        optional same_site: SameSite;
    }
    later []
}

section! {
    /// A named list that conditions and templates look into as `data['NAME']`. Read anew with each reload.
    DataSet at "data_sets.NAME" {
        /// What its items are.
        required kind as "type": DataSetType;
        /// The items: a list, or for `map` a map.
        optional items: Items;
        /// A file with the items, one per line; of a `map` key and value with a space between. Empty lines and those that begin with `#` count for nothing.
        optional file: FilePath;
    }
    later []
}

choice! {
    /// What the items of a data set are.
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
    /// What becomes of a request that rules would deny.
    WafMode {
        /// It is not inspected.
        Off = "off",
        /// It goes on, and is logged.
        Detect = "detect",
        /// Its member does not get it.
        Block = "block",
    }
    later [] maps []
}
