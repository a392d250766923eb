//! Heavy traffic: bulk data, short connections while programs are replaced, and a flood.
//!
//! Environment variables set the amounts for larger runs: `WEIR_TEST_L4_BODY_MIB`, `WEIR_TEST_L4_CONNECTIONS`,
//! `WEIR_TEST_L4_RELOADS`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use weir_tests::{STEP_TIMEOUT, eventually, tools};

use crate::network::{FIRST, Network, at};
use crate::server;

const BODY_MIB: u64 = 64;
const CONNECTIONS: u64 = 2_000;
const RELOADS: u64 = 10;

fn size(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => default,
    }
}

/// Fills a buffer with pseudo-random bytes without repetition, the same for every connection.
fn fill(buffer: &mut [u8], state: &mut u64) {
    for part in buffer.chunks_mut(8) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
    }
}

const BLOCK: usize = 64 * 1024;
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

fn send(stream: &mut TcpStream, blocks: u64) {
    let (mut buffer, mut state) = (vec![0; BLOCK], SEED);
    for _ in 0..blocks {
        fill(&mut buffer, &mut state);
        stream.write_all(&buffer).expect("sending");
    }
    stream.shutdown(std::net::Shutdown::Write).expect("the end");
}

/// Checks all received bytes.
fn receive(stream: &mut TcpStream, blocks: u64) {
    let (mut expected, mut got, mut state) = (vec![0; BLOCK], vec![0; BLOCK], SEED);
    for block in 0..blocks {
        fill(&mut expected, &mut state);
        stream.read_exact(&mut got).expect("receiving");
        assert!(expected == got, "block {block} is another");
    }
    assert_eq!(stream.read(&mut got).expect("the end"), 0);
}

#[track_caller]
fn connect(network: &Network, to: &str) -> TcpStream {
    let stream = network.connect_silently(to);
    stream.set_read_timeout(Some(STEP_TIMEOUT)).expect("a timeout");
    stream
}

/// Sends data in both directions concurrently, with this MTU on all devices.
fn bulk_arrives_whole(mtu: u32, settings: &str) {
    let Some(mut network) = Network::make() else { return };
    for (role, device) in
        [("client", "link"), ("adc", "clients"), ("adc", "servers"), ("server", "link")]
    {
        network.shell(role, &format!("ip link set dev {device} mtu {mtu}"));
    }
    let blocks = size("WEIR_TEST_L4_BODY_MIB", BODY_MIB) * 16;
    let listener = network.listen("10.77.2.2:9200");
    let server = server("listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto }");
    let pool = "pools: { p: { members: [ 10.77.2.2:9200 ] } }\n";
    network.configure(settings, &format!("{server}{pool}"));
    network.start();
    let member = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut other = stream.try_clone().expect("a second handle");
        let sender = thread::spawn(move || send(&mut other, blocks));
        receive(&mut stream, blocks);
        sender.join().expect("no panic");
    });
    let mut stream = connect(&network, "10.77.9.1:80");
    let mut other = stream.try_clone().expect("a second handle");
    let sender = thread::spawn(move || send(&mut other, blocks));
    receive(&mut stream, blocks);
    sender.join().expect("no panic");
    member.join().expect("no panic");
    println!("MTU {mtu}: {}", network.server("a")["rungs"]);
}

#[test]
fn bulk_arrives_whole_by_xdp() {
    bulk_arrives_whole(1_500, "");
}

#[test]
fn bulk_arrives_whole_by_tcx() {
    bulk_arrives_whole(1_500, ", rungs: [ tcx ]");
}

#[test]
fn bulk_arrives_whole_in_large_packets() {
    bulk_arrives_whole(9_000, "");
}

/// Echoes four bytes on each connection and closes it.
fn answer_each(listener: TcpListener) {
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4];
            if stream.read_exact(&mut bytes).is_ok() {
                // The peer may have closed.
                let _ = stream.write_all(&bytes);
            }
        }
    });
}

