//! Invariants of PROXY headers.

use weir_http::proxy_protocol::{
    ParsedHeader, ProxiedConnection, ProxyHeader, Transport, V1_BYTES_MAX, V2_BYTES_MAX, parse,
    write_v1, write_v2,
};

use super::cuts;

/// Checks all invariants of the start of a connection.
pub fn check(input: &[u8]) {
    let whole = parse(input);
    let mut decided = None;
    for cut in cuts(input.len()) {
        let outcome = parse(&input[..cut]);
        match decided {
            None if outcome == Ok(ParsedHeader::Partial) => {
                assert!(cut < V2_BYTES_MAX, "waits for more than is ever read");
            }
            None => decided = Some(outcome),
            Some(decided) => assert_eq!(outcome, decided, "cut at {cut}"),
        }
    }
    assert_eq!(decided.unwrap_or(Ok(ParsedHeader::Partial)), whole);
    if let Ok(ParsedHeader::Complete { length, header }) = whole {
        assert!(length <= input.len() && length <= V2_BYTES_MAX);
        check_written(&header);
    }
}

/// Checks that a header is the same after it was written, as far as the version can express it.
fn check_written(header: &ProxyHeader<'_>) {
    for with_checksum in [false, true] {
        let mut out = Vec::new();
        write_v2(header, with_checksum, &mut out).expect("what was read is not too long");
        assert_eq!(parse(&out), Ok(ParsedHeader::Complete { length: out.len(), header: *header }));
    }
    let in_v1 = match *header {
        ProxyHeader::Proxied(stream) if stream.transport == Transport::Stream => {
            ProxyHeader::Proxied(ProxiedConnection { authority: None, unique_id: None, ..stream })
        }
        _ => ProxyHeader::Unknown,
    };
    let mut out = Vec::new();
    write_v1(header, &mut out);
    assert!(out.len() <= V1_BYTES_MAX);
    assert_eq!(parse(&out), Ok(ParsedHeader::Complete { length: out.len(), header: in_v1 }));
}
