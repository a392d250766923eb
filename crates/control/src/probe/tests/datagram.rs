//! Probes by datagrams, against members in tasks.

use tokio::net::UdpSocket;
use weir_config::snapshot::{Address, BodyMatch, DnsProbe, MonitorKind, UdpProbe};
use weir_core::monitor::dns::Question;

use super::result;

/// A member that answers each datagram so.
async fn member(answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> Address {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Socket(socket.local_addr().unwrap());
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&answer(&buffer[..length]), from).await;
        }
    });
    address
}

/// A port that nobody has.
async fn nobody() -> Address {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    Address::Socket(socket.local_addr().unwrap())
}

fn udp(receive: Option<&str>) -> MonitorKind {
    let receive = receive.map(|text| BodyMatch::Substring(text.into()));
    MonitorKind::Udp(UdpProbe { send: "ping".into(), receive })
}

#[tokio::test]
async fn what_comes_is_judged_and_silence_where_nothing_is_expected() {
    let echo = member(|bytes| [b"got ", bytes].concat()).await;
    assert_eq!(result(&echo, udp(Some("got ping"))).await, "passed");
    assert_eq!(result(&echo, udp(Some("pong"))).await, "the answer is not as expected");
    assert_eq!(result(&echo, udp(None)).await, "passed");
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Socket(silent.local_addr().unwrap());
    assert_eq!(result(&address, udp(None)).await, "passed");
    let late = result(&address, udp(Some("x"))).await;
    assert!(late.starts_with("no answer in "), "{late}");
    let gone = nobody().await;
    assert_eq!(result(&gone, udp(None)).await, "connection refused");
    assert_eq!(result(&gone, udp(Some("x"))).await, "connection refused");
}

#[tokio::test]
async fn a_name_is_asked_for() {
    let question = Question::new("a.example", 1).unwrap();
    let probe = |code, address: Option<&str>| {
        let address = address.map(|text| text.parse().unwrap());
        MonitorKind::Dns(DnsProbe { question: question.clone(), code, address })
    };
    let server = member(|query| {
        let mut answer = query.to_vec();
        answer[2] |= 0x80;
        answer[7] = 1;
        answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
        answer
    })
    .await;
    assert_eq!(result(&server, probe(0, None)).await, "passed");
    assert_eq!(result(&server, probe(0, Some("192.0.2.1"))).await, "passed");
    let other = result(&server, probe(0, Some("192.0.2.9"))).await;
    assert_eq!(other, "the answer is not as expected");
    assert_eq!(result(&server, probe(3, None)).await, "response code 0");
    let babbler = member(|query| query.to_vec()).await;
    let no_answer = result(&babbler, probe(0, None)).await;
    assert_eq!(no_answer, "malformed response: no answer of DNS");
}
