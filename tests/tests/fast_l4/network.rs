//! A client, weir and two members in network namespaces.
//!
//! ```text
//!   client 10.77.1.2 ---- 10.77.1.1 weir 10.77.2.1 ---- 10.77.2.2 and 10.77.2.3, members
//! ```
//! The virtual address 10.77.9.1 is on no interface: the client's default route leads to weir.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use weir_tests::namespaces::Namespaces;
use weir_tests::process::Process;
use weir_tests::proxy::weir_binary;
use weir_tests::temp::TempDir;
use weir_tests::{STEP_TIMEOUT, eventually, tools};

/// Timeout of a start, because the kernel verifies programs for seconds when they are loaded, and longer on a busy machine.
const LOADING_TIMEOUT: Duration = Duration::from_secs(90);

pub const FIRST: &str = "10.77.2.2:9000";
pub const SECOND: &str = "10.77.2.3:9000";

/// Timeout of a connection that may fail.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A unique number for the log file of a program.
fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub fn at(text: &str) -> SocketAddr {
    text.parse().unwrap_or_else(|_| panic!("{text} is no address"))
}

/// The namespaces, a folder for files, and weir; removed on drop.
pub struct Network {
    pub namespaces: Namespaces,
    directory: TempDir,
    weir: Option<Process>,
    /// The name of the packet path, which is also that of weir's namespace.
    pub name: String,
}

impl Network {
    /// Creates the network. If that is impossible, prints the reason and returns `None`.
    #[track_caller]
    pub fn make() -> Option<Self> {
        if !tools::present("ethtool") || !tools::present("nsenter") {
            return None;
        }
        let namespaces = Namespaces::make()?;
        // The sending ends compute complete checksums, because no device does that for packets that XDP forwards.
        for role in ["client", "server"] {
            namespaces.shell(role, "ethtool -K link gro on tx off");
        }
        namespaces.shell("adc", "echo 1 > /proc/sys/net/ipv4/ip_forward");
        namespaces.shell("server", "ip addr add 10.77.2.3/24 dev link; ip link set dev lo up");
        let name = namespaces.name("adc");
        let network = Self { namespaces, directory: TempDir::new("fast-l4"), weir: None, name };
        for member in [FIRST, SECOND] {
            network.serve(member);
        }
        Some(network)
    }

    /// Adds IPv6 addresses: 2001:db8:1::2 is the client, 2001:db8:2::2 the member.
    pub fn add_ipv6(&self) {
        for (role, lines) in [
            (
                "client",
                "ip addr add 2001:db8:1::2/64 dev link nodad; ip route add default via 2001:db8:1::1",
            ),
            (
                "adc",
                "ip addr add 2001:db8:1::1/64 dev clients nodad; ip addr add 2001:db8:2::1/64 dev servers nodad; \
                 echo 1 > /proc/sys/net/ipv6/conf/all/forwarding",
            ),
            (
                "server",
                "ip addr add 2001:db8:2::2/64 dev link nodad; ip route add default via 2001:db8:2::1",
            ),
        ] {
            self.shell(role, lines);
        }
    }

    /// Listens on an address without accepting connections.
    pub fn listen(&self, address: &str) -> TcpListener {
        self.listen_within("server", address)
    }

    pub fn listen_within(&self, role: &str, address: &str) -> TcpListener {
        self.namespaces.within(role, || TcpListener::bind(at(address)).expect("an own address"))
    }

    /// Connects the client to a listener that does not accept.
    pub fn connect_silently(&self, address: &str) -> TcpStream {
        let connect = || TcpStream::connect_timeout(&at(address), STEP_TIMEOUT);
        self.namespaces.within("client", connect).expect("a connection")
    }

