//! A real nginx as a member.

use std::net::SocketAddr;
use std::path::Path;

use crate::ports::Lease;
use crate::process::Process;
use crate::temp::TempDir;
use crate::tools;

/// The socket for the PROXY protocol, in its directory.
const PROXIED_SOCKET: &str = "proxied.sock";
/// The socket for TLS, in its directory.
const TLS_SOCKET: &str = "tls.sock";

/// An nginx that serves files, accepts uploads by PUT, and returns its name at `/name` and in every response. `/seen`
/// returns the information about the client that the request contains. `/post` responds at once, `/whole` after the
/// complete body.
#[derive(Debug)]
pub struct Nginx {
    process: Option<Process>,
    directory: TempDir,
    lease: Lease,
}

impl Nginx {
    /// Starts an nginx.
    pub fn start(name: &str) -> Self {
        let (lease, directory) = (Lease::new(), TempDir::new("nginx"));
        std::fs::create_dir(directory.path().join("files")).expect("a folder for files");
        directory.write("nginx.conf", configuration(name, lease.address(), directory.path()));
        let mut nginx = Self { process: None, directory, lease };
        nginx.restart();
        nginx
    }

    /// Starts nginx again on the same address after [`Nginx::kill`].
    pub fn restart(&mut self) {
        // A killed nginx leaves its sockets; at the first start there are none.
        let _ = std::fs::remove_file(self.proxied_socket());
        let _ = std::fs::remove_file(self.tls_socket());
        let directory = format!("{}/", self.directory.path().display());
        let program = tools::find("nginx").expect("nginx");
        let arguments = ["-p", &directory, "-e", "error.log", "-c", "nginx.conf"];
        let mut process =
            Process::start(&program, &arguments, &self.directory.path().join("output.log"));
        process.wait_until_listening(&[self.address()]);
        self.process = Some(process);
    }

    /// Kills nginx (SIGKILL).
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// The address for HTTP.
    pub fn address(&self) -> SocketAddr {
        self.lease.address()
    }

    /// The socket for the PROXY protocol. nginx responds with the client address from the PROXY header.
    pub fn proxied_socket(&self) -> std::path::PathBuf {
        self.directory.path().join(PROXIED_SOCKET)
    }

    /// The socket for TLS as `shop.example`. nginx responds with its name and the requested server name (SNI).
    pub fn tls_socket(&self) -> std::path::PathBuf {
        self.directory.path().join(TLS_SOCKET)
    }

    /// The folder of the served and uploaded files.
    pub fn files(&self) -> std::path::PathBuf {
        self.directory.path().join("files")
    }
}

fn configuration(name: &str, listen: SocketAddr, directory: &Path) -> String {
    let proxied = directory.join(PROXIED_SOCKET).display().to_string();
    let tls = directory.join(TLS_SOCKET).display().to_string();
    let (cert, key) = (crate::tls::file("shop-ec.crt"), crate::tls::file("shop-ec.key"));
    // Started as root, nginx would drop its privileges and lose access to the temporary folder.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log warn; {user}
        events {{ worker_connections 4096; }}
        http {{
            access_log off;
            client_body_temp_path client_body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;
            client_max_body_size 0;
            keepalive_requests 1000000;
            server {{
                listen {listen} backlog=4096;
                root files;
                add_header X-Member {name} always;
                location = /name {{ default_type text/plain; return 200 \"{name}\\n\"; }}
                location = /seen {{
                    default_type text/plain;
                    return 200 \"$http_x_forwarded_for|$http_x_internal|$request_uri\\n\";
                }}
                location = /healthz {{ return 200 \"ok\\n\"; }}
                location /post {{ return 200 \"posted\\n\"; }}
                location = /whole {{ proxy_pass http://{listen}/post; }}
                location / {{ dav_methods PUT DELETE; }}
            }}
            server {{
                listen unix:{proxied} proxy_protocol;
                location / {{ return 200 \"$proxy_protocol_addr $proxy_protocol_port\\n\"; }}
            }}
            server {{
                listen unix:{tls} ssl;
                ssl_certificate {cert}; ssl_certificate_key {key};
                location / {{ return 200 \"{name} $ssl_server_name\\n\"; }}
            }}
        }}
        "
    )
}
