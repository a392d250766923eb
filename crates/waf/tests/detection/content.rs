//! Bodies are judged by what their bytes are. An attack is denied under every type, and files pass under theirs.

use weir_testing::encode;
use weir_waf::inspection::{Limit, Verdict};

use crate::send::{Sent, judged, view};

const JSON: &[u8] =
    b"{\"id\":\"1\\u0027 \\u0055NION \\u0053ELECT password \\u0046ROM users-- x\",\"n\":1}";
const FORM: &[u8] = b"n=1&id=1%27+%55NION+%53ELECT+password+%46ROM+users--+x";
const XML: &[u8] =
    b"<?xml version=\"1.0\"?><a><b>1&#39; &#85;NION &#83;ELECT password &#70;ROM users-- x</b></a>";
const XXE: &str =
    "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>";

/// Types that select no parser, or a parser of another format.
const TYPES: [&str; 30] = [
    "",
    "text/plain",
    "text/html; charset=utf-8",
    "text/csv",
    "text",
    "image/png",
    "image/x;y=z",
    "IMAGE/JPEG",
    "audio/mpeg",
    "video/mp4",
    "font/woff2",
    "model/stl",
    "chemical/x-pdb",
    "application/octet-stream",
    "application/x",
    "application/x-ndjson",
    "application/json-seq",
    "application/x-amz-json-1.1",
    "application/vnd.api.v1",
    "application/pdf",
    "application/zip",
    "application/gzip",
    "application/grpc",
    "application/grpc-web-text",
    "application/x-protobuf",
    "application/msgpack",
    "application/x-git-receive-pack-request",
    "application/graphql",
    "message/http",
    "application/x-www-form-urlencoded",
];

fn sent(content_type: &str, body: &[u8]) -> Sent {
    let mut sent = Sent::post("/x", content_type, body);
    sent.headers.retain(|(name, value)| name != "Content-Type" || !value.is_empty());
    sent
}

/// Whether no member would get the request.
fn is_kept_away(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deny { .. } | Verdict::Exceeded(Limit::Body))
}

/// The same text, in pieces that other readers skip or accept.
fn disguises(document: &[u8]) -> Vec<Vec<u8>> {
    let before = |start: &[u8]| [start, document].concat();
    vec![
        document.to_vec(),
        before(b" \r\n\t"),
        before(b"\xef\xbb\xbf"),
        before(b"\x0b\x0c\x1c "),
        before("\u{a0}\u{2003}\u{3000}\u{feff}".as_bytes()),
        before(b"\0\x01"),
        [document, b"\0"].concat(),
        [document, b"\n\0\xff\xfe\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\0\0\0"].concat(),
        [document, &b"\0\xff"[..]].concat().repeat(1),
    ]
}

