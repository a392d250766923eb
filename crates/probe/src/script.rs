//! The script part of a probe: a user's program, in its own process group.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use weir_config::snapshot::{Address, ScriptProbe};
use weir_core::monitor::ProbeOutcome;

use super::failure::{Deadline, Failure, Step};
use super::subject::Subject;

/// Maximum size of the standard error output that is stored for the reason, in bytes.
const SAID_BYTES_MAX: usize = 512;
/// The wait for the end of the output after the script has ended.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(100);

/// The process group of the script. All its processes are killed on drop.
struct Group {
    child: Child,
    id: Option<Pid>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            // The processes may have ended already.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Runs the script. Its exit status is the result.
pub(super) async fn run(
    probe: &ScriptProbe,
    subject: &Subject,
    address: &Address,
    deadline: Deadline,
) -> Result<ProbeOutcome, Failure> {
    let (program, arguments) = match probe.command.split_first() {
        Some((program, arguments)) => (&**program, arguments),
        None => return Err(Failure::Script("there is no command".into())),
    };
    let mut command = Command::new(program);
    command
        .args(arguments.iter().map(|argument| &**argument))
        .env("WEIR_POOL", &*subject.pool)
        .env("WEIR_MEMBER", &*subject.member)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    match address {
        Address::Socket(socket) | Address::Udp(socket) => {
            command.env("WEIR_ADDRESS", socket.ip().to_string());
            command.env("WEIR_PORT", socket.port().to_string())
        }
        Address::Unix(path) => command.env("WEIR_ADDRESS", path).env_remove("WEIR_PORT"),
    };
    let mut child = command.spawn().map_err(|error| not_started(program, error))?;
    let stderr = child.stderr.take();
    let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let mut group = Group { child, id };
    let mut said = Vec::new();
    let ended = async {
        let mut listening = pin!(listen(stderr, &mut said));
        let status = tokio::select! {
            status = group.child.wait() => status,
            () = &mut listening => return group.child.wait().await,
        };
        // The last output may still be unread, and child processes may hold standard error open.
        let _ = tokio::time::timeout(LAST_WORDS_TIMEOUT, listening).await;
        status
    };
    let status = deadline.within(Step::Running, ended).await?;
    let status =
        status.map_err(|error| Failure::Script(format!("cannot be waited for: {error}")))?;
    if status.success() {
        return Ok(ProbeOutcome::Passed);
    }
    Err(Failure::Script(reason(status, &said)))
}

/// Stores the beginning of the output, and reads the rest, so that the script never blocks.
async fn listen(stderr: Option<impl AsyncRead + Unpin>, said: &mut Vec<u8>) {
    let Some(mut stderr) = stderr else { return };
    let mut part = [0; SAID_BYTES_MAX];
    while let Ok(length) = stderr.read(&mut part).await
        && length > 0
    {
        let room = SAID_BYTES_MAX - said.len();
        said.extend_from_slice(&part[..length.min(room)]);
    }
}

fn not_started(program: &str, error: io::Error) -> Failure {
    use rustix::io::Errno;
    let local = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    match error.raw_os_error() {
        Some(code) if local.iter().any(|errno| errno.raw_os_error() == code) => {
            Failure::Local(error)
        }
        _ => Failure::Script(format!("{program} cannot be started: {error}")),
    }
}

/// The reason as text: `the script ended with 2: database is read-only`.
fn reason(status: ExitStatus, said: &[u8]) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("the script ended with {code}"),
        (None, Some(signal)) => format!("the script was ended by signal {signal}"),
        (None, None) => "the script ended".to_owned(),
    };
    let said = String::from_utf8_lossy(said);
    match said.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{how}: {}", line.escape_debug()),
        None => how,
    }
}
