//! Words of other products for values of expressions, and their equivalents.

use std::cmp::Reverse;
use std::ops::Range;

use super::error::ExpressionError;
use super::names;

/// Names at the start of an expression: of nginx (without `$`), HAProxy, and general language.
const ROOTS: &[(&str, &str)] = &[
    ("arg", "request.query['NAME']"),
    ("args", "request.raw_query, or request.query['NAME']"),
    ("dst", "server.ip"),
    ("dst_port", "server.port"),
    ("hdr", "request.headers['NAME']"),
    ("hdr_beg", "request.headers['NAME'].startsWith('…')"),
    ("hdr_dom", "request.host"),
    ("http", "request"),
    ("http_host", "request.host"),
    ("http_user_agent", "request.headers['user-agent']"),
    ("date", "time.date, time.clock"),
    ("date_gmt", "time.date, time.clock"),
    ("ip", "client.ip"),
    ("lb", "member"),
    ("now", "time.date, time.clock"),
    ("path_beg", "request.path.startsWith('…')"),
    ("path_dir", "request.path.contains('/…/')"),
    ("path_end", "request.path.endsWith('…')"),
    ("path_reg", "request.path.matches('…')"),
    ("path_sub", "request.path.contains('…')"),
    ("query_string", "request.raw_query"),
    ("remote_addr", "client.ip"),
    ("remote_port", "client.port"),
    ("req", "request"),
    ("request_method", "request.method"),
    ("request_uri", "request.target"),
    ("res", "response"),
    ("server_addr", "server.ip"),
    ("server_port", "server.port"),
    ("sni", "tls.sni"),
    ("src", "client.ip"),
    ("src_port", "client.port"),
    ("srv_name", "member.name"),
    ("ssl_c_s_dn", "tls.client_certificate.subject"),
    ("ssl_c_serial", "tls.client_certificate.serial"),
    ("ssl_cipher", "tls.cipher"),
    ("ssl_client_fingerprint", "tls.client_certificate.fingerprint, of SHA-256"),
    ("ssl_client_s_dn", "tls.client_certificate.subject"),
    ("ssl_client_serial", "tls.client_certificate.serial"),
    ("ssl_fc", "request.scheme == 'https'"),
    ("ssl_fc_sni", "tls.sni"),
    ("ssl_protocol", "tls.version"),
    ("ssl_server_name", "tls.sni"),
    ("time_iso8601", "time.date, time.clock"),
    ("time_local", "time.date, time.clock"),
    ("upstream", "pools['NAME']"),
    ("upstream_addr", "member.ip, member.port"),
    ("uri", "request.target"),
    ("url", "request.target"),
    ("urlp", "request.query['NAME']"),
];

/// Beginnings of names at the start of an expression, and the map of the rest: of nginx (without `$`).
const PREFIXES: &[(&str, &str)] = &[
    ("arg_", "request.query"),
    ("cookie_", "request.cookies"),
    ("http_", "request.headers"),
    ("sent_http_", "response.headers"),
];

/// Fields of `request`.
const REQUEST: &[(&str, &str)] = &[
    ("address", "client.ip"),
    ("args", "request.query['NAME']"),
    ("cookie", "request.cookies['NAME']"),
    ("hdr", "request.headers['NAME']"),
    ("hostname", "request.host"),
    ("ip", "client.ip"),
    ("query_string", "request.raw_query"),
    ("remote_addr", "client.ip"),
    ("uri", "request.path, or request.target with the query"),
    ("url", "request.path, or request.target with the query"),
    ("user_agent", "request.headers['user-agent']"),
    ("useragent", "request.headers['user-agent']"),
];

