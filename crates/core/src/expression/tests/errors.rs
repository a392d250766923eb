//! Refused expressions: the place of the error, and its message.

use crate::expression::testing::Sample;
use crate::expression::{Condition, ERRORS_MAX, ExpressionError, Purpose, Template, Value};

fn error(text: &str) -> ExpressionError {
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    match Condition::compile(text, &mut sample.scope()) {
        Err(error) => error,
        Ok(_) => panic!("no error: {text}"),
    }
}

/// The error of a condition; `«…»` marks its expected place.
fn check(marked: &str, expected: &str) {
    let text = marked.replace(['«', '»'], "");
    let start = marked.find('«').expect("a mark");
    let end = marked.find('»').expect("a mark") - '«'.len_utf8();
    let error = error(&text);
    assert_eq!((error.to_string().as_str(), error.range), (expected, start..end), "{text}");
}

#[test]
fn names() {
    check("request.«header»['a'] == ''", "request has no field `header`; did you mean `headers`?");
    check(
        "request.«uri» == ''",
        "request has no field `uri`; here it is request.path, or request.target with the query",
    );
    check("«req» == ''", "nothing is called `req`; here it is request");
    check("«remote_addr» == ''", "nothing is called `remote_addr`; here it is client.ip");
    check(
        "«path_beg» == ''",
        "nothing is called `path_beg`; here it is request.path.startsWith('…')",
    );
    check(
        "«client.ip in '10.0.0.0/8'»",
        "an address cannot be in text; write a list of addresses and networks: `in ['10.0.0.0/8']`",
    );
    check("«requst».path == ''", "nothing is called `requst`; did you mean `request`?");
    check("«path» == ''", "nothing is called `path`; did you mean `request.path`?");
    check("«cidr» == ''", "nothing is called `cidr`; `cidr` is a function: `cidr(…)`");
    check(
        "request.path.«startswith»('a')",
        "text has no method `startswith`; did you mean `startsWith`?",
    );
    check(
        "«unheard_of»() > 2",
        "there is no function `unheard_of`; the functions are `cidr`, `int`, `random`, `size`, `string`",
    );
    check(
        "«startsWith»(request.path, 'a')",
        "there is no function `startsWith`; `startsWith` is called on a value: \
         `request.path.startsWith(…)`",
    );
    check(
        "«cdir»('10.0.0.0/8').containsIP(client.ip)",
        "there is no function `cdir`; did you mean `cidr`?",
    );
    check(
        "request.headers.«host» == ''",
        "request.headers is read by a name in brackets; write `request.headers['host']`",
    );
    check(
        "request.path in data.«blocked»",
        "data sets are named in brackets; write `data['blocked']`",
    );
    check(
        "request.path in data[«'bloked'»]",
        "there is no data set `bloked`; did you mean `blocked`?",
    );
    check(
        "jwt.«valid»",
        "tokens are named in brackets; write `jwt['NAME'].valid`, with the name of an authentication of type jwt",
    );
    check(
        "jwt[«'apo'»].valid",
        "there is no authentication `apo` of type jwt; did you mean `api`?",
    );
    check(
        "jwt['api'].«sub» == ''",
        "jwt['…'] has no field `sub`; it has `valid` and `claims`; a claim is read as `jwt['…'].claims['sub']`",
    );
    check(
        "jwt['api'].claims.«sub» == ''",
        "a claim is read by its name in brackets; write `claims['sub']`",
    );
    check(
        "jwt['api'].claims[«request.path»] == ''",
        "the name of a claim must be literal text: `'…'`",
    );
    check(
        "«jwt['api']»",
        "a boolean is wanted here, and this is a token; for example `jwt['…'].valid`",
    );
    check("request.path.«size» == 1", "text has no field `size`; did you mean `size(…)`?");
    check("«request.path»['a'] == ''", "text is not read by brackets");
    check("request.headers[«'a b'»] == ''", "no header can be called `a b`");
    check(
        "request.headers[«request.path»] == ''",
        "a name in brackets must be literal text: `'…'`",
    );
}

/// Each condition of another product, its help, and an expression that follows the help.
#[track_caller]
fn check_foreign(conditions: &[(&str, &str, &str)]) {
    for (foreign, help, ours) in conditions {
        assert_eq!(error(foreign).help.as_deref(), Some(*help), "{foreign}");
        let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        Condition::compile(ours, &mut sample.scope()).expect(ours);
    }
}