    /// Serves an address: sends `LOCAL REMOTE` on each connection and then echoes.
    pub fn serve(&self, address: &str) {
        let listener = self.listen(address);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let (local, remote) = (stream.local_addr()?, stream.peer_addr()?);
                    stream.write_all(format!("{local} {remote}\n").as_bytes())?;
                    weir_tests::stream::echo(&mut stream)
                });
            }
        });
    }

    pub fn shell(&self, role: &str, line: &str) {
        self.namespaces.shell(role, line);
    }

    /// Starts a program in a namespace.
    #[track_caller]
    pub fn start_in(&self, role: &str, words: &[&str]) -> Process {
        let nsenter = tools::find("nsenter").expect("nsenter");
        let namespace = format!("--net=/run/netns/{}", self.namespaces.name(role));
        // Each process has its own log, so that a test cannot find messages of an earlier process.
        let log = self.directory.path().join(format!("{role}-{}.log", number()));
        Process::start(&nsenter, &[&[namespace.as_str()], words].concat(), &log)
    }

    /// Writes the configuration: `rest`, an admin socket, and the packet path with these settings.
    pub fn configure(&self, settings: &str, rest: &str) {
        self.configure_flows(4_096, settings, rest);
    }

    /// Writes the configuration with this maximum number of flows.
    pub fn configure_flows(&self, flows_max: u32, settings: &str, rest: &str) {
        let socket = self.socket();
        let text = format!(
            "admin: {{ listen: \"{socket}\" }}\nlog: {{ access: {{ format: \"off\" }} }}\n\
             data_plane: {{ workers: 1, drain_timeout: 0s }}\n\
             packet_path: {{ name: {}, flows_max: {flows_max}, remembered_max: 1024{settings} }}\n{rest}",
            self.name
        );
        self.directory.write("weir.yaml", &text);
    }

    fn socket(&self) -> String {
        format!("unix:{}", self.directory.path().join("admin.sock").display())
    }

    pub fn file(&self) -> String {
        self.directory.path().join("weir.yaml").to_string_lossy().into_owned()
    }

    /// Starts weir and waits until it serves. `before` contains words before its command.
    #[track_caller]
    pub fn start_as(&mut self, before: &[&str]) {
        self.start_until(before, " serves ");
        self.wait_until_the_kernel_knows();
    }

    /// Starts weir and waits until its log contains this text.
    #[track_caller]
    pub fn start_until(&mut self, before: &[&str], says: &str) {
        let nsenter = tools::find("nsenter").expect("nsenter");
        let namespace = format!("--net=/run/netns/{}", self.namespaces.name("adc"));
        let (weir, file) = (weir_binary().to_string_lossy(), self.file());
        let mut words = vec![namespace.as_str()];
        words.extend(before);
        words.extend([&*weir, "run", &file]);
        let log = self.directory.path().join(format!("output-{}.log", number()));
        let mut process = Process::start(&nsenter, &words, &log);
        eventually(&format!("weir says {says}"), LOADING_TIMEOUT, || {
            assert!(process.exited().is_none(), "{}", process.output());
            process.output().contains(says)
        });
        self.weir = Some(process);
    }

    /// Waits until the packet path matches the active configuration.
    #[track_caller]
    fn wait_until_the_kernel_knows(&self) {
        eventually("the packet path does what the configuration says", STEP_TIMEOUT, || {
            let status = self.status();
            let path = &status["packet_path"];
            let has_packets = path["interfaces"].as_array().is_some_and(|all| !all.is_empty());
            let is_wanted = path["virtual_servers"].as_array().is_some_and(|all| {
                all.is_empty() || all.iter().any(|server| server["served_by"] == "packets")
            });
            !is_wanted || has_packets && path["generation"] == status["configuration"]["generation"]
        });
    }

    #[track_caller]
    pub fn start(&mut self) {
        self.start_as(&[]);
    }

    pub fn weir(&self) -> &Process {
        self.weir.as_ref().expect("weir runs")
    }

    /// Reloads the configuration and waits until it is active.
    #[track_caller]
    pub fn reload(&self) {
        let count = |process: &Process| process.output().matches(" was reloaded").count();
        let weir = self.weir.as_ref().expect("weir runs");
        let before = count(weir);
        weir.signal(rustix::process::Signal::HUP);
        eventually("the configuration is in force", STEP_TIMEOUT, || count(weir) > before);
        self.wait_until_the_kernel_knows();
    }

    /// Stops weir with SIGTERM, as a service manager does.
    #[track_caller]
    pub fn end(&mut self) {
        let mut weir = self.weir.take().expect("weir runs");
        weir.signal(rustix::process::Signal::TERM);
        assert!(weir.wait(STEP_TIMEOUT).success(), "{}", weir.output());
    }

    pub fn kill(&mut self) {
        self.weir.take().expect("weir runs").kill();
    }

    /// Runs a command of weir. Returns its output.
    #[track_caller]
    pub fn command(&self, words: &[&str]) -> String {
        let mut command = Command::new(weir_binary());
        tools::run(command.args(words).env("WEIR_ADMIN", self.socket()))
    }

    #[track_caller]
    pub fn status(&self) -> Value {
        serde_json::from_str(&self.command(&["status", "--json"])).expect("a status")
    }

    /// The status of a virtual server of the packet path, from `/v1/status`.
    #[track_caller]
    pub fn server(&self, name: &str) -> Value {
        let status = self.status();
        let servers = status["packet_path"]["virtual_servers"].as_array().expect("a list").clone();
        let found = servers.into_iter().find(|server| server["name"] == name);
        found.unwrap_or_else(|| panic!("{name} is not in {status:#}"))
    }

    #[track_caller]
    pub fn flows(&self, words: &[&str]) -> Vec<Value> {
        let words = [&["l4", "flows", "--json"], words].concat();
        let listed: Value = serde_json::from_str(&self.command(&words)).expect("flows");
        listed["items"].as_array().expect("a list").clone()
    }

    pub fn detach(&self) -> String {
        self.command(&["l4", "detach", &self.name])
    }

    pub fn has_pins(&self) -> bool {
        Path::new("/sys/fs/bpf/weirgate").join(&self.name).exists()
    }

    /// Sends a datagram from the client to this address and returns the reply.
    pub fn echo_datagram(&self, address: &str) -> String {
        let bind = |role: &str, own: &str| {
            self.namespaces.within(role, || UdpSocket::bind(at(own)).expect("an address"))
        };
        let (member, client) = (bind("server", address), bind("client", "10.77.1.2:0"));
        for socket in [&member, &client] {
            socket.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
        }
        client.send_to(b"a datagram", at(address)).expect("sending");
        let mut bytes = [0; 64];
        let (length, from) = member.recv_from(&mut bytes).expect("a datagram of the client");
        assert_eq!(from, client.local_addr().expect("the client's address"));
        member.send_to(&bytes[..length], from).expect("sending back");
        let length = client.recv(&mut bytes).expect("a datagram of the member");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// A connection of the client.
    #[track_caller]
    pub fn connect(&self, address: &str) -> Connection {
        Connection::open(&self.namespaces, address, STEP_TIMEOUT).unwrap_or_else(|| {
            panic!("no connection to {address}: {:#}", self.status()["packet_path"])
        })
    }

    /// A connection of the client from this address and port.
    #[track_caller]
    pub fn connect_from(&self, own: &str, address: &str) -> Connection {
        let connect = || -> rustix::io::Result<TcpStream> {
            use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            // Avoids TIME_WAIT, because the same addresses and ports are used again.
            sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
            bind(&socket, &at(own))?;
            connect(&socket, &at(address))?;
            Ok(socket.into())
        };
        let stream = self.namespaces.within("client", connect);
        Connection::greeted(stream.expect("a connection")).expect("a greeting")
    }

    /// A connection of the client whose member has sent its greeting; `None`: no greeting in time.
    pub fn try_connect(&self, address: &str) -> Option<Connection> {
        Connection::open(&self.namespaces, address, CONNECT_TIMEOUT)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(mut weir) = self.weir.take() {
            if thread::panicking() {
                eprintln!("{}", weir.output());
            }
            weir.kill();
        }
        if self.has_pins() {
            let _ = Command::new(weir_binary()).args(["l4", "detach", &self.name]).output();
        }
    }
}

