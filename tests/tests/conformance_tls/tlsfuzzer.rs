//! tlsfuzzer: all scripts of a checkout except the excluded ones.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_tests::member::Member;
use weir_tests::proxy::{Proxy, Setup};
use weir_tests::stream::StreamMember;
use weir_tests::{tls, tools};

use super::scripts::{LEFT_OUT, SCRIPTS, Script, Server};

/// Python code that runs before each script. It replaces the CBC suites of the scripts' `-d` by AES-GCM suites. It also adds
/// the usual groups and signature schemes to TLS 1.2 ClientHellos without them, which rustls refuses.
const PRELUDE: &str = r#"
import runpy, sys
from tlslite.constants import CipherSuite, ExtensionType, GroupName
from tlslite.extensions import SignatureAlgorithmsExtension, SupportedGroupsExtension
from tlsfuzzer.messages import ClientHelloGenerator
from tlsfuzzer.helpers import SIG_ALL
usual = {
    ExtensionType.supported_groups:
        SupportedGroupsExtension().create([GroupName.x25519, GroupName.secp256r1]),
    ExtensionType.signature_algorithms: SignatureAlgorithmsExtension().create(SIG_ALL),
}
made = ClientHelloGenerator.__init__
def make(self, ciphers=None, extensions=None, version=None, session_id=None, random=None, compression=None, ssl2=False, modifiers=None):
    if not ssl2 and version in (None, (3, 3)) and ExtensionType.supported_versions not in (extensions or {}):
        extensions = {**(extensions or {})}
        for kind, extension in usual.items():
            extensions.setdefault(kind, extension)
    made(self, ciphers, extensions, version, session_id, random, compression, ssl2, modifiers)
ClientHelloGenerator.__init__ = make
for key in ("ECDHE_RSA", "ECDHE_ECDSA", "DHE_RSA"):
    setattr(CipherSuite, f"TLS_{key}_WITH_AES_128_CBC_SHA", CipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"#;
/// A script that runs longer than this number of seconds has hung.
const SCRIPT_SECONDS_MAX: &str = "120";
/// The number of concurrent scripts.
const SCRIPTS_AT_ONCE: usize = 2;

/// The result of a script.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    expected: usize,
    unexpected: Vec<String>,
}

impl Script {
    /// Parses the script's output: the name of each conversation, with `OK` or an error.
    fn judge(&self, text: &str, ended_well: bool) -> Outcome {
        let mut outcome = Outcome::default();
        let text = text.split("\nTest end").next().unwrap_or_default();
        let mut conversations: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in text.lines() {
            let is_head = line.ends_with("...") || line.contains("\" repeat ");
            if is_head && !line.starts_with(' ') {
                conversations.push((line.trim_end_matches('.').trim_end(), Vec::new()));
            } else if let Some((_, lines)) = conversations.last_mut() {
                lines.push(line);
            }
        }
        for (name, lines) in &conversations {
            let wrong = || lines.iter().rev().find(|line| line.contains("Error"));
            if lines.contains(&"OK") {
                outcome.passed += 1;
                continue;
            }
            let wrong = wrong().copied().unwrap_or("no result");
            let is_known = |(start, part, _): &&(&str, &str, &str)| {
                name.starts_with(start) && wrong.contains(part)
            };
            match self.expected.iter().find(is_known) {
                Some(_) => outcome.expected += 1,
                None => outcome.unexpected.push(format!("{}: {name}: {wrong}", self.name)),
            }
        }
        if conversations.is_empty()
            || (!ended_well && outcome.expected + outcome.unexpected.len() == 0)
        {
            let last = text.lines().last().unwrap_or_default();
            outcome.unexpected.push(format!("{}: it did not end well: {last}", self.name));
        }
        outcome
    }
}

