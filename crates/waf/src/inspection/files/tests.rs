//! What of a file is inspected.

use super::*;

/// The kinds and contents that are found in a file, whose content arrives in pieces of this size.
fn found(file_name: &str, media_type: &str, content: &[u8], piece: usize) -> Vec<(Kind, String)> {
    let mut scan = FileScan::default();
    if !media_type.is_empty() {
        scan.header(format!("Content-Type: {media_type}").as_bytes());
    }
    scan.start(b"f", file_name.as_bytes());
    content.chunks(piece).for_each(|bytes| scan.content(bytes));
    scan.end();
    let found = scan.found.into_iter();
    found.map(|(kind, _, text)| (kind, String::from_utf8_lossy(&text).into_owned())).collect()
}

#[test]
fn files_are_judged_by_what_they_are_and_claim() {
    let image = [b"\x89PNG\r\n\x1a\n".repeat(900), b"<?php f();".to_vec()].concat();
    let noise = [b"\xff\xd8<?=\x01<%@\x02<a".repeat(500), b"<?=`$_GET[0]`?>\xff".to_vec()].concat();
    for (name, media_type, content, expected) in [
        ("blob", "application/json", &b"{\"a\":1}"[..], Some((Kind::Json, "{\"a\":1}"))),
        ("a.png", "application/vnd.api+json", b"{\"a\":1}", Some((Kind::Json, "{\"a\":1}"))),
        ("blob", "application/octet-stream", b" \n[1]", Some((Kind::Json, "[1]"))),
        ("data.json", "", b"[1]", Some((Kind::Json, "[1]"))),
        ("blob", "text/xml", b"<a>1</a>", Some((Kind::Xml, "<a>1</a>"))),
        ("blob", "text/plain", b"text", Some((Kind::Text, "text"))),
        ("notes.txt", "text/plain", b"text <?php f();", None),
        ("a.svg", "", b"<svg/>", Some((Kind::Document, "<svg/>"))),
        ("a.html", "text/plain", b"x<b>", Some((Kind::Document, "x<b>"))),
        ("a.png", "image/png", b"\xef\xbb\xbf <html>", Some((Kind::Document, "<html>"))),
        ("a.png", "image/png", &image, Some((Kind::Media, "<?php f();"))),
        ("a", "", b"GIF89a<?php f();", Some((Kind::Media, "<?php f();"))),
        ("a.bin", "image/gif", b"GIF89a<SCRIPT>", Some((Kind::Media, "<SCRIPT>"))),
        ("a.jpg", "", b"\xff\xd8<%@ page a=1%>", Some((Kind::Media, "<%@ page a=1%>"))),
        ("a.gif", "", b"GIF89a<%eval request(1)%>", Some((Kind::Media, "<%eval request(1)%>"))),
        ("a.gif", "", b"GIF89a<%Run(x)%>\xff", Some((Kind::Media, "<%Run(x)%>\u{fffd}"))),
        ("a.gif", "", b"GIF89a<%eval\x01request(1)%>", None),
        ("a.gif", "", b"GIF89a<?@eval($_POST[1]);?>", Some((Kind::Media, "<?@eval($_POST[1]);?>"))),
        ("a.gif", "", b"GIF89a<JSP:scriptlet>", Some((Kind::Media, "<JSP:scriptlet>"))),
        ("a.gif", "", b"GIF89a<!--#exec cmd", Some((Kind::Media, "<!--#exec cmd"))),
        ("a.jpg", "", &noise, Some((Kind::Media, "<?=`$_GET[0]`?>\u{fffd}"))),
        ("a.png", "", b"\x89PNG<?xpacket begin='x'?><x:xmpmeta>", None),
        ("a.zip", "application/zip", b"PK<?php f();", None),
        ("a.php-notes.md", "", b"<?php f();", None),
        ("a.png", "image/png", b"", None),
    ] {
        for piece in [1, 7, 1_000_000] {
            let found = found(name, media_type, content, piece);
            let found = found.first().map(|(kind, text)| (*kind, &**text));
            assert_eq!(found, expected, "{name} {media_type} in pieces of {piece}");
        }
    }
}

#[test]
fn blanks_in_front_are_not_read_again() {
    let mut scan = FileScan::default();
    scan.start(b"f", b"a.txt");
    scan.content(b"\xef\xbb");
    scan.content(b"\xbf");
    // A hundred thousand lines: each would be read with all before it.
    for number in 1..=100_000 {
        scan.content(b" \n");
        assert!(scan.content.is_empty());
        assert_eq!(scan.passed_bytes, 3 + 2 * number);
    }
    scan.content(b"<svg onload=a()>");
    scan.end();
    assert_eq!(scan.found, [(Kind::Document, b"f".to_vec(), b"<svg onload=a()>".to_vec())]);
}

