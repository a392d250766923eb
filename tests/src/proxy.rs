//! The proxy under test: weir, or HAProxy to show whether a scenario passes with another proxy.
//!
//! `WEIR_TEST_PROXY=haproxy` runs the scenarios against HAProxy. Scenarios about features that only weir has then fail
//! or are skipped.

use std::fmt::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::Signal;

use crate::client::Client;
use crate::ports::Lease;
use crate::process::Process;
use crate::temp::TempDir;
use crate::tools;

/// The configuration of a scenario. Texts are YAML as in `config.md`.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    members: Vec<String>,
    http: Vec<String>,
    virtual_server: Vec<String>,
    pool: Vec<String>,
    top: Vec<String>,
    extra_listen: Vec<String>,
    further_servers: Vec<String>,
    further_pools: Vec<String>,
    access_log: Option<&'static str>,
    log_to: Option<String>,
    audit_to: Option<PathBuf>,
    record: Option<&'static str>,
    name: Option<&'static str>,
    descriptors: Option<usize>,
    started_by: Vec<String>,
    admin_socket: bool,
    admin: Vec<String>,
    without_pool: bool,
    environment: Vec<String>,
    arguments: Vec<String>,
}

impl Setup {
    /// One virtual server in front of one pool with these members.
    pub fn new(members: &[SocketAddr]) -> Self {
        Self { members: members.iter().map(ToString::to_string).collect(), ..Self::default() }
    }

    /// Adds a member, written as in the file.
    #[must_use]
    pub fn member(mut self, member: &str) -> Self {
        self.members.push(member.to_owned());
        self
    }

    /// Adds a key of the HTTP profile, such as `header_timeout: 1s`.
    #[must_use]
    pub fn http(mut self, line: &str) -> Self {
        self.http.push(line.to_owned());
        self
    }

    /// Adds a key of the virtual server, such as `limits: { connections: 2 }`.
    #[must_use]
    pub fn virtual_server(mut self, line: &str) -> Self {
        self.virtual_server.push(line.to_owned());
        self
    }

    /// Adds a key of the pool, such as `retries: 0`.
    #[must_use]
    pub fn pool(mut self, line: &str) -> Self {
        self.pool.push(line.to_owned());
        self
    }

    /// Adds a line at the top level, such as `data_plane: { workers: 1 }`.
    #[must_use]
    pub fn top(mut self, line: &str) -> Self {
        self.top.push(line.to_owned());
        self
    }

    /// Adds another pool, such as `images: { members: [ 127.0.0.1:9003 ] }`.
    #[must_use]
    pub fn also_pool(mut self, line: &str) -> Self {
        self.further_pools.push(line.to_owned());
        self
    }

    /// Adds another virtual server with its own settings, such as `images: { listen: "127.0.0.1:80", pool: images }`.
    #[must_use]
    pub fn also_virtual_server(mut self, line: &str) -> Self {
        self.further_servers.push(line.to_owned());
        self
    }

    /// Adds another virtual server on this address, which may be `unix:/path`. The names are `extra-0`, `extra-1` and
    /// so on.
    #[must_use]
    pub fn also_listen(mut self, address: impl ToString) -> Self {
        self.extra_listen.push(address.to_string());
        self
    }

    /// Writes the access log as JSON to the process's output.
    #[must_use]
    pub fn access_log(self) -> Self {
        self.access_log_as("json")
    }

    /// Writes the access log in another format to the process's output.
    #[must_use]
    pub fn access_log_as(mut self, format: &'static str) -> Self {
        self.access_log = Some(format);
        self
    }

    /// Sets another destination for the access log.
    #[must_use]
    pub fn log_to(mut self, to: &str) -> Self {
        self.log_to = Some(to.to_owned());
        self
    }

    /// Writes the audit log to this file.
    #[must_use]
    pub fn audit_to(mut self, file: &Path) -> Self {
        self.audit_to = Some(file.to_owned());
        self
    }

    /// Writes the firewall's log to the process's output, and records these requests in it.
    #[must_use]
    pub fn record(mut self, which: &'static str) -> Self {
        self.record = Some(which);
        self
    }

