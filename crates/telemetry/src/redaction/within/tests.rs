use super::*;

fn shown(text: &str, kind: Kind) -> String {
    let masked = masked(text.as_bytes(), &CredentialFields::default(), kind);
    masked.map_or_else(|| text.to_owned(), |masked| String::from_utf8_lossy(&masked).into_owned())
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(text, Kind::Text), *expected, "{text}");
    }
}

#[test]
fn json() {
    check(&[
        (r#"{"password":"x y","q":"1' or"}"#, r#"{"password":"***","q":"1' or"}"#),
        (r#"{"q":1,"user":{"pin" : 1234, "a":2}}"#, r#"{"q":1,"user":{"pin" : ***, "a":2}}"#),
        (r#"{"password":"x\"y\\","q":1}"#, r#"{"password":"***","q":1}"#),
        (r#"{"tokens":["x","]y"],"q":1}"#, r#"{"tokens":***,"q":1}"#),
        (r#"{"auth":{"a":{"b":"}"}},"q":1}"#, r#"{"auth":***,"q":1}"#),
        (r#"[{"user":"a"},{"Passwort":"x"}]"#, r#"[{"user":"a"},{"Passwort":"***"}]"#),
        (r#"{"password":"cut"#, r#"{"password":"***"#),
        (r#"{"pass\u0077ord":"x","q":1}"#, r#"{"pass\u0077ord":"***","q":1}"#),
        (r#"{'password':'x','q':1}"#, r#"{'password':'***','q':1}"#),
        (r#"{password:"x",q:1}"#, r#"{password:"***",q:1}"#),
        // Within a string, once and twice.
        (r#"{"d":"{\"token\":\"x\",\"q\":1}"}"#, r#"{"d":"{\"token\":\"***\",\"q\":1}"}"#),
        (r#"{"d":"{\"token\":\"x\\\"y\",\"q\":1}"}"#, r#"{"d":"{\"token\":\"***\",\"q\":1}"}"#),
        (
            r#"{"d":"{\"e\":\"{\\\"token\\\":\\\"x\\\",\\\"q\\\":1}\"}"}"#,
            r#"{"d":"{\"e\":\"{\\\"token\\\":\\\"***\\\",\\\"q\\\":1}\"}"}"#,
        ),
        (r#"{"d":"{\"token\":\"cut"}"#, r#"{"d":"{\"token\":\"***"}"#),
        // A name beside its value, in any order.
        (r#"{"name":"password","value":"x","q":1}"#, r#"{"name":"password","value":"***","q":1}"#),
        (r#"[{"value":"x","name":"password"}]"#, r#"[{"value":"***","name":"password"}]"#),
        (
            r#"{"key":"token","value":"x"},{"key":"y"}"#,
            r#"{"key":"token","value":"***"},{"key":"***"}"#,
        ),
        (r#"{"name":"bob","value":"x"}"#, r#"{"name":"bob","value":"x"}"#),
        (r#"{"text":"the password: x","q":1}"#, r#"{"text":"the password: ***","q":1}"#),
        (
            r#"{"пароль":"x","密码":"y","hasło":"z"}"#,
            r#"{"пароль":"***","密码":"***","hasło":"***"}"#,
        ),
    ]);
}

#[test]
fn graphql() {
    check(&[
        (r#"mutation{login(password:"x 1' UNION"){id}}"#, r#"mutation{login(password:"***"){id}}"#),
        (r#"{ login(user: "a", pin: 12, q: "b") }"#, r#"{ login(user: "a", pin: ***, q: "b") }"#),
        (r#"{ a(password: """x "y" z""", q: 1) }"#, r#"{ a(password: """***""", q: 1) }"#),
        (r#"{"query":"{a(token:\"x\",q:1)}"}"#, r#"{"query":"{a(token:\"***\",q:1)}"}"#),
    ]);
}

#[test]
fn xml() {
    check(&[
        ("<a><password>x</password><b>y</b></a>", "<a><password>***</password><b>y</b></a>"),
        ("<s:Password Type=\"t\">x</s:Password><b/>", "<s:Password***</s:Password><b/>"),
        ("<a token=\"x\" b='y'/>", "<a token=\"***\" b='y'/>"),
        ("<password value='x'/><b>y</b>", "<password***/><b>y</b>"),
        ("<password>x", "<password>***"),
        ("<password><![CDATA[x</b>]]></password>", "<password>***</password>"),
        (
            "<f name=\"password\">x</f><f name=\"q\">y</f>",
            "<f name=\"password\">***</f><f name=\"q\">y</f>",
        ),
        ("<i name='password' value='x'>", "<i name='password' value='***'>"),
        ("<i value='x' type='password'/>", "<i value='***' type='password'/>"),
        (
            "<key>password</key> <string>x</string><name>q</name><string>y</string>",
            "<key>password</key> <string>***</string><name>q</name><string>y</string>",
        ),
        ("<name>pin</name><value><int>1</int></value>", "<name>pin</name><value>***</value>"),
        ("&lt;password&gt;x&lt;/password&gt;", "***"),
        ("<q>&lt;token&gt;x&lt;/token&gt;</q>", "***"),
        ("<b>a < b</b>", "<b>a < b</b>"),
        (
            "form-data; name=\"password\"\r\n\r\nx\r\n--a",
            "form-data; name=\"password\"\r\n\r\n***\n--a",
        ),
    ]);
}

#[test]
fn users_of_urls() {
    check(&[
        ("http://bob:x@h/ 1' UNION", "http://***@h/ 1' UNION"),
        ("see https://x@h and ftp://a:b@h:21/c", "see https://***@h and ftp://***@h:21/c"),
        ("redis://:x@h", "redis://***@h"),
        ("//bob:x@y@h/", "//***@h/"),
        ("http://bob:x/y@h/", "http://***@h/"),
        (r"http:\/\/bob:x@h\/", r"http:\/\/***@h\/"),
        ("http%3A%2F%2Fbob%3Ax%40h%2F", "***"),
        ("a=http%3A%2F%2Fbob%3Ax%40h%2F", "a=***"),
        ("https://h/@user", "https://h/@user"),
        ("https://h:80/@user", "https://h:80/@user"),
        ("http://auth:8080/x", "http://auth:8080/x"),
        ("bob@h", "bob@h"),
    ]);
}

#[test]
fn pairs_and_lines() {
    check(&[
        ("https://h/?a=b&password=x&d=e", "https://h/?a=b&password=***"),
        ("a#access_token=x", "a#access_token=***"),
        ("a|password = x", "a|password = ***"),
        ("$config['password'] = 'x'; q", "$config['password'] = '***'; q"),
        ("'password' => 'x', 'q' => 1", "'password' => '***', 'q' => 1"),
        ("password=\"x\"y z", "password=***"),
        ("password='it''s x' or 1", "password='***' or 1"),
        ("user: a\npassword: x, y\nq: 1", "user: a\npassword: ***\nq: 1"),
        ("Authorization: Digest a=\"x\", b=\"y\"", "Authorization: ***"),
        ("curl -H 'Cookie: a=b' http://h", "curl -H 'Cookie: ***"),
        ("пароль: x", "пароль: ***"),
        ("mot de passe : x", "mot de passe : ***"),
        ("next=%2Flogin%3Ftoken%3Dx&b=c", "next=***"),
        ("a next=%252Flogin%253Ftoken%253Dx", "a next=***"),
        ("d=%7B%22token%22%3A%22x%22%7D", "d=***"),
        ("{\"password\"%3A\"x\"}", "{\"password\"***"),
        (r"\u0022password\u0022:\u0022x\u0022", r"\u0022password\u0022:***"),
        // Already masked.
        ("{\"password\":\"***\",\"q\":1}", "{\"password\":\"***\",\"q\":1}"),
        ("http://***@h/?token=***", "http://***@h/?token=***"),
    ]);
}

#[test]
fn tokens_of_any_name() {
    check(&[
        ("Bearer abcdefghijklmnop", "Bearer ***"),
        ("data=Bearer+abcdefghijklmnop&q=1", "data=Bearer+***&q=1"),
        ("say bearer  abcdefghijklmnop, then", "say bearer  ***, then"),
        ("x: BASIC dXNlcjpwYXNzd29yZA/a== y", "x: BASIC *** y"),
        ("Negotiate YIIJvwYGKwYBBQUCoIIJszCCCa8=", "Negotiate ***"),
        ("data=eyJhbGciOi.eyJzdWIi.c2ln&q=1", "data=***&q=1"),
        ("see eyJhbGciOi.eyJzdWIi.c2ln, q", "see ***, q"),
        ("data%3DeyJhbGciOi.eyJzdWIi.c2ln", "***"),
        ("a bearer of news", "a bearer of news"),
        ("forbearer abcdefghijklmnop", "forbearer abcdefghijklmnop"),
        ("basic", "basic"),
        ("eyJhbGciOi", "eyJhbGciOi"),
        ("eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9"),
        ("xeyJhbGciOi.eyJzdWIi.c2ln", "xeyJhbGciOi.eyJzdWIi.c2ln"),
    ]);
}

#[test]
fn texts_without_secrets() {
    for text in [
        "",
        "plain",
        "1 union select password from users where id=1",
        "<svg/onload=alert(1)>",
        "{\"a\":[1,2,{\"b\":\"c\"}]}",
        "12:30, http://h:80/a?b=c&d=%41",
        "a passenger: 5",
        "the password",
        "\"\":\"\" :: == {} }} ]] ((",
        "100% \\u \\x &amp; &;",
        "it's \"a\": b",
    ] {
        assert_eq!(shown(text, Kind::Text), text);
    }
    for path in ["/tokens:revoke", "/a/session:b", "/secret"] {
        assert_eq!(shown(path, Kind::Path), path);
        assert_eq!(shown(path, Kind::Target), path);
    }
}

#[test]
fn secrets_are_told_as_written_and_decoded() {
    let secrets = |text: &str| -> Vec<String> {
        let fields = CredentialFields::default();
        let found = secrets_in(text.as_bytes(), &fields);
        found.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect()
    };
    assert_eq!(secrets("{\"password\":\"abc\",\"pin\":12}"), ["abc", "12"]);
    assert_eq!(secrets("http://bob:abc@h/"), ["bob:abc"]);
    assert_eq!(secrets("%22token%22:%22abc%22"), ["%22abc%22", "abc"]);
    assert_eq!(secrets("plain"), Vec::<String>::new());
}

#[test]
fn hostile_texts_end_in_bounded_work() {
    let long = TEXT_BYTES_MAX;
    for piece in [
        ":",
        "=",
        "\":",
        "\\\":",
        "a:",
        "//",
        "//a:b/",
        "<",
        "<a",
        "<a ",
        "<name>",
        "name=\"",
        "name='",
        "key=`",
        "\\",
        "{",
        "}",
        "{\"a\":",
        "name=\"pin\"",
        "<name>pin</",
        "%25",
        "&amp;",
        "\\u0022",
        "(x:",
        "'",
        " :",
    ] {
        let text = piece.repeat(long / piece.len());
        let masked = masked(text.as_bytes(), &CredentialFields::default(), Kind::Text);
        assert!(masked.is_none_or(|masked| masked.len() <= text.len() + MASK.len()), "{piece}");
    }
    let longer = "a".repeat(long + 1);
    assert_eq!(shown(&longer, Kind::Text), "***");
    let many = "a:".repeat(NAMES_MAX + 1);
    assert_eq!(shown(&many, Kind::Text), "***");
}
