//! Probes by datagrams.

use tokio::net::UdpSocket;
use weir_config::snapshot::UdpProbe;

use super::*;

/// A member that answers `question` with `answer`; `None`: it never answers.
async fn member(question: &'static [u8], answer: Option<&'static [u8]>) -> Address {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut asked = vec![0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut asked).await {
            if let Some(answer) = answer.filter(|_| asked[..length] == *question) {
                let _ = socket.send_to(answer, from).await;
            }
        }
    });
    Address::Socket(address)
}

fn probe(receive: Option<BodyMatch>) -> UdpProbe {
    UdpProbe { send: b"ping"[..].into(), receive, drain_on: None, is_silence_fine: false }
}

const SILENCE: &str = "no answer in 300ms (waiting for the expected answer)";

async fn check(member: &Address, probe: &UdpProbe, expected: &str) {
    assert_eq!(result(member, MonitorKind::Udp(probe.clone())).await, expected, "{probe:?}");
}

#[tokio::test]
async fn the_answer_is_judged() {
    let talker = member(b"ping", Some(b"\0pong\xff")).await;
    check(&talker, &probe(None), "passed").await;
    check(&talker, &probe(substring("pong")), "passed").await;
    let hex = Some(BodyMatch::Substring(b"\0p"[..].into()));
    check(&talker, &probe(hex), "passed").await;
    let regex = regex::bytes::Regex::new("(?-u)^.p.*\\xff$").unwrap();
    check(&talker, &probe(Some(BodyMatch::Regex(regex))), "passed").await;
    check(&talker, &probe(substring("ping")), "the answer is not as expected").await;
    let draining = UdpProbe { drain_on: substring("pong"), ..probe(substring("ping")) };
    check(&talker, &draining, "Drain").await;
    let empty = member(b"ping", Some(b"")).await;
    check(&empty, &probe(None), "passed").await;
    check(&empty, &probe(substring("pong")), "the answer is not as expected").await;
}

#[tokio::test]
async fn silence_is_a_failure_unless_it_is_allowed() {
    let silent = member(b"other", None).await;
    check(&silent, &probe(None), SILENCE).await;
    check(&silent, &probe(substring("pong")), SILENCE).await;
    let patient = UdpProbe { is_silence_fine: true, ..probe(None) };
    check(&silent, &patient, "passed").await;
    let picky = UdpProbe { is_silence_fine: true, ..probe(substring("pong")) };
    check(&silent, &picky, "passed").await;
    let wrong = member(b"ping", Some(b"error")).await;
    check(&wrong, &picky, "the answer is not as expected").await;
}

/// The kernel reports a port without a listener by ICMP.
#[tokio::test]
async fn a_closed_port_fails_either_way() {
    let closed = {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        Address::Socket(socket.local_addr().unwrap())
    };
    check(&closed, &probe(None), "connection refused").await;
    let patient = UdpProbe { is_silence_fine: true, ..probe(None) };
    check(&closed, &patient, "connection refused").await;
}

/// Probes use the source addresses and ports of the pool, as connections to members do.
#[tokio::test]
async fn probes_come_from_the_source() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let source = sockets::Source {
        address: "127.0.0.9".parse().unwrap(),
        ports: Some((40_010, 40_060)),
        is_foreign: false,
    };
    let asking = super::super::udp::connect(address, Some(source)).unwrap();
    asking.send(b"ping").await.unwrap();
    let (_, from) = socket.recv_from(&mut [0; 16]).await.unwrap();
    assert_eq!(from.ip(), source.address);
    assert!((40_010..=40_060).contains(&from.port()), "{from}");
}

/// Datagrams from other senders than the member are ignored.
#[tokio::test]
async fn strangers_are_not_heard() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = Address::Socket(socket.local_addr().unwrap());
    let asking = tokio::spawn(async move { result(&address, MonitorKind::Udp(probe(None))).await });
    let mut asked = [0; 16];
    let (_, from) = socket.recv_from(&mut asked).await.unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    stranger.send_to(b"pong", from).await.unwrap();
    assert_eq!(asking.await.unwrap(), SILENCE);
}

/// If sessions begin with a PROXY header, probes do too. Otherwise the member could not parse them.
#[tokio::test]
async fn members_that_expect_the_proxy_protocol_get_it() {
    let header = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0".as_slice();
    for (version, expected) in [(ProxyVersion::V2, header), (ProxyVersion::V1, b"")] {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = Address::Socket(socket.local_addr().unwrap());
        let monitor = monitor(MonitorKind::Udp(probe(None)), 300);
        let proxy_protocol = Some(version);
        let probe =
            Probe::new(&address, None, &Source::System, subject(), proxy_protocol, &monitor);
        let asking = tokio::spawn(async move { told(probe.run(&TlsClients::new()).await) });
        let mut asked = [0; 64];
        let (length, from) = socket.recv_from(&mut asked).await.unwrap();
        assert_eq!(asked[..length], [expected, b"ping"].concat());
        socket.send_to(b"pong", from).await.unwrap();
        assert_eq!(asking.await.unwrap(), "passed");
    }
}

#[tokio::test]
async fn a_lack_of_ports_is_not_held_against_the_member() {
    let member = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = member.local_addr().unwrap();
    let address = "127.0.0.12".parse().unwrap();
    let source =
        weir_event_loop::Source { address, ports: Some((40_120, 40_120)), is_foreign: false };
    if weir_event_loop::sockets::may_use(source).is_err() {
        return weir_testing::skip("this kernel has no IP_LOCAL_PORT_RANGE");
    }
    let connect = || super::super::udp::connect(to, Some(source));
    let _only = connect().unwrap();
    assert!(!Failure::connecting(connect().unwrap_err()).is_conclusive());
}
