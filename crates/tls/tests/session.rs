//! Sessions against rustls as the peer, and against each other: with every version and suite, and any division of the bytes.

use std::io::{IoSlice, Read, Write};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use weir_tls::{Protocol, RecordBuffer, Session, Step, TlsError};

/// A certificate for `shop.example`, and configurations that trust it.
struct Pair {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

fn pair(
    change: impl Fn(&mut CryptoProvider),
    version: &'static rustls::SupportedProtocolVersion,
) -> Pair {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["shop.example".into()]).expect("names");
    let certificate = params.self_signed(&key).expect("a certificate");
    let mut provider = aws_lc_rs::default_provider();
    change(&mut provider);
    let provider = Arc::new(provider);
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("a sound pair");
    server.enable_secret_extraction = true;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("a root");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_secret_extraction = true;
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Pair { server: Arc::new(server), client: Arc::new(client) }
}

fn name() -> ServerName<'static> {
    ServerName::try_from("shop.example").expect("a name")
}

/// A session with received bytes that it has not processed yet.
struct Peer {
    session: Session,
    input: Vec<u8>,
    out: RecordBuffer,
    data: Vec<u8>,
    established: bool,
    confirmed: bool,
    ended: bool,
    error: Option<TlsError>,
}

impl Peer {
    fn new(session: Session) -> Self {
        let mut peer = Self {
            session,
            input: Vec::new(),
            out: RecordBuffer::new(),
            data: Vec::new(),
            established: false,
            confirmed: false,
            ended: false,
            error: None,
        };
        peer.receive(&[]);
        peer
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let mut consumed = 0;
        loop {
            match self.session.step(&mut self.input, &mut consumed, &mut self.out) {
                Step::More => break,
                Step::Data { start, end } => self.data.extend_from_slice(&self.input[start..end]),
                Step::Established => self.established = true,
                Step::Confirmed => self.confirmed = true,
                Step::Ended => self.ended = true,
                Step::Failed(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        self.input.drain(..consumed);
    }

    /// The number of missing bytes of a partly received record.
    fn input_left(&self) -> usize {
        match *self.input {
            [_, _, _, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([high, low]));
                (5 + length).saturating_sub(self.input.len())
            }
            _ => 0,
        }
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        self.session.seal(&parts, &mut self.out).expect("sealed");
    }

    fn take_output(&mut self) -> Vec<u8> {
        let bytes = self.out.as_slice().to_vec();
        self.out.clear();
        bytes
    }
}

/// Makes rustls read and write everything. Appends the data that it read to `read`, and returns its output.
fn serve(
    connection: &mut rustls::Connection,
    mut incoming: &[u8],
    read: &mut Vec<u8>,
) -> Result<Vec<u8>, rustls::Error> {
    while !incoming.is_empty() {
        connection.read_tls(&mut incoming).expect("a slice");
        connection.process_new_packets()?;
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = connection.reader().read(&mut buffer) {
            read.extend_from_slice(&buffer[..count]);
        }
    }
    let mut out = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut out).expect("a vector");
    }
    Ok(out)
}

/// Exchanges bytes in pieces of this size until neither side has output. Returns the data that rustls read.
fn exchange(peer: &mut Peer, other: &mut rustls::Connection, piece_bytes: usize) -> Vec<u8> {
    let read = pass(peer, other, piece_bytes);
    assert_eq!(peer.error, None);
    read
}

/// Like [`exchange`], but the peer may fail.
fn pass(peer: &mut Peer, other: &mut rustls::Connection, piece_bytes: usize) -> Vec<u8> {
    let mut read = Vec::new();
    loop {
        let to_other = peer.take_output();
        let to_peer = serve(other, &to_other, &mut read).expect("a sound peer");
        if to_other.is_empty() && to_peer.is_empty() {
            return read;
        }
        to_peer.chunks(piece_bytes).for_each(|piece| peer.receive(piece));
    }
}

