//! Invariants of X-Forwarded-For and Forwarded fields.

use std::net::IpAddr;

use weir_http::forwarded::{
    Source, client_address, elements, is_whole, parse_address, write_element, write_existing,
};

const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// Checks that bytes from a client cannot change the address that the trusted proxy has added.
pub fn check(field: &[u8]) {
    let is_trusted = |ip| ip == PROXY;
    let find = |source, fields: &[&[u8]]| {
        client_address(PROXY, source, fields.iter().copied(), is_trusted)
    };
    let mut list = Vec::new();
    write_existing([field], &mut list);
    list.extend_from_slice(b"192.0.2.1");
    assert_eq!(find(Source::XForwardedFor, &[&list]), CLIENT);
    assert_eq!(find(Source::XForwardedFor, &[field, b"192.0.2.1"]), CLIENT);

    let mut element = Vec::new();
    write_element((CLIENT, 0).into(), None, b"http", &mut element);
    assert_eq!(find(Source::Forwarded, &[field, &element]), CLIENT);
    let mut list = Vec::new();
    // The proxy's element would become part of an incomplete field, for example one with an open quote.
    write_existing(Some(field).filter(|field| is_whole(field)), &mut list);
    list.extend_from_slice(&element);
    assert_eq!(find(Source::Forwarded, &[&list]), CLIENT);

    for source in [Source::XForwardedFor, Source::Forwarded] {
        let found = client_address(PROXY, source, [field].into_iter(), |_| true);
        assert_eq!(found, found.to_canonical());
        let untrusted = client_address(PROXY, source, [field].into_iter(), |_| false);
        assert_eq!(untrusted, PROXY);
    }
    check_elements(field);
}

/// Checks that parsed elements are the same after they were written.
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
