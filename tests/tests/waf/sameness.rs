//! The member receives exactly the inspected bytes, tested with requests that servers interpret in different ways.

use weir_tests::member::Member;
use weir_tests::proxy::Proxy;

use crate::setup::{Rules, guarded, lines};

/// Rules that log the variables of a request.
const TELLING: &str = r#"
SecAction "id:1,phase:1,nolog,pass,ctl:forceRequestBodyVariable=On"
SecRule REQUEST_URI "@unconditionalMatch" "id:2,phase:2,pass,log,msg:'uri'"
SecRule REQUEST_BODY "@unconditionalMatch" "id:3,phase:2,pass,log,msg:'body'"
SecRule REQUEST_METHOD "@unconditionalMatch" "id:4,phase:2,pass,log,msg:'method'"
SecRule REQUEST_HEADERS:Host "@unconditionalMatch" "id:5,phase:2,pass,log,msg:'host'"
SecRule REQUEST_HEADERS:Content-Type "@unconditionalMatch" "id:6,phase:2,pass,log,msg:'type'"
"#;

/// The requests. Each is sent on its own connection.
const REQUESTS: &[&str] = &[
    // Paths.
    "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a/%2e%2e/b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a/..;/b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET //a//b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /%61%2f%62 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a%5cb?c%5cd HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a%c0%af..%c0%af HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /%u0061 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a/absolute?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://b/other?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    // Queries.
    "GET /?a=1&a=2;b=3 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /?a=%zz%4 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /?? HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /?a=b%26c=d+e HTTP/1.1\r\nHost: a\r\n\r\n",
    // Framing.
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello",
    // Heads.
    "\r\n\r\nGET /behind HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
    "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nConnection: content-type\r\nContent-Length: 2\r\n\r\n{}",
    // Bodies.
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\na=1&a=%00",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"a\":1,\"a\":\"2\"}",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain; charset=utf-7\r\nContent-Length: 4\r\n\r\n+AD-",
    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n\x01\x02\x7f",
];

/// The value that the rule with this message has logged.
fn told(line: &serde_json::Value, message: &str) -> String {
    let rules = line["rules"].as_array().expect("rules");
    let rule = rules.iter().find(|rule| rule["message"] == message);
    let value = rule.map(|rule| rule["values"][0]["value"].as_str().expect("a value").to_owned());
    value.unwrap_or_default()
}

#[test]
fn members_get_what_was_judged() {
    let member = Member::echo();
    let rules = Rules::new(TELLING);
    let mut proxy = Proxy::start(&guarded(&member, &rules.key("mode: block, unjudged: pass")));
    let mut passed = 0;
    for request in REQUESTS {
        let before = member.request_count();
        let mut client = proxy.client();
        client.send(request).finish();
        let status = client.try_response(false).map_or(0, |response| response.status);
        let got = member.requests();
        if status != 200 {
            assert_eq!(got.len(), before, "refused, and not passed on: {request:?}");
            continue;
        }
        passed += 1;
        assert_eq!(got.len(), before + 1, "one request is one request: {request:?}");
        let got = got.last().expect("a request");
        let mut of_request = None;
        weir_tests::eventually("it is told", weir_tests::STEP_TIMEOUT, || {
            let all = lines(&mut proxy);
            of_request = all.get(passed - 1).cloned();
            of_request.is_some()
        });
        let line = of_request.expect("a line");
        assert_eq!(told(&line, "uri"), got.target(), "{request:?}");
        assert_eq!(told(&line, "method"), got.method(), "{request:?}");
        assert_eq!(told(&line, "host"), got.head.field("host").unwrap_or_default(), "{request:?}");
        let content_type = got.head.field("content-type").unwrap_or_default();
        assert_eq!(told(&line, "type"), content_type, "{request:?}");
        let body: String = got.body.iter().map(|byte| char::from(*byte)).collect();
        assert_eq!(told(&line, "body"), body, "{request:?}");
    }
    assert!(passed >= 15, "{passed} of {}", REQUESTS.len());
}