const SUITES: [(&rustls::SupportedProtocolVersion, rustls::SupportedCipherSuite); 6] = [
    (&rustls::version::TLS13, aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256),
    (&rustls::version::TLS13, aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384),
    (&rustls::version::TLS13, aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
    (&rustls::version::TLS12, aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    (&rustls::version::TLS12, aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    (
        &rustls::version::TLS12,
        aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
];

fn only(suite: rustls::SupportedCipherSuite) -> impl Fn(&mut CryptoProvider) {
    move |provider| provider.cipher_suites.retain(|known| known.suite() == suite.suite())
}

#[test]
fn every_suite_both_ways_at_every_kind_of_cut() {
    for (version, suite) in SUITES {
        for piece_bytes in [1, 7, 1_000, 100_000] {
            let pair = pair(only(suite), version);
            let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
            let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
            let mut client = rustls::Connection::from(client);
            exchange(&mut server, &mut client, piece_bytes);
            assert!(server.established && !server.session.is_handshaking());
            let agreed = server.session.established().expect("once");
            assert_eq!(agreed.suite.suite(), suite.suite());
            assert_eq!(agreed.alpn.as_deref(), Some(&b"http/1.1"[..]));
            assert!(!agreed.is_resumed && server.session.established().is_none());

            let long: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
            client.writer().write_all(&long[..60_000]).expect("written");
            server.send(&[b"head", &long, b"", b"end"]);
            let read = exchange(&mut server, &mut client, piece_bytes);
            assert_eq!(server.data, long[..60_000]);
            assert_eq!(read, [b"head", &long[..], b"end"].concat());

            client.send_close_notify();
            exchange(&mut server, &mut client, piece_bytes);
            assert!(server.ended);
            server.session.close(&mut server.out);
            let close = server.take_output();
            let mut read = Vec::new();
            serve(&mut client, &close, &mut read).expect("close_notify");
            assert!(client.process_new_packets().expect("state").peer_has_closed());
        }
    }
}

#[test]
fn as_a_client_of_rustls() {
    for (version, suite) in SUITES {
        let pair = pair(only(suite), version);
        for round in 0..2 {
            let mut client = Peer::new(Session::client(&pair.client, name()).expect("a session"));
            // This data is sent before the handshake is complete, and stored until its end.
            client.send(&[b"GET"]);
            assert_eq!(client.session.waiting_bytes(), 3);
            let server = ServerConnection::new(Arc::clone(&pair.server)).expect("a server");
            let mut server = rustls::Connection::from(server);
            let read = exchange(&mut client, &mut server, 100);
            assert_eq!(read, b"GET");
            let agreed = client.session.established().expect("once");
            assert_eq!(agreed.is_resumed, round == 1, "{suite:?}");
            assert_eq!(agreed.peer_certificates.len(), 1);
            server.writer().write_all(b"200").expect("written");
            exchange(&mut client, &mut server, 100);
            assert_eq!(client.data, b"200");
        }
    }
}

/// Stored data belongs to a protocol, so it is not sent to a server that has not selected this protocol.
#[test]
fn nothing_is_sent_to_a_server_that_does_not_agree_to_the_protocol() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for (offered, agrees) in
            [(&[][..], false), (&[b"http/1.1".to_vec()], false), (&[b"h2".to_vec()], true)]
        {
            let mut pair = pair(|_| {}, version);
            Arc::make_mut(&mut pair.client).alpn_protocols = vec![b"h2".to_vec()];
            Arc::make_mut(&mut pair.server).alpn_protocols = offered.to_vec();
            if !offered.is_empty() && !agrees {
                // A server with ALPN would refuse the handshake itself.
                Arc::make_mut(&mut pair.client).alpn_protocols = offered.to_vec();
            }
            let session = Session::client(&pair.client, name()).expect("a session");
            let mut client = Peer::new(session.requiring(Protocol::Http2));
            client.send(&[b"POST"]);
            let server = ServerConnection::new(Arc::clone(&pair.server)).expect("a server");
            let mut server = rustls::Connection::from(server);
            let read = pass(&mut client, &mut server, 100);
            let expected = if agrees { None } else { Some(TlsError::NotAgreed(Protocol::Http2)) };
            assert_eq!(client.error, expected, "{version:?}");
            assert_eq!(read, if agrees { &b"POST"[..] } else { b"" }, "{version:?}");
        }
    }
}

#[test]
fn keys_are_renewed_by_either_side() {
    let pair = pair(|_| {}, &rustls::version::TLS13);
    let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
    let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
    let mut client = rustls::Connection::from(client);
    exchange(&mut server, &mut client, 1_000);
    for round in 0..100 {
        client.refresh_traffic_keys().expect("renewed");
        client.writer().write_all(&[round]).expect("written");
        server.send(&[&[round]]);
        assert_eq!(exchange(&mut server, &mut client, 3), [round]);
    }
    assert_eq!(server.data, (0..100).collect::<Vec<u8>>());
}

/// An established connection between a session and rustls.
fn connected(version: &'static rustls::SupportedProtocolVersion) -> (Peer, rustls::Connection) {
    let pair = pair(|_| {}, version);
    let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
    let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
    let mut client = rustls::Connection::from(client);
    exchange(&mut server, &mut client, 1_000);
    (server, client)
}

#[test]
fn a_record_that_was_changed_ends_it_and_the_peer_is_told() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (mut server, mut client) = connected(version);
        client.writer().write_all(b"data").expect("written");
        let mut sent = serve(&mut client, &[], &mut Vec::new()).expect("sound");
        *sent.last_mut().expect("a byte") ^= 1;
        server.receive(&sent);
        assert_eq!(server.error, Some(TlsError::Forged));
        let alert = server.take_output();
        let told = serve(&mut client, &alert, &mut Vec::new());
        let expected = rustls::AlertDescription::BadRecordMac;
        assert_eq!(told, Err(rustls::Error::AlertReceived(expected)));
        // No more data is sent or read.
        server.send(&[b"more"]);
        server.receive(&sent);
        assert!(server.data.is_empty() && server.take_output().is_empty());
    }
}

