//! Independent decoders: every encoded body goes through Python's zlib and gzip, and through curl's
//! decoders, and must decode to the original. `WEIR_ORACLE_CASES` sets the number of bodies.
//!
//! curl requests from a server in this test, which returns the encoded bytes with their
//! Content-Encoding, several bodies per run of curl. A coding that this curl does not support is
//! skipped with a message.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use support::{Case, random_case};
use weir_compression::{Coding, Pool};
use weir_testing::Random;

const CASES_DEFAULT: u64 = 200;

/// Cases that are generated, checked and dropped together.
const BATCH: u64 = 200;

const BODY_BYTES_MAX: usize = 60_000;

/// Reads the output of [`for_python`]; the decoders get the encoded bytes in pieces of several
/// sizes.
const PYTHON: &str = r#"
import gzip, struct, sys, zlib
data = sys.stdin.buffer
count = 0
while True:
    head = data.read(8)
    if not head:
        break
    body_bytes, encoded_bytes = struct.unpack("<II", head)
    body, encoded = data.read(body_bytes), data.read(encoded_bytes)
    assert gzip.decompress(encoded) == body, f"gzip, case {count}"
    decoder = zlib.decompressobj(wbits=31)
    piece = (1, 7, 1000, 1 << 20)[count % 4]
    found = b"".join(decoder.decompress(encoded[at:at + piece]) for at in range(0, len(encoded), piece))
    assert found == body and decoder.eof and not decoder.unused_data, f"zlib, case {count}"
    count += 1
print(count)
"#;

/// A folder of this test run; removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("weir-oracle-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Python's input: lengths, body and encoded body of every gzip case.
fn for_python(cases: &[Case]) -> (Vec<u8>, usize) {
    let (mut out, mut count) = (Vec::new(), 0);
    for case in cases.iter().filter(|case| case.coding == Coding::Gzip) {
        for bytes in [&case.body, &case.encoded] {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(&case.body);
        out.extend_from_slice(&case.encoded);
        count += 1;
    }
    (out, count)
}

/// The number of correctly decoded cases: all, otherwise Python fails.
fn check_with_python(cases: &[Case]) -> usize {
    let (input, count) = for_python(cases);
    let mut python = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    python.stdin.take().expect("a pipe").write_all(&input).expect("Python reads");
    let output = python.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "Python does not agree");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), count.to_string());
    count
}

/// Answers `GET /NUMBER` with that case; a connection may send several requests.
fn serve(client: TcpStream, cases: &[Case]) -> std::io::Result<()> {
    let mut out = client.try_clone()?;
    let mut lines = BufReader::new(client).lines();
    while let Some(line) = lines.next() {
        let line = line?;
        let path = line.split(' ').nth(1).unwrap_or_default();
        let case = &cases[path[1..].parse::<usize>().expect("curl asks for a case")];
        while !lines.next().transpose()?.unwrap_or_default().is_empty() {}
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {}\r\nContent-Length: {}\r\n\r\n",
            case.coding.name(),
            case.encoded.len()
        );
        out.write_all(&[head.as_bytes(), &case.encoded].concat())?;
    }
    Ok(())
}

/// The codings that this curl decodes.
fn codings_of_curl() -> Vec<Coding> {
    let output = Command::new("curl").arg("--version").output().expect("curl is there");
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let features = version.lines().find(|line| line.starts_with("Features:")).unwrap_or_default();
    let knows = |word: &str| features.split(' ').any(|feature| feature == word);
    let words = [(Coding::Gzip, "libz"), (Coding::Zstd, "zstd"), (Coding::Brotli, "brotli")];
    words.into_iter().filter(|(_, word)| knows(word)).map(|(coding, _)| coding).collect()
}

/// The number of cases that curl decoded correctly, in all codings that it supports; panics on a wrong result.
fn check_with_curl(cases: &Arc<Vec<Case>>, codings: &[Coding], folder: &Path) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = Arc::clone(cases);
    let server = thread::spawn(move || {
        let (client, _) = listener.accept().expect("curl connects");
        serve(client, &served)
    });
    let asked: Vec<usize> =
        (0..cases.len()).filter(|&number| codings.contains(&cases[number].coding)).collect();
    let mut list = String::new();
    for &number in &asked {
        let file = folder.join(number.to_string());
        list += &format!("url = \"http://{address}/{number}\"\noutput = \"{}\"\n", file.display());
    }
    let list_file = folder.join("list");
    fs::write(&list_file, list).expect("a list");
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail-early", "--compressed", "--noproxy", "*"])
        .arg("--config")
        .arg(&list_file)
        .output()
        .expect("curl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.join().expect("it serves").expect("curl reads");
    for &number in &asked {
        // curl creates no file for an empty body.
        let found = fs::read(folder.join(number.to_string())).unwrap_or_default();
        let case = &cases[number];
        assert!(found == case.body, "case {number}: {:?} {:?}", case.coding, case.level);
        let _ = fs::remove_file(folder.join(number.to_string()));
    }
    asked.len()
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        weir_testing::skip(&format!("{program} is not installed"));
    }
    found
}

#[test]
fn others_decode_what_is_encoded() {
    let asked = std::env::var("WEIR_ORACLE_CASES").ok();
    let count = asked.map_or(CASES_DEFAULT, |count| count.parse().expect("a number of cases"));
    let (has_python, has_curl) = (is_there("python3"), is_there("curl"));
    let codings = if has_curl { codings_of_curl() } else { Vec::new() };
    for coding in Coding::ALL.into_iter().filter(|coding| has_curl && !codings.contains(coding)) {
        println!("SKIPPED: this curl does not decode {}", coding.name());
    }
    let folder = Folder::new();
    let mut pool = Pool::default();
    let (mut by_python, mut by_curl) = (0, 0);
    for batch in 0..count.div_ceil(BATCH) {
        let seeds = batch * BATCH..count.min((batch + 1) * BATCH);
        let cases: Vec<Case> = seeds
            .map(|seed| random_case(&mut Random::new(seed), &mut pool, BODY_BYTES_MAX))
            .collect();
        let cases = Arc::new(cases);
        if has_python {
            by_python += check_with_python(&cases);
        }
        if !codings.is_empty() {
            by_curl += check_with_curl(&cases, &codings, &folder.0);
        }
    }
    println!("{count} bodies: {by_python} decoded by Python, {by_curl} by curl");
}
