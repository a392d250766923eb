//! `waf`: the rules that inspect requests, and the actions on findings.

use crate::decode::{NamedMap, OneOrMany, Spanned};
use crate::raw::Timeout;
use crate::raw::policy::{SameSite, WafMode};
use crate::scalar::{Duration, GIB, KIB, MIB, MINUTE, Off, Size, Text, Whole, WordOr};
use crate::shapes::{FilePath, TxTexts};

/// Most bytes of a body that is held for an inspection.
const BODY_BYTES_MAX: u64 = 64 * MIB;
/// Most bytes that one request may cost.
const WORK_BYTES_MAX: u64 = 64 * GIB;

/// Default of `time_max`: over four times the longest evaluation that was measured within the other default limits (109 ms
/// for 1 MB of JSON), for slower hosts and longer rule sets.
pub const TIME_MAX_MS: u64 = 500;

/// The id of a rule.
pub(crate) type RuleId = Whole<u32, 1, 4_000_000_000>;

/// A paranoia level.
pub(crate) type Level = Whole<u8, 1, 4>;

section! {
    /// The web application firewall: its rules, and its reaction to findings. Rules are in ModSecurity's language, for example OWASP CRS ([waf.md](waf.md)). If a setting without a default is missing here, the value in the rules applies.
    Waf at "virtual_servers.NAME.waf" {
        /// Treatment of a request that rules would deny. A policy can set another mode for some requests, with the action `waf`.
        required mode: WafMode;
        /// The rules, in the order in which they are read: files, directories of CRS (with `crs-setup.conf`, `rules` and `plugins`), or the word `builtin` for weir's own rules ([waf-rules.md](waf-rules.md)). Default: `builtin`.
        optional rules: OneOrMany<Spanned<FilePath>>;
        /// The paranoia level of rules that count toward the score. A higher level is stricter and has more false positives. Sets `blocking_paranoia_level` of CRS 4 and `paranoia_level` of CRS 3. Default: the value in the rules.
        optional paranoia: Level;
        /// The paranoia level of rules that are evaluated and logged. Must not be lower than `paranoia`. Sets `detection_paranoia_level` of CRS 4 and `executing_paranoia_level` of CRS 3. Default: the value of `paranoia`; without it, the value in the rules.
        optional detection_paranoia: Level;
        /// The anomaly score at which a request is denied. Sets `inbound_anomaly_score_threshold`. Default: the value in the rules.
        optional threshold: Whole<u32, 1, 1_000_000>;
        /// `true`: a request can be denied by its head alone, before its body is read. Sets `early_blocking` of CRS 4. Default: the value in the rules.
        optional early_blocking: bool;
        /// Additional `TX` variables by name, as in `crs-setup.conf`. They override values that rules set.
        optional variables: TxTexts;
        /// Exclusions for false positives, by name: values that a rule does not inspect. `weir waf tune` and the dashboard propose them from findings. Default: none.
        optional exclusions: NamedMap<Exclusion>;
        /// Settings of the built-in checks, which need no rules. `off`: no checks. Default: all checks with their default actions and limits. In mode `detect`, no check blocks.
        optional checks: WordOr<Off, super::checks::Checks>;
        /// Inspection of responses, for error messages and other data that must not leak. Default: none.
        optional responses: Responses;
        /// Protection of the application's cookies, in every mode. Default: none.
        optional cookies: Cookies;
        /// Maximum size of a body that is inspected, before and after decoding (`Content-Encoding`), without the files of `files_size_max`. A larger body is not inspected; `unjudged` then applies. weir holds bodies until they are inspected.
        default body_size_max: Size<KIB, BODY_BYTES_MAX> = Size(MIB);
        /// Maximum size of the files of a multipart form, and of an image or the like as a body, that do not count toward `body_size_max`: all except documents whose contents rules inspect (JSON, HTML, SVG, XML). For more, `unjudged` applies. weir holds them with the body.
        default files_size_max: Size<0, BODY_BYTES_MAX> = Size(16 * MIB);
        /// Maximum time until a held body is complete. After it, the client gets 408. A request also waits so long, at least 10 seconds, for the end of a [long inspection](waf.md#long-inspections).
        default body_timeout: Timeout = Duration(2 * MINUTE);
        /// Maximum number of arguments (parameters of query and body) that rules inspect in a request; for more, `unjudged` applies. Default: the value in the rules (`SecArgumentsLimit`), else 10000.
        optional arguments_max: Whole<u32, 1, 1_000_000>;
        /// Maximum nesting depth of JSON and XML. Default: the value in the rules (`SecRequestBodyJsonDepthLimit`), else 512.
        optional depth_max: Whole<u16, 1, 10_000>;
        /// Maximum number of bytes that rules may read for one request. A byte counts each time it is read. Above it, `unjudged` applies.
        default work_max: Size<MIB, WORK_BYTES_MAX> = Size(256 * MIB);
        /// Maximum CPU time that rules may use for one request and its response. Above it, `unjudged` applies. weir checks this time after every 8 to 64 KiB that rules have read. The [default](waf.md#limits-of-the-work-for-a-request) is four times as long as the longest measured evaluation within the other default limits.
        default time_max: Duration<10, MINUTE> = Duration(TIME_MAX_MS);
        /// Treatment of a request that cannot be inspected completely (it is *unjudged*), because its body is unreadable or exceeds a limit.
        default unjudged: Unjudged = Unjudged::Block;
    }
    later []
}