#[test]
fn what_is_no_record_ends_it() {
    let check = |bytes: &[u8], expected: &'static str| {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let (mut server, _) = connected(version);
            server.receive(bytes);
            let error = server.error.expect("refused").to_string();
            assert!(error.contains(expected), "{error} for {bytes:?}");
            assert!(!server.out.is_empty(), "an alert for {bytes:?}");
        }
    };
    check(b"GET / HTTP/1.1\r\n", "not a record");
    check(&[23, 3, 3, 0xff, 0xff], "too long");
    check(&[23, 3, 3, 0, 0], "changed");
    check(
        &[23, 3, 3, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        "changed",
    );
}

#[test]
fn a_handshake_with_what_is_no_tls_fails_with_an_alert() {
    let pair = pair(|_| {}, &rustls::version::TLS13);
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 1, 0, 4, 2, 0, 0, 0], &[21, 3, 1, 0, 2, 2, 40]]
    {
        let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
        server.receive(bytes);
        let is_refused =
            matches!(server.error, Some(TlsError::Handshake(_) | TlsError::PeerMisbehaved(_)));
        assert!(is_refused, "{:?}", server.error);
    }
}

/// A type of another protocol (heartbeat) and unknown types, at different places of a handshake.
#[test]
fn a_record_of_unknown_type_ends_a_handshake_at_once() {
    const HEARTBEAT: u8 = 24;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for content in [HEARTBEAT, 0, 255] {
            let pair = pair(|_| {}, version);
            let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
            server.receive(&[content]);
            assert!(matches!(server.error, Some(TlsError::PeerMisbehaved(_))));
            assert_eq!(server.take_output(), [21, 3, 3, 0, 2, 2, 10]);
            // The server has responded, and the client has started a message.
            let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("one");
            let mut client = rustls::Connection::from(client);
            let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
            let hello = serve(&mut client, &[], &mut Vec::new()).expect("a hello");
            server.receive(&hello);
            let flight = server.take_output();
            serve(&mut client, &flight, &mut Vec::new()).expect("sound");
            server.receive(&[content, 3, 3, 1, 0]);
            assert!(matches!(server.error, Some(TlsError::PeerMisbehaved(_))));
            let alert = server.take_output();
            let told = serve(&mut client, &alert, &mut Vec::new());
            let expected = rustls::AlertDescription::UnexpectedMessage;
            assert_eq!(told, Err(rustls::Error::AlertReceived(expected)), "{version:?}");

            let mut client = Peer::new(Session::client(&pair.client, name()).expect("a session"));
            let server = ServerConnection::new(Arc::clone(&pair.server)).expect("a server");
            let mut server = rustls::Connection::from(server);
            let hello = client.take_output();
            let flight = serve(&mut server, &hello, &mut Vec::new()).expect("sound");
            client.receive(&flight[..flight.len() / 2]);
            assert_eq!(client.error, None);
            let after = flight[flight.len() / 2..].to_vec();
            // Within a record, the byte is a part of it, so it is passed after the end of the record.
            let end = flight.len() - after.len() + client.input_left();
            client.receive(&flight[flight.len() / 2..end]);
            client.receive(&[content]);
            assert!(matches!(client.error, Some(TlsError::PeerMisbehaved(_))));
            assert!(!client.out.is_empty());
        }
    }
}