#[test]
fn media_are_not_kept() {
    let mut scan = FileScan::default();
    scan.start(b"f", b"a.jpg");
    scan.content(b"\xff\xd8\xff\xe0");
    for _ in 0..1_000 {
        scan.content(&[b'<'; 1_000]);
    }
    assert!(scan.content.len() <= LOOK_BYTES_MIN && scan.passed_bytes > 990_000);
    for _ in 0..1_000 {
        scan.content(b"<?php");
        scan.content(&[0; 256]);
    }
    scan.end();
    assert_eq!(scan.found.len(), media::EXCERPTS_MAX);
    assert!(scan.found.iter().all(|(_, _, text)| text.len() == media::EXCERPT_BYTES));
    assert_eq!(scan.passed_bytes, 4 + 1_000_000 + 1_000 * (5 + 256));
}

/// Whether code is found in an image that has these bytes.
fn has_code(parts: &[&[u8]], piece: usize) -> bool {
    let content = [b"\x89PNG\r\n\x1a\n", &*parts.concat()].concat();
    !found("a.png", "image/png", &content, piece).is_empty()
}

#[test]
fn nothing_in_front_hides_code() {
    let code = &b"<?if(1)system($_GET[0]);?>"[..];
    let inner = &b"system($_GET[0]);?>"[..];
    let noise = vec![0xff; 10_000];
    for before in [
        b"<?printx>".repeat(20),
        b"<cfqueryx:>".repeat(2_000),
        b"<?echox>".repeat(10_000),
        b"<%abcdefghijklmnopqrstuv>".repeat(2_000),
        b"<?a+".repeat(20_000),
        b"<?/*".repeat(20_000),
        b"<?#".repeat(20_000),
        b"<?\"".repeat(20_000),
        b"<%'".repeat(20_000),
        vec![b'<'; 100_000],
    ] {
        for piece in [997, 1_000_000] {
            let shown = before[..8].escape_ascii().to_string();
            assert!(has_code(&[&before, &noise, code, &noise], piece), "{shown}");
        }
    }
    for (mark, end) in [
        (&b"<?#"[..], &b"\n"[..]),
        (b"<? //", b"\r"),
        (b"<?/*", b"*/"),
        (b"<?/*/", b"*/"),
        (b"<?", b":"),
        (b"<?$", b"="),
    ] {
        for piece in [1, 997, 1_000_000] {
            let shown = mark.escape_ascii();
            assert!(has_code(&[mark, &noise, end, inner, &noise], piece), "{shown}");
            assert!(!has_code(&[mark, &noise, end, &noise], piece), "{shown}");
        }
    }
    // What is no code behind the end of the comment is none before it.
    assert!(has_code(&[b"<?f0();#", &noise], 997));
    assert!(!has_code(&[b"<?f0();#", &noise, b"\n(("], 997));
    let asp = &b"eval request(1)%>"[..];
    assert!(has_code(&[b"<%'", &noise, b"\n", asp], 997));
    assert!(has_code(&[b"<%", &noise, asp], 997));
    assert!(has_code(&[b"<?", &b"1;".repeat(9_000), b"ff();?>"], 997));
    assert!(has_code(&[b"<?aa{1+", &b"1+".repeat(9_000), b"ff()};?>"], 997));
    assert!(has_code(&[b"<%", &b"x=1:".repeat(9_000), b":eval(x)%>"], 997));
}

#[test]
fn looking_at_hostile_files_is_bounded() {
    // Each mark begins code that only ends, as none, after the window.
    let content = [b"<?a+".repeat(1_000), b")".to_vec()].concat().repeat(250);
    let mut scan = FileScan::default();
    scan.start(b"f", b"a.png");
    scan.content(&[b"\x89PNG\r\n\x1a\n".to_vec(), content].concat());
    scan.end();
    assert!(scan.media.work() < 4 * 1_100_000 + 100_000);
}

/// Bytes of a generator (SplitMix64).
fn random(count: usize, mut seed: u64) -> impl Iterator<Item = u8> {
    let words = std::iter::repeat_with(move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_le_bytes()
    });
    words.flatten().take(count)
}

#[test]
fn random_bytes_are_no_code() {
    // Expected number of findings: 64 MB * 5e-11 = 0.003 for random bytes, 16 MB * 1e-8 = 0.2 for ASCII85.
    let count = if cfg!(debug_assertions) { 4_000_000 } else { 64_000_000 };
    for (name, of) in [
        ("bytes", (|byte| byte) as fn(u8) -> u8),
        ("ASCII85", |byte| b'!' + byte % 85),
        ("dark pixels", |byte| 0x20 + byte % 32),
        ("flat areas", |byte| {
            if byte < 16 {
                b'<'
            } else if byte < 32 {
                b'?'
            } else {
                0xff
            }
        }),
    ] {
        let count = if name == "bytes" { count } else { count / 4 };
        let content: Vec<u8> = random(count, 7).map(of).collect();
        // Streams have lines.
        let content = content.chunks(72).collect::<Vec<_>>().join(&b'\n');
        let all = [b"\x89PNG\r\n\x1a\n".to_vec(), content].concat();
        let found = found("a.png", "image/png", &all, 1_000_000);
        assert_eq!(found, [], "{name}");
    }
}
