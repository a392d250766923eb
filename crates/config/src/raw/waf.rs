//! `waf`: by which rules requests are inspected, and what becomes of what these find.

use crate::decode::{OneOrMany, Spanned};
use crate::raw::Timeout;
use crate::raw::policy::{SameSite, WafMode};
use crate::scalar::{Duration, GIB, KIB, MIB, MINUTE, Off, Size, Text, Whole, WordOr};
use crate::shapes::{FilePath, TxTexts};

/// Most bytes of a body that is held for an inspection.
const BODY_BYTES_MAX: u64 = 64 * MIB;
/// Most bytes that one request may cost.
const WORK_BYTES_MAX: u64 = 64 * GIB;

/// A paranoia level.
pub(crate) type Level = Whole<u8, 1, 4>;

section! {
    /// By which rules requests are inspected, and what becomes of those that are taken for attacks. Rules are those of ModSecurity's language, OWASP CRS among them ([waf.md](waf.md)). What is not given here stays as the rules have it.
    Waf at "virtual_servers.NAME.waf" {
        /// What becomes of a request that rules would deny. A policy can say otherwise for some requests (`waf`). `off`: none is inspected, but those for which a policy says so.
        required mode: WafMode;
        /// The rules, in the order in which they are read: files of rules, folders of CRS (with `crs-setup.conf`, `rules` and `plugins`), or the word `builtin` for the rules that come with weir ([waf-rules.md](waf-rules.md)). Default: `builtin`.
        optional rules: OneOrMany<Spanned<FilePath>>;
        /// The paranoia level up to which rules score: the more, the stricter, and the more false positives. Sets `blocking_paranoia_level` of CRS 4 and `paranoia_level` of CRS 3.
        optional paranoia: Level;
        /// The paranoia level up to which rules are evaluated and logged; not below `paranoia`. Sets `detection_paranoia_level` of CRS 4 and `executing_paranoia_level` of CRS 3. Default with `paranoia`: the same.
        optional detection_paranoia: Level;
        /// The score from which a request is denied. Sets `inbound_anomaly_score_threshold`.
        optional threshold: Whole<u32, 1, 1_000_000>;
        /// Whether a request that its head alone condemns is denied before its body is read. Sets `early_blocking` of CRS 4.
        optional early_blocking: bool;
        /// Further variables of `TX`, by name: what else `crs-setup.conf` sets. They hold against what rules set.
        optional variables: TxTexts;
        /// What is looked at without rules: settings of checks, or `off`. Default: all checks with their own actions and limits. With mode `detect` none of them blocks.
        optional checks: WordOr<Off, super::checks::Checks>;
        /// Responses are inspected too: for messages of errors, and what else must not leave. Default: they are not.
        optional responses: Responses;
        /// What is done with the cookies that the application sets, whatever the mode. Default: nothing.
        optional cookies: Cookies;
        /// Largest body that is inspected, before and after it is decoded (`Content-Encoding`); a request with a larger one is not judged. Bodies are held until they are judged.
        default body_size_max: Size<KIB, BODY_BYTES_MAX> = Size(MIB);
        /// Longest time in which a body has to be whole that is held. What takes longer is answered with 408.
        default body_timeout: Timeout = Duration(2 * MINUTE);
        /// Most arguments of a request. Default: what the rules say (`SecArgumentsLimit`), else 1000.
        optional arguments_max: Whole<u32, 1, 1_000_000>;
        /// How deep JSON and XML may nest. Default: what the rules say (`SecRequestBodyJsonDepthLimit`), else 512.
        optional depth_max: Whole<u16, 1, 10_000>;
        /// Most bytes that rules may look at for one request, each counted as often as it is looked at.
        default work_max: Size<MIB, WORK_BYTES_MAX> = Size(256 * MIB);
        /// What becomes of a request that cannot be judged: its body cannot be read, or is beyond a limit. `block`: with mode `block` its member does not get it. `pass`: it goes on.
        default unjudged: Unjudged = Unjudged::Block;
    }
    later []
}

section! {
    /// Which responses are inspected, and how far. Members are asked without `Accept-Encoding` then; weir compresses itself.
    Responses at "virtual_servers.NAME.waf.responses" {
        /// How much of a body is looked at, and held until that is judged; what follows passes as it comes.
        default size_max: Size<KIB, BODY_BYTES_MAX> = Size(512 * KIB);
        /// Media types whose bodies are looked at: `text/html`, or `text/*`. Event streams, calls (gRPC) and encoded bodies never are. Default: `text/html`, `text/plain`, `text/xml`, `application/json`, `application/xml`.
        optional types: Vec<Spanned<Text>>;
    }
    later []
}

section! {
    /// What is done with the cookies that the application sets.
    Cookies at "virtual_servers.NAME.waf.cookies" {
        /// Cookies that have to come back as they were set, by name; `cart_*` stands for all that begin so, `*` for all. Each gets a tag behind its value, which is taken off before its member gets it; one whose tag is not right is found by the check `cookie_changed`. No good for cookies that scripts read or set.
        optional sealed: Vec<Spanned<Text>>;
        /// A file with keys for the tags, shared by several instances; the first key signs, all are honoured. Default: a key of its own that is kept in `state_dir`.
        optional key_file: FilePath;
        /// `Secure` is added to cookies that lack it: they are sent over TLS only.
        default secure: bool = false;
        /// `HttpOnly` is added to cookies that lack it: they are kept from scripts.
        default http_only: bool = false;
        /// `SameSite` with this value is added to cookies that lack it: whether they are sent from other sites.
        optional same_site: SameSite;
    }
    later []
}

choice! {
    /// What becomes of a request that cannot be judged.
    Unjudged {
        /// Its member does not get it.
        Block = "block",
        /// It goes on.
        Pass = "pass",
    }
    later [] maps []
}

section! {
    /// The log of the web application firewall: one line for each request that it blocks, would block, or cannot judge.
    WafLog at "log.waf" {
        /// `stdout`, a file, or a syslog server, as `log.access.to`. Without this section: where the access log goes.
        required to: crate::shapes::LogPath;
        /// Which requests are recorded whole, so that they can be judged again by other rules (`weir waf diff`). Values that are secrets by their names are masked; a body that is longer than 64 KiB, or that may have a secret which cannot be masked, is left out.
        default record: Record = Record::Off;
    }
    later []
}

choice! {
    /// Which requests the log of the web application firewall records whole.
    Record {
        /// None.
        Off = "off",
        /// Those that a line tells of.
        Told = "told",
        /// All that are inspected: those in which nothing is found get a line too.
        All = "all",
    }
    later [] maps []
}