/// Handshake messages in several records each, encrypted or not.
#[test]
fn a_handshake_in_small_records() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut pair = pair(|_| {}, version);
        Arc::make_mut(&mut pair.client).max_fragment_size = Some(32);
        let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
        let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
        exchange(&mut server, &mut rustls::Connection::from(client), 10);
        assert!(server.established);
    }
}

/// A pair whose client has a session that allows early data. Other servers do not know this session.
fn with_early_data(suite: rustls::SupportedCipherSuite, bytes_max: u32) -> Pair {
    let mut pair = pair(only(suite), &rustls::version::TLS13);
    Arc::make_mut(&mut pair.server).max_early_data_size = bytes_max;
    Arc::make_mut(&mut pair.client).enable_early_data = true;
    let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
    let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
    let mut client = rustls::Connection::from(client);
    exchange(&mut server, &mut client, 10_000);
    pair
}

/// Rejected early data is skipped up to the limit, and each byte is counted once.
#[test]
fn early_data_that_is_rejected_is_counted_once() {
    const LIMIT_BYTES: u32 = 16_384;
    const RECORD_BYTES: usize = 100;
    const OVERHEAD_BYTES: usize = 17;
    let fit = LIMIT_BYTES as usize / (RECORD_BYTES + OVERHEAD_BYTES);
    for suite in &SUITES[..3] {
        for (records, piece_bytes) in
            [(1, 1), (fit, 50), (fit, 1_000), (fit, 100_000), (fit + 1, 1_000)]
        {
            let mut pair = with_early_data(suite.1, LIMIT_BYTES);
            let server = Arc::make_mut(&mut pair.server);
            // Another server, which does not know the session.
            server.session_storage = rustls::server::ServerSessionMemoryCache::new(8);
            let mut client =
                ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
            for _ in 0..records {
                let mut early = client.early_data().expect("a ticket that allows it");
                early.write_all(&[7; RECORD_BYTES]).expect("written");
            }
            let mut client = rustls::Connection::from(client);
            let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
            let mut flight = serve(&mut client, &[], &mut Vec::new()).expect("sound");
            for _ in 0..4 {
                flight.chunks(piece_bytes).for_each(|piece| server.receive(piece));
                let answer = server.take_output();
                match serve(&mut client, &answer, &mut Vec::new()) {
                    Ok(next) => flight = next,
                    Err(_) => break,
                }
            }
            assert_eq!(server.established, records <= fit, "{records} in {piece_bytes}");
            assert_eq!(server.error.is_some(), records > fit, "{:?}", server.error);
            assert!(server.data.is_empty());
        }
    }
}

