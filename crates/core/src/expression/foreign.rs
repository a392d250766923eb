//! Words of other products for values of expressions, and their equivalents.

use super::error::ExpressionError;

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

/// Commands of iRules and words of NetScaler, anywhere in a text.
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
    ("CLIENT.IP.SRC", "client.ip"),
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
];

/// Functions and methods.
const CALLS: &[(&str, &str)] = &[
    ("add", "`a + b`"),
    ("be_conn", "pools['NAME'].connections"),
    ("connslots", "pools['NAME'].connections"),
    ("date", "time.date, time.clock"),
    ("div", "`a / b`"),
    ("double", "int(…): there are no fractions"),
    ("mod", "`a % b`"),
    ("mul", "`a * b`"),
    ("nbsrv", "pools['NAME'].up_members"),
    ("neg", "`-a`"),
    ("now", "time.date, time.clock"),
    ("parseint", "int(…)"),
    ("pool", "pools['NAME']"),
    ("rand", "random(100)"),
    ("srv_conn", "pools['NAME'].connections"),
    ("sub", "`a - b`"),
    ("toint", "int(…)"),
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
    named(error, of(ROOTS, word))
}

/// Adds the equivalent of a request field.
pub(super) fn of_request(
    error: ExpressionError,
    word: &str,
) -> Result<ExpressionError, ExpressionError> {
    named(error, of(REQUEST, word))
}

/// Adds the equivalent of a function or method.
pub(super) fn of_call(
    error: ExpressionError,
    word: &str,
) -> Result<ExpressionError, ExpressionError> {
    named(error, of(CALLS, word))
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

/// Adds the equivalent of another product's command in the text, if the error has no help of its own.
pub(super) fn of_text(error: ExpressionError, text: &str) -> ExpressionError {
    let found = COMMANDS.iter().find(|(foreign, _)| text.contains(foreign));
    match found {
        Some((foreign, ours)) if error.help.is_none() => {
            error.help(format!("`{foreign}` is {ours} here"))
        }
        _ => error,
    }
}
