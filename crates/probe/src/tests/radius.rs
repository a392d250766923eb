//! RADIUS servers with the right secret and with a wrong one.

use md5::{Digest as _, Md5};
use tokio::net::UdpSocket;
use weir_config::snapshot::{Credentials, RadiusProbe, RadiusReply, Secret};

use super::*;

/// A server that answers every request with an unrelated datagram and with this code.
async fn server(code: u8, secret: &'static [u8]) -> Address {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut request = [0; 4_096];
        while let Ok((length, from)) = socket.recv_from(&mut request).await {
            let (request, attributes) = request[..length].split_at(20);
            assert_eq!((request[0], request[3] as usize), (1, length));
            // The attributes are Message-Authenticator, User-Name, User-Password, NAS-Identifier.
            assert_eq!(&attributes[..2], b"\x50\x12");
            assert_eq!(&attributes[18..24], b"\x01\x06nemo");
            let key = Md5::digest([secret, &request[4..20]].concat());
            let password: Vec<u8> =
                attributes[26..42].iter().zip(key).map(|(byte, key)| byte ^ key).collect();
            if secret == b"shared" {
                assert_eq!(password, b"arctangent\0\0\0\0\0\0");
            }
            socket.send_to(b"\x02\x00\x00\x14aaaaaaaaaaaaaaaa", from).await.unwrap();
            let head = [code, request[1], 0, 20];
            let authenticator = Md5::digest([&head, &request[4..20], secret].concat());
            socket.send_to(&[&head[..], &authenticator].concat(), from).await.unwrap();
        }
    });
    Address::Socket(address)
}

#[tokio::test]
async fn replies_are_judged() {
    let check = async |code: u8, secret: &'static [u8], reply: RadiusReply, expected: &str| {
        let credentials = Credentials { user: "nemo".into(), password: Secret::new("arctangent") };
        let probe = RadiusProbe { credentials, secret: Secret::new("shared"), reply };
        let server = server(code, secret).await;
        assert_eq!(result(&server, MonitorKind::Radius(probe)).await, expected);
    };
    check(2, b"shared", RadiusReply::Accept, "passed").await;
    check(3, b"shared", RadiusReply::Accept, "RADIUS: Access-Reject").await;
    check(3, b"shared", RadiusReply::Reject, "passed").await;
    check(2, b"shared", RadiusReply::Reject, "RADIUS: Access-Accept").await;
    for code in [2, 3, 11] {
        check(code, b"shared", RadiusReply::Any, "passed").await;
    }
    let other = "malformed response: code 5 is no answer to an Access-Request";
    check(5, b"shared", RadiusReply::Any, other).await;
    let foreign = "RADIUS: an answer that was made with another `secret`";
    check(2, b"other", RadiusReply::Accept, foreign).await;
    let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let credentials = Credentials { user: "nemo".into(), password: Secret::new("arctangent") };
    let probe = RadiusProbe { credentials, secret: Secret::new("shared"), reply: RadiusReply::Any };
    let refused = result(&Address::Socket(closed), MonitorKind::Radius(probe)).await;
    assert_eq!(refused, "connection refused");
}