section! {
    /// A value that a rule does not inspect.
    Exclusion at "virtual_servers.NAME.waf.exclusions.NAME" {
        /// The id of the rule.
        required rule: RuleId;
        /// The argument, cookie or header, as rules and the log name it: `ARGS:text`; `ARGS`: all arguments; `ARGS:/^row_[0-9]+$/`: those with any number in the name.
        required variable: Text;
        /// The path of the requests, as the member gets it: `/comment`, or `/api/*` for all paths in this directory.
        required path: Text;
    }
    later []
}

section! {
    /// Inspection of responses. With this section, members get requests without `Accept-Encoding`. To compress responses for clients, set `compression` on the virtual server.
    Responses at "virtual_servers.NAME.waf.responses" {
        /// Maximum number of bytes of a body that are inspected. weir holds these bytes until they are inspected, and passes on the rest as it arrives.
        default size_max: Size<KIB, BODY_BYTES_MAX> = Size(512 * KIB);
        /// Media types of inspected bodies: `text/html`, or `text/*`. Event streams, gRPC calls and encoded bodies are never inspected. Default: `text/html`, `text/plain`, `text/xml`, `application/json`, `application/xml`.
        optional types: Vec<Spanned<Text>>;
    }
    later []
}

section! {
    /// Protection of the application's cookies.
    Cookies at "virtual_servers.NAME.waf.cookies" {
        /// Names of cookies that clients must not change; `cart_*` matches all names with this prefix, `*` all. weir seals them: it appends a tag (signature) to the value, and removes it before the member gets the cookie. A cookie with a wrong tag is a finding of the check `cookie_changed`. Do not list cookies that scripts in the browser read or set. Default: none.
        optional sealed: Vec<Spanned<Text>>;
        /// A file with keys for the tags, shared by several instances. The first key signs; all keys are accepted. Default: one key, kept in `state_dir`.
        optional key_file: FilePath;
        /// A name of your choice for the application to which the cookies belong. A sealed cookie is valid only at virtual servers with the same `application` and keys. Default: the name of the virtual server, so no other one accepts its cookies. Set it where several virtual servers serve one application.
        optional application: Text;
        /// Adds `Secure` to cookies without it: browsers send them only over TLS.
        default secure: bool = false;
        /// Adds `HttpOnly` to cookies without it: they are hidden from scripts.
        default http_only: bool = false;
        /// Adds `SameSite` with this value to cookies without it. It controls whether browsers send the cookie with cross-site requests. Default: unchanged.
        optional same_site: SameSite;
    }
    later []
}

choice! {
    /// Treatment of a request that cannot be inspected completely.
    Unjudged {
        /// In mode `block`, the request is denied.
        Block = "block",
        /// The request is passed on.
        Pass = "pass",
    }
    later [] maps []
}

section! {
    /// The log of the web application firewall. By default, it has one line for each request that the firewall blocks, would block, or cannot inspect completely; see `record`.
    WafLog at "log.waf" {
        /// `stdout`, a file, or a syslog server, as for `log.access.to`. Without the section `log.waf`, this log goes to the target of the access log.
        required to: crate::shapes::LogPath;
        /// The requests to record completely, for evaluation with other rules (`weir waf diff`). Values are masked if their names suggest a secret, such as `password`. A body is not recorded if it is longer than 64 KiB, or may have a secret that cannot be masked.
        default record: Record = Record::Off;
    }
    later []
}

choice! {
    /// Requests that the log of the web application firewall records completely.
    Record {
        /// No request.
        Off = "off",
        /// Requests with a finding.
        Told = "told",
        /// All inspected requests; those without a finding get a line, too.
        All = "all",
    }
    later [] maps []
}
