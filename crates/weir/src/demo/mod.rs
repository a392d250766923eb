//! `weir demo`: weir with its own members and clients.
//!
//! The main thread shows the state. [`parts::ControlPlane`] serves a configuration file exactly like `weir run`;
//! [`parts::Load`] runs the embedded members and the clients.

mod configuration;
mod journal;
mod members;
mod parts;
mod picture;
mod plain;
mod ports;
mod terminal;
mod traffic;
mod view;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use weir_cli::output;
use weir_cli::values::parse_duration;
use weir_control::events::Events;

use self::configuration::ConfigurationFile;
use self::journal::Journal;
use self::members::Member;
use self::parts::{ControlPlane, Load};
use self::picture::{Place, Reader};
use self::ports::ReservedAddress;
use self::traffic::{Clients, Traffic};
use crate::screen;

/// Exit status if the demo could not start, or stopped because of an error.
const EXIT_FAILED: u8 = 1;

/// The default address of the virtual server.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8_080);

/// The default address of the admin listener.
const ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_900);

/// Demonstrate weir with its own members and traffic
///
/// Needs no root and no other program. The demo has four small members inside this process: one is slow, and one is
/// stopped every few seconds. A few clients send requests to their virtual server, and the terminal shows the state.
/// You can edit the configuration file and reload it while the demo runs.
///
/// Keys: q or Ctrl-C ends, t pauses the traffic. Signals: as for `weir run`.
///
/// Exit status: 0 stopped by a signal, 1 could not start, 2 wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir demo\n  \
                        weir demo --listen 127.0.0.1:8000 --rate 200\n  \
                        weir demo --plain --duration 10s\n  \
                        weir demo --config > weir.yaml   # a start for your own configuration")]
pub struct Arguments {
    /// Address of the virtual server [default: 127.0.0.1:8080, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// End after this time (500ms, 30s, 5m, 1h) [default: on Ctrl+C]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// Requests per second from the demo's clients
    #[arg(long, value_name = "NUMBER", default_value_t = traffic::RATE_DEFAULT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(traffic::RATE_MAX)))]
    rate: u32,

    /// Start no clients; use your own
    #[arg(long, conflicts_with = "rate")]
    no_traffic: bool,

    /// Print one line per second instead of the live view (default without a terminal)
    #[arg(long)]
    plain: bool,

