//! Members of common kinds, which report how they interpret a path.

use std::net::SocketAddr;

use weir_tests::apache;
use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::temp::TempDir;
use weir_tests::tools;

use crate::resolvers::Server;

/// The server program of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Nginx,
    Apache,
    Node,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Nginx, Self::Apache, Self::Node];

    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Apache => "apache2",
            Self::Node => "node",
        }
    }

    /// The model of how this program interprets paths.
    pub fn server(self) -> Server {
        match self {
            Self::Nginx => Server::Nginx,
            Self::Apache => Server::Apache,
            Self::Node => Server::Url,
        }
    }
}

/// A real server that responds to each request with the received path, a line end, and the decoded path.
pub struct Resolver {
    // Dropped in this order: the process before its folder and its port.
    _process: Process,
    _folder: TempDir,
    lease: Lease,
}

impl Resolver {
    pub fn start(kind: Kind) -> Self {
        let (lease, folder) = (Lease::new(), TempDir::new("resolver"));
        let run = |words: &[&str]| {
            let program = tools::find(kind.program()).expect("it is there");
            let mut process = Process::start(&program, words, &folder.path().join("output.log"));
            process.wait_until_listening(&[lease.address()]);
            process
        };
        let process = match kind {
            Kind::Nginx => {
                folder.write("nginx.conf", nginx(lease.address()));
                let at = format!("{}/", folder.path().display());
                run(&["-p", &at, "-e", "error.log", "-c", "nginx.conf"])
            }
            Kind::Apache => {
                let script = folder.write("resolve.lua", APACHE_SCRIPT);
                let map = format!("LuaMapHandler ^/ {}", script.display());
                apache::start(&lease, &folder, &["lua"], &map)
            }
            Kind::Node => {
                let file = folder.write("resolve.js", NODE_SCRIPT);
                run(&[&file.to_string_lossy(), &lease.address().port().to_string()])
            }
        };
        Self { _process: process, _folder: folder, lease }
    }

    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }
}

/// The response of a [`Resolver`].
#[derive(Debug)]
pub struct Resolved {
    /// The received path.
    pub received: String,
    /// The path that the member has resolved.
    pub path: Vec<u8>,
}

impl Resolved {
    pub fn read(body: &[u8]) -> Self {
        let end = body.iter().position(|byte| *byte == b'\n').expect("two lines");
        let received = String::from_utf8(body[..end].to_vec()).expect("ASCII");
        Self { received, path: body[end + 1..].to_vec() }
    }
}

fn nginx(listen: SocketAddr) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log crit;
        events {{ }}
        http {{
            access_log off;
            client_body_temp_path client_body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            keepalive_requests 1000000;
            default_type application/octet-stream;
            server {{
                listen {listen};
                location / {{ return 200 \"$request_uri\\n$uri\"; }}
            }}
        }}
        "
    )
}

const APACHE_SCRIPT: &str = r#"
function handle(r)
    r.content_type = "application/octet-stream"
    r:write(r.unparsed_uri .. "\n" .. r.uri)
    return apache2.OK
end
"#;

/// The Node server. It parses the target with `URL`, as in the documentation of Node's `http`.
const NODE_SCRIPT: &str = r#"
const http = require('http');
const decode = path => Buffer.from(
    path.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1');
http.createServer((request, response) => {
    const path = new URL('http://member' + request.url).pathname;
    response.end(Buffer.concat([Buffer.from(request.url + '\n'), decode(path)]));
}).listen(Number(process.argv[2]), '127.0.0.1');
"#;