fn ask(to: SocketAddr, number: u32) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, STEP_TIMEOUT)?;
    stream.set_read_timeout(Some(STEP_TIMEOUT))?;
    stream.write_all(&number.to_le_bytes())?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    if answer == number.to_le_bytes() {
        Ok(())
    } else {
        Err(std::io::ErrorKind::InvalidData.into())
    }
}

#[test]
fn short_connections_have_no_error_while_programs_are_replaced() {
    let Some(mut network) = Network::make() else { return };
    let (connections, reloads) =
        (size("WEIR_TEST_L4_CONNECTIONS", CONNECTIONS), size("WEIR_TEST_L4_RELOADS", RELOADS));
    answer_each(network.listen("10.77.2.2:9200"));
    answer_each(network.listen("10.77.2.3:9200"));
    let servers = "virtual_servers:\n  \
        a: { type: fast_l4, listen: 10.77.9.1:80, pool: short, fast_l4: { source: auto, closing_timeout: 1s } }\n  \
        b: { type: fast_l4, listen: 10.77.9.1:81, pool: p, fast_l4: { source: auto } }\n";
    let pools = format!(
        "pools:\n  short: {{ members: [ 10.77.2.2:9200, 10.77.2.3:9200 ] }}\n  p: {{ members: [ {FIRST} ] }}\n"
    );
    let rungs = ["", ", rungs: [ tcx ]"];
    let configure = |network: &Network, turn: u64| {
        network.configure_flows(131_072, rungs[turn as usize % 2], &format!("{servers}{pools}"));
    };
    configure(&network, 0);
    network.start();
    let mut kept: Vec<_> = (0..8).map(|_| network.connect("10.77.9.1:81")).collect();
    let done = AtomicU64::new(0);
    let errors = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let network = &network;
    let ask_on = || {
        while !is_over.load(Ordering::Relaxed) {
            let number = done.fetch_add(1, Ordering::Relaxed) as u32;
            if let Err(error) = ask(at("10.77.9.1:80"), number) {
                eprintln!("connection {number}: {error}");
                errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| network.namespaces.within("client", ask_on));
        }
        for turn in 1..=reloads {
            configure(network, turn);
            network.reload();
            kept.iter_mut().for_each(|it| it.echo());
        }
        while done.load(Ordering::Relaxed) < connections {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let done = done.into_inner();
    println!(
        "{done} connections, {reloads} times other programs, {} errors",
        errors.load(Ordering::Relaxed)
    );
    assert_eq!(errors.into_inner(), 0);
    let flows = || network.server("a")["counters"]["flows"].as_u64().unwrap_or(0);
    eventually("every connection is a flow", STEP_TIMEOUT, || flows() >= done);
}

/// A Python script that sends a number of SYNs to both addresses, from unused addresses and ports, and prints the number.
const FLOOD: &str = r#"
import random, socket, struct, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~(total + (total >> 16)) & 0xffff
sent, most = 0, int(sys.argv[1])
while sent < most:
    for to in ("10.77.1.1", "10.77.9.1"):
        target = socket.inet_aton(to)
        source = struct.pack("!I", 0xc6120000 | random.getrandbits(16))
        ports = struct.pack("!HH", random.randrange(1024, 65536), 80)
        tcp = ports + struct.pack("!IIBBHHH", random.getrandbits(32), 0, 0x50, 2, 65535, 0, 0)
        pseudo = source + target + struct.pack("!HH", 6, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + source + target
        out.sendto(ip + tcp, (to, 0))
        sent += 1
print(sent)
"#;

/// Total number of SYNs, small because the flood shares the machine with the other programs.
const FLOOD_SYNS: u64 = 30_000;
/// Number of connections to each of the two addresses during the flood.
const DURING_FLOOD: u32 = 200;

/// A flood of SYNs to a listener of this host, which SYN cookies protect, and to a virtual server that forwards SYNs to its
/// members.
#[test]
fn a_flood_of_syns_leaves_the_others_their_connections() {
    if !tools::present("python3") {
        return;
    }
    let Some(mut network) = Network::make() else { return };
    network.shell("adc", "echo 2 > /proc/sys/net/ipv4/tcp_syncookies");
    answer_each(network.listen("10.77.2.2:9200"));
    let servers = "virtual_servers:\n  \
        own: { type: tcp, listen: 10.77.1.1:80, pool: p }\n  \
        a: { type: fast_l4, listen: 10.77.9.1:80, pool: p, fast_l4: { source: auto, handshake_timeout: 2s } }\n\
        pools: { p: { members: [ 10.77.2.2:9200 ] } }\n";
    network.configure_flows(131_072, ", syn_cookies: [ \"10.77.1.1:80\" ]", servers);
    network.start();
    let _timed = Timed::begin();
    let before = program_time(&network);
    let syns = size("WEIR_TEST_L4_SYNS", FLOOD_SYNS);
    let mut flood = network.start_in("client", &["python3", "-c", FLOOD, &syns.to_string()]);
    let (mut answered, mut asked) = (0, 0);
    let mut lasts = true;
    while asked < DURING_FLOOD || lasts {
        for to in ["10.77.1.1:80", "10.77.9.1:80"] {
            match network.namespaces.within("client", || ask(at(to), asked)) {
                Ok(()) => answered += 1,
                Err(error) => eprintln!("{to}: {error}"),
            }
        }
        asked += 1;
        lasts = flood.exited().is_none();
    }
    assert_eq!(flood.output().trim(), syns.to_string());
    let reasons = || network.status()["packet_path"]["not_forwarded"].clone();
    // Half of the flood goes to this listener. A busy machine drops some SYNs before weir receives them.
    eventually("the flood got cookies", STEP_TIMEOUT, || {
        reasons()["syn_cookie"].as_u64() >= Some(syns / 4)
    });
    let reasons = reasons();
    let after = program_time(&network);
    let (time_ns, packets) = (after.0 - before.0, after.1 - before.1);
    assert!(packets > 0 && time_ns > 0, "the kernel times the programs");
    println!("{} ns of CPU in weir's programs for each of {packets} packets", time_ns / packets);
    println!("{syns} SYNs, {answered} of {} connections answered; {reasons}", 2 * asked);
    assert!(f64::from(answered) >= 0.99 * f64::from(2 * asked), "{answered} of {}", 2 * asked);
}

/// Enables the kernel's timing of all programs, which makes each packet more expensive. It is disabled on drop, also when
/// the test fails.
struct Timed {
    found: String,
}

impl Timed {
    const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

    fn begin() -> Self {
        let found = std::fs::read_to_string(Self::SWITCH).expect("whether programs are timed");
        std::fs::write(Self::SWITCH, "1").expect("timing programs");
        Self { found }
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let ended = std::fs::write(Self::SWITCH, &self.found);
        assert!(ended.is_ok() || std::thread::panicking(), "{ended:?}");
    }
}

/// The time in weir's packet programs, in nanoseconds, and the number of their runs.
fn program_time(network: &Network) -> (u64, u64) {
    let folder = format!("/proc/{}/fdinfo", network.weir().pid());
    let mut total = BTreeMap::new();
    for file in std::fs::read_dir(folder).expect("its descriptors").flatten() {
        // The descriptor may have been closed in the meantime.
        let text = std::fs::read_to_string(file.path()).unwrap_or_default();
        let value = |name: &str| -> Option<u64> {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        if let (Some(id), Some(time_ns)) = (value("prog_id:"), value("run_time_ns:")) {
            total.insert(id, (time_ns, value("run_cnt:").unwrap_or(0)));
        }
    }
    total.into_values().fold((0, 0), |(time, count), it| (time + it.0, count + it.1))
}