#[test]
fn variables_of_other_products() {
    check_foreign(&[
        ("$host == 'a'", "here it is request.host", "request.host == 'a'"),
        ("${host} == 'a'", "here it is request.host", "request.host == 'a'"),
        ("$remote_addr == '::1'", "here it is client.ip", "client.ip == '::1'"),
        (
            "$http_x_user == 'a'",
            "here it is request.headers['x-user']",
            "request.headers['x-user'] == 'a'",
        ),
        ("$arg_id == 'a'", "here it is request.query['id']", "request.query['id'] == 'a'"),
        (
            "$cookie_s_id != ''",
            "here it is request.cookies['s_id']",
            "request.cookies['s_id'] != ''",
        ),
        (
            "$limit_rate == ''",
            "there are no variables; values have names such as `request.path`",
            "request.path == ''",
        ),
    ]);
}

#[test]
fn operators_and_methods_of_other_products() {
    const STARTS: &str = "it is a method: `request.path.startsWith('…')`";
    check_foreign(&[
        ("request.path starts_with '/a'", STARTS, "request.path.startsWith('/a')"),
        ("(request.path starts_with '/a')", STARTS, "request.path.startsWith('/a')"),
        (
            "request.path contains 'a'",
            "it is a method: `request.path.contains('…')`",
            "request.path.contains('a')",
        ),
        ("request.host eq 'a'", "did you mean `==`?", "request.host == 'a'"),
        ("request.host.length > 3", "here it is size()", "request.host.size() > 3"),
        ("request.host.length() > 3", "here it is size()", "request.host.size() > 3"),
        ("len(request.host) > 3", "here it is `request.path.size()`", "request.path.size() > 3"),
        (
            "request.host.substr(1, 2) == 'a'",
            "here it is substring(FROM, TO)",
            "request.host.substring(1, 3) == 'a'",
        ),
        (
            "request.host in ('a', 'b')",
            "a list stands in brackets: `in ['a', 'b']`",
            "request.host in ['a', 'b']",
        ),
    ]);
}

#[test]
fn commands_of_other_products() {
    check_foreign(&[
        ("req.hdr(host) == 'a'", "`req.hdr(host)` is request.host here", "request.host == 'a'"),
        ("hdr(host) == 'a'", "`hdr(host)` is request.host here", "request.host == 'a'"),
        (
            "req.hdr(x-user) -m found",
            "`req.hdr` is request.headers['NAME'] here",
            "request.headers['NAME'] != ''",
        ),
        (
            "true && !HTTP.REQ.URL.CONTAINS('a')",
            "`HTTP.REQ.URL.CONTAINS` is request.target.contains('…') here",
            "request.target.contains('…')",
        ),
        (
            "http.req.hostname.eq(\"a\")",
            "`http.req.hostname.eq` is request.host == '…' here",
            "request.host == '…'",
        ),
        (
            "HTTP.REQ.HEADER('a').CONTAINS('b')",
            "`HTTP.REQ.HEADER` is request.headers['NAME'] here",
            "request.headers['NAME'].contains('b')",
        ),
        (
            "CLIENT.IP.SRC.IN_SUBNET(10.0.0.0/8)",
            "`CLIENT.IP.SRC.IN_SUBNET` is client.ip in ['10.0.0.0/8'] here",
            "client.ip in ['10.0.0.0/8']",
        ),
        (
            "[HTTP::uri] starts_with '/a'",
            "`HTTP::uri` is request.target here",
            "request.target == ''",
        ),
    ]);
    // Each of several errors has its own help.
    let both = error("req.hdr(host) == 'a' || request.path.length > 3");
    let helps = [&both, &both.more[0]].map(|error| error.help.as_deref());
    assert_eq!(helps, [Some("`req.hdr(host)` is request.host here"), Some("here it is size()")]);
    // A literal is no command.
    let error = error("request.uri == 'HTTP::host'");
    assert_eq!(
        error.help.as_deref(),
        Some("here it is request.path, or request.target with the query")
    );
}