/// Empty records and warnings cost the peer nothing, so their number is limited.
#[test]
fn records_without_data_have_an_end() {
    let (mut server, mut client) = connected(&rustls::version::TLS13);
    let mut renewals = 0;
    while server.error.is_none() {
        client.refresh_traffic_keys().expect("renewed");
        let sent = serve(&mut client, &[], &mut Vec::new()).expect("sound");
        server.receive(&sent);
        server.take_output();
        renewals += 1;
        assert!(renewals < 100, "no end");
    }
    assert!(renewals > 30);
}

/// Returns the next number of a small random number generator (xorshift).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

/// With any change in the peer's bytes, and any division of them, the handshake fails or continues, the peer receives an
/// alert if possible, and nothing panics.
#[test]
fn a_handshake_that_was_changed_fails_in_order() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let pair = pair(|_| {}, version);
        for seed in 1..1_000_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let is_server = seed % 2 == 0;
            let (mut peer, mut other) = if is_server {
                let client = ClientConnection::new(Arc::clone(&pair.client), name());
                let session = Session::server(&pair.server);
                (Peer::new(session.expect("one")), rustls::Connection::from(client.expect("one")))
            } else {
                let server = ServerConnection::new(Arc::clone(&pair.server)).expect("one");
                let session = Session::client(&pair.client, name()).expect("one");
                (Peer::new(session), rustls::Connection::from(server))
            };
            let mut flights = 0;
            while peer.error.is_none() && flights < 8 {
                flights += 1;
                let to_other = peer.take_output();
                let Ok(mut to_peer) = serve(&mut other, &to_other, &mut Vec::new()) else { break };
                if !to_peer.is_empty() && next(&mut random).is_multiple_of(2) {
                    for _ in 0..1 + next(&mut random) % 3 {
                        let at = next(&mut random) % to_peer.len();
                        match next(&mut random) % 4 {
                            0 => to_peer[at] ^= 1 << (next(&mut random) % 8),
                            1 => to_peer[at] = [0, 1, 0x7f, 0xff][next(&mut random) % 4],
                            2 => to_peer.truncate(at + 1),
                            _ => {
                                let again = to_peer[at..].to_vec();
                                to_peer.extend_from_slice(&again);
                            }
                        }
                    }
                }
                let piece_bytes = 1 + next(&mut random) % 400;
                to_peer.chunks(piece_bytes).for_each(|piece| peer.receive(piece));
            }
        }
    }
}

/// A client that does not trust the server sends an alert, although its input still contains an unprocessed part of a
/// message.
#[test]
fn a_server_that_is_not_trusted_is_told_so() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (trusted, shown) = (pair(|_| {}, version), pair(|_| {}, version));
        for piece_bytes in [1, 50, 10_000] {
            let session = Session::client(&trusted.client, name()).expect("a session");
            let mut client = Peer::new(session);
            let server = ServerConnection::new(Arc::clone(&shown.server)).expect("a server");
            let mut server = rustls::Connection::from(server);
            let hello = client.take_output();
            let flight = serve(&mut server, &hello, &mut Vec::new()).expect("sound");
            flight.chunks(piece_bytes).for_each(|piece| client.receive(piece));
            assert!(matches!(client.error, Some(TlsError::Handshake(_))), "{:?}", client.error);
            let alert = client.take_output();
            let told = serve(&mut server, &alert, &mut Vec::new());
            assert!(matches!(told, Err(rustls::Error::AlertReceived(_))), "{told:?}");
        }
    }
}

/// A pair as from `with_early_data`, whose server can respond before the handshake is complete.
fn early_pair(bytes_max: u32) -> Pair {
    let mut pair = with_early_data(SUITES[0].1, bytes_max);
    Arc::make_mut(&mut pair.server).send_half_rtt_data = true;
    pair
}