#[test]
fn attacks_are_denied_under_every_type() {
    let view = view(&crate::builtin(), &[]);
    let mut bodies = Vec::new();
    bodies.extend(disguises(JSON));
    bodies.extend(disguises(XML));
    bodies.extend(disguises(XXE.as_bytes()));
    bodies.push(FORM.to_vec());
    bodies.push([b"/* c */ // d\n# e\n", JSON].concat());
    bodies.push([b"{\"a\":1}\n\n{\"a\":2}\r\n", JSON, b"\n"].concat());
    bodies.push([b"\x1e{\"a\":1}\n\x1e", JSON, b"\n"].concat());
    bodies.push([b"[", JSON, b",]"].concat());
    bodies.push([b"{'a':/*x*/1,b:", JSON, b"}"].concat());
    bodies.push([&b"{\"n\":1}"[..], JSON].concat());
    bodies.push([&b"{\"n\":1}\n".repeat(2_000)[..], JSON].concat());
    bodies.push([b"<a>", FORM].concat());
    let mut wrong = Vec::new();
    for body in &bodies {
        for content_type in TYPES {
            let verdict = judged(&view, &sent(content_type, body));
            if !is_kept_away(&verdict) {
                let start = body[..body.len().min(60)].escape_ascii();
                wrong.push(format!("{content_type}: {start}: {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pass:\n{}", wrong.len(), wrong.join("\n"));
}

fn utf16(text: &str, is_little: bool) -> Vec<u8> {
    let bytes = |unit: u16| if is_little { unit.to_le_bytes() } else { unit.to_be_bytes() };
    text.encode_utf16().flat_map(bytes).collect()
}

fn utf32(text: &str, is_little: bool) -> Vec<u8> {
    let bytes = |it: char| match is_little {
        true => u32::from(it).to_le_bytes(),
        false => u32::from(it).to_be_bytes(),
    };
    text.chars().flat_map(bytes).collect()
}

/// `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>` in the code pages 037 and 500.
const EBCDIC: [&[u8]; 2] = [
    b"\x4c\x6f\xa7\x94\x93\x40\xa5\x85\x99\xa2\x89\x96\x95\x7e\x7f\xf1\x4b\xf0\x7f\x6f\x6e\x4c\x5a\xc4\xd6\xc3\xe3\xe8\xd7\xc5\x40\x81\x40\xba\x4c\x5a\xc5\xd5\xe3\xc9\xe3\xe8\x40\xa7\x40\xe2\xe8\xe2\xe3\xc5\xd4\x40\x7f\x86\x89\x93\x85\x7a\x61\x61\x61\x85\xa3\x83\x61\x97\x81\xa2\xa2\xa6\x84\x7f\x6e\xbb\x6e\x4c\x81\x6e\x50\xa7\x5e\x4c\x61\x81\x6e",
    b"\x4c\x6f\xa7\x94\x93\x40\xa5\x85\x99\xa2\x89\x96\x95\x7e\x7f\xf1\x4b\xf0\x7f\x6f\x6e\x4c\x4f\xc4\xd6\xc3\xe3\xe8\xd7\xc5\x40\x81\x40\x4a\x4c\x4f\xc5\xd5\xe3\xc9\xe3\xe8\x40\xa7\x40\xe2\xe8\xe2\xe3\xc5\xd4\x40\x7f\x86\x89\x93\x85\x7a\x61\x61\x61\x85\xa3\x83\x61\x97\x81\xa2\xa2\xa6\x84\x7f\x6e\x5a\x6e\x4c\x81\x6e\x50\xa7\x5e\x4c\x61\x81\x6e",
];

#[test]
fn attacks_are_denied_in_every_encoding() {
    let view = view(&crate::builtin(), &[]);
    let json = String::from_utf8(JSON.to_vec()).expect("text");
    let xml = String::from_utf8(XML.to_vec()).expect("text");
    let mut bodies: Vec<Vec<u8>> = EBCDIC.iter().map(|it| it.to_vec()).collect();
    bodies.push([&b"\x40\x25\x40"[..], EBCDIC[1]].concat());
    for text in [&json, &xml, XXE] {
        for start in ["", "\u{feff}", "\n "] {
            let text = format!("{start}{text}");
            for is_little in [true, false] {
                bodies.push(utf16(&text, is_little));
                bodies.push(utf32(&text, is_little));
            }
        }
    }
    for name in ["utf-7", "utf-16", "ibm037", "Shift_JIS"] {
        bodies.push(format!("<?xml version=\"1.0\" encoding='{name}'?><a>x</a>").into_bytes());
    }
    let mut wrong = Vec::new();
    for body in &bodies {
        for content_type in TYPES {
            let verdict = judged(&view, &sent(content_type, body));
            if !is_kept_away(&verdict) {
                let start = body[..body.len().min(30)].escape_ascii();
                wrong.push(format!("{content_type}: {start}: {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} pass:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn instructions_of_xml_are_judged() {
    let view = view(&crate::builtin(), &[]);
    for content_type in ["text/xml", "application/xml", "text/plain", "application/x"] {
        for (instruction, is_attack) in [
            ("<?php system($_GET['c']); ?>", true),
            ("<?xml-stylesheet type=\"text/xsl\" href=\"style.xsl\"?>", false),
            ("<?mso-application progid=\"Excel.Sheet\"?>", false),
            ("<?pi some text?>", false),
        ] {
            let body = format!("<?xml version=\"1.0\"?>{instruction}<a>b</a>");
            let verdict = judged(&view, &sent(content_type, body.as_bytes()));
            assert_eq!(is_kept_away(&verdict), is_attack, "{content_type}: {body}: {verdict:?}");
        }
    }
}

/// Beginnings of files that go on as a form.
const MAGIC: [&[u8]; 12] = [
    b"GIF89a",
    b"GIF89a\x01\0\x01\0\x80\0\0",
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01",
    b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    b"BM",
    b"PK\x03\x04\x14\0\0\0",
    b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
    b"\x1f\x8b\x08\0\0\0\0\0",
    b"\0\0\0\x20ftypisom",
    b"\0\0\0\0\x7f\x0a\x7d",
    b"\0\x01\x02\xff\xfe\xfd",
    b"II*\0",
];

#[test]
fn files_that_go_on_as_a_form_are_denied() {
    let view = view(&crate::builtin(), &[]);
    for magic in MAGIC {
        let body = [magic, b"&", FORM].concat();
        for content_type in TYPES {
            let verdict = judged(&view, &sent(content_type, &body));
            let start = magic.escape_ascii();
            assert!(is_kept_away(&verdict), "{content_type}: {start}: {verdict:?}");
        }
    }
}

/// Bytes as of packed data.
fn packed(bytes: usize) -> Vec<u8> {
    let mut random = weir_testing::Random::new(7);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}

#[test]
fn files_pass() {
    let view = view(&crate::builtin(), &[]);
    let with = |start: &[u8]| [start, &packed(4_000)].concat();
    let grpc =
        [b"\0\0\0\0\x1a\x0a\x18".as_slice(), b"' or 1=1 -- <script>, 24", b"\0\0\0\0\x02\x08\x01"]
            .concat();
    let pdf = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog/OpenAction<</S/JavaScript/JS(app.alert('x'))>>>>\nendobj\n";
    for (content_type, body) in [
        ("image/png", with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0")),
        ("image/jpeg", with(b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0")),
        ("image/png", with(b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0")),
        ("image/gif", with(b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0")),
        ("", with(b"PK\x03\x04\x14\0\0\0\x08\0")),
        ("application/zip", with(b"PK\x03\x04\x14\0\0\0\x08\0")),
        ("application/pdf", with(pdf)),
        ("application/octet-stream", packed(4_000)),
        ("application/octet-stream", with(b"\x1f\x8b\x08\0\0\0\0\0\0\x03")),
        ("video/mp4", with(b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2")),
        ("application/grpc", grpc.clone()),
        ("application/grpc+proto", grpc),
        (
            "application/x-protobuf",
            b"\x0a\x24550e8400-e29b-41d4-a716-446655440000\x12\x05a\0b\0c\x18\x01".to_vec(),
        ),
        ("application/octet-stream", b"name\0value\0other\0".to_vec()),
        ("application/x-ndjson", b"{\"index\":{}}\n{\"name\":\"a \\u0026 b\"}\n".repeat(300)),
        ("application/x-amz-json-1.1", b"{\"TableName\":\"a\"}".to_vec()),
        ("application/octet-stream", b"an ordinary text, as notes.txt has it\n".to_vec()),
        ("text/plain", utf16("\u{feff}notes: an ordinary text", true)),
        ("application/x-www-form-urlencoded", b"{\"a\":1,\"b\":[\"c\"]}".to_vec()),
        ("application/x-www-form-urlencoded", b"[id]=5&x={\"a\":1}".to_vec()),
    ] {
        let verdict = judged(&view, &sent(content_type, &body));
        let start = body[..body.len().min(40)].escape_ascii();
        assert_eq!(verdict, Verdict::Pass, "{content_type}: {start}");
    }
}

#[test]
fn the_decoded_bytes_decide() {
    let view = view(&crate::builtin(), &[]);
    let picture =
        [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01"[..], &packed(3_000)].concat();
    for (coding, body, is_pass) in [
        ("gzip", encode("gzip", JSON), false),
        ("br", encode("br", XXE.as_bytes()), false),
        ("gzip", encode("gzip", &picture), true),
        ("zstd", encode("zstd", &packed(3_000)), true),
        // A coding that cannot be decoded: its bytes decide.
        ("snappy", JSON.to_vec(), false),
        ("snappy", packed(3_000), true),
    ] {
        for content_type in ["image/png", "application/octet-stream"] {
            let sent = sent(content_type, &body).with("Content-Encoding", coding);
            let verdict = judged(&view, &sent);
            assert_eq!(verdict == Verdict::Pass, is_pass, "{coding} {content_type}: {verdict:?}");
        }
    }
}
