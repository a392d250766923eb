//! The meaning of expressions by examples.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use crate::expression::testing::Sample;
use crate::expression::{
    CertificateFacts, CertificateName, ClientCertificate, Condition, Fields, Phase, Purpose, Reads,
    Scope, Template, TlsFacts, Value,
};

const REQUEST: &str = "GET /a/%7Ejoe/../b.png?q=a%20b+c&q=2&Empty=&flag&%61=dec&bad=%zz HTTP/1.1\r\n\
    Host: Shop.Example.:8080\r\n\
    X-One: first\r\n\
    x-one: second\r\n\
    X-Empty:\r\n\
    X-Mixed: AbC\r\n\
    Cookie: sid=42; sid=43; theme=\"dark\"\r\n\
    Cookie: late=1\r\n\r\n";

fn holds(sample: &mut Sample, text: &str) -> bool {
    let condition = Condition::compile(text, &mut sample.scope())
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    sample.evaluate(|evaluation| evaluation.holds(&condition))
}

fn value(sample: &mut Sample, text: &str) -> String {
    let value =
        Value::compile(text, &mut sample.scope()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut out = Vec::new();
    sample.evaluate(|evaluation| evaluation.value(&value, &mut out));
    String::from_utf8(out).unwrap()
}

#[test]
fn fields() {
    let mut sample = Sample::new(REQUEST);
    for (text, expected) in [
        ("request.method", "GET"),
        ("request.path", "/a/b.png"),
        ("request.raw_path", "/a/%7Ejoe/../b.png"),
        ("request.target", "/a/b.png?q=a%20b+c&q=2&Empty=&flag&%61=dec&bad=%zz"),
        ("request.raw_query", "q=a%20b+c&q=2&Empty=&flag&%61=dec&bad=%zz"),
        ("request.query['q']", "a b c"),
        ("request.query['Empty']", ""),
        ("request.query['empty']", ""),
        ("request.query['flag']", ""),
        ("request.query['a']", "dec"),
        ("request.query['bad']", "%zz"),
        ("request.host", "shop.example"),
        ("request.headers['X-ONE']", "first, second"),
        ("request.headers['host']", "Shop.Example.:8080"),
        ("request.headers['none']", ""),
        ("request.cookies['sid']", "42"),
        ("request.cookies['theme']", "\"dark\""),
        ("request.cookies['late']", "1"),
        ("request.cookies['SID']", ""),
        ("request.scheme", "http"),
        ("request.version", "1.1"),
        ("client.ip", "192.0.2.1"),
        ("client.port", "40000"),
        ("server.ip", "192.0.2.80"),
        ("server.port", "443"),
        ("tls.version", ""),
        ("tls.client_certificate.subject", ""),
        ("response.status", "404"),
        ("response.headers['server']", "a, b"),
        ("response.headers['none']", ""),
        ("response.cookies['sid']", "a=b"),
        ("response.cookies['theme']", "\"x\""),
        ("response.cookies['twice']", "2"),
        ("response.cookies['Sid']", ""),
        ("response.cookies['Path']", ""),
        ("data['targets'][request.path]", ""),
        ("data['targets']['a.example']", "/a"),
        ("request.headers['x-mixed'].lowerAscii()", "abc"),
        ("request.headers['x-mixed'].lowerAscii().substring(1)", "bc"),
        ("request.headers['x-mixed'].substring(0, 2).lowerAscii()", "ab"),
        ("request.headers['x-mixed'].lowerAscii().replace('b', '--').replace('-', '+')", "a++c"),
        ("'a,b'.part(',', 1)", "b"),
        ("'/a/b'.segment(2)", "b"),
        ("'%41'.urlDecode()", "A"),
        ("'QQ=='.base64Decode()", "A"),
        ("request.host == 'x' ? 'yes' : 'no'", "no"),
        ("string(client.port) ", "40000"),
        ("string(client.ip).lowerAscii()", "192.0.2.1"),
        ("size(request.method)", "3"),
        ("'ä'.size()", "2"),
        ("client.port + 1", "40001"),
        ("client.port - 1 - 1", "39998"),
        ("client.port / 7 * 7 + client.port % 7", "40000"),
        ("-client.port % 7", "-2"),
        ("- -client.port", "40000"),
        ("client.port * 9223372036854775807", "9223372036854775807"),
        ("-client.port * 9223372036854775807", "-9223372036854775808"),
        ("client.port / (server.port - 443)", "0"),
        ("client.port % (server.port - 443)", "0"),
        ("(-9223372036854775808 + server.port - 443) / -1", "9223372036854775807"),
        ("(-9223372036854775808 + server.port - 443) % -1", "0"),
        ("-(-9223372036854775808 + server.port - 443)", "9223372036854775807"),
        ("int(request.cookies['sid']) + 1", "43"),
        ("int(request.method)", "0"),
        ("int('-12') * 2", "-24"),
        ("time.hour * 60 + time.minute", "235"),
        ("time.weekday", "7"),
        ("time.year * 10000 + time.month * 100 + time.day", "20261129"),
        ("time.date", "2026-11-29"),
        ("time.clock", "03:55:33"),
        ("random(1)", "0"),
        ("pools['web'].up_members", "2"),
        ("pools['web'].connections + 1", "18"),
        ("pools['api'].up_members", "0"),
        ("member.ip", "10.0.0.11"),
        ("member.port", "9001"),
        ("member.name", "web.example:9001"),
        ("member.pool", "web"),
        ("request.headers.all('X-One')[0]", "first"),
        ("request.headers.all('x-one')[1]", "second"),
        ("request.headers.all('x-one')[2]", ""),
        ("request.headers.all('x-one').size()", "2"),
        ("size(request.headers.all('none'))", "0"),
        ("request.headers.all('none')[0]", ""),
        ("response.headers.all('server')[1]", "b"),
        ("tls.client_certificate.serial", ""),
        ("tls.client_certificate.dns_names[0]", ""),
        ("(client.port == 1 ? client.ip : server.ip)", "192.0.2.80"),
    ] {
        assert_eq!(value(&mut sample, text), expected, "{text}");
    }
}

#[test]
fn conditions() {
    let mut sample = Sample::new(REQUEST);
    for (text, expected) in [
        ("request.path.startsWith('/a/')", true),
        ("request.path.endsWith(\".png\")", true),
        ("request.path.contains('/b')", true),
        ("request.path.contains('joe')", false),
        ("request.path.contains(request.method)", false),
        ("request.path.matches(r'^/[ab]/b\\.(png|gif)$')", true),
        ("request.path.matches('b.p')", true),
        ("request.path.size() == 8", true),
        ("request.method in ['GET', 'HEAD']", true),
        ("request.method in []", false),
        ("client.port in [1, 0x9c40]", true),
        ("client.ip in ['10.0.0.0/8', '192.0.2.1']", true),
        ("client.ip == '192.0.2.1'", true),
        ("'192.0.2.2' == client.ip", false),
        ("client.ip != '::1'", true),
        ("client.ip == server.ip", false),
        ("cidr('192.0.2.0/24').containsIP(client.ip)", true),
        ("cidr('10.0.0.0/8').containsIP(client.ip)", false),
        ("client.ip in data['office']", true),
        ("request.path in data['blocked']", false),
        ("request.path.startsWithAny(data['prefixes'])", true),
        ("request.path.startsWithAny(['/x', '/a/b.'])", true),
        ("request.path.endsWithAny(['.gif', '.png'])", true),
        ("request.path.containsAny(['joe', '/b.'])", true),
        ("request.path.containsAny([])", false),
        ("request.host in data['targets']", false),
        ("'b' in data['targets']", true),
        ("'x-empty' in request.headers", true),
        ("'x-none' in request.headers", false),
        ("'flag' in request.query && !('none' in request.query)", true),
        ("'late' in request.cookies", true),
        ("'server' in response.headers", true),
        ("'SID' in response.cookies", true),
        ("'Path' in response.cookies", false),
        ("request.headers['x-mixed'].lowerAscii() == 'abc'", true),
        ("request.headers['x-one'] > 'a' && request.headers['x-one'] <= 'first, second'", true),
        ("1 < 2 && 2 >= 2 && !(3 < 3) && -1 < 0", true),
        ("response.status >= 400 && response.status < 500", true),
        ("(request.method == 'GET') == (client.port == 40000)", true),
        ("(request.method == 'GET') != true", false),
        ("request.method == 'GET' ? client.port == 1 : client.port == 40000", false),
        ("true || request.path == ''", true),
        ("time.clock >= '03:55' && time.clock < '03:56'", true),
        ("time.date >= '2026-11-29' && time.date < '2026-12'", true),
        ("time.weekday in [6, 7]", true),
        ("'second' in request.headers.all('x-one')", true),
        ("'first, second' in request.headers.all('x-one')", false),
        ("request.headers['x-one'].substring(0, 5) in request.headers.all('x-one')", true),
        ("'' in request.headers.all('x-empty')", true),
        ("'' in request.headers.all('none')", false),
        ("'a' in response.headers.all('Server')", true),
        ("pools['web'].up_members < 3 && pools['api'].connections == 0", true),
        ("member.ip in ['10.0.0.0/8'] && member.port == 9001", true),
        ("random(10) >= 0 && random(10) < 10", true),
        ("'a' < 'b' && 'b' != 'c' && 'ab'.startsWith('a') && !'ab'.contains('c')", true),
    ] {
        assert_eq!(holds(&mut sample, text), expected, "{text}");
    }
}

#[test]
fn hosts_and_targets_of_odd_requests() {
    for (head, host, target) in [
        ("GET / HTTP/1.0\r\n", "", "/"),
        ("OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\n", "[::1]", "*"),
        ("GET /? HTTP/1.1\r\nHost: a\r\n", "a", "/?"),
        ("GET http://A.b?x HTTP/1.1\r\nHost: a.B:80\r\n", "a.b", "/?x"),
        ("GET http://a.b/c?x HTTP/1.1\r\nHost: a.b\r\n", "a.b", "/c?x"),
        ("GET /./a HTTP/1.1\r\nHost: [FE80::A]\r\n", "[fe80::a]", "/a"),
    ] {
        let mut sample = Sample::new(&format!("{head}\r\n"));
        assert_eq!(value(&mut sample, "request.host"), host, "{head}");
        assert_eq!(value(&mut sample, "request.target"), target, "{head}");
        sample.evaluate(|evaluation| assert_eq!(evaluation.host(), host.as_bytes()));
    }
}

#[test]
fn addresses_of_all_kinds() {
    for (client, text, expected) in [
        (Some("[::ffff:10.1.2.3]:1"), "client.ip", "10.1.2.3"),
        (Some("[2001:db8::1]:1"), "client.ip", "2001:db8::1"),
        (None, "client.ip", ""),
        (None, "client.port", "0"),
        (Some("[::ffff:10.1.2.3]:1"), "client.ip == '10.1.2.3' ? 'y' : 'n'", "y"),
        (Some("10.1.2.3:1"), "client.ip == '::ffff:10.1.2.3' ? 'y' : 'n'", "y"),
        (Some("[2001:db8::1]:1"), "client.ip in data['office'] ? 'y' : 'n'", "y"),
        (Some("[2001:db9::1]:1"), "client.ip in data['office'] ? 'y' : 'n'", "n"),
        (None, "client.ip == '10.1.2.3' ? 'y' : 'n'", "n"),
        (None, "cidr('0.0.0.0/0').containsIP(client.ip) ? 'y' : 'n'", "n"),
    ] {
        let mut sample = Sample::new(REQUEST);
        sample.client = client.map(|address| address.parse::<SocketAddr>().unwrap());
        assert_eq!(value(&mut sample, text), expected, "{client:?} {text}");
    }
}

#[derive(Debug)]
struct Certificate;

static CERTIFICATE: LazyLock<CertificateFacts> = LazyLock::new(|| CertificateFacts {
    serial: "01ab".into(),
    fingerprint: "00ff".into(),
    names: Box::new([
        (CertificateName::Dns, "joe.example".into()),
        (CertificateName::Email, "joe@example".into()),
        (CertificateName::Dns, "www.joe.example".into()),
        (CertificateName::Ip, "192.0.2.7".into()),
    ]),
});

impl ClientCertificate for Certificate {
    fn read(&self) -> &CertificateFacts {
        &CERTIFICATE
    }
}

#[test]
fn tls_connections() {
    let mut sample = Sample::new(REQUEST);
    sample.tls = Some(TlsFacts {
        version: "1.3",
        sni: "shop.example",
        cipher: "TLS_AES_256_GCM_SHA384",
        client_certificate_subject: "CN=joe",
        client_certificate: Some(&Certificate),
    });
    for (text, expected) in [
        ("request.scheme", "https"),
        ("tls.version", "1.3"),
        ("tls.sni", "shop.example"),
        ("tls.cipher", "TLS_AES_256_GCM_SHA384"),
        ("tls.client_certificate.subject", "CN=joe"),
        ("tls.client_certificate.serial", "01ab"),
        ("tls.client_certificate.fingerprint", "00ff"),
        ("tls.client_certificate.dns_names[1]", "www.joe.example"),
        ("tls.client_certificate.dns_names[2]", ""),
        ("tls.client_certificate.emails[0]", "joe@example"),
        ("tls.client_certificate.uris.size()", "0"),
        ("'192.0.2.7' in tls.client_certificate.ips ? 'y' : 'n'", "y"),
        ("'joe@example' in tls.client_certificate.dns_names ? 'y' : 'n'", "n"),
    ] {
        assert_eq!(value(&mut sample, text), expected, "{text}");
    }
}

#[test]
fn a_condition_tells_whether_it_needs_the_response() {
    let mut sample = Sample::new(REQUEST);
    for (text, expected) in [
        ("request.path == ''", false),
        ("request.path == '' && response.status == 200", true),
        ("'a' in response.headers", true),
    ] {
        let condition = Condition::compile(text, &mut sample.scope()).unwrap();
        assert_eq!(condition.reads_response(), expected, "{text}");
    }
    let Sample { data, pools, slots, .. } = &mut sample;
    let mut scope = Scope { phase: Phase::Request, has_datagrams: false, data, pools, slots };
    for (text, what) in [("response.status == 200", "response"), ("member.port == 80", "member")] {
        let error = Condition::compile(text, &mut scope).unwrap_err();
        assert_eq!(error.range, 0..what.len());
        let message = format!("the {what} is not there yet where this is evaluated");
        assert_eq!(error.message, message);
    }
}

#[test]
fn expressions_tell_what_they_read() {
    let mut sample = Sample::new(REQUEST);
    let none = Reads::default();
    for (text, expected) in [
        ("'a'", none),
        ("string(client.ip)", none),
        ("request.path", Reads { request: true, ..none }),
        ("tls.sni", Reads { server_name: true, ..none }),
        ("tls.version", Reads { handshake: true, ..none }),
        ("tls.cipher", Reads { handshake: true, ..none }),
        ("tls.client_certificate.subject", Reads { handshake: true, ..none }),
        ("response.headers['a']", Reads { response: true, ..none }),
        ("string(random(3))", Reads { random: true, ..none }),
        ("time.date", none),
        ("member.name", Reads { response: true, ..none }),
        ("tls.client_certificate.uris[0]", Reads { handshake: true, ..none }),
        ("tls.client_certificate.serial", Reads { handshake: true, ..none }),
        ("request.headers.all('a')[0]", Reads { request: true, ..none }),
        (
            "tls.sni == request.host ? tls.version : 'a'",
            Reads { request: true, server_name: true, handshake: true, ..none },
        ),
    ] {
        let template = format!("a${{{text}}}");
        let template = Template::compile(&template, Purpose::Plain, &mut sample.scope()).unwrap();
        assert_eq!(template.reads(), expected, "{text}");
        let condition = format!("({text}) == 'a'");
        let condition = Condition::compile(&condition, &mut sample.scope()).unwrap();
        assert_eq!(condition.reads(), expected, "{text}");
    }
}

/// Each place that uses chance draws for itself, once per request.
#[test]
fn chance_is_drawn_once_for_each_place() {
    let mut sample = Sample::new(REQUEST);
    let texts = ["random(1000000)", "random(1000000)", "random(1000000) * 0 + random(1000000)"];
    let values = texts.map(|text| Value::compile(text, &mut sample.scope()).unwrap());
    let drawn = sample.evaluate(|evaluation| {
        let mut draw = |value| {
            let mut out = Vec::new();
            evaluation.value(value, &mut out);
            out
        };
        [&values[0], &values[1], &values[2], &values[0], &values[1]].map(&mut draw)
    });
    assert_eq!((&drawn[0], &drawn[1]), (&drawn[3], &drawn[4]));
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2], "{drawn:?}");
}

