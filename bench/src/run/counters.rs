//! Tools that count the work of a product: callgrind its instructions, perf its system calls.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::process::find_program;

/// Prefix of the files that callgrind writes; the process id follows.
const CALLGRIND_FILE: &str = "callgrind.";
/// The event that perf counts.
const SYSTEM_CALLS_EVENT: &str = "raw_syscalls:sys_enter";

/// Counts the user-space instructions of a product and its child processes, from start to end.
#[derive(Debug)]
pub struct Callgrind {
    program: PathBuf,
    folder: PathBuf,
}

impl Callgrind {
    /// Writes the counts to that folder; the error names the package to install.
    pub fn find(folder: PathBuf) -> Result<Self, String> {
        let program = find_program("valgrind")
            .ok_or("valgrind is not in PATH; install it (apt-get install valgrind)")?;
        Ok(Self { program, folder })
    }

    /// Command prefix for the product.
    pub fn words(&self) -> Vec<OsString> {
        let mut out = OsString::from("--callgrind-out-file=");
        out.push(self.folder.join(CALLGRIND_FILE));
        out.push("%p");
        // Follows programs that start the real one, such as Envoy's Python package.
        let options = ["--tool=callgrind", "--quiet", "--trace-children=yes"];
        let program = self.program.clone().into_os_string();
        std::iter::once(program).chain(options.map(OsString::from)).chain([out]).collect()
    }

    /// The instructions of all processes together. Call it after they have ended.
    pub fn total(&self) -> Result<u64, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        let mut totals = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(CALLGRIND_FILE) {
                let text = fs::read(entry.path()).map_err(failed)?;
                totals.extend(parse_total(&String::from_utf8_lossy(&text)));
            }
        }
        if totals.is_empty() {
            return Err("callgrind wrote no totals: the product did not end by itself".into());
        }
        Ok(totals.into_iter().sum())
    }
}

/// Parses `summary: 8066` or `totals: 8066`; each file has one of the two.
fn parse_total(text: &str) -> Option<u64> {
    let value = |name| text.lines().find_map(|line| line.strip_prefix(name));
    value("totals:").or_else(|| value("summary:"))?.split_whitespace().next()?.parse().ok()
}

/// Counts the system calls of running processes.
#[derive(Debug)]
pub struct SystemCalls {
    perf: Child,
    /// Closing this ends the counting.
    gate: ChildStdin,
    _echo: BufReader<ChildStdout>,
}

impl SystemCalls {
    /// Begins to count; the error has the reason for a failure.
    pub fn begin(processes: &[u32]) -> Result<Self, String> {
        let program = find_program("perf")
            .ok_or("perf is not in PATH; install it (apt-get install linux-perf)")?;
        let list: Vec<String> = processes.iter().map(u32::to_string).collect();
        // perf starts the command when its counters run: the echo of `cat` confirms the start.
        let mut perf = Command::new(program)
            .args(["stat", "-x;", "-e", SYSTEM_CALLS_EVENT, "-p", &list.join(","), "--", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf cannot be started: {error}"))?;
        let pipes = perf.stdin.take().zip(perf.stdout.take());
        let Some((mut gate, echo)) = pipes else { return Err("perf has no pipes".into()) };
        let mut echo = BufReader::new(echo);
        let mut line = String::new();
        // If perf ended at once, both calls fail, and perf's message explains more.
        let is_counting = writeln!(gate, "counting").and_then(|()| echo.read_line(&mut line));
        let counting = Self { perf, gate, _echo: echo };
        match is_counting {
            Ok(1..) => Ok(counting),
            Ok(0) | Err(_) => Err(counting.end().err().unwrap_or_else(|| "perf ended".into())),
        }
    }

    /// Ends the counting; returns the number of system calls.
    pub fn end(self) -> Result<u64, String> {
        let Self { mut perf, gate, .. } = self;
        drop(gate);
        let mut said = String::new();
        if let Some(mut stderr) = perf.stderr.take() {
            stderr.read_to_string(&mut said).map_err(|error| format!("perf: {error}"))?;
        }
        perf.wait().map_err(|error| format!("perf: {error}"))?;
        parse_perf(&said).ok_or_else(|| {
            let said = said.trim();
            format!("perf counted nothing (it needs root and the tracing file system): {said}")
        })
    }
}

/// Parses `1234;;raw_syscalls:sys_enter;...`.
fn parse_perf(text: &str) -> Option<u64> {
    let of_event = |line: &str| -> Option<u64> {
        let fields: Vec<&str> = line.split(';').collect();
        fields.get(2).filter(|name| name.starts_with(SYSTEM_CALLS_EVENT))?;
        fields[0].trim().parse().ok()
    };
    text.lines().find_map(of_event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_callgrind() {
        let check = |text, expected| assert_eq!(parse_total(text), expected, "{text}");
        check("# callgrind format\nsummary: 8066\n\nfn=(1)\n1 5\ntotals: 8067\n", Some(8_067));
        check("summary: 8066 12\n", Some(8_066));
        check("events: Ir\n", None);
        check("totals: many\n", None);
    }

    #[test]
    fn counts_of_perf() {
        let check = |text, expected| assert_eq!(parse_perf(text), expected, "{text}");
        check("29;;raw_syscalls:sys_enter;864715;100.00;;\n", Some(29));
        check("a warning\n29;;raw_syscalls:sys_enter:u;1;100.00;;\n", Some(29));
        check("<not counted>;;raw_syscalls:sys_enter;0;100.00;;\n", None);
        check("29;;cycles;1;100.00;;\n", None);
        check("event syntax error: 'raw_syscalls:sys_enter'\n", None);
    }

    #[test]
    fn processes_of_callgrind_add_up() {
        let folder = crate::run::testing::folder("callgrind");
        fs::create_dir_all(&folder).expect("a folder");
        let callgrind = Callgrind { program: "valgrind".into(), folder: folder.clone() };
        assert!(callgrind.total().is_err());
        for (name, text) in [
            ("callgrind.1", "totals: 5\n"),
            ("callgrind.22", "summary: 7\n"),
            ("callgrind.333", ""),
            ("output.log", "totals: 100\n"),
        ] {
            fs::write(folder.join(name), text).expect("a file");
        }
        assert_eq!(callgrind.total(), Ok(12));
        let words = callgrind.words();
        let out = format!("--callgrind-out-file={}/callgrind.%p", folder.display());
        assert_eq!(words.last(), Some(&OsString::from(out)));
        fs::remove_dir_all(&folder).expect("removing it");
    }

    /// Skips the test if perf is not permitted. With `WEIR_TEST_STRICT` this is a failure.
    #[test]
    fn system_calls_of_this_process() {
        let counting = match SystemCalls::begin(&[std::process::id()]) {
            Ok(counting) => counting,
            Err(reason) => {
                return weir_testing::skip(&format!("system calls are not counted: {reason}"));
            }
        };
        for _ in 0..1_000 {
            let _ = fs::metadata("/nonexistent");
        }
        let counted = counting.end().expect("a count");
        // Other tests of this process make system calls too.
        assert!(counted >= 1_000, "{counted}");
    }
}
