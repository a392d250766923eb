//! DNS probes against servers with right and wrong answers.

use std::net::SocketAddr;

use hickory_resolver::proto::op::{Message, MessageType, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, MX, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use weir_config::snapshot::{DnsProbe, DnsRcode, DnsRecord};

use super::*;

/// A server that answers each query with all messages that `answer` returns.
async fn server<F>(answer: F) -> Address
where
    F: Fn(Message) -> Vec<Message> + Send + 'static,
{
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut asked = vec![0; 2_048];
        while let Ok((length, from)) = socket.recv_from(&mut asked).await {
            let question = Message::from_vec(&asked[..length]).unwrap();
            send(&socket, from, answer(question)).await;
        }
    });
    Address::Socket(address)
}

async fn send(socket: &UdpSocket, to: SocketAddr, messages: Vec<Message>) {
    for message in messages {
        socket.send_to(&message.to_vec().unwrap(), to).await.unwrap();
    }
}

/// An answer to a query, with this code and these values.
fn answer(question: &Message, code: ResponseCode, values: &[RData]) -> Message {
    let mut answer = question.clone();
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.response_code = code;
    let name = question.queries[0].name().clone();
    answer.add_answers(
        values.iter().map(|value| Record::from_rdata(name.clone(), 60, value.clone())),
    );
    answer
}

fn address(last: u8) -> RData {
    RData::A(A::new(192, 0, 2, last))
}

fn probe(record: DnsRecord, value: Option<&str>) -> DnsProbe {
    let value = value.map(Into::into);
    DnsProbe { name: "shop.example".into(), record, rcode: DnsRcode::NoError, value }
}

async fn check(server: &Address, probe: DnsProbe, expected: &str) {
    assert_eq!(result(server, MonitorKind::Dns(probe.clone())).await, expected, "{probe:?}");
}

#[tokio::test]
async fn answers_are_judged() {
    let sound = server(|question| {
        assert!(question.metadata.recursion_desired);
        let query = &question.queries[0];
        assert_eq!(query.name().to_string(), "shop.example.");
        let values = match query.query_type() {
            RecordType::A => vec![address(1), address(2)],
            RecordType::MX => {
                vec![RData::MX(MX::new(10, Name::from_ascii("Mail.example.").unwrap()))]
            }
            RecordType::TXT => vec![RData::TXT(TXT::new(vec!["v=1 Up".into()]))],
            _ => Vec::new(),
        };
        vec![answer(&question, ResponseCode::NoError, &values)]
    })
    .await;
    check(&sound, probe(DnsRecord::A, None), "passed").await;
    check(&sound, probe(DnsRecord::A, Some("192.0.2.2")), "passed").await;
    check(&sound, probe(DnsRecord::A, Some("192.0.2.3")), "DNS: no A record is `192.0.2.3`").await;
    check(&sound, probe(DnsRecord::Mx, Some("10 mail.example")), "passed").await;
    check(&sound, probe(DnsRecord::Txt, Some("v=1 Up")), "passed").await;
    check(&sound, probe(DnsRecord::Txt, Some("v=1 up")), "DNS: no TXT record is `v=1 up`").await;
    check(&sound, probe(DnsRecord::Aaaa, None), "passed").await;
    check(&sound, probe(DnsRecord::Aaaa, Some("::1")), "DNS: no AAAA record is `::1`").await;
    let missing = DnsProbe { rcode: DnsRcode::NxDomain, ..probe(DnsRecord::A, None) };
    check(&sound, missing, "DNS: NOERROR where NXDOMAIN is expected").await;
}

#[tokio::test]
async fn codes_are_judged() {
    let refusing = server(|question| {
        let mut refusal = answer(&question, ResponseCode::Refused, &[]);
        // Some servers omit the question in a refusal.
        refusal.queries.clear();
        vec![refusal]
    })
    .await;
    let refused = "DNS: REFUSED where NOERROR is expected";
    check(&refusing, probe(DnsRecord::Soa, None), refused).await;
    let expected = DnsProbe { rcode: DnsRcode::Refused, ..probe(DnsRecord::Soa, None) };
    check(&refusing, expected, "passed").await;
}

/// Only a genuine answer counts. Messages with another id, another question or no question are ignored, and queries, too.
#[tokio::test]
async fn what_does_not_answer_the_question_is_passed_over() {
    let strange = |question: &Message| {
        let sound = answer(question, ResponseCode::NoError, &[address(66)]);
        let mut other_id = sound.clone();
        other_id.metadata.id ^= 1;
        let mut other_name = sound.clone();
        other_name.queries =
            vec![Query::query(Name::from_ascii("x.example.").unwrap(), RecordType::A)];
        let mut other_type = sound.clone();
        other_type.queries[0].set_query_type(RecordType::MX);
        let mut no_question = sound.clone();
        no_question.queries.clear();
        vec![other_id, other_name, other_type, no_question, question.clone()]
    };
    let confused = server(move |question| strange(&question)).await;
    let foreign = "DNS: its datagrams are no answers to the query";
    check(&confused, probe(DnsRecord::A, None), foreign).await;
    let late = server(move |question| {
        let sound = answer(&question, ResponseCode::NoError, &[address(1)]);
        strange(&question).into_iter().chain([sound]).collect()
    })
    .await;
    check(&late, probe(DnsRecord::A, Some("192.0.2.1")), "passed").await;
}

#[tokio::test]
async fn truncated_answers_are_answers_unless_a_record_is_missing() {
    let cutting = server(|question| {
        let mut cut = answer(&question, ResponseCode::NoError, &[address(1)]);
        cut.metadata.truncation = true;
        vec![cut]
    })
    .await;
    check(&cutting, probe(DnsRecord::A, None), "passed").await;
    check(&cutting, probe(DnsRecord::A, Some("192.0.2.1")), "passed").await;
    let expected = "DNS: no A record is `192.0.2.2`; the answer was truncated (TC): ask for fewer records, or \
                    leave out `value`";
    check(&cutting, probe(DnsRecord::A, Some("192.0.2.2")), expected).await;
}

/// Datagrams that are not DNS messages are ignored, and each probe has a random id.
#[tokio::test]
async fn garbage_is_passed_over() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let member = Address::Socket(socket.local_addr().unwrap());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let member = member.clone();
        let kind = MonitorKind::Dns(probe(DnsRecord::A, None));
        let asking = tokio::spawn(async move { result(&member, kind).await });
        let mut asked = [0; 512];
        let (length, from) = socket.recv_from(&mut asked).await.unwrap();
        let question = Message::from_vec(&asked[..length]).unwrap();
        ids.push(question.metadata.id);
        for garbage in [&b""[..], b"x", &asked[..length - 1], &[0xff; 512]] {
            socket.send_to(garbage, from).await.unwrap();
        }
        send(&socket, from, vec![answer(&question, ResponseCode::NoError, &[])]).await;
        assert_eq!(asking.await.unwrap(), "passed");
    }
    assert!(ids[0] != ids[1] || ids[1] != ids[2], "{ids:?}");
}