#[test]
fn tlsfuzzer() {
    let Some(folder) = tools::suite("WEIR_TLSFUZZER") else {
        return;
    };
    let missing = scripts_of(&folder).into_iter().filter(|name| {
        let is_run = SCRIPTS.iter().any(|script| script.name == name);
        !is_run && !LEFT_OUT.iter().any(|(start, _)| name.starts_with(start))
    });
    println!("scripts that are newer than the table: {:?}", missing.collect::<Vec<_>>());

    let python = std::env::var_os("WEIR_PYTHON").unwrap_or_else(|| "python3".into());
    let member = Member::new(|exchange| exchange.answer("hello"));
    let echo = StreamMember::echo("");
    let tls = |name: &str, more: &str| {
        format!("tls: {{ certificates: [ {} ], {more} }}", tls::pair(name))
    };
    let start = |tls: &str| Proxy::start(&Setup::new(&[member.address()]).virtual_server(tls));
    let clients =
        format!("client_certificates: {{ mode: request, ca: {} }}", tls::file("authorities.crt"));
    let rsa = start(&tls("shop-rsa", ""));
    let ec = start(&tls("shop-ec", ""));
    let both = start(&tls::shop(""));
    let stateful = start(&tls("shop-rsa", "resumption: stateful"));
    let asking = start(&tls("shop-rsa", &clients));
    let relay = Setup::new(&[echo.address()]).virtual_server("type: tcp");
    let relay = Proxy::start(&relay.virtual_server(&tls("shop-rsa", "")));

    let run = |script: &Script| {
        let (proxy, client) = match script.server {
            Server::Rsa => (&rsa, None),
            Server::Ec => (&ec, None),
            Server::Both => (&both, None),
            Server::Stateful => (&stateful, None),
            Server::ClientRsa => (&asking, Some("shop-rsa")),
            Server::ClientEc => (&asking, Some("shop-ec")),
            Server::Echo => (&relay, None),
        };
        let mut command = Command::new("timeout");
        command.arg(SCRIPT_SECONDS_MAX).arg(&python).args(["-B", "-c", PRELUDE]);
        command.arg(format!("scripts/test-{}.py", script.name));
        command.args(["-h", "127.0.0.1", "-p", &proxy.address().port().to_string()]);
        command.args(script.options.split_whitespace());
        if let Some(name) = client {
            command.arg("-k").arg(tls::file(&format!("{name}.key")));
            command.arg("-c").arg(tls::file(&format!("{name}.crt")));
        }
        let output = command.env("PYTHONPATH", ".").current_dir(&folder).output().expect("Python");
        let text = [output.stdout, output.stderr].concat();
        script.judge(&String::from_utf8_lossy(&text), output.status.success())
    };
    let only = std::env::var("WEIR_TLSFUZZER_ONLY").ok();
    let is_wanted = |script: &&Script| only.as_ref().is_none_or(|only| only == script.name);
    let scripts: Vec<&Script> = SCRIPTS.iter().filter(is_wanted).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut total = Outcome::default();
        while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(script);
            let Outcome { passed, expected, unexpected } = outcome;
            println!("{}: {passed} passed, {expected} expected failures", script.name);
            total.passed += passed;
            total.expected += expected;
            total.unexpected.extend(unexpected);
        }
        total
    };
    let totals = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..SCRIPTS_AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect::<Vec<_>>()
    });
    let sum = |part: fn(&Outcome) -> usize| totals.iter().map(part).sum::<usize>();
    let (passed, expected) = (sum(|it| it.passed), sum(|it| it.expected));
    println!(
        "tlsfuzzer: {} scripts, {passed} conversations passed, {expected} expected failures",
        scripts.len()
    );
    let unexpected: Vec<String> = totals.into_iter().flat_map(|it| it.unexpected).collect();
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

/// The names of the scripts of a checkout.
fn scripts_of(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder.join("scripts")).expect("tlsfuzzer's scripts");
    let names = files.flatten().filter_map(|file| file.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_prefix("test-")?.strip_suffix(".py")?.to_owned()))
        .collect()
}
