//! `weir requests`: recent requests of a running weir.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use weir_api::page::Page;
use weir_api::recorded::RequestSummary;

use crate::admin::client::segment;
use crate::admin::error::Error;
use crate::admin::text::{Paint, Tone, latency};
use crate::admin::{self, Connection};

const COMMAND: &str = "weir requests";

/// Maximum number of requests per page of the API.
const COUNT_MAX: u32 = 1_000;

/// Show recent requests of a running weir, newest last
///
/// Shows requests that `recent_requests` of the configuration has kept. Secrets in them are masked. `weir explain ID` shows why a
/// request went where it went.
///
/// Needs the unix socket of the admin listener, or a token with the role operate.
///
/// Exit status: 0 shown; 1 refused, or requests are not recorded; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir requests\n  \
                        weir requests --slow\n  \
                        weir requests --virtual-server shop --status 5xx -n 100\n  \
                        weir requests --json | jq '.items[] | [.id, .total_us]'")]
pub struct Arguments {
    #[command(flatten)]
    filter: Filter,

    /// Show this many
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX)))]
    count: u32,

    #[command(flatten)]
    connection: Connection,

    /// Print the admin listener's JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Which requests are shown.
#[derive(Debug, Args)]
pub struct Filter {
    /// Only requests that this virtual server got, or decided about
    #[arg(long, value_name = "NAME")]
    virtual_server: Option<String>,

    /// Only answers with this status, or of this class: 404, 5xx
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Only requests that took as long as `recent_requests.slow`, or longer
    #[arg(long)]
    slow: bool,

    /// Only requests that this member got last: 10.0.0.11:80
    #[arg(long, value_name = "ADDRESS")]
    member: Option<String>,

    /// Only requests of this client
    #[arg(long, value_name = "IP")]
    client: Option<IpAddr>,

    /// Only requests that the web application firewall found something in, or blocked
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "found")]
    waf: Option<Waf>,
}

/// What the firewall did.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Waf {
    /// It found something
    Found,
    /// It blocked the request
    Blocked,
}

impl Filter {
    /// The query of the API: `?status=5xx`.
    pub fn query(&self, count: Option<u32>) -> String {
        let waf = self.waf.map(|waf| match waf {
            Waf::Found => "found".to_owned(),
            Waf::Blocked => "blocked".to_owned(),
        });
        let parameters = [
            ("limit", count.map(|count| count.to_string())),
            ("virtual_server", self.virtual_server.clone()),
            ("status", self.status.clone()),
            ("slow", self.slow.then(|| "true".to_owned())),
            ("member", self.member.clone()),
            ("client", self.client.map(|client| client.to_string())),
            ("waf", waf),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let given: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", segment(&value))).collect();
        match given.is_empty() {
            true => String::new(),
            false => format!("?{}", given.join("&")),
        }
    }
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    match answer(arguments, admin::paint_of_stdout()) {
        Ok(text) => admin::print(COMMAND, &text),
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

fn answer(arguments: &Arguments, paint: Paint) -> Result<String, Error> {
    let client = arguments.connection.client()?;
    let query = arguments.filter.query(Some(arguments.count));
    let document = client.get(&format!("/v1/requests{query}"))?;
    let page: Page<RequestSummary> = client.read(&document)?;
    if arguments.json {
        return Ok(String::from_utf8_lossy(&document).into_owned());
    }
    Ok(page.items.iter().rev().map(|request| line(request, paint)).collect())
}

/// Formats a request as one line.
pub fn line(request: &RequestSummary, paint: Paint) -> String {
    let mut text = weir_control::time::rfc3339(request.begun_unix_ms);
    let duration = latency(Some(request.amounts.total_us as f64 / 1_000.0));
    let status = match request.status {
        0 => "-".to_owned(),
        status => status.to_string(),
    };
    let server = &request.virtual_server;
    let to = match (&request.member, &request.pool) {
        (Some(member), _) => member,
        (None, Some(pool)) => pool,
        (None, None) => "-",
    };
    let what = match (&request.asked.method, &request.asked.host, &request.asked.target) {
        (Some(method), Some(host), Some(target)) => format!("{method} {host}{target}"),
        _ => "-".to_owned(),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "  {status:>3}  {duration:>8}  {server} -> {to}  {what}  from {}",
        request.client.as_deref().unwrap_or("a unix socket")
    );
    if request.termination != "complete" {
        let _ = write!(text, "  {}", request.termination);
    }
    if let Some(waf) = request.waf.as_ref().filter(|waf| *waf != "passed") {
        let _ = write!(text, "  waf: {waf}");
    }
    let _ = write!(text, "  {}", request.id);
    let tone = match request.status {
        500.. => Tone::Wrong,
        _ if request.is_slow => Tone::Unusual,
        _ => Tone::Plain,
    };
    paint.line(tone, "  ", &text)
}