/// A client with these records of early data, and its first flight.
fn early_client(pair: &Pair, records: &[&[u8]]) -> (rustls::Connection, Vec<u8>) {
    let mut client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
    for record in records {
        client.early_data().expect("a ticket").write_all(record).expect("written");
    }
    let mut client = rustls::Connection::from(client);
    let flight = serve(&mut client, &[], &mut Vec::new()).expect("sound");
    (client, flight)
}

#[test]
fn early_data_is_answered_before_the_handshake_is_done() {
    for piece_bytes in [1, 13, 100_000] {
        let pair = early_pair(1_000);
        let (mut client, flight) = early_client(&pair, &[b"GET", b" /"]);
        let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
        flight.chunks(piece_bytes).for_each(|piece| server.receive(piece));
        assert_eq!((server.data.as_slice(), server.error.as_ref()), (&b"GET /"[..], None));
        assert!(server.established && !server.confirmed && !server.session.is_handshaking());
        let agreed = server.session.established().expect("once");
        assert!(agreed.is_early && agreed.is_resumed);
        let long = vec![7; 50_000];
        server.send(&[b"200", &long]);
        // The response is sent with the server's flight, before any further byte from the client.
        let answer = server.take_output();
        let mut read = Vec::new();
        let finished = serve(&mut client, &answer, &mut read).expect("sound");
        assert_eq!(read, [b"200", &long[..]].concat());
        finished.chunks(piece_bytes).for_each(|piece| server.receive(piece));
        assert!(server.confirmed && server.error.is_none());
        assert!(server.session.established().is_none());
        client.writer().write_all(b"more").expect("written");
        server.send(&[b"yes"]);
        assert_eq!(exchange(&mut server, &mut client, piece_bytes), b"yes");
        assert_eq!(server.data, b"GET /more");
    }
}

#[test]
fn early_data_can_be_answered_and_the_connection_closed() {
    let pair = early_pair(1_000);
    let (mut client, flight) = early_client(&pair, &[b"GET /"]);
    let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
    server.receive(&flight);
    server.send(&[b"200"]);
    server.session.close(&mut server.out);
    let answer = server.take_output();
    let mut read = Vec::new();
    serve(&mut client, &answer, &mut read).expect("sound");
    assert_eq!(read, b"200");
    assert!(client.process_new_packets().expect("a state").peer_has_closed());
}

/// Data that is sent while a part of the client's last message has arrived waits for the rest of that message.
#[test]
fn an_answer_within_a_message_waits_for_its_end() {
    let mut pair = early_pair(1_000);
    Arc::make_mut(&mut pair.client).max_fragment_size = Some(32);
    let (mut client, flight) = early_client(&pair, &[b"GET /"]);
    let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
    server.receive(&flight);
    let answer = server.take_output();
    let finished = serve(&mut client, &answer, &mut Vec::new()).expect("sound");
    // All records except the last one, which contains the end of Finished.
    let mut at = 0;
    while let Some(&[high, low]) = finished.get(at + 3..at + 5) {
        let end = at + 5 + usize::from(u16::from_be_bytes([high, low]));
        if end == finished.len() {
            break;
        }
        at = end;
    }
    server.receive(&finished[..at]);
    server.send(&[b"200"]);
    assert_eq!(server.session.waiting_bytes(), 3);
    server.session.close(&mut server.out);
    assert!(server.out.is_empty() && !server.confirmed);
    server.receive(&finished[at..]);
    assert!(server.confirmed && server.session.waiting_bytes() == 0);
    assert_eq!(exchange(&mut server, &mut client, 1_000), b"200");
}

