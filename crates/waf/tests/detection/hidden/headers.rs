//! Attacks in headers: JSON of applications.

use super::{ESCAPED, check, header, serde_json};

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
