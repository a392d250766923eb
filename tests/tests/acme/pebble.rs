//! Pebble, an ACME authority for tests, and a name server that resolves every name to this host.

use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;

use weir_tests::ports::Lease;
use weir_tests::process::Process;
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, tools};

/// A shell script that creates a certificate authority for Pebble's API, and a certificate for 127.0.0.1.
const MAKE: &str = r#"
set -e
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $key -days 30 -subj '/CN=Test authority' -keyout ca.key -out ca.crt
openssl req $key -subj '/CN=pebble' -keyout api.key -out api.csr
printf 'subjectAltName=IP:127.0.0.1\n' >api.ext
openssl x509 -req -in api.csr -CA ca.crt -CAkey ca.key -set_serial 2 -days 20 -extfile api.ext -out api.crt
"#;

/// A name that Pebble rejects.
pub const BLOCKED: &str = "blocked-domain.example";

/// Whether Pebble and its name server are installed. Otherwise prints the reason for the skip. They are not Debian packages,
/// so they may be missing in a strict run, too.
pub fn is_there() -> bool {
    let missing =
        ["pebble", "pebble-challtestsrv"].into_iter().find(|it| tools::find(it).is_none());
    if let Some(missing) = missing {
        eprintln!("SKIPPED: {missing} is not installed");
    }
    missing.is_none()
}

/// A running Pebble.
pub struct Pebble {
    // Dropped in this order: the processes before their files and ports.
    process: Process,
    _names: Process,
    folder: TempDir,
    api: Lease,
    management: Lease,
    _dns: Lease,
}

impl Pebble {
    /// Starts a Pebble that validates challenges at these ports.
    pub fn start(http_port: u16, tls_port: u16) -> Self {
        Self::start_with(http_port, tls_port, serde_json::json!({}))
    }

    /// Starts a Pebble with further settings.
    pub fn start_with(http_port: u16, tls_port: u16, more: serde_json::Value) -> Self {
        let (api, management, dns) = (Lease::new(), Lease::new(), free_for_datagrams());
        let folder = TempDir::new("pebble");
        tools::run(Command::new("sh").args(["-c", MAKE]).current_dir(folder.path()));
        let file = |name: &str| folder.path().join(name);
        let mut config = serde_json::json!({ "pebble": {
            "listenAddress": api.address().to_string(),
            "managementListenAddress": management.address().to_string(),
            "certificate": file("api.crt"),
            "privateKey": file("api.key"),
            "httpPort": http_port,
            "tlsPort": tls_port,
            "domainBlocklist": [BLOCKED],
            "retryAfter": { "authz": 1, "order": 1 },
            "profiles": {
                "default": { "description": "90 days", "validityPeriod": 7_776_000 },
                "shortlived": { "description": "a day", "validityPeriod": 86_400 },
            },
        }});
        for (key, value) in more.as_object().expect("settings") {
            config["pebble"][key] = value.clone();
        }
        let config = folder.write("pebble.json", config.to_string());
        let names = name_server(&dns, &file("names.log"));
        let pebble = tools::find("pebble").expect("pebble");
        let env = tools::find("env").expect("env (coreutils)");
        let resolver = dns.address().to_string();
        let arguments = [
            "PEBBLE_VA_NOSLEEP=1",
            "PEBBLE_AUTHZREUSE=0",
            // It rejects this percentage of good nonces. A client tries three times, so with the default of 5 one request in 8,000
            // fails, and its order waits minutes for the next try.
            "PEBBLE_WFE_NONCEREJECT=1",
            &pebble.to_string_lossy(),
            "-config",
            &config.to_string_lossy(),
            "-dnsserver",
            &resolver,
        ];
        let mut process = Process::start(&env, &arguments, &file("pebble.log"));
        process.wait_until_listening(&[api.address(), management.address()]);
        Self { process, _names: names, folder, api, management, _dns: dns }
    }

    /// The configuration section for this authority.
    pub fn section(&self, more: &str) -> String {
        let (api, ca) = (self.api.address(), self.folder.path().join("ca.crt"));
        let ca = ca.display();
        format!(
            "acme: {{ directory: \"https://{api}/dir\", agree_to_terms: true, ca: {ca}, {more} }}"
        )
    }

    /// A file with the root certificate of the issued certificates.
    pub fn root(&self) -> String {
        let root = self.curl(&[&format!("https://{}/roots/0", self.management.address())]);
        self.folder.write("root.pem", root).to_string_lossy().into_owned()
    }

    /// The number of orders that Pebble has accepted. Pebble also rejects some requests at random with a bad-nonce error.
    pub fn orders(&self) -> usize {
        self.process.output().matches("Added order \"").count()
    }

    /// Sets the renewal window of this certificate, in PEM, to the past, so that it is renewed at once.
    pub fn ask_for_renewal(&self, certificate: &str) {
        let window =
            r#"{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}"#;
        let body = serde_json::json!({ "Certificate": certificate, "ARIResponse": window });
        let url = format!("https://{}/set-renewal-info/", self.management.address());
        self.curl(&["--data", &body.to_string(), &url]);
    }

    fn curl(&self, arguments: &[&str]) -> String {
        let ca = self.folder.path().join("ca.crt");
        let mut command = Command::new("curl");
        command.args(["-sS", "--fail", "--max-time", "30", "--cacert"]).arg(ca);
        tools::run(command.args(arguments))
    }
}

/// Leases a port that is free for UDP, too.
fn free_for_datagrams() -> Lease {
    loop {
        let lease = Lease::new();
        if UdpSocket::bind(lease.address()).is_ok() {
            return lease;
        }
    }
}

/// Starts a name server that answers each address query with 127.0.0.1.
fn name_server(at: &Lease, log: &Path) -> Process {
    let program = tools::find("pebble-challtestsrv").expect("pebble-challtestsrv");
    let dns = at.address().to_string();
    let mut arguments = vec!["-dnsserver", &dns, "-defaultIPv4", "127.0.0.1"];
    for off in ["-defaultIPv6", "-http01", "-https01", "-tlsalpn01", "-doh", "-management"] {
        arguments.extend([off, ""]);
    }
    // The management server cannot be disabled, so it listens on any free port.
    let place = arguments.len() - 1;
    arguments[place] = "127.0.0.1:0";
    let process = Process::start(&program, &arguments, log);
    let is_bound = || UdpSocket::bind(at.address()).is_err();
    eventually("the name server listens", STEP_TIMEOUT, is_bound);
    process
}
