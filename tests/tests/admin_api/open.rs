//! A weir whose second admin listener is for other hosts, with TLS.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use weir_tests::member::Member;
use weir_tests::ports::Lease;
use weir_tests::proxy::{Proxy, Setup, weir_binary};
use weir_tests::temp::TempDir;
use weir_tests::tls;

/// weir with two admin listeners. The second one is for other hosts, with TLS.
pub struct Open {
    pub proxy: Proxy,
    pub member: Member,
    pub lease: Lease,
    pub files: TempDir,
}

impl Open {
    /// Starts it, and makes a certificate for the listener.
    pub fn start() -> Self {
        let member = Member::named("a");
        let proxy = Proxy::start(&Setup::new(&[member.address()]));
        let open =
            Self { proxy, member, lease: Lease::on_every_address(), files: TempDir::new("admin") };
        // A self-signed certificate, which clients trust.
        let (cert, key) = (open.path("admin.crt"), open.path("admin.key"));
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        command.args(["-nodes", "-days", "90", "-subj", "/CN=localhost"]);
        command.args(["-addext", "subjectAltName=DNS:localhost"]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        weir_tests::tools::run(command.args(["-keyout", &key, "-out", &cert]));
        open
    }

    /// A file of this test.
    pub fn path(&self, name: &str) -> String {
        self.files.path().join(name).to_string_lossy().into_owned()
    }

    /// Activates a configuration with these users.
    pub fn reload(&self, users: &str) {
        self.reload_with(users, "");
    }

    /// Activates a configuration with these users and these further lines.
    pub fn reload_with(&self, users: &str, top: &str) {
        let before = self.proxy.reloads("success");
        self.proxy.reload_text(&format!(
            "admin:\n  listen: [ \"{}\", \"0.0.0.0:{}\" ]\n  tls:\n    \
             certificates: [ {{ cert: {}, key: {} }} ]\n    \
             client_certificates: {{ ca: {}, mode: request }}\n  users:\n{users}\
             log:\n  access: {{ format: \"off\" }}\n  audit: {{ to: {} }}\n\
             virtual_servers: {{ main: {{ listen: \"{}\", pool: members }} }}\n\
             pools: {{ members: {{ members: [ {} ] }} }}\n{top}",
            self.proxy.admin_address(),
            self.lease.address().port(),
            self.path("admin.crt"),
            self.path("admin.key"),
            tls::file("authorities.crt"),
            self.path("audit.log"),
            self.proxy.address(),
            self.member.address(),
        ));
        weir_tests::eventually("the configuration is in force", weir_tests::STEP_TIMEOUT, || {
            self.proxy.reloads("success") > before
        });
    }

    /// `weir` with these arguments, over TLS.
    fn command(&self, arguments: &[&str]) -> Command {
        let address = format!("https://localhost:{}", self.lease.address().port());
        let mut command = Command::new(weir_binary());
        command.args(arguments).args(["--admin", &address, "--admin-ca", &self.path("admin.crt")]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs `weir` with these arguments over TLS. `token` is the name of the file with the token.
    pub fn weir(&self, token: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.args(["--token-file", &self.path(token)]).output().expect("the built command")
    }

    /// Runs `weir` with a client certificate of the examples.
    pub fn weir_certified(&self, name: &str, arguments: &[&str]) -> Output {
        let pair = ["crt", "key"].map(|end| {
            std::fs::read(tls::file(&format!("{name}.{end}"))).expect("a file of the examples")
        });
        let file = self.files.write(&format!("{name}.pem"), pair.concat());
        let mut command = self.command(arguments);
        command.args(["--admin-certificate".as_ref(), file.as_os_str()]);
        command.output().expect("the built command")
    }

    /// Starts `weir` with a token.
    pub fn begin(&self, token: &str, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.args(["--token-file", &self.path(token)]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the built command")
    }

    /// The answer of curl without credentials, and the status behind it.
    pub fn curl(&self, path: &str) -> String {
        let address = format!("https://localhost:{}{path}", self.lease.address().port());
        let mut command = Command::new("curl");
        command.args(["-s", "--cacert", &self.path("admin.crt"), "-w", "%{http_code}", &address]);
        weir_tests::tools::run(&mut command)
    }

    /// The lines of the audit log.
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Runs `weir token new`, and stores the token in this file. Returns the user's line for the configuration.
pub fn new_token(file: &Path, name: &str, role: &str) -> String {
    let mut command = Command::new(weir_binary());
    let made = command.args(["token", "new", "--name", name, "--role", role]).output();
    let made = made.expect("the built command");
    assert!(made.status.success(), "{made:?}");
    let token = String::from_utf8(made.stderr).expect("a token");
    assert!(token.starts_with("weir_"), "{token}");
    std::fs::write(file, token).expect("a file");
    let lines = String::from_utf8(made.stdout).expect("lines");
    let (head, line) = lines.split_at(lines.find("    ").expect("a user"));
    assert_eq!(head, "admin:\n  users:\n");
    line.to_owned()
}

/// The errors of a command.
pub fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
