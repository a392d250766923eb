//! Writes the initial inputs of fuzz targets: `seeds CORPUS` fills `CORPUS/TARGET` for each target that reads them. Most
//! inputs are the conformance cases of `crates/http`, one file per case, and the examples of `docs/expressions.md`, one file
//! per line.

#[path = "../../crates/http/tests/cases/mod.rs"]
mod cases;

#[path = "../../crates/http/tests/invariants/resolvers.rs"]
#[allow(dead_code, reason = "only the spellings are wanted")]
mod resolvers;

#[path = "../../crates/compression/tests/support/accept_encoding.rs"]
#[allow(dead_code, reason = "only the values are wanted")]
mod accept_encoding;

#[path = "../../crates/core/tests/invariants/mod.rs"]
#[allow(dead_code, reason = "only the datagrams are wanted")]
mod datagrams;

#[path = "../../crates/waf/tests/invariants/mod.rs"]
mod waf;

// This program is built with the instrumentation of the fuzz targets, so it needs their coverage runtime.
extern crate libfuzzer_sys as _;

use std::path::Path;
use std::sync::Arc;
use std::{env, fs, io};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

fn write(folder: &Path, inputs: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, input) in inputs.enumerate() {
        fs::write(folder.join(format!("case-{number:03}")), input)?;
    }
    Ok(())
}

/// A request for each spelling of a path.
fn spelled_requests() -> impl Iterator<Item = Vec<u8>> {
    let request = |path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    resolvers::SPELLINGS.into_iter().map(request)
}

/// The lines of the document's code blocks.
fn expressions() -> impl Iterator<Item = Vec<u8>> {
    let document = include_str!("../../docs/expressions.md");
    let blocks = document.split("```").skip(1).step_by(2);
    // The first line contains the language.
    blocks.flat_map(|block| block.lines().skip(1)).map(|line| line.as_bytes().to_vec())
}

/// ClientHello messages of each TLS version, in one record and in several.
fn client_hellos() -> Vec<Vec<u8>> {
    let mut hellos = Vec::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut config = ClientConfig::builder_with_protocol_versions(&[version])
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let name = ServerName::try_from("a.shop.example").expect("a name");
        let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut hello = Vec::new();
        client.write_tls(&mut hello).expect("a vector");
        let records = hello[5..]
            .chunks(40)
            .flat_map(|fragment| [&[22, 3, 1, 0, fragment.len() as u8], fragment].concat());
        hellos.push(records.collect());
        hellos.push(hello);
    }
    hellos
}

/// Bytes from a client to a worker: requests, and frames after the HTTP/2 preface.
fn client_bytes() -> impl Iterator<Item = Vec<u8>> {
    let requests =
        cases::requests().into_iter().map(|case| [&[0, 0, 0, 1][..], &case.received].concat());
    requests.chain(frames(0).map(|frames| [&[1, 4, 0, 1][..], &frames].concat()))
}

/// Bytes from a member to a worker.
fn member_bytes() -> impl Iterator<Item = Vec<u8>> {
    let responses =
        cases::received_responses().map(|received| [&[0, 0, 0, 1][..], &received].concat());
    responses.chain(frames(1).map(|frames| [&[1, 8, 0, 1][..], &frames].concat()))
}

/// The frames in the cases for connections of this role. The first two bytes of a case select how it is read, and are
/// removed.
fn frames(role: u8) -> impl Iterator<Item = Vec<u8>> {
    let is_raw = move |case: &Vec<u8>| case[0] & 1 == role && case[0] & 4 == 0;
    cases::h2::connections().filter(is_raw).map(|case| case[2..].to_vec())
}

/// Writes the inputs of the firewall's targets.
fn waf_inputs(corpus: &Path) -> io::Result<()> {
    use waf::seeds;
    let texts = || seeds::TEXTS.into_iter().map(<[u8]>::to_vec);
    write(
        &corpus.join("seclang"),
        seeds::RULES.into_iter().map(|rules| rules.as_bytes().to_vec()),
    )?;
    write(&corpus.join("waf_transformations"), texts())?;
    write(&corpus.join("waf_injection"), texts())?;
    write(&corpus.join("waf_multipart"), seeds::MULTIPART.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("waf_json"), seeds::JSON.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("waf_xml"), seeds::XML.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("waf_content"), seeds::CONTENT.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("waf_nested"), seeds::NESTED.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("waf_encoded"), seeds::encoded().into_iter())?;
    write(&corpus.join("waf_request"), seeds::REQUESTS.into_iter().map(<[u8]>::to_vec))
}

fn main() -> io::Result<()> {
    let corpus = env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: seeds CORPUS"))?;
    let corpus = Path::new(&corpus);
    let requests = cases::requests().into_iter().map(|case| case.received);
    write(&corpus.join("request_head"), requests.chain(spelled_requests()))?;
    write(&corpus.join("response_head"), cases::received_responses())?;
    write(&corpus.join("client_hello"), client_hellos().into_iter())?;
    write(&corpus.join("expression"), expressions())?;
    write(&corpus.join("chunked"), cases::received_bodies())?;
    write(&corpus.join("cookies"), cases::cookies::FIELDS.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("forwarded"), cases::forwarded::FIELDS.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("proxy_protocol"), cases::proxy_protocol::headers().into_iter())?;
    write(&corpus.join("hpack"), cases::h2_messages::blocks())?;
    write(&corpus.join("h2_frames"), cases::h2::connections())?;
    write(&corpus.join("client_bytes"), client_bytes())?;
    write(&corpus.join("member_bytes"), member_bytes())?;
    write(&corpus.join("quic_header"), datagrams::QUIC.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("sip_header"), datagrams::SIP.into_iter().map(<[u8]>::to_vec))?;
    write(&corpus.join("radius_attribute"), datagrams::RADIUS.into_iter().map(<[u8]>::to_vec))?;
    let all = [&datagrams::QUIC[..], &datagrams::SIP, &datagrams::RADIUS].concat();
    write(&corpus.join("datagram"), all.into_iter().map(<[u8]>::to_vec))?;
    waf_inputs(corpus)?;
    let fields = accept_encoding::FIELDS.into_iter().map(<[u8]>::to_vec);
    write(&corpus.join("accept_encoding"), fields)
}
