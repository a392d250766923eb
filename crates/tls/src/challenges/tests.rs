use super::*;

fn hello(name: &str, protocols: &[&[u8]]) -> ClientHello {
    let mut alpn = Vec::new();
    for protocol in protocols {
        alpn.push(protocol.len() as u8);
        alpn.extend_from_slice(protocol);
    }
    ClientHello { server_name: name.into(), alpn, ..ClientHello::default() }
}

fn certificate(name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    (certificate.der().clone(), key)
}

#[test]
fn a_text_is_there_for_its_path_alone_and_as_long_as_it_is_pending() {
    let challenges = Arc::new(Challenges::default());
    let text = |path: &str| challenges.text(path.as_bytes()).map(|text| text.to_string());
    assert_eq!(text("/.well-known/acme-challenge/abc"), None);
    let first = challenges.add_text("abc", "abc.thumb");
    let second = challenges.add_text("def", "def.thumb");
    for (path, expected) in [
        ("/.well-known/acme-challenge/abc", Some("abc.thumb")),
        ("/.well-known/acme-challenge/def", Some("def.thumb")),
        ("/.well-known/acme-challenge/abc/", None),
        ("/.well-known/acme-challenge/ab", None),
        ("/.well-known/acme-challenge/", None),
        ("/.well-known/acme-challenge", None),
        ("/abc", None),
        ("/x/.well-known/acme-challenge/abc", None),
        ("", None),
    ] {
        assert_eq!(text(path).as_deref(), expected, "{path}");
    }
    assert_eq!(challenges.text(b"/.well-known/acme-challenge/\xff"), None);
    drop(first);
    assert_eq!(text("/.well-known/acme-challenge/abc"), None);
    assert!(text("/.well-known/acme-challenge/def").is_some());
    drop(second);
    assert!(challenges.pending.load().is_none(), "nothing is left to look in");
}

#[test]
fn a_handshake_is_for_one_protocol_and_one_name() {
    let challenges = Arc::new(Challenges::default());
    let is_answered =
        |name: &str, protocols: &[&[u8]]| challenges.handshake(&hello(name, protocols)).is_some();
    assert!(!is_answered("shop.example", &[ACME_TLS]));
    let (certificate, key) = certificate("shop.example");
    let pending = challenges.add_handshake("shop.example", certificate, key);
    let pending = pending.expect("it can be used");
    for (name, protocols, expected) in [
        ("shop.example", &[ACME_TLS][..], true),
        ("other.example", &[ACME_TLS], false),
        ("", &[ACME_TLS], false),
        ("shop.example", &[b"h2"], false),
        ("shop.example", &[], false),
        ("shop.example", &[ACME_TLS, b"h2"], false),
        ("shop.example", &[b"h2", ACME_TLS], false),
    ] {
        assert_eq!(is_answered(name, protocols), expected, "{name} {protocols:?}");
    }
    let config = challenges.handshake(&hello("shop.example", &[ACME_TLS])).expect("pending");
    assert_eq!(config.alpn_protocols, [ACME_TLS]);
    drop(pending);
    assert!(!is_answered("shop.example", &[ACME_TLS]));
}

#[test]
fn a_process_that_hands_over_goes_on_answering() {
    let challenges: Arc<Challenges> = Arc::default();
    let text = || challenges.text(b"/.well-known/acme-challenge/abc");
    drop(challenges.add_text("abc", "abc.print"));
    assert_eq!(text(), None);
    let answered = challenges.add_text("abc", "abc.print");
    challenges.keep();
    drop(answered);
    assert_eq!(text().as_deref(), Some("abc.print"));
}

#[test]
fn the_end_of_an_answer_leaves_the_one_in_its_place() {
    let challenges: Arc<Challenges> = Arc::default();
    let handshake = || {
        let (certificate, key) = certificate("shop.example");
        challenges.add_handshake("shop.example", certificate, key).expect("it is sound")
    };
    let first = (challenges.add_text("abc", "abc.print"), handshake());
    let second = (challenges.add_text("abc", "abc.print"), handshake());
    drop(first);
    let is_answered = || {
        let hello = hello("shop.example", &[ACME_TLS]);
        let text = challenges.text(b"/.well-known/acme-challenge/abc");
        (text.is_some(), challenges.handshake(&hello).is_some())
    };
    assert_eq!(is_answered(), (true, true));
    drop(second);
    assert_eq!(is_answered(), (false, false));
}