#[test]
fn types() {
    check(
        "«request.path»",
        "a boolean is wanted here, and this is text; compare it, for example with `!= ''`",
    );
    check(
        "«request.path» + 1 > 2",
        "`+` takes integers, and this is text; `int(…)` makes an integer of text; \
         a template joins texts: `${request.host}${request.path}`",
    );
    check(
        "2 % «request.path» > 2",
        "`%` takes integers, and this is text; `int(…)` makes an integer of text",
    );
    check("-«client.ip» > 2", "`-` takes integers, and this is an address");
    check("1 * «true» > 2", "`*` takes integers, and this is a boolean");
    check(
        "int(«client.port») > 2",
        "text is wanted here, and this is an integer; `string(…)` makes text of an address or an integer",
    );
    check("pools[«'wep'»].up_members > 2", "there is no pool `wep`; did you mean `web`?");
    check("pools[«''»].up_members > 2", "there is no pool ``");
    check("pools.«web».up_members > 2", "pools are named in brackets; write `pools['web']`");
    check("pools['web'].«up» > 2", "`pools['…']` has no field `up`");
    check(
        "pools['web'].«up_member» > 2",
        "`pools['…']` has no field `up_member`; did you mean `up_members`?",
    );
    check(
        "«pools['web']»",
        "a boolean is wanted here, and this is a pool; for example `pools['…'].up_members`",
    );
    check("pools[«request.host»].up_members > 2", "the name of a pool must be literal text: `'…'`");
    check(
        "request.headers.all('a').«contains»('b')",
        "several values have no method `contains`; `[0]` is the first of them, `'…' in …` asks for one, and \
         `size()` counts them",
    );
    check("request.headers.all(«'a b'»)[0] == ''", "no header can be called `a b`");
    check("request.headers.all('a')[«-1»] == ''", "this must be a literal number, at least 0");
    check(
        "request.query.«all»('a')[0] == ''",
        "request.query has no method `all`; `all` is called on request.headers and response.headers; \
         `request.query['…']` is the first",
    );
    check("«request.headers.all('a') == 'b'»", "`==` cannot compare several values with text");
    check(
        "«nbsrv»('web') > 2",
        "there is no function `nbsrv`; here it is pools['NAME'].up_members",
    );
    check("client.port.«add»(2) > 2", "an integer has no method `add`; here it is `a + b`");
    check("«rand»(2) > 2", "there is no function `rand`; here it is random(100)");
    check("random(«0») > 2", "this must be a literal number, at least 1");
    check("random(«client.port») > 2", "this must be a literal number, at least 1");
    check("«random»() > 2", "`random` takes one argument, not 0");
    check("«random» > 2", "nothing is called `random`; `random` is a function: `random(…)`");
    check("true && «client.port»", "a boolean is wanted here, and this is an integer");
    check(
        "!«request»",
        "a boolean is wanted here, and this is a group of fields; for example `request.method`",
    );
    check("«request.path == 1»", "`==` cannot compare text with an integer");
    check("«1 > request.path»", "`>` cannot compare an integer with text");
    check("«client.ip < server.ip»", "`<` cannot compare an address with an address");
    check("«true < false»", "`<` cannot compare a boolean with a boolean");
    check("«request.headers == ''»", "`==` cannot compare a map with text");
    check(
        "true ? «request.path : 1» ",
        "`?:` chooses between two of a kind, not between text and an integer",
    );
    check(
        "request.path.startsWith(«1»)",
        "text is wanted here, and this is an integer; `string(…)` makes text of an address or an integer",
    );
    check(
        "request.path.startsWith(«['a']»)",
        "text is wanted here, and this is a list; did you mean `startsWithAny`?",
    );
    check(
        "request.path.startsWithAny(«'a'»)",
        "a data set of strings or a list of texts is wanted here, and this is text; \
         did you mean `startsWith`?",
    );
    check(
        "«client.ip».startsWith('10.')",
        "`startsWith` is called on text, and this is an address; \
         `cidr('…').containsIP(…)` asks for a network, `string(…)` makes text of it",
    );
    check(
        "«request.host».containsIP(client.ip)",
        "a network is wanted here, and this is text; \
         `containsIP` is called on a network: `cidr('…').containsIP(…)`",
    );
    check("request.path.«contains»('a', 'b')", "`contains` takes one argument, not 2");
    check("request.path.«size»(1) == 1", "`size` takes no argument, not 1");
    check("«cidr»().containsIP(client.ip)", "`cidr` takes one argument, not 0");
}

