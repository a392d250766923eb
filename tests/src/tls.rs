//! TLS clients (curl and openssl), and the certificates of the examples.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::tools;

/// A file of `examples/tls`.
pub fn file(name: &str) -> String {
    format!("{}/../examples/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A certificate and its key in the form for `tls.certificates`.
pub fn pair(name: &str) -> String {
    format!("{{ cert: {}, key: {} }}", file(&format!("{name}.crt")), file(&format!("{name}.key")))
}

/// The key `tls:` with both certificates of `shop.example`, and further settings.
pub fn shop(more: &str) -> String {
    format!("tls: {{ certificates: [ {}, {} ], {more} }}", pair("shop-ec"), pair("shop-rsa"))
}

/// A curl command for `https://NAME`, resolved to this address.
pub fn curl(address: SocketAddr, name: &str) -> Command {
    let mut command = Command::new("curl");
    let to = format!("{name}:443:{}:{}", address.ip(), address.port());
    command.args(["-sS", "--max-time", "30", "--cacert", &file("root.crt"), "--connect-to", &to]);
    command
}

/// Output of curl for a path of `shop.example`.
#[track_caller]
pub fn get(address: SocketAddr, path: &str, arguments: &[&str]) -> String {
    let url = format!("https://shop.example{path}");
    let to = format!("shop.example:443:{}:{}", address.ip(), address.port());
    let mut command = Command::new("curl");
    let root = file("root.crt");
    command.args(["-sS", "--max-time", "30", "--cacert", &root, "--connect-to", &to]);
    tools::run(command.args(arguments).arg(url))
}

/// Runs a client that sends its input and ends when the server closes. Its standard input stays open until its output ends.
pub fn converse(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("piped");
    // An error means that the server has already closed.
    let _ = stdin.write_all(input);
    let mut stdout = Vec::new();
    child.stdout.take().expect("piped").read_to_end(&mut stdout).expect("a pipe");
    drop(stdin);
    let mut output = child.wait_with_output().expect("an end");
    output.stdout = stdout;
    output
}

/// Runs `openssl s_client` for `shop.example`. It sends `input` and ends when the server closes.
pub fn s_client(address: SocketAddr, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new("openssl");
    command
        .args(["s_client", "-connect", &address.to_string(), "-ign_eof"])
        .args(["-servername", "shop.example", "-CAfile", &file("root.crt")])
        .args(arguments);
    converse(&mut command, input)
}

/// Runs [`s_client`]. Returns its output and its errors as one text.
pub fn s_client_text(address: SocketAddr, arguments: &[&str], input: &[u8]) -> String {
    let output = s_client(address, arguments, input);
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// The bytes that `openssl s_client` sends before any response.
pub fn first_flight(arguments: &[&str]) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &address, "-servername", "shop.example"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl");
    let (mut stream, _) = listener.accept().expect("a connection");
    // The client sends no more and waits for a response, or has ended. Its first bytes may take long on a busy machine.
    stream.set_read_timeout(Some(crate::STEP_TIMEOUT)).expect("a timeout");
    let mut flight = vec![0; 1];
    stream.read_exact(&mut flight).expect("its first byte");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let _ = stream.read_to_end(&mut flight);
    drop(stream);
    child.wait().expect("an end");
    flight
}
