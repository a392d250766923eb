//! Bodies of any kind, with any framing and cut at any position. After compression by weir, the decoders of Rust, Python and
//! curl must restore the original. `WEIR_TEST_ORACLE_CASES` sets the number of bodies.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weir_testing::{Random, bodies, decode};
use weir_tests::client::Response;
use weir_tests::member::{Exchange, Member, Then};
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::temp::TempDir;
use weir_tests::tools;

const CASES_DEFAULT: u64 = 270;
/// Maximum number of cases in memory at a time.
const BATCH: usize = 250;
/// Number of concurrent client connections.
const CLIENTS: usize = 2;
const CODINGS: [&str; 3] = ["gzip", "zstd", "br"];
const LEVELS: u64 = 9;
/// Minimum size of a compressed body, if the size is known.
const MIN_SIZE_BYTES: usize = 1024;
const BODY_BYTES_MAX: usize = 300_000;
/// Sizes at which weir changes its method: worth compressing, copied, encoded at once, read at once, encoded as a whole.
const EDGES: [usize; 8] = [1, 1024, 4096, 16 << 10, 24 << 10, 48 << 10, 64 << 10, 128 << 10];
/// Maximum number of pieces of a response, and the maximum pause between two pieces.
const SENDS_MAX: usize = 24;
const PAUSE_MS_MAX: usize = 3;

/// The framing of the member's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    UntilClose,
}

/// A response of the member, and the coding that its client accepts. The number of the case determines all headers.
struct Case {
    number: u64,
    coding: &'static str,
    framing: Framing,
    is_event_stream: bool,
    has_trailers: bool,
    body: Vec<u8>,
    random: Random,
}

impl Case {
    fn new(number: u64) -> Self {
        let mut random = Random::new(number);
        let coding = CODINGS[random.below(CODINGS.len())];
        let is_event_stream = random.percent(10);
        let framing = match random.below(3) {
            0 if !is_event_stream => Framing::Length,
            1 => Framing::UntilClose,
            _ => Framing::Chunked,
        };
        let body = if is_event_stream { events(&mut random) } else { body(&mut random) };
        let has_trailers = framing == Framing::Chunked && random.percent(10);
        Self { number, coding, framing, is_event_stream, has_trailers, body, random }
    }

    fn level(&self) -> u64 {
        self.number % LEVELS + 1
    }

    fn is_too_short(&self) -> bool {
        self.framing == Framing::Length && self.body.len() < MIN_SIZE_BYTES
    }

    fn about(&self) -> String {
        let (number, level, coding) = (self.number, self.level(), self.coding);
        format!("case {number}: {coding} {level}, {:?}, {} bytes", self.framing, self.body.len())
    }

    /// The response in bytes.
    fn message(&mut self) -> Vec<u8> {
        let kind = if self.is_event_stream { "text/event-stream" } else { "text/html" };
        let mut out = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n").into_bytes();
        match self.framing {
            Framing::Length => {
                write!(out, "Content-Length: {}\r\n\r\n", self.body.len()).expect("room");
                out.extend_from_slice(&self.body);
            }
            Framing::UntilClose => {
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(&self.body);
            }
            Framing::Chunked => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                self.write_chunks(&mut out);
            }
        }
        out
    }

    fn write_chunks(&mut self, out: &mut Vec<u8>) {
        let chunk_bytes_max = [10, 1_000, 20_000, 200_000][self.random.below(4)];
        let chunk_bytes_max = self.body.len().div_ceil(1_000).max(chunk_bytes_max);
        let mut rest = &self.body[..];
        while !rest.is_empty() {
            let (chunk, after) =
                rest.split_at(rest.len().min(1 + self.random.below(chunk_bytes_max)));
            let extension = if self.random.percent(5) { ";name=\"value\"" } else { "" };
            write!(out, "{:x}{extension}\r\n", chunk.len()).expect("room");
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
            rest = after;
        }
        out.extend_from_slice(if self.has_trailers {
            b"0\r\nX-Trailer: there\r\n\r\n"
        } else {
            b"0\r\n\r\n"
        });
    }

    /// Sends the response in pieces that are cut at random positions.
    fn send(&mut self, exchange: &mut Exchange) -> std::io::Result<Then> {
        let message = self.message();
        let sends = 1 + self.random.below(SENDS_MAX);
        let mut cuts: Vec<usize> =
            (1..sends).map(|_| self.random.below(message.len() + 1)).collect();
        cuts.push(message.len());
        cuts.sort_unstable();
        let mut sent = 0;
        for cut in cuts {
            exchange.send(&message[sent..cut])?;
            sent = cut;
            if self.random.percent(30) {
                thread::sleep(Duration::from_millis(self.random.below(PAUSE_MS_MAX + 1) as u64));
            }
        }
        Ok(if self.framing == Framing::UntilClose { Then::Close } else { Then::KeepAlive })
    }
}

