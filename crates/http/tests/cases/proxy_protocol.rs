//! Headers of the PROXY protocol, valid and invalid.

/// A header of version 2. `version_command`: the byte with version and command; `kind`: the byte with family and transport.
fn v2(version_command: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16).to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n", &[version_command, kind][..], &length, body].concat()
}

pub fn headers() -> Vec<Vec<u8>> {
    let inet = [10, 0, 0, 1, 10, 0, 0, 2, 0x1f, 0x90, 0, 80];
    let with_records = |records: &[u8]| v2(0x21, 0x11, &[&inet, records].concat());
    vec![
        b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET / HTTP/1.1\r\n".to_vec(),
        b"PROXY TCP6 2001:db8::1 ::1 0 65535\r\n".to_vec(),
        b"PROXY UNKNOWN ffff::1 what ever 1\r\n".to_vec(),
        b"PROXY TCP4 1.2.3.04 1.2.3.4 1 2\r\n".to_vec(),
        [b"PROXY UNKNOWN".to_vec(), vec![b' '; 100]].concat(),
        v2(0x20, 0x00, b""),
        v2(0x21, 0x00, b"anything"),
        v2(0x21, 0x12, &inet),
        v2(0x21, 0x21, &[1; 36]),
        v2(0x21, 0x31, &[0; 216]),
        v2(0x21, 0x13, &inet),
        with_records(b"\x01\0\x02h2\x04\0\0\xe3\0\x01x\x02\0\x03a.b\x05\0\x02id"),
        with_records(b"\x02\0\x01a\x02\0\x01a"),
        with_records(b"\x03\0\x04\0\0\0\0"),
        with_records(b"\x04\xff\xffabc"),
    ]
}
