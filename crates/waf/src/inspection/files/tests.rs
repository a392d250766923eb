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
        ("a.jpg", "", b"\xff\xd8<%@ page import", Some((Kind::Media, "<%@ page import"))),
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
    assert!(scan.content.len() <= 2 * EXCERPT_BYTES && scan.passed_bytes > 990_000);
    for _ in 0..1_000 {
        scan.content(b"<?php");
        scan.content(&[0; EXCERPT_BYTES]);
    }
    scan.end();
    assert_eq!(scan.found.len(), EXCERPTS_MAX);
    assert_eq!(scan.passed_bytes, 4 + 1_000_000 + 1_000 * (5 + EXCERPT_BYTES as u64));
}
