//! `weir explain`: explains how a request would be processed.

mod text;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use weir_config::Colour;
use weir_control::explaining;
use weir_explain::{Asked, Explanation};

use crate::admin::{self, Connection, EXIT_REFUSED};
use crate::output;

const COMMAND: &str = "weir explain";

/// Show why a request would go where it goes
///
/// A running weir decides about the request as it would about a real one, by its state of this moment, and changes
/// nothing: no counter, no limit, no persistence. Shown are the virtual server and its certificate, limits and the room
/// under them, each rule with its place in the file and the values that it reads, persistence, the web application
/// firewall, the members and what the member would get. Secrets are masked.
///
/// Needs the unix socket of the admin listener, or a token with the role admin. With --config, a configuration file
/// decides instead, as if all members were up.
///
/// Exit status: 0 explained, whatever becomes of the request; 1 refused; 2 wrong usage; 3 weir cannot be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        weir explain https://shop.example/cart\n  \
                        weir explain http://127.0.0.1:8080/ -H 'Cookie: WEIR=…' --from 203.0.113.7\n  \
                        weir explain --config weir.yaml https://shop.example/login -X POST --body login.txt\n  \
                        weir explain shop.example --virtual-server shop --json | jq .outcome")]
pub struct Arguments {
    /// The URL to request
    url: String,

    /// The method [default: GET, or POST with --body]
    #[arg(short = 'X', long, value_name = "METHOD")]
    method: Option<String>,

    /// A header such as 'Cookie: a=b'
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,

    /// A file with the body
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,

    /// The address that the connection comes from [default: 127.0.0.1]
    #[arg(long, value_name = "IP")]
    from: Option<IpAddr>,

    /// The request comes by HTTP/2
    #[arg(long)]
    http2: bool,

    /// The virtual server that it comes to [default: by the URL's port, host and scheme]
    #[arg(long, value_name = "NAME")]
    virtual_server: Option<String>,

    /// Explain by this file, not by a running weir
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    connection: Connection,

    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments) -> ExitCode {
    let asked = match asked(arguments) {
        Ok(asked) => asked,
        Err(why) => return refuse(&why),
    };
    let answer = match &arguments.config {
        Some(file) => by_file(file, &asked).map_err(|why| refuse(&why)),
        None => by_running(arguments, &asked),
    };
    match answer {
        Ok(explanation) if arguments.json => match serde_json::to_string_pretty(&explanation) {
            Ok(json) => admin::print(COMMAND, &format!("{json}\n")),
            Err(error) => refuse(&error.to_string()),
        },
        Ok(explanation) => {
            admin::print(COMMAND, &text::render(&explanation, admin::paint_of_stdout()))
        }
        Err(status) => status,
    }
}

fn refuse(why: &str) -> ExitCode {
    output::tell(format_args!("{COMMAND}: {why}\n"));
    ExitCode::from(EXIT_REFUSED)
}

fn asked(arguments: &Arguments) -> Result<Asked, String> {
    let body = arguments.body.as_ref().map(|file| {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        String::from_utf8(bytes).map_err(|_| format!("{}: it is not UTF-8", file.display()))
    });
    Ok(Asked {
        url: arguments.url.clone(),
        method: arguments.method.clone(),
        headers: arguments.header.clone(),
        body: body.transpose()?,
        from: arguments.from,
        http2: arguments.http2,
        virtual_server: arguments.virtual_server.clone(),
    })
}

fn by_file(file: &Path, asked: &Asked) -> Result<Explanation, String> {
    let loaded = weir_config::load(file);
    let Some(config) = &loaded.config else {
        let findings = weir_config::render_text(&loaded.diagnostics, Colour::Never);
        return Err(format!("invalid configuration\n{}", findings.trim_end()));
    };
    explaining::by_configuration(config, asked).map_err(|why| why.to_string())
}

fn by_running(arguments: &Arguments, asked: &Asked) -> Result<Explanation, ExitCode> {
    let told = || {
        let client = arguments.connection.client()?;
        let question = serde_json::json!(asked);
        let document = client.post("/v1/explain", &question)?;
        client.read(&document)
    };
    told().map_err(|error| admin::refuse(COMMAND, &error))
}