/// The session is removed when it is used (RFC 8446 section 8.1).
#[test]
fn a_recorded_first_flight_is_accepted_once() {
    let mut pair = early_pair(1_000);
    let cache = Arc::new(weir_tls::session_cache::SessionCache::new(1 << 20));
    let sessions = weir_tls::server::Sessions::Stateful { cache, early_data: true };
    pair.server = weir_tls::server::with_sessions(&pair.server, &sessions);
    // The client's earlier session belongs to another server, so it receives one from this server.
    let session = Session::server(&pair.server).expect("a session");
    let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
    exchange(&mut Peer::new(session), &mut rustls::Connection::from(client), 1_000);

    let (_, flight) = early_client(&pair, &[b"GET /"]);
    let accepted: Vec<bool> = (0..5)
        .map(|_| {
            let mut server = Peer::new(Session::server(&pair.server).expect("a session"));
            server.receive(&flight);
            assert_eq!(server.error, None);
            server.data == b"GET /"
        })
        .collect();
    assert_eq!(accepted, [true, false, false, false, false]);
}

#[test]
fn more_early_data_than_is_allowed_ends_it() {
    const ALLOWED_BYTES: usize = 1_000;
    let pair = early_pair(ALLOWED_BYTES as u32);
    // This server has a lower limit than the client's ticket, so the client exceeds it.
    let mut strict = pair.server.clone();
    Arc::make_mut(&mut strict).max_early_data_size = 100;
    for (bytes, is_taken) in [(100, true), (101, false)] {
        let data = vec![7; bytes];
        let (_, flight) = early_client(&pair, &[&data]);
        let mut server = Peer::new(Session::server(&strict).expect("a session"));
        server.receive(&flight);
        assert_eq!(server.error.is_none(), is_taken, "{:?}", server.error);
        assert_eq!(server.data.len(), if is_taken { bytes } else { 0 });
        let session = Session::server(&pair.server).expect("a session");
        let client = ClientConnection::new(Arc::clone(&pair.client), name()).expect("a client");
        exchange(&mut Peer::new(session), &mut rustls::Connection::from(client), 1_000);
    }
}

/// The records in these bytes.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let [_, _, _, high, low, ..] = *bytes {
        let (record, rest) = bytes.split_at(5 + usize::from(u16::from_be_bytes([high, low])));
        found.push(record.to_vec());
        bytes = rest;
    }
    found
}

/// Records of an established session are truncated, lost, repeated, reordered or changed in type. The delivered data is
/// always a prefix of the sent data.
#[test]
fn records_that_were_changed_deliver_nothing_but_the_beginning() {
    let mut failed = 0;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for seed in 1..300_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (mut server, mut client) = connected(version);
            let mut sent = Vec::new();
            for number in 0..8_u8 {
                let data = vec![number; 1 + next(&mut random) % 300];
                client.writer().write_all(&data).expect("written");
                sent.extend_from_slice(&data);
                if number == 4 && version.version == rustls::ProtocolVersion::TLSv1_3 {
                    client.refresh_traffic_keys().expect("renewed");
                }
            }
            client.send_close_notify();
            let flight = serve(&mut client, &[], &mut Vec::new()).expect("sound");
            let mut all = records(&flight);
            for _ in 0..1 + next(&mut random) % 3 {
                let at = next(&mut random) % all.len();
                let other = next(&mut random) % all.len();
                let byte = next(&mut random) % all[at].len();
                match next(&mut random) % 7 {
                    0 => all.swap(at, other),
                    1 => drop(all.remove(at)),
                    2 => all.insert(other, all[at].clone()),
                    3 => all[at].truncate(byte + 1),
                    4 => all[at][0] = (18 + next(&mut random) % 8) as u8,
                    5 => all[at][byte] ^= 1 << (next(&mut random) % 8),
                    _ => all.insert(at, vec![21, 3, 3, 0, 2, 1, 0]),
                }
            }
            let bytes = all.concat();
            let piece_bytes = 1 + next(&mut random) % 500;
            bytes.chunks(piece_bytes).for_each(|piece| server.receive(piece));
            assert!(sent.starts_with(&server.data), "seed {seed}");
            assert!(!server.ended || server.data == sent, "seed {seed}: an end that is none");
            failed += u32::from(server.error.is_some());
        }
    }
    assert!(failed > 300, "{failed}: most must fail");
}