fn body(random: &mut Random) -> Vec<u8> {
    let bytes = match random.below(10) {
        0 => return bodies::body(random, BODY_BYTES_MAX),
        1..=3 => EDGES[random.below(EDGES.len())] + random.below(3) - 1,
        _ => return bodies::body(random, 50_000),
    };
    match random.below(3) {
        0 => bodies::noise(random, bytes),
        1 => bodies::rows(random.next(), bytes),
        _ => bodies::html(random.next(), bytes),
    }
}

fn events(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    for number in 0..random.below(60) {
        let _ = write!(text, "id: {number}\ndata: {{\"price\": {}}}\n\n", random.below(1_000));
    }
    text.into_bytes()
}

/// A received response with its case.
struct Answered {
    case: Case,
    coding: Option<String>,
    body: Vec<u8>,
}

/// The number of checked responses by decoder.
#[derive(Debug, Default)]
struct Tally {
    fetched: usize,
    compressed: usize,
    /// Not compressed because of load.
    left: usize,
    by_python: usize,
    by_curl: usize,
}

/// Requests each case over concurrent connections. The pauses keep the load low, because weir lowers the compression level
/// under load.
fn fetch(proxy: &Proxy, numbers: &[u64]) -> Vec<Answered> {
    thread::scope(|scope| {
        let share = numbers.len().div_ceil(CLIENTS).max(1);
        let clients: Vec<_> = numbers
            .chunks(share)
            .map(|numbers| {
                scope.spawn(move || {
                    let mut client = proxy.client();
                    let fetch_one = |&number: &u64| {
                        let case = Case::new(number);
                        let (coding, asked) = (case.coding, Instant::now());
                        client.send(format!(
                            "GET /{number} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n"
                        ));
                        let response = client.response();
                        thread::sleep(asked.elapsed());
                        answered(case, response)
                    };
                    numbers.iter().map(fetch_one).collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    })
}

fn answered(case: Case, response: Response) -> Answered {
    let about = case.about();
    assert!(response.status == 200 && response.complete, "{about}: {response:?}");
    let trailer = response.trailers.field("x-trailer");
    assert_eq!(trailer.is_some(), case.has_trailers, "{about}");
    let coding = response.head.field("content-encoding").map(str::to_owned);
    let varies = response.head.has_token("vary", "accept-encoding");
    assert_eq!(varies, !case.is_too_short(), "{about}: {:?}", response.head);
    assert!(coding.as_deref().is_none_or(|coding| coding == case.coding), "{about}: {coding:?}");
    assert!(coding.is_none() || !case.is_too_short(), "{about}: {coding:?}");
    Answered { case, coding, body: response.body }
}

/// Checks the responses with the decoders of this workspace.
fn check_here(answered: &[Answered], tally: &mut Tally) {
    for Answered { case, coding, body } in answered {
        tally.fetched += 1;
        let Some(coding) = coding else {
            assert!(*body == case.body, "{}", case.about());
            tally.left += usize::from(!case.is_too_short());
            continue;
        };
        tally.compressed += 1;
        let (decoded, is_whole) = decode(coding, body);
        assert!(is_whole && decoded == case.body, "{}", case.about());
    }
}

/// The program of [`check_with_python`]. Its input has lengths, body and encoded body of each case. The gzip decoder
/// receives pieces of several sizes.
const PYTHON: &str = r#"
import gzip, struct, sys, zlib
brotli = zstandard = None
try:
    import brotli
except ImportError:
    pass
try:
    import zstandard
except ImportError:
    pass

def decoded(coding, encoded, count):
    if coding == 0:
        assert gzip.decompress(encoded) == body, f"gzip, case {number}"
        decoder = zlib.decompressobj(wbits=31)
        piece = (1, 7, 1000, 1 << 20)[count % 4]
        pieces = range(0, len(encoded), piece)
        found = b"".join(decoder.decompress(encoded[at:at + piece]) for at in pieces)
        assert decoder.eof and not decoder.unused_data, f"zlib, case {number}"
        return found
    if coding == 1:
        return zstandard.ZstdDecompressor().decompressobj().decompress(encoded) if zstandard else None
    return brotli.decompress(encoded) if brotli else None

data = sys.stdin.buffer
count = 0
while head := data.read(20):
    number, coding, body_bytes, encoded_bytes = struct.unpack("<QIII", head)
    body, encoded = data.read(body_bytes), data.read(encoded_bytes)
    found = decoded(coding, encoded, count)
    if found is not None:
        assert found == body, f"case {number}"
        count += 1
print(count)
"#;

/// Checks the responses with Python, in the codings that this Python supports. Returns their number.
fn check_with_python(python: &Path, answered: &[Answered]) -> usize {
    let mut input = Vec::new();
    for Answered { case, coding, body } in answered {
        let Some(index) = CODINGS.iter().position(|name| coding.as_deref() == Some(*name)) else {
            continue;
        };
        input.extend_from_slice(&case.number.to_le_bytes());
        for number in [index, case.body.len(), body.len()] {
            input.extend_from_slice(&(number as u32).to_le_bytes());
        }
        input.extend_from_slice(&case.body);
        input.extend_from_slice(body);
    }
    let mut python = Command::new(python)
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    python.stdin.take().expect("a pipe").write_all(&input).expect("Python reads");
    let output = python.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "Python does not agree");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

/// The Python interpreter with the most codings: the one in PATH or the system's.
fn python() -> Option<PathBuf> {
    let missing = |python: &PathBuf| {
        let is_missing = |module: &&str| {
            let import = format!("import {module}");
            let result = Command::new(python).args(["-c", &import]).stderr(Stdio::null()).status();
            !result.is_ok_and(|status| status.success())
        };
        ["zlib", "brotli", "zstandard"].into_iter().filter(is_missing).collect::<Vec<_>>()
    };
    let candidates = [tools::find("python3"), Some(PathBuf::from("/usr/bin/python3"))];
    let found = candidates.into_iter().flatten().filter(|python| python.is_file());
    let (missing, python) =
        found.map(|python| (missing(&python), python)).min_by_key(|(missing, _)| missing.len())?;
    for module in missing {
        println!("SKIPPED: this Python has no {module}");
    }
    Some(python)
}

/// The content codings that this curl supports.
fn codings_of_curl() -> Vec<&'static str> {
    let version = tools::run(Command::new("curl").arg("--version"));
    let features = version.lines().find(|line| line.starts_with("Features:")).unwrap_or_default();
    let knows = |word: &str| features.split(' ').any(|feature| feature == word);
    let words = [("gzip", "libz"), ("zstd", "zstd"), ("br", "brotli")];
    words.into_iter().filter(|(_, word)| knows(word)).map(|(coding, _)| coding).collect()
}

/// Fetches and checks the cases with curl, in the codings that this curl supports. Returns their number.
fn check_with_curl(proxy: &Proxy, codings: &[&str], answered: &[Answered]) -> usize {
    let folder = TempDir::new("oracle");
    let mut checked = 0;
    for coding in codings {
        let cases = answered.iter().map(|answered| &answered.case);
        let cases: Vec<&Case> = cases.filter(|case| case.coding == *coding).collect();
        if cases.is_empty() {
            continue;
        }
        let mut list = String::new();
        for Case { number, .. } in &cases {
            let (url, file) =
                (proxy.url(&format!("/{number}")), folder.path().join(number.to_string()));
            let _ = writeln!(list, "url = \"{url}\"\noutput = \"{}\"", file.display());
        }
        let list = folder.write("list", list);
        let accept = format!("Accept-Encoding: {coding}");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail-early", "--max-time", "20", "--compressed", "--noproxy", "*"]);
        tools::run(curl.args(["-H", &accept, "--config"]).arg(list));
        for case in cases {
            let file = folder.path().join(case.number.to_string());
            // curl creates no file for an empty body.
            let found = std::fs::read(file).unwrap_or_default();
            assert!(found == case.body, "curl, {}", case.about());
            checked += 1;
        }
    }
    checked
}

#[test]
fn what_is_decoded_is_what_the_member_sent() {
    let asked = std::env::var("WEIR_TEST_ORACLE_CASES").ok();
    let count = asked.map_or(CASES_DEFAULT, |count| count.parse().expect("a number of cases"));
    let member = Member::new(|exchange| {
        let number = exchange.request.target()[1..].parse().expect("the number of a case");
        Case::new(number).send(exchange)
    });
    let setup = |level: u64| {
        let coding = |name: &str| format!("{name}: {{ level: {level} }}");
        let codings = [coding("gzip"), coding("zstd"), coding("brotli")].join(", ");
        Setup::new(&[member.address()]).virtual_server(&format!("compression: {{ {codings} }}"))
    };
    let python = tools::present("python3").then(python).flatten();
    let codings = if tools::present("curl") { codings_of_curl() } else { Vec::new() };
    // curl has a proxy of its own, because its load lowers the compression level.
    let (proxy, proxy_of_curl) = (Proxy::start(&setup(1)), Proxy::start(&setup(1)));
    let mut tally = Tally::default();
    for level in 1..=LEVELS {
        proxy.reload_and_wait(&setup(level));
        proxy_of_curl.reload_and_wait(&setup(level));
        let numbers: Vec<u64> = (0..count).filter(|number| number % LEVELS + 1 == level).collect();
        for numbers in numbers.chunks(BATCH) {
            let answered = fetch(&proxy, numbers);
            check_here(&answered, &mut tally);
            if let Some(python) = &python {
                tally.by_python += check_with_python(python, &answered);
            }
            tally.by_curl += check_with_curl(&proxy_of_curl, &codings, &answered);
        }
    }
    let skipped = proxy.metric("weir_compression_reduced_total", &["how=\"skipped\""]);
    let lowered = proxy.metric("weir_compression_reduced_total", &["how=\"level\""]);
    println!("{tally:?}, {lowered} at a lower level");
    assert!(tally.left as f64 <= skipped, "{tally:?}, skipped {skipped}");
    assert!(tally.compressed * 2 > tally.fetched, "{tally:?}");
}