/// Commands of iRules, words of NetScaler and fetches of HAProxy, anywhere in a text, in upper or lower case.
const COMMANDS: &[(&str, &str)] = &[
    ("HTTP::cookie", "request.cookies['NAME']"),
    ("HTTP::header", "request.headers['NAME']"),
    ("HTTP::host", "request.host"),
    ("HTTP::method", "request.method"),
    ("HTTP::path", "request.path"),
    ("HTTP::query", "request.raw_query"),
    ("HTTP::status", "response.status"),
    ("HTTP::uri", "request.target"),
    ("IP::client_addr", "client.ip"),
    ("IP::local_addr", "server.ip"),
    ("IP::remote_addr", "client.ip"),
    ("LB::server addr", "member.ip, in rules for responses"),
    ("LB::server pool", "member.pool, in rules for responses"),
    ("LB::server port", "member.port, in rules for responses"),
    ("LB::server", "member.name, in rules for responses"),
    ("SSL::cipher", "tls.cipher"),
    ("TCP::client_port", "client.port"),
    ("TCP::local_port", "server.port"),
    ("X509::hash", "tls.client_certificate.fingerprint, of SHA-256"),
    ("X509::serial_number", "tls.client_certificate.serial"),
    ("X509::subject", "tls.client_certificate.subject"),
    ("active_members", "pools['NAME'].up_members"),
    ("CLIENT.IP.DST", "server.ip"),
    ("CLIENT.IP.SRC", "client.ip"),
    ("CLIENT.IP.SRC.IN_SUBNET", "client.ip in ['10.0.0.0/8']"),
    ("CLIENT.TCP.DSTPORT", "server.port"),
    ("CLIENT.TCP.SRCPORT", "client.port"),
    ("HTTP.REQ.COOKIE", "request.cookies['NAME']"),
    ("HTTP.REQ.HEADER", "request.headers['NAME']"),
    ("HTTP.REQ.HOSTNAME", "request.host"),
    ("HTTP.REQ.METHOD", "request.method"),
    ("HTTP.REQ.URL.PATH", "request.path"),
    ("HTTP.REQ.URL.QUERY", "request.raw_query"),
    ("HTTP.REQ.URL", "request.target"),
    ("HTTP.RES.STATUS", "response.status"),
    ("SYS.RANDOM", "random(100)"),
    ("SYS.TIME", "time.clock, time.date, time.weekday"),
    ("SYS.VSERVER", "pools['NAME']"),
    ("hdr(host)", "request.host"),
    ("req.cook", "request.cookies['NAME']"),
    ("req.hdr", "request.headers['NAME']"),
    ("req.hdr(host)", "request.host"),
    ("req.ssl_sni", "tls.sni"),
    ("res.hdr", "response.headers['NAME']"),
];

/// Methods of NetScaler after a word of [`COMMANDS`], and what stands after its equivalent.
const COMMAND_METHODS: &[(&str, &str)] = &[
    ("CONTAINS", ".contains('…')"),
    ("ENDSWITH", ".endsWith('…')"),
    ("EQ", " == '…'"),
    ("LENGTH", ".size()"),
    ("REGEX_MATCH", ".matches('…')"),
    ("SET_TEXT_MODE", ".lowerAscii()"),
    ("STARTSWITH", ".startsWith('…')"),
    ("TO_LOWER", ".lowerAscii()"),
];

/// Words between two values.
const OPERATORS: &[(&str, &str)] = &[
    ("and", "did you mean `&&`?"),
    ("contains", "it is a method: `request.path.contains('…')`"),
    ("ends_with", "it is a method: `request.path.endsWith('…')`"),
    ("endswith", "it is a method: `request.path.endsWith('…')`"),
    ("eq", "did you mean `==`?"),
    ("equals", "did you mean `==`?"),
    ("ge", "did you mean `>=`?"),
    ("gt", "did you mean `>`?"),
    ("is", "did you mean `==`?"),
    ("le", "did you mean `<=`?"),
    ("lt", "did you mean `<`?"),
    ("matches", "it is a method: `request.path.matches('…')`"),
    ("matches_glob", "it is a method, with a regular expression: `request.path.matches('…')`"),
    ("matches_regex", "it is a method: `request.path.matches('…')`"),
    ("ne", "did you mean `!=`?"),
    ("not", "did you mean `!`?"),
    ("or", "did you mean `||`?"),
    ("starts_with", "it is a method: `request.path.startsWith('…')`"),
    ("startswith", "it is a method: `request.path.startsWith('…')`"),
];

/// Functions and methods.
const CALLS: &[(&str, &str)] = &[
    ("add", "`a + b`"),
    ("be_conn", "pools['NAME'].connections"),
    ("connslots", "pools['NAME'].connections"),
    ("date", "time.date, time.clock"),
    ("div", "`a / b`"),
    ("double", "int(…): there are no fractions"),
    ("includes", "contains('…')"),
    ("len", "`request.path.size()`"),
    ("length", "size()"),
    ("lower", "lowerAscii()"),
    ("mod", "`a % b`"),
    ("mul", "`a * b`"),
    ("nbsrv", "pools['NAME'].up_members"),
    ("neg", "`-a`"),
    ("now", "time.date, time.clock"),
    ("parseint", "int(…)"),
    ("pool", "pools['NAME']"),
    ("rand", "random(100)"),
    ("srv_conn", "pools['NAME'].connections"),
    ("slice", "substring(FROM, TO)"),
    ("strlen", "`request.path.size()`"),
    ("sub", "`a - b`"),
    ("substr", "substring(FROM, TO)"),
    ("toint", "int(…)"),
    ("tolower", "lowerAscii()"),
    ("tolowercase", "lowerAscii()"),
    ("uint", "int(…)"),
    ("values", "request.headers.all('NAME')"),
];

fn of(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches('$').to_ascii_lowercase();
    table.iter().find(|(foreign, _)| *foreign == word).map(|(_, ours)| *ours)
}