    /// Sets another name than `main` for the virtual server.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// The command that starts the proxy with this configuration. Each wrapper program executes the rest of the command in
    /// its own process.
    fn command(&self, file: &str) -> Vec<String> {
        let mut words = self.started_by.clone();
        if let Some(limit) = self.descriptors {
            let prlimit = tools::find("prlimit").expect("prlimit (util-linux)");
            words.push(prlimit.to_string_lossy().into_owned());
            words.extend([format!("--nofile={limit}:{limit}"), "--".into()]);
        }
        if !self.environment.is_empty() {
            let env = tools::find("env").expect("env (coreutils)");
            words.push(env.to_string_lossy().into_owned());
            words.extend_from_slice(&self.environment);
        }
        words.extend([weir_binary().to_string_lossy().into_owned(), "run".into()]);
        words.extend_from_slice(&self.arguments);
        words.push(file.to_owned());
        words
    }

    /// Sets an environment variable. Only for weir.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push(format!("{name}={value}"));
        self
    }

    /// Adds an argument of `weir run`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Starts the proxy through another program, such as `setpriv` with the privileges to remove. Only for weir.
    #[must_use]
    pub fn started_by(mut self, program: &str, words: &[&str]) -> Self {
        let program = tools::find(program).unwrap_or_else(|| panic!("{program} is not there"));
        self.started_by = vec![program.to_string_lossy().into_owned()];
        self.started_by.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Limits the number of open descriptors. Only for weir; requires `prlimit`.
    #[must_use]
    pub fn descriptors(mut self, limit: usize) -> Self {
        self.descriptors = Some(limit);
        self
    }

    /// Removes the default pool of the virtual server. Only pools in policies remain.
    #[must_use]
    pub fn without_pool(mut self) -> Self {
        self.without_pool = true;
        self
    }

    /// Puts the admin listener on a unix socket, which permits changes of members.
    #[must_use]
    pub fn admin_socket(mut self) -> Self {
        self.admin_socket = true;
        self
    }

    /// Adds a line to `admin`.
    #[must_use]
    pub fn admin(mut self, line: &str) -> Self {
        self.admin.push(line.to_owned());
        self
    }

    /// The configuration of a weir that keeps its files in this folder.
    fn yaml(&self, folder: &Path, listen: SocketAddr, admin: &Admin) -> String {
        let format = match self.access_log.unwrap_or("off") {
            given if given.starts_with('{') => given.to_owned(),
            word => format!("\"{word}\""),
        };
        let mut text = format!("admin:\n  listen: \"{admin}\"\n");
        for line in &self.admin {
            let _ = writeln!(text, "  {line}");
        }
        let to = self.log_to.as_deref().unwrap_or("stdout");
        let _ = writeln!(text, "log:\n  access: {{ to: {to}, format: {format} }}");
        if let Some(file) = &self.audit_to {
            let _ = writeln!(text, "  audit: {{ to: {} }}", file.display());
        }
        if let Some(which) = self.record {
            let _ = writeln!(text, "  waf: {{ to: stdout, record: {which} }}");
        }
        // Otherwise all tests would share what is kept in the default folder.
        if !self.top.iter().any(|line| line.contains("state_dir:")) {
            let _ = writeln!(text, "state_dir: {}", folder.join("state").display());
        }
        for line in &self.top {
            let _ = writeln!(text, "{line}");
        }
        text.push_str("virtual_servers:\n");
        let name = self.name.unwrap_or("main");
        self.yaml_virtual_server(&mut text, name, &listen.to_string());
        for (index, address) in self.extra_listen.iter().enumerate() {
            self.yaml_virtual_server(&mut text, &format!("extra-{index}"), address);
        }
        for line in &self.further_servers {
            let _ = writeln!(text, "  {line}");
        }
        let none = if self.members.is_empty() { " []" } else { "" };
        let _ = writeln!(text, "pools:\n  members:\n    members:{none}");
        for member in &self.members {
            let _ = writeln!(text, "      - {member}");
        }
        for line in &self.pool {
            let _ = writeln!(text, "    {line}");
        }
        for line in &self.further_pools {
            let _ = writeln!(text, "  {line}");
        }
        text
    }

    fn yaml_virtual_server(&self, text: &mut String, name: &str, listen: &str) {
        let _ = writeln!(text, "  {name}:\n    listen: \"{listen}\"");
        if !self.without_pool {
            text.push_str("    pool: members\n");
        }
        if !self.http.is_empty() {
            let _ = writeln!(text, "    http: {{ {} }}", self.http.join(", "));
        }
        for line in &self.virtual_server {
            let _ = writeln!(text, "    {line}");
        }
    }

    fn haproxy(&self, listen: SocketAddr) -> String {
        let mut text = String::from(
            "global\n nbthread 2\ndefaults\n mode http\n http-reuse always\n timeout connect 5s\n \
             timeout client 30s\n timeout server 60s\n timeout tunnel 1h\n timeout http-request 1s\n \
             retries 1\n retry-on conn-failure empty-response\nfrontend main\n",
        );
        for address in self.extra_listen.iter().chain([&listen.to_string()]) {
            let _ = writeln!(text, " bind {}", address.replace("unix:", "unix@"));
        }
        text.push_str(" default_backend members\nbackend members\n balance roundrobin\n");
        for (index, member) in self.members.iter().enumerate() {
            let _ = writeln!(
                text,
                " server m{index} {}",
                member
                    .trim_start_matches("{ address: ")
                    .replace(", connections_max: ", " maxconn ")
                    .trim_end_matches(" }")
            );
        }
        text
    }
}

