//! Values of X-Forwarded-For and Forwarded fields.

pub const FIELDS: [&[u8]; 12] = [
    b"203.0.113.9, 10.0.0.2",
    b"203.0.113.9:80,, [2001:db8::1]:443, ::1",
    b"unknown, 1.2.3.4",
    b"for=192.0.2.60;proto=http;by=203.0.113.43",
    b"For=\"[2001:db8:cafe::17]:4711\", for=_hidden",
    b"for=\"1.2.3.4:_port\";host=\"a\\\"b\\\\,;c\"",
    b"for=a;;host=b , ,for=unknown",
    b"for=\"1.2.3.4",
    b"for=\"1.2.3.4\\",
    b"for=a;for=b",
    b"secret=\"a,b;c\";for=[::1]:80",
    b"for = a",
];
