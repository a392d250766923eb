//! `weir explain`: explains how a request would be processed, or how one was.

mod recorded_request;
mod text;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use weir_api::asked::Asked;
use weir_api::explanation::Explanation;
use weir_api::recorded::RequestExplanation;
use weir_cli::output;
use weir_config::Colour;
use weir_control::explanations;

use crate::admin::client::segment;
use crate::admin::error::Error;
use crate::admin::{self, Connection, EXIT_REFUSED};

const COMMAND: &str = "weir explain";

/// Show why a request would go where it goes, or why one went where it went
///
/// With a request id: what was recorded of that request, and its rules once more with the values that they compare. See
/// `weir requests`.
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
                        weir explain shop.example --virtual-server shop --json | jq .outcome\n  \
                        weir explain 5e0c1f5d9a3b4c7e8f00000000000012")]
pub struct Arguments {
    /// The URL to request, or the request id of a recorded request
    #[arg(value_name = "URL|ID")]
    request: String,

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

    /// The argument is a request id, even if it looks like a URL
    #[arg(long, conflicts_with_all = ["method", "header", "body", "from", "http2", "virtual_server", "config"])]
    id: bool,

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
    if arguments.id || is_id(arguments) {
        return explain_recorded(arguments);
    }
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

/// Whether the argument is a request id: a word that no URL is, and no other option says that it is a request to make up.
/// Clients and proxies choose ids of other forms than weir's, and a part of an id is no host either.
fn is_id(arguments: &Arguments) -> bool {
    let is_made_up = arguments.method.is_some()
        || !arguments.header.is_empty()
        || arguments.body.is_some()
        || arguments.from.is_some()
        || arguments.http2
        || arguments.virtual_server.is_some()
        || arguments.config.is_some();
    !is_made_up && is_word(&arguments.request)
}

/// Whether this is neither a URL nor a host with a domain, a port or a path.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text != "localhost" && !text.contains([':', '/', '.', '?', '['])
}

fn explain_recorded(arguments: &Arguments) -> ExitCode {
    let told = || {
        let client = arguments.connection.client()?;
        let path = format!("/v1/requests/{}/explanation", segment(&arguments.request));
        let document = client.get(&path).map_err(|error| hinted(error, &arguments.request))?;
        let explanation: RequestExplanation = client.read(&document)?;
        Ok(match arguments.json {
            true => String::from_utf8_lossy(&document).into_owned(),
            false => recorded_request::render(&explanation, admin::paint_of_stdout()),
        })
    };
    match told() {
        Ok(text) => admin::print(COMMAND, &text),
        Err(error) => admin::refuse(COMMAND, &error),
    }
}

/// Says how to ask for a host, if there is no request with such an id.
fn hinted(error: Error, request: &str) -> Error {
    match error {
        Error::Refused { status: 404, error, help, findings } => {
            let url =
                format!("for a request to a host of this name: weir explain http://{request}/");
            let help = help.map_or_else(|| url.clone(), |help| format!("{help}; {url}"));
            Error::Refused { status: 404, error, help: Some(help), findings }
        }
        other => other,
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
        url: arguments.request.clone(),
        method: arguments.method.clone(),
        headers: arguments.header.clone(),
        body: body.transpose()?,
        from: arguments.from,
        http2: arguments.http2,
        virtual_server: arguments.virtual_server.clone(),
    })
}

fn by_file(file: &Path, asked: &Asked) -> Result<Explanation, String> {
    let loaded = weir_sources::load(file);
    let Some(config) = &loaded.config else {
        let findings = weir_config::render_text(&loaded.diagnostics, Colour::Never);
        return Err(format!("invalid configuration\n{}", findings.trim_end()));
    };
    explanations::by_configuration(config, asked).map_err(|why| why.to_string())
}

fn by_running(arguments: &Arguments, asked: &Asked) -> Result<Explanation, ExitCode> {
    let told = || {
        let client = arguments.connection.client()?;
        let document = client.post("/v1/explain", asked)?;
        client.read(&document)
    };
    told().map_err(|error| admin::refuse(COMMAND, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_an_id_and_not_a_host() {
        let check = |text, expected| assert_eq!(is_word(text), expected, "{text}");
        check("5e0c1f5d9a3b4c7e8f00000000000012", true);
        check("5e0c1f5d", true);
        check("6f1c2a00-1b2c-4d5e-8f90-0123456789ab", true);
        check("req_0001", true);
        check("http://shop/", false);
        check("shop.example", false);
        check("shop:8080", false);
        check("shop/cart", false);
        check("[::1]", false);
        check("localhost", false);
    }
}