/// The program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Weir.
    Weir,
    /// HAProxy.
    HaProxy,
}

impl Kind {
    /// The program that the environment chooses.
    pub fn chosen() -> Self {
        match std::env::var("WEIR_TEST_PROXY").as_deref() {
            Err(_) | Ok("weir") => Self::Weir,
            Ok("haproxy") => Self::HaProxy,
            Ok(other) => panic!("WEIR_TEST_PROXY={other}: weir or haproxy"),
        }
    }
}

/// The address of the admin listener.
#[derive(Debug)]
enum Admin {
    Tcp(Lease),
    Unix(PathBuf),
}

impl Admin {
    fn is_listening(&self) -> bool {
        match self {
            Self::Tcp(lease) => TcpStream::connect(lease.address()).is_ok(),
            Self::Unix(path) => UnixStream::connect(path).is_ok(),
        }
    }

    #[track_caller]
    fn wait_until_listening(&self) {
        let what = format!("the admin listener at {self} accepts");
        crate::eventually(&what, crate::STEP_TIMEOUT, || self.is_listening());
    }
}

impl std::fmt::Display for Admin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(lease) => lease.address().fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    // Dropped in this order: the process before its folder and its ports.
    process: Process,
    directory: TempDir,
    listen: Lease,
    admin: Admin,
    kind: Kind,
}

impl Proxy {
    /// Starts the proxy and waits until it serves.
    #[track_caller]
    pub fn start(setup: &Setup) -> Self {
        let kind = Kind::chosen();
        let (listen, directory) = (Lease::new(), TempDir::new("proxy"));
        let admin = match setup.admin_socket {
            true => Admin::Unix(directory.path().join("admin.sock")),
            false => Admin::Tcp(Lease::new()),
        };
        let log = directory.path().join("output.log");
        let mut process = match kind {
            Kind::Weir => {
                let file = directory
                    .write("weir.yaml", setup.yaml(directory.path(), listen.address(), &admin));
                let words = setup.command(&file.to_string_lossy());
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                Process::start(Path::new(words[0]), &words[1..], &log)
            }
            Kind::HaProxy => {
                let file = directory.write("haproxy.cfg", setup.haproxy(listen.address()));
                let program = tools::find("haproxy").expect("haproxy for WEIR_TEST_PROXY=haproxy");
                Process::start(&program, &["-db", "-f", &file.to_string_lossy()], &log)
            }
        };
        process.wait_until_listening(&[listen.address()]);
        if kind == Kind::Weir {
            admin.wait_until_listening();
        }
        Self { process, directory, listen, admin, kind }
    }

