//! Ordinary requests with encoded bodies pass, as with plain bodies.

use weir_testing::encode;
use weir_waf::inspection::Verdict;

use crate::ordinary;
use crate::send::{Sent, judged, view};

#[test]
fn ordinary_bodies_pass_in_every_coding() {
    let view = view(&crate::builtin(), &[]);
    let mut wrong = Vec::new();
    let mut count = 0;
    for (kind, sent) in ordinary::requests() {
        if sent.body.is_empty() || judged(&view, &sent) != Verdict::Pass {
            continue;
        }
        // The text of multipart bodies is readable in the encoded bytes if it is stored uncompressed. The body is then
        // ambiguous.
        let is_multipart = sent.headers.iter().any(|(_, value)| value.starts_with("multipart/"));
        for (coding, name) in [
            ("gzip", "gzip"),
            ("deflate", "deflate"),
            ("raw-deflate", "deflate"),
            ("br", "br"),
            ("zstd", "zstd"),
        ] {
            if is_multipart && matches!(coding, "br" | "zstd") {
                continue;
            }
            let body = encode(coding, &sent.body);
            let encoded = Sent { body, ..sent.clone() }.with("Content-Encoding", name);
            count += 1;
            let verdict = judged(&view, &encoded);
            if verdict != Verdict::Pass {
                wrong.push(format!("{kind}, {coding}: {verdict:?}"));
            }
        }
    }
    assert!(count > 1_000, "{count}");
    assert!(wrong.len() * 1_000 <= count, "{} of {count}: {wrong:#?}", wrong.len());
}
