//! client – adc – server, each a network namespace, with the kernel's own TCP and UDP at both ends.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_packet::Reason;
use weir_packet::plan::*;

use super::{Namespace, Path};

/// Timeout of a step of a scenario.
pub const STEP_MAX: Duration = Duration::from_secs(60);

/// client – adc – server, routed both ways.
pub struct Net {
    pub client: Namespace,
    pub adc: Namespace,
    pub server: Namespace,
}

impl Net {
    pub fn new(mtu: u32) -> Self {
        let (client, adc, server) =
            (Namespace::new("client"), Namespace::new("adc"), Namespace::new("server"));
        adc.ip(&format!(
            "link add a0 mtu {mtu} type veth peer name c0 mtu {mtu} netns {}",
            client.name
        ));
        adc.ip(&format!(
            "link add a1 mtu {mtu} type veth peer name s0 mtu {mtu} netns {}",
            server.name
        ));
        for (namespace, device, v4, v6) in [
            (&client, "c0", "10.0.1.2/24", "fd00:1::2/64"),
            (&adc, "a0", "10.0.1.1/24", "fd00:1::1/64"),
            (&adc, "a1", "10.0.2.1/24", "fd00:2::1/64"),
            (&server, "s0", "10.0.2.10/24", "fd00:2::10/64"),
        ] {
            namespace.ip(&format!("addr add {v4} dev {device}"));
            namespace.ip(&format!("addr add {v6} dev {device} nodad"));
            namespace.ip(&format!("link set {device} up"));
        }
        for (namespace, device, v4, v6) in
            [(&client, "c0", "10.0.1.1", "fd00:1::1"), (&server, "s0", "10.0.2.1", "fd00:2::1")]
        {
            namespace.ip(&format!("route add default via {v4}"));
            namespace.ip(&format!("-6 route add default via {v6}"));
            // A veth passes XDP frames only to a peer that accepts them, and an incomplete checksum
            // is not completed after XDP.
            namespace.run(&format!("ethtool -K {device} gro on tx off"));
        }
        server.ip("addr add 10.0.2.11/24 dev s0");
        adc.set(&["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
        adc.enter();
        Self { client, adc, server }
    }

    /// A TCP server that sends its name, then echoes until the end.
    pub fn tcp_server(&self, address: &str) -> Server {
        let address: SocketAddr = address.parse().unwrap();
        Server::start(&self.server, address, &self.server.name)
    }

    pub fn connect(&self, address: &str) -> std::io::Result<TcpStream> {
        let address: SocketAddr = address.parse().unwrap();
        let stream = self.client.within(|| TcpStream::connect_timeout(&address, STEP_MAX))?;
        stream.set_read_timeout(Some(STEP_MAX))?;
        stream.set_write_timeout(Some(STEP_MAX))?;
        Ok(stream)
    }

    /// Connects, and returns the address that the peer saw.
    #[track_caller]
    pub fn served(&self, address: &str) -> (TcpStream, SocketAddr) {
        let mut stream = self.connect(address).expect("connecting");
        let mut line = Vec::new();
        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte).expect("the name");
            line.push(byte[0]);
        }
        let seen = String::from_utf8(line).unwrap().trim().parse().expect("an address");
        (stream, seen)
    }
}

/// Sends bytes, and expects them back.
#[track_caller]
pub fn echo(stream: &mut TcpStream, bytes: usize) {
    let sent: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let copy = sent.clone();
    let writing = std::thread::spawn(move || writer.write_all(&copy));
    let mut got = vec![0; bytes];
    stream.read_exact(&mut got).expect("the echo");
    writing.join().unwrap().expect("written");
    assert!(got == sent, "the bytes are others");
}

/// Serving threads, until dropped.
pub struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
    namespace: String,
}

impl Server {
    pub fn start(namespace: &Namespace, address: SocketAddr, name: &str) -> Self {
        let listener = namespace.within(|| TcpListener::bind(address).expect("binding"));
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(stream) = stream {
                    std::thread::spawn(|| serve(stream));
                }
            }
        });
        Self { stop, thread: Some(thread), address, namespace: name.to_owned() }
    }
}

fn serve(mut stream: TcpStream) {
    let Ok(peer) = stream.peer_addr() else { return };
    if stream.write_all(format!("{peer}\n").as_bytes()).is_err() {
        return;
    }
    let mut buffer = vec![0; 65_536];
    while let Ok(bytes) = stream.read(&mut buffer) {
        if bytes == 0 || stream.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // One more connection wakes it.
        let path = format!("/var/run/netns/{}", self.namespace);
        let address = self.address;
        let waking = std::thread::spawn(move || {
            let file = std::fs::File::open(path)?;
            rustix::thread::move_into_link_name_space(
                std::os::fd::AsFd::as_fd(&file),
                Some(rustix::thread::LinkNameSpaceType::Network),
            )?;
            TcpStream::connect_timeout(&address, STEP_MAX).map(drop)
        });
        if matches!(waking.join(), Ok(Ok(())))
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

pub fn one_server(
    protocol: Protocol,
    destination: &str,
    member: &str,
    port: Option<u16>,
) -> VirtualServer {
    let address: SocketAddr = destination.parse().unwrap();
    let mut server = VirtualServer::new("one", protocol, vec![Destination::socket(address)]);
    server.members.push(Member::new(member.parse().unwrap(), port));
    server
}

pub fn plan(server: VirtualServer) -> Plan {
    Plan { virtual_servers: vec![server], ..Plan::default() }
}

pub fn automap(server: &mut VirtualServer, address: &str) {
    let address: IpAddr = address.parse().unwrap();
    server.source =
        Source::Addresses(vec![SourceAddress { address, port_first: 50_000, port_last: 59_999 }]);
}

pub fn count(path: &Path, reason: Reason) -> u64 {
    path.read().reasons().unwrap().iter().find(|it| it.reason == reason).unwrap().packets
}

/// Waits until the condition holds.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < STEP_MAX, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