/// Adds the equivalent of a name at the start of an expression.
pub(super) fn of_root(
    error: ExpressionError,
    word: &str,
) -> Result<ExpressionError, ExpressionError> {
    named(error, of(ROOTS, word)).or_else(|error| match of_prefix(word) {
        Some(help) => Ok(error.help(help)),
        None => Err(error),
    })
}

/// Help for a name that ends in the name of a header, cookie or parameter.
fn of_prefix(word: &str) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let mut rests = PREFIXES.iter().filter_map(|(prefix, map)| {
        let rest = word.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        let is_header = map.ends_with("headers");
        Some((map, if is_header { rest.replace('_', "-") } else { rest.to_owned() }))
    });
    rests.next().map(|(map, name)| format!("here it is {map}['{name}']"))
}

/// Adds the equivalent of a variable: the text after its `$`.
pub(super) fn of_variable(error: ExpressionError, rest: &str) -> ExpressionError {
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let end = rest.find(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    let word = &rest[..end.unwrap_or(rest.len())];
    let group = names::ROOTS.into_iter().find(|group| group.member(word).is_some());
    match group {
        Some(group) => error.help(format!("here it is {}.{word}", group.path())),
        None => of_root(error, word).unwrap_or_else(|error| {
            error.help("there are no variables; values have names such as `request.path`")
        }),
    }
}

/// Adds the equivalent of a word between two values.
pub(super) fn of_operator(error: ExpressionError, word: &str) -> ExpressionError {
    match of(OPERATORS, word) {
        Some(help) => error.help(help),
        None => error,
    }
}

/// Adds the equivalent of a request field.
pub(super) fn of_request(
    error: ExpressionError,
    word: &str,
) -> Result<ExpressionError, ExpressionError> {
    named(error, of(REQUEST, word))
}

/// Adds the equivalent of a method.
pub(super) fn of_call(
    error: ExpressionError,
    word: &str,
) -> Result<ExpressionError, ExpressionError> {
    named(error, of(CALLS, word))
}

/// Adds the equivalent of a function. In other products, values such as `hdr(host)` can be functions.
pub(super) fn of_function(
    error: ExpressionError,
    word: &str,
) -> Result<ExpressionError, ExpressionError> {
    of_call(error, word).or_else(|error| of_root(error, word))
}

/// Adds the equivalent from a table. `Ok`: a help was added.
fn named(
    error: ExpressionError,
    ours: Option<&'static str>,
) -> Result<ExpressionError, ExpressionError> {
    match ours {
        Some(ours) => Ok(error.help(format!("here it is {ours}"))),
        None => Err(error),
    }
}

/// A word of [`COMMANDS`] in a text.
struct ForeignCommand {
    range: Range<usize>,
    foreign: String,
    ours: String,
}

/// The first command of another product in the text, with its method, that `is_meant` accepts.
fn found(text: &str, is_meant: impl Fn(&Range<usize>) -> bool) -> Option<ForeignCommand> {
    let lower = text.to_ascii_lowercase();
    let all = COMMANDS.iter().filter_map(|(foreign, ours)| {
        let start = lower.find(&foreign.to_ascii_lowercase())?;
        let found = with_method(text, start..start + foreign.len(), ours);
        is_meant(&found.range).then_some(found)
    });
    all.min_by_key(|found| (found.range.start, Reverse(found.range.end)))
}

/// A command and the method after it, if the equivalent of both is known.
fn with_method(text: &str, range: Range<usize>, ours: &str) -> ForeignCommand {
    let is_value = ours.chars().all(|char| char.is_ascii_alphabetic() || char == '.');
    let rest = text[range.end..].strip_prefix('.').unwrap_or_default();
    let length = rest.find(|char: char| !(char.is_ascii_alphabetic() || char == '_'));
    let word = rest[..length.unwrap_or(rest.len())].to_ascii_uppercase();
    let method = COMMAND_METHODS.iter().find(|(foreign, _)| is_value && *foreign == word);
    let (range, ours) = match method {
        Some((_, method)) => (range.start..range.end + 1 + word.len(), format!("{ours}{method}")),
        None => (range, ours.to_owned()),
    };
    ForeignCommand { foreign: text[range.clone()].to_owned(), ours, range }
}

/// Adds the equivalent of another product's command in the text. It replaces the help of an error within the command, or at
/// its first argument.
pub(super) fn of_text(error: ExpressionError, text: &str) -> ExpressionError {
    let error = with_command(error, text);
    let more = error.more.into_iter().map(|error| with_command(error, text)).collect();
    ExpressionError { more, ..error }
}

fn with_command(error: ExpressionError, text: &str) -> ExpressionError {
    let place = error.range.start;
    let here = found(text, |range| (range.start..=range.end + 1).contains(&place));
    let found = here.or_else(|| found(text, |_| error.help.is_none()));
    match found {
        Some(ForeignCommand { foreign, ours, .. }) => {
            error.help(format!("`{foreign}` is {ours} here"))
        }
        None => error,
    }
}