    /// Kills weir, and starts it again on the same addresses.
    #[track_caller]
    pub fn restart(&mut self, setup: &Setup) {
        self.process.signal(Signal::KILL);
        let ended = || self.process.exited().is_some();
        crate::eventually("the process has ended", crate::STEP_TIMEOUT, ended);
        let words = setup.command(&self.config_path().to_string_lossy());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let log = self.directory.path().join("output.log");
        self.process = Process::start(Path::new(words[0]), &words[1..], &log);
        self.process.wait_until_listening(&[self.listen.address()]);
        self.admin.wait_until_listening();
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.listen.address()
    }

    /// The address of `/metrics` and the API.
    #[track_caller]
    pub fn admin(&self) -> SocketAddr {
        match &self.admin {
            Admin::Tcp(lease) => lease.address(),
            Admin::Unix(path) => panic!("the admin listener is {}", path.display()),
        }
    }

    /// The address of the admin listener, in the form for `weir --admin`.
    pub fn admin_address(&self) -> String {
        self.admin.to_string()
    }

    /// A new connection to the admin listener.
    #[track_caller]
    pub fn admin_client(&self) -> Client {
        match &self.admin {
            Admin::Tcp(lease) => Client::connect(lease.address()),
            Admin::Unix(path) => Client::connect_unix(path),
        }
    }

    /// The program under test.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// A new client connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Writes another configuration and sends SIGHUP, without waiting for the result.
    pub fn reload(&self, setup: &Setup) {
        self.reload_text(&setup.yaml(self.directory.path(), self.address(), &self.admin));
    }

    /// Reloads and waits until the new configuration is active.
    #[track_caller]
    pub fn reload_and_wait(&self, setup: &Setup) {
        let before = self.reloads("success");
        self.reload(setup);
        crate::eventually("the configuration is in force", crate::STEP_TIMEOUT, || {
            self.reloads("success") > before
        });
    }

    /// Reloads and waits until the new configuration was rejected.
    #[track_caller]
    pub fn reload_and_fail(&self, setup: &Setup) {
        let before = self.reloads("failure");
        self.reload(setup);
        crate::eventually("the configuration is refused", crate::STEP_TIMEOUT, || {
            self.reloads("failure") > before
        });
    }

    /// Number of reloads with this result: `success` or `failure`.
    #[track_caller]
    pub fn reloads(&self, result: &str) -> f64 {
        self.metric("weir_config_reloads_total", &[&format!("\"{result}\"")])
    }

    /// The configuration file.
    pub fn config_path(&self) -> PathBuf {
        self.directory.path().join("weir.yaml")
    }

    /// Writes a text as the configuration and sends SIGHUP, without waiting for the result.
    ///
    /// The file is replaced atomically, so that a reload never reads a part of it.
    pub fn reload_text(&self, yaml: &str) {
        self.write_text(yaml);
        self.process.signal(Signal::HUP);
    }

    /// Replaces the configuration file, without a reload.
    pub fn write(&self, setup: &Setup) {
        self.write_text(&setup.yaml(self.directory.path(), self.address(), &self.admin));
    }

    fn write_text(&self, yaml: &str) {
        let fresh = self.directory.write("weir.yaml.new", yaml);
        std::fs::rename(fresh, self.directory.path().join("weir.yaml"))
            .expect("replacing the configuration");
    }

    /// The admin listener's response to a GET request.
    #[track_caller]
    pub fn admin_get(&self, path: &str) -> String {
        let mut client = self.admin_client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        client.response().assert_status(200).text()
    }

    /// Waits until the metrics show this state of a member.
    #[track_caller]
    pub fn wait_for_member_state(&self, member: SocketAddr, state: &str, timeout: Duration) {
        let what = format!("{member} is {state}");
        crate::eventually(&what, timeout, || {
            self.metric("weir_member_state", &[&format!("\"{member}\""), &format!("\"{state}\"")])
                > 0.0
        });
    }