#[test]
fn membership() {
    check(
        "«client.ip in data['blocked']»",
        "an address cannot be in a data set of strings; `string(…)` makes text of an address",
    );
    check("«request.path in data['office']»", "text cannot be in a data set of addresses");
    check(
        "«'a' in request.path»",
        "text cannot be in text; `text.contains(part)` looks for a part of a text; \
         a list stands in brackets: `['…']`",
    );
    check(
        "«client.ip in cidr('10.0.0.0/8')»",
        "an address cannot be in a network; write `cidr('…').containsIP(…)`",
    );
    check(
        "request.host in ['a', «request.path»]",
        "only literal values can stand in this list: text; \
         compare with other values by `==`, joined by `||`",
    );
    check(
        "client.port in [«'1'»]",
        "only literal values can stand in this list: an integer; \
         compare with other values by `==`, joined by `||`",
    );
    check("«request.path» in request.headers", "the name to look for must be literal text: `'…'`");
}

#[test]
fn literals() {
    check("client.ip == «'10.0.0.256'»", "`10.0.0.256` is no IP address or network");
    check(
        "client.ip == «'10.0.0.0/8'»",
        "`10.0.0.0/8` is no single address; write `cidr('…').containsIP(…)`",
    );
    check(
        "client.ip == «request.path»",
        "an address compares with an address, or with one in quotes; \
         `string(…)` makes text of an address",
    );
    check("client.ip in ['::1', «'x'»]", "`x` is no IP address or network");
    check(
        "cidr(«'10.1.0.0/8'»).containsIP(client.ip)",
        "`10.1.0.0/8` has bits set after its prefix; did you mean `10.0.0.0/8`?",
    );
    check("cidr(«request.path»).containsIP(client.ip)", "a network must be literal text: `'…'`");
    check("request.path.matches(«'('»)", "not a regular expression: unclosed group");
    check(
        "request.path.matches(«request.host»)",
        "a regular expression must be literal text: `'…'`",
    );
    check("request.path == 'ä' && «x»", "nothing is called `x`");
}

#[test]
fn values_are_text_or_have_one_spelling() {
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for (text, message) in [
        ("request.path == ''", "this is a boolean"),
        ("request.headers", "this is a map"),
        ("['a']", "this is a list"),
        ("data['blocked']", "this is a data set of strings"),
        ("data", "this is all data sets"),
        ("cidr('::/0')", "this is a network"),
    ] {
        let error = Value::compile(text, &mut sample.scope()).unwrap_err();
        let expected = format!("text, an integer or an address is wanted here, and {message}");
        assert_eq!((error.message, error.range), (expected, 0..text.len()), "{text}");
    }
}

/// Several errors of one text are reported together.
#[test]
fn errors_in_several_places() {
    let places = |error: ExpressionError, text: &str| -> Vec<String> {
        let all = [&error].into_iter().chain(&error.more);
        all.map(|error| text[error.range.clone()].to_owned()).collect()
    };
    for (text, expected) in [
        ("a == '' && b == '' || c", &["a", "b", "c"][..]),
        ("a == b", &["a", "b"]),
        ("a in b", &["a", "b"]),
        ("a + b < -c", &["a", "b", "c"]),
        ("a ? b : c == ''", &["a", "b", "c"]),
        ("a > 1 && request.path == '/' && !(b || request.uri == '')", &["a", "b", "uri"]),
    ] {
        assert_eq!(places(error(text), text), expected, "{text}");
    }
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let text = "${a} and ${request.path} and ${b}";
    let wrong = Template::compile(text, Purpose::Plain, &mut sample.scope()).unwrap_err();
    assert_eq!(places(wrong, text), ["a", "b"]);
    // The number of errors is bounded.
    let many = vec!["x"; 1_000].join(" || ");
    assert_eq!(places(error(&many), &many).len(), ERRORS_MAX);
    let many = "${x}".repeat(1_000);
    let wrong = Template::compile(&many, Purpose::Plain, &mut sample.scope()).unwrap_err();
    assert_eq!(places(wrong, &many).len(), ERRORS_MAX);
}
