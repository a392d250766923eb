//! X-Forwarded-For and Forwarded fields.

use std::net::IpAddr;

use weir_http::forwarded::{
    Source, client_address, elements, parse_address, write_appended, write_element,
};

const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// What a client sends, whatever it is, changes nothing of what the one trusted proxy says.
pub fn check(field: &[u8]) {
    let is_trusted = |ip| ip == PROXY;
    let find = |source, fields: &[&[u8]]| {
        client_address(PROXY, source, fields.iter().copied(), is_trusted)
    };
    let mut list = Vec::new();
    write_appended([field], |out| out.extend_from_slice(b"192.0.2.1"), &mut list);
    assert_eq!(find(Source::XForwardedFor, &[&list]), CLIENT);
    assert_eq!(find(Source::XForwardedFor, &[field, b"192.0.2.1"]), CLIENT);

    let write = |out: &mut Vec<u8>| write_element((CLIENT, 0).into(), None, b"http", out);
    let mut element = Vec::new();
    write(&mut element);
    assert_eq!(find(Source::Forwarded, &[field, &element]), CLIENT);
    let mut list = Vec::new();
    write_appended([field], write, &mut list);
    // An open quote swallows the proxy's element: then the proxy is all that is known.
    assert!([CLIENT, PROXY].contains(&find(Source::Forwarded, &[&list])));

    for source in [Source::XForwardedFor, Source::Forwarded] {
        let found = client_address(PROXY, source, [field].into_iter(), |_| true);
        assert_eq!(found, found.to_canonical());
        let untrusted = client_address(PROXY, source, [field].into_iter(), |_| false);
        assert_eq!(untrusted, PROXY);
    }
    check_elements(field);
}

/// What is read can be written, and reads back.
fn check_elements(field: &[u8]) {
    for element in elements(field).map_while(Result::ok) {
        let Some(ip) = element.client_ip() else {
            continue;
        };
        let mut out = Vec::new();
        let proto = element.proto.as_deref().unwrap_or(b"http");
        write_element((ip, 80).into(), element.host.as_deref(), proto, &mut out);
        let read: Vec<_> = elements(&out).collect();
        let [Ok(read)] = &read[..] else { panic!("{}", out.escape_ascii()) };
        assert_eq!((read.client_ip(), &read.host), (Some(ip), &element.host));
        assert_eq!(read.proto.as_deref(), Some(proto));
    }
    if let Some((ip, _)) = parse_address(field) {
        assert_eq!(parse_address(ip.to_string().as_bytes()), Some((ip, None)));
    }
}
