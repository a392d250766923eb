//! HAProxy as a client and as a member. It reports its view of the connection in a header and in a page.

use std::net::SocketAddr;

use weir_tests::client::Client;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::temp::TempDir;
use weir_tests::{tls, tools};

use super::{Cell, Handshake, Key, Shown, Told, Version, after, protocol, shown};

const DEFAULTS: &str = "global\n nbthread 1\ndefaults\n mode http\n \
                        timeout connect 5s\n timeout client 30s\n timeout server 30s\n";

/// A file with certificate and key, as HAProxy requires.
fn pem(name: &str, folder: &TempDir) -> String {
    let read = |end| std::fs::read_to_string(tls::file(&format!("{name}.{end}")));
    let both = read("crt").expect("a certificate") + &read("key").expect("a key");
    folder.write(&format!("{name}.pem"), both).to_string_lossy().into_owned()
}

/// The configuration of HAProxy as a member at this address.
pub fn member(
    at: SocketAddr,
    version: Version,
    key: Key,
    is_storing: bool,
    folder: &TempDir,
) -> String {
    let pem = pem(key.certificate(), folder);
    let (ca, version) = (tls::file("authorities.crt"), version.name());
    let tickets = if is_storing { "no-tls-tickets" } else { "" };
    let seen =
        "%[ssl_fc_protocol] %[req.ver] %[ssl_fc_cipher] %[ssl_fc_is_resumed] [%[ssl_c_s_dn]]";
    format!(
        "{DEFAULTS}frontend member\n \
         bind {at} ssl crt {pem} ca-file {ca} verify optional alpn h2,http/1.1 {tickets} \
         ssl-min-ver TLSv{version} ssl-max-ver TLSv{version}\n \
         http-request return status 200 content-type text/plain lf-string \"{seen}\"\n"
    )
}

/// Parses the report in the page of the member.
pub fn told_by_member(page: &str) -> Told {
    let words: Vec<&str> = page.splitn(5, ' ').collect();
    Told {
        version: after("TLSv", words[0]).and_then(Version::of),
        key: Key::of_suite(words[2]),
        protocol: protocol(words[1] == "2.0"),
        shown: shown(words[4] == "[/CN=A client]"),
        resumed: Some(words[3] == "1"),
    }
}

/// HAProxy as a client. It forwards each request on a new connection.
pub struct Gateway {
    _process: Process,
    _folder: TempDir,
    lease: Lease,
}

impl Gateway {
    /// Starts HAProxy in front of these servers. The number in the path selects the cell.
    pub fn start(servers: &[SocketAddr], cells: &[Cell]) -> Self {
        let (lease, folder) = (Lease::new(), TempDir::new("interop"));
        let identity = format!("crt {}", pem("client", &folder));
        let seen = "%[ssl_bc_protocol] %[ssl_bc_alpn] %[ssl_bc_cipher] %[ssl_bc_is_resumed]";
        let mut frontend = format!(
            "frontend client\n bind {}\n http-response set-header X-Told \"{seen}\"\n",
            lease.address()
        );
        let mut backends = String::new();
        for (number, cell) in cells.iter().enumerate() {
            let (at, version) = (servers[cell.server()], cell.version.name());
            let identity = if cell.shown == Shown::Yes { &identity } else { "" };
            frontend += &format!(" use_backend cell-{number} if {{ path /{number} }}\n");
            backends += &format!(
                "backend cell-{number}\n server weir {at} max-reuse 0 ssl verify required \
                 ca-file {} verifyhost shop.example sni str(shop.example) alpn {} {identity} \
                 ssl-min-ver TLSv{version} ssl-max-ver TLSv{version}\n",
                tls::file("root.crt"),
                cell.protocol.alpn(),
            );
        }
        let file = folder.write("haproxy.cfg", format!("{DEFAULTS}{frontend}{backends}"));
        let program = tools::find("haproxy").expect("haproxy");
        let arguments = ["-db", "-f", &file.to_string_lossy()];
        let log = folder.path().join("output.log");
        let mut process = Process::start(&program, &arguments, &log);
        process.wait_until_listening(&[lease.address()]);
        Self { _process: process, _folder: folder, lease }
    }

    /// Sends the request of the cell with this number, twice if the cell is about a second handshake.
    pub fn talk(&self, number: usize, cell: &Cell) -> Told {
        // Requests of one client would share a connection.
        let ask = || Client::connect(self.lease.address()).get(&format!("/{number}"));
        let mut response = ask();
        if cell.handshake != Handshake::Full {
            response = ask();
        }
        assert_eq!(response.assert_status(200).text(), "here");
        let told = response.head.field("x-told").expect("what it saw");
        let words: Vec<&str> = told.split(' ').collect();
        Told {
            version: after("TLSv", words[0]).and_then(Version::of),
            key: Key::of_suite(words[2]),
            protocol: protocol(words[1] == "h2"),
            shown: None,
            resumed: Some(words[3] == "1"),
        }
    }
}