    /// Waits until weir has taken the connection by which [`Self::start`] checked the listener of `main`, and that has ended. Limits
    /// count it.
    #[track_caller]
    pub fn settle(&self) {
        crate::eventually("a connection is taken", crate::STEP_TIMEOUT, || {
            self.metric("weir_virtual_server_connections_total", &["\"main\""]) > 0.0
        });
        self.wait_for_open_connections("main", 0.0);
    }

    /// Waits until a virtual server has this number of open client connections.
    #[track_caller]
    pub fn wait_for_open_connections(&self, virtual_server: &str, count: f64) {
        let label = format!("\"{virtual_server}\"");
        let what = format!("{virtual_server} has {count} connections open");
        crate::eventually(&what, crate::STEP_TIMEOUT, || {
            self.metric("weir_virtual_server_connections_open", &[&label]) == count
        });
    }

    /// Waits until each worker has ended the turn that it may be in: a worker that has to wait for the processor in the middle
    /// of a turn has counted a part of it. Without workers that answer, the counters are what they are.
    #[track_caller]
    pub fn end_turns(&self) {
        let mut client = self.admin_client();
        client.send("GET /v1/sessions?limit=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.response();
    }

    /// Sum over all series of a metric whose labels contain all texts in `labels`; 0 without a series.
    #[track_caller]
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        self.end_turns();
        let text = self.admin_get("/metrics");
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' '))
            .filter(|(series, _)| series.split('{').next() == Some(name))
            .filter(|(series, _)| labels.iter().all(|label| series.contains(label)))
            .map(|(series, value)| {
                value.parse::<f64>().unwrap_or_else(|_| panic!("{series} {value}"))
            })
            .sum()
    }

    /// Opens `count` idle connections to each worker. They alternate: first connection of worker 0, first of worker 1,
    /// second of worker 0 and so on. The kernel chooses the worker of a connection, so more are opened, and the surplus is
    /// closed.
    pub fn clients_of_each_worker(&self, count: usize) -> Vec<Client> {
        let workers = self.metric("weir_workers", &[]) as usize;
        let accepted = |worker: usize| {
            self.metric("weir_worker_connections_total", &[&format!("worker=\"{worker}\"")])
        };
        let mut clients: Vec<Vec<Client>> = (0..workers).map(|_| Vec::new()).collect();
        while clients.iter().any(|of_worker| of_worker.len() < count) {
            let before: Vec<f64> = (0..workers).map(accepted).collect();
            let mut client = Some(self.client());
            crate::eventually("a worker has the connection", crate::STEP_TIMEOUT, || {
                for worker in 0..workers {
                    if accepted(worker) > before[worker] {
                        clients[worker].extend(client.take());
                    }
                }
                client.is_none()
            });
        }
        let mut in_turn = Vec::new();
        for _ in 0..count {
            in_turn.extend(clients.iter_mut().map(|of_worker| of_worker.swap_remove(0)));
        }
        in_turn
    }

    /// Whether each worker has accepted a connection.
    pub fn has_used_all_workers(&self) -> bool {
        let workers = self.metric("weir_workers", &[]) as usize;
        (0..workers).all(|worker| {
            let label = format!("worker=\"{worker}\"");
            self.metric("weir_worker_connections_total", &[&label]) > 0.0
        })
    }
}

/// The built `weir`: `WEIR_BIN`, or the program in the test's target folder, built once per test process.
pub fn weir_binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("WEIR_BIN") {
            return PathBuf::from(path);
        }
        let test = std::env::current_exe().expect("the test's own path");
        // Examples: target/debug/deps/scenario-0123 or target/debug/soak.
        let folder = test.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
        let folder = folder.expect("a target folder").to_owned();
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--package", "weir", "--bin", "weir"]);
        // The test may belong to another workspace, with a target folder of its own.
        build.arg("--target-dir").arg(folder.parent().expect("the target folder"));
        if folder.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        tools::run(&mut build);
        folder.join("weir")
    })
}
