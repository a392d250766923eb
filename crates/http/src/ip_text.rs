//! IP addresses as text.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};

/// Appends an address as [`std::fmt::Display`] writes it.
///
/// Many configurations write the client's address into every request, and the standard library needs over a thousand
/// instructions to format an IPv4 address.
pub fn write_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => write_v4(ip, out),
        IpAddr::V6(ip) => write!(out, "{ip}").expect("a vector takes what is written to it"),
    }
}

fn write_v4(ip: Ipv4Addr, out: &mut Vec<u8>) {
    for (index, octet) in ip.octets().into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        if octet >= 100 {
            out.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            out.push(b'0' + octet / 10 % 10);
        }
        out.push(b'0' + octet % 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_standard_library_writes_them() {
        let check = |ip: IpAddr| {
            let mut out = b">".to_vec();
            write_ip(ip, &mut out);
            assert_eq!(out, format!(">{ip}").as_bytes());
        };
        for octet in 0..=255u8 {
            check(Ipv4Addr::new(octet, 10, octet.wrapping_mul(7), 255 - octet).into());
        }
        check("2001:db8::7".parse().expect("an address"));
        check("::ffff:192.0.2.7".parse().expect("an address"));
    }
}
