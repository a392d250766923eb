//! Probes with sent and expected data over TCP.

use super::*;

/// A server that sends `greeting`, and `answer` after `question`. It closes after `linger_ms`.
async fn talker(greeting: &str, question: &str, answer: &str, linger_ms: u64) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let [greeting, question, answer] = [greeting, question, answer].map(str::to_owned);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(greeting.as_bytes()).await;
            let mut asked = vec![0; question.len()];
            if stream.read_exact(&mut asked).await.is_ok() && asked == question.as_bytes() {
                // The answer is sent in two parts.
                let (first, second) = answer.split_at(answer.len() / 2);
                let _ = stream.write_all(first.as_bytes()).await;
                tokio::time::sleep(Duration::from_millis(10)).await;
                let _ = stream.write_all(second.as_bytes()).await;
            }
            tokio::time::sleep(Duration::from_millis(linger_ms)).await;
        }
    });
    Address::Socket(address)
}

fn probe(send: Option<&str>, receive: &str) -> TcpProbe {
    TcpProbe {
        send: send.map(|text| text.as_bytes().into()),
        receive: substring(receive),
        drain_on: None,
        tls: None,
    }
}

#[tokio::test]
async fn what_comes_is_judged() {
    let check = async |server: &Address, probe: TcpProbe, expected: &str| {
        assert_eq!(result(server, MonitorKind::Tcp(probe)).await, expected);
    };
    let redis = talker("", "PING\r\n", "+PONG\r\n", 1_000).await;
    check(&redis, probe(Some("PING\r\n"), "+PONG"), "passed").await;
    let silent = "no answer in 300ms (waiting for the expected answer)";
    // A wrong answer is an answer, although the member keeps the connection open.
    let wrong = "the answer is not as expected";
    let open = talker("", "PING\r\n", "+PONG\r\n", 10_000).await;
    check(&open, probe(Some("PING\r\n"), "-ERR"), wrong).await;
    let greets = talker("-LOADING\r\n", "PING\r\n", "", 10_000).await;
    check(&greets, probe(None, "+PONG"), wrong).await;
    let mute = talker("", "PING\r\n", "+PONG\r\n", 10_000).await;
    check(&mute, probe(None, "+PONG"), silent).await;

    let mail = talker("220 mail.example ESMTP\r\n", "QUIT\r\n", "221 bye\r\n", 0).await;
    check(&mail, probe(None, "220 "), "passed").await;
    check(&mail, probe(Some("QUIT\r\n"), "221"), "passed").await;
    check(&mail, probe(Some("QUIT\r\n"), "250"), "the answer is not as expected").await;
    check(&mail, probe(Some("HELO\r\n"), "250"), "the answer is not as expected").await;

    let mute = talker("", "", "", 0).await;
    let closed = "connection closed (waiting for the expected answer)";
    check(&mute, probe(None, "220"), closed).await;
}

#[tokio::test]
async fn what_comes_may_ask_for_a_drain() {
    let asking = || {
        let drain_on = substring("state: retiring");
        MonitorKind::Tcp(TcpProbe { drain_on, ..probe(Some("state\n"), "state: ") })
    };
    let retiring = talker("", "state\n", "state: retiring\n", 0).await;
    // The first part alone contains the expected data, so the probe may pass before the request for a drain arrives.
    let outcome = result(&retiring, asking()).await;
    assert!(["passed", "Drain"].contains(&&*outcome), "{outcome}");
    let at_once = talker("state: retiring\n", "state\n", "", 0).await;
    assert_eq!(result(&at_once, asking()).await, "Drain");
    let serving = talker("state: serving\n", "state\n", "", 0).await;
    assert_eq!(result(&serving, asking()).await, "passed");
}

#[tokio::test]
async fn endless_answers_are_given_up() {
    let babble = "x".repeat(BODY_SIZE_MAX * 3);
    let babbler = talker(&babble, "", "", 1_000).await;
    let outcome = result(&babbler, MonitorKind::Tcp(probe(None, "y"))).await;
    assert_eq!(outcome, "the answer is not as expected");
}