/// One set of fields serves many requests: no value of an earlier one is visible, and the buffers
/// stop growing.
#[test]
fn fields_are_reused() {
    let mut compiled = Sample::new(REQUEST);
    let texts = [
        "request.headers['x-one']",
        "request.query['q']",
        "request.cookies['sid']",
        "request.host",
        "request.target",
        "string(client.ip)",
        "request.headers['x-mixed'].lowerAscii()",
        "request.path.matches('^/a') ? 'a' : 'b'",
    ];
    let values = texts.map(|text| Value::compile(text, &mut compiled.scope()).unwrap());
    let mut fields = Fields::new(Arc::new(compiled.slots.clone()));
    let requests = [REQUEST, "GET /x HTTP/1.1\r\nHost: b\r\n\r\n"];
    let samples = requests.map(Sample::new);
    let expected = requests.map(|request| texts.map(|text| value(&mut Sample::new(request), text)));
    let mut out = Vec::new();
    let mut grown = None;
    for round in 0..1000 {
        let which = round % 2;
        let mut evaluation = fields.begin(samples[which].facts());
        // Twice, as several policies of one virtual server do.
        for _ in 0..2 {
            for (value, expected) in values.iter().zip(&expected[which]) {
                out.clear();
                evaluation.value(value, &mut out);
                assert_eq!(out, expected.as_bytes(), "round {round}");
            }
        }
        if round > 2 {
            let capacities = (fields.capacities(), out.capacity());
            assert_eq!(*grown.get_or_insert(capacities), capacities, "round {round}");
        }
    }
}