    /// Print the demo's configuration and exit
    #[arg(long, exclusive = true)]
    config: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let result = if arguments.config {
        match output::print(configuration::TEMPLATE) {
            // The reader has closed the pipe (`weir demo --config | head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(|error| format!("cannot write the configuration: {error}")),
        }
    } else {
        Demo::start(arguments).and_then(|demo| demo.run(arguments))
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(format_args!("weir demo: {error}\n"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The parts of the running demo.
struct Demo {
    began: Instant,
    place: Place,
    journal: Journal,
    control_plane: ControlPlane,
    load: Load,
    traffic: Option<Arc<Traffic>>,
    /// The file and the ports are held until the end.
    _file: ConfigurationFile,
    _ports: [ReservedAddress; 2],
}

impl Demo {
    fn start(arguments: &Arguments) -> Result<Self, String> {
        let began = Instant::now();
        let server = match arguments.listen {
            Some(address) => ReservedAddress::new(address)
                .map_err(|error| format!("cannot listen on {address}: {error}"))?,
            None => ReservedAddress::preferred(LISTEN).map_err(no_ports)?,
        };
        let admin = ReservedAddress::preferred(ADMIN).map_err(no_ports)?;
        let members = Member::all().map_err(no_ports)?;
        let file = write_configuration(server.address(), admin.address(), &members)
            .map_err(|error| format!("cannot write its configuration file: {error}"))?;
        let place = place_of(arguments, &server, &admin, &members, &file);
        let names = place.roles.iter();
        let names = names.map(|(label, role)| (format!("web/{label}"), *role));
        let journal = Journal::new(began, names.collect());
        let threads = |error: io::Error| format!("cannot start a thread: {error}");
        let events = Events::to_writer(journal.writer()).map_err(threads)?;
        let (load, gate) = Load::start(members, events.clone()).map_err(threads)?;
        let control_plane = ControlPlane::start(file.path().to_owned(), events.clone())
            .map_err(|error| error.to_string())?;
        let traffic = (!arguments.no_traffic).then(Arc::<Traffic>::default);
        if let Some(traffic) = &traffic {
            let clients = Clients {
                server: reachable(server.address()),
                rate: arguments.rate,
                events,
                traffic: Arc::clone(traffic),
            };
            gate.open(clients, Arc::clone(&control_plane.observed));
        }
        Ok(Self {
            began,
            place,
            journal,
            control_plane,
            load,
            traffic,
            _file: file,
            _ports: [server, admin],
        })
    }

    /// Shows the demo until it ends, stops all parts, and prints a summary.
    fn run(self, arguments: &Arguments) -> Result<(), String> {
        let mut reader = Reader::new(
            Arc::clone(&self.control_plane.observed),
            self.traffic.clone(),
            self.journal.clone(),
            self.place.roles.clone(),
        );
        let shown = self.show(&mut reader, arguments);
        let uptime = self.began.elapsed();
        self.load.stop_clients();
        let served = self.control_plane.end();
        let picture = reader.picture(uptime);
        self.load.end();
        // If the reader or the terminal is gone, the summary is not printed.
        let _ = shown.and_then(|()| plain::write_summary(&mut io::stdout().lock(), &picture));
        served.map_err(|error| error.to_string())
    }

    fn show(&self, reader: &mut Reader, arguments: &Arguments) -> io::Result<()> {
        let end = arguments.duration.map(|duration| self.began + duration);
        let is_over =
            || self.control_plane.is_ending() || end.is_some_and(|end| Instant::now() >= end);
        if arguments.plain || !screen::is_there() {
            let output = &mut io::stdout().lock();
            return plain::show(output, &self.place, reader, &self.journal, self.began, is_over);
        }
        if let Some(note) = &self.place.note {
            self.journal.push("info", note);
        }
        let traffic = self.traffic.as_deref();
        terminal::show(&self.place, reader, &self.journal, traffic, self.began, is_over)
    }
}

fn no_ports(error: io::Error) -> String {
    format!("cannot have a port on 127.0.0.1: {error}")
}

fn write_configuration(
    server: SocketAddr,
    admin: SocketAddr,
    members: &[Member],
) -> io::Result<ConfigurationFile> {
    let mut replacements = vec![
        (configuration::LISTEN, server.to_string()),
        (configuration::ADMIN, admin.to_string()),
    ];
    let addresses = members.iter().map(|member| member.address().to_string());
    replacements.extend(configuration::MEMBERS.into_iter().zip(addresses));
    ConfigurationFile::write(&configuration::fill(configuration::TEMPLATE, &replacements))
}

fn place_of(
    arguments: &Arguments,
    server: &ReservedAddress,
    admin: &ReservedAddress,
    members: &[Member],
    file: &ConfigurationFile,
) -> Place {
    let moved = arguments.listen.is_none() && server.address() != LISTEN;
    Place {
        server_url: format!("http://{}", reachable(server.address())),
        admin_url: format!("http://{}", admin.address()),
        file: file.path().display().to_string(),
        command: std::env::args().next().unwrap_or_else(|| "weir".into()),
        process_id: std::process::id(),
        roles: members.iter().map(|member| (member.address().to_string(), member.role)).collect(),
        note: moved.then(|| {
            let port = server.address().port();
            format!("{LISTEN} is taken, so port {port} is used (--listen chooses)")
        }),
    }
}

/// A local address for a listener: a listener on all addresses is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_on_all_addresses_are_reached_on_loopback() {
        let check = |address: &str, expected: &str| {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        };
        check("0.0.0.0:80", "127.0.0.1:80");
        check("[::]:80", "[::1]:80");
        check("127.0.0.2:80", "127.0.0.2:80");
    }
}