/// A connection from the client to a member.
pub struct Connection {
    /// The address of the member's socket.
    pub member: SocketAddr,
    /// The client's address that the member received.
    pub source: SocketAddr,
    reader: BufReader<TcpStream>,
}

impl Connection {
    /// Connects the client within this time, and waits for the member's greeting.
    fn open(namespaces: &Namespaces, address: &str, time: Duration) -> Option<Self> {
        let connect = || TcpStream::connect_timeout(&at(address), time);
        Self::greeted(namespaces.within("client", connect).ok()?)
    }

    /// Waits for the member's greeting.
    fn greeted(stream: TcpStream) -> Option<Self> {
        stream.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        // The kernel releases programs one after the other, so a packet that one of them forwards may get no response
        // through another one.
        reader.read_line(&mut line).ok()?;
        let (member, source) =
            line.trim_end().split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        Some(Self { member: at(member), source: at(source), reader })
    }

    /// Sets the timeout of an echo that may not arrive.
    pub fn wait_at_most(&self, time: Duration) {
        self.reader.get_ref().set_read_timeout(Some(time)).expect("a timeout");
    }

    pub fn own(&self) -> SocketAddr {
        self.reader.get_ref().local_addr().expect("the client's address")
    }

    /// Sends a line and receives its echo.
    #[track_caller]
    pub fn echo(&mut self) {
        self.try_echo().expect("an echo");
    }

    pub fn try_echo(&mut self) -> std::io::Result<()> {
        self.reader.get_mut().write_all(b"still there\n")?;
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        if line == "still there\n" { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }
}
