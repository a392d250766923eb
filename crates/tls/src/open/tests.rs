//! Correctly encrypted records with invalid content, in any order. No other implementation can be made to send them.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version};

use super::*;
use crate::session::Session;

/// A session with received bytes that it has not processed yet.
struct End {
    session: Session,
    input: Vec<u8>,
    data: Vec<u8>,
    error: Option<TlsError>,
    has_ended: bool,
}

impl End {
    fn new(session: Session) -> Self {
        Self { session, input: Vec::new(), data: Vec::new(), error: None, has_ended: false }
    }

    /// Processes bytes. Returns the output.
    fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let (mut consumed, mut out) = (0, RecordBuffer::new());
        loop {
            match self.session.step(&mut self.input, &mut consumed, &mut out) {
                Step::More => break,
                Step::Data { start, end } => self.data.extend_from_slice(&self.input[start..end]),
                Step::Established | Step::Confirmed => {}
                Step::Ended => self.has_ended = true,
                Step::Failed(error) => {
                    assert_eq!(self.error.replace(error), None, "it fails once");
                }
            }
        }
        self.input.drain(..consumed);
        out.as_slice().to_vec()
    }

    fn open(&mut self) -> &mut Open {
        self.session.open_for_test().expect("the handshake is done")
    }
}

/// A client and a server after the handshake.
fn connected(version: &'static SupportedProtocolVersion) -> [End; 2] {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec!["shop.example".into()]).expect("names");
    let certificate = params.self_signed(&key).expect("a certificate");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("a key"),
        )
        .expect("a pair");
    server.enable_secret_extraction = true;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("a root");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.enable_secret_extraction = true;
    let name = ServerName::try_from("shop.example").expect("a name");
    let mut client = End::new(Session::client(&Arc::new(client), name).expect("a session"));
    let mut server = End::new(Session::server(&Arc::new(server)).expect("a session"));
    let mut to_server = client.receive(&[]);
    while !to_server.is_empty() {
        let to_client = server.receive(&to_server);
        to_server = client.receive(&to_client);
    }
    [client, server]
}

/// Returns the next number of a small random number generator (xorshift).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

/// The content of a record: usually data, otherwise any content.
fn content(random: &mut u64) -> (ContentType, Vec<u8>) {
    let bytes = |random: &mut u64| {
        let length = next(random) % 40;
        (0..length).map(|_| next(random) as u8).collect::<Vec<u8>>()
    };
    match next(random) % 16 {
        0 => (ContentType::Handshake, vec![KEY_UPDATE, 0, 0, 1, (next(random) % 3) as u8]),
        1 => (ContentType::Handshake, vec![KEY_UPDATE, 0, 0]),
        2 => (ContentType::Handshake, vec![HELLO_REQUEST, 0, 0, 0]),
        3 => {
            let mut message = vec![[CLIENT_HELLO, NEW_SESSION_TICKET][next(random) % 2], 0, 0];
            let body = bytes(random);
            message.push(body.len() as u8);
            message.extend_from_slice(&body);
            (ContentType::Handshake, message)
        }
        4 => (ContentType::Handshake, bytes(random)),
        5 => (ContentType::Alert, vec![1 + (next(random) % 2) as u8, (next(random) % 120) as u8]),
        6 => (ContentType::Alert, bytes(random)),
        7 => (ContentType::ChangeCipherSpec, vec![1]),
        8 => (ContentType::ApplicationData, Vec::new()),
        _ => (ContentType::ApplicationData, bytes(random)),
    }
}

#[test]
fn whatever_records_hold_it_is_data_an_error_or_waiting() {
    let mut failed = 0;
    for version in [&version::TLS12, &version::TLS13] {
        for seed in 1..400_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let [client, server] = connected(version);
            let [mut from, mut to] =
                if seed % 2 == 0 { [client, server] } else { [server, client] };
            let mut sent = Vec::new();
            for _ in 0..12 {
                let (content, plaintext) = content(&mut random);
                let mut out = RecordBuffer::new();
                from.open().seal_record(content, &[&plaintext], &mut out).expect("sealed");
                let is_whole = to.error.is_none() && !to.has_ended;
                if content == ContentType::ApplicationData && is_whole {
                    sent.extend_from_slice(&plaintext);
                }
                let mut bytes = out.as_slice().to_vec();
                if next(&mut random).is_multiple_of(20) {
                    let at = next(&mut random) % bytes.len();
                    bytes[at] ^= 1 << (next(&mut random) % 8);
                }
                let piece_bytes = 1 + next(&mut random) % 60;
                let had_failed = to.error.is_some();
                for piece in bytes.chunks(piece_bytes) {
                    let answer = to.receive(piece);
                    assert!(!had_failed || answer.is_empty(), "nothing follows an error");
                }
                if to.error.is_some() || to.has_ended {
                    break;
                }
            }
            assert!(sent.starts_with(&to.data), "seed {seed}");
            let is_complete = to.error.is_none() && !to.has_ended && to.input.is_empty();
            assert!(!is_complete || sent == to.data, "seed {seed}");
            failed += u32::from(to.error.is_some());
        }
    }
    assert!(failed > 300, "{failed}: it is about what must not be");
}
