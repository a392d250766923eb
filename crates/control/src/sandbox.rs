//! The decision whether worker threads may open files.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use weir_config::snapshot::Sandbox;
use weir_event_loop::confine;

/// The sandbox of the worker threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Sandbox")]
pub struct SandboxStatus {
    /// The setting at startup: `auto`, `on` or `off`.
    pub setting: &'static str,
    /// Whether the workers cannot open files.
    pub is_on: bool,
    /// The version of the kernel's Landlock ABI; `null`: Landlock does not restrict the workers.
    pub landlock_version: Option<u32>,
    /// The reason why the sandbox is off, if the setting is `auto`.
    pub why: Option<String>,
}

/// Decides whether to use the sandbox, by the setting and by a trial on a temporary thread. Fails if the sandbox is required
/// but not possible.
pub fn decide(setting: Sandbox) -> io::Result<SandboxStatus> {
    judge(setting, || {
        if !confine::may_be_asked_for() {
            let what = "a filter of system calls forbids it (systemd: add landlock_create_ruleset landlock_restrict_self to SystemCallFilter=)";
            return Err(io::Error::other(what));
        }
        let trial = std::thread::spawn(confine::without_files).join();
        trial.unwrap_or_else(|_| Err(io::Error::other("the trial panicked")))
    })
}

fn judge(setting: Sandbox, trial: impl FnOnce() -> io::Result<u32>) -> io::Result<SandboxStatus> {
    let mut status = SandboxStatus {
        setting: setting.as_str(),
        is_on: false,
        landlock_version: None,
        why: None,
    };
    if setting == Sandbox::Off {
        return Ok(status);
    }
    match (trial(), setting) {
        (Ok(version), _) => {
            status.is_on = true;
            status.landlock_version = Some(version);
        }
        (Err(error), Sandbox::On) => return Err(error),
        (Err(error), _) => {
            status.why = Some(format!("the kernel has no Landlock for weir: {error}"))
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_and_the_kernel_decide() {
        let check = |setting, can: bool, expected: Option<bool>| {
            let trial = || if can { Ok(7) } else { Err(io::ErrorKind::Unsupported.into()) };
            let found = judge(setting, trial);
            assert_eq!(found.as_ref().ok().map(|it| it.is_on), expected, "{setting:?} {can}");
            if let Ok(found) = found {
                let is_wanted_in_vain = setting == Sandbox::Auto && !can;
                assert_eq!(found.why.is_some(), is_wanted_in_vain, "{setting:?} {can}");
            }
        };
        check(Sandbox::Auto, true, Some(true));
        check(Sandbox::Auto, false, Some(false));
        check(Sandbox::On, true, Some(true));
        check(Sandbox::On, false, None);
        check(Sandbox::Off, true, Some(false));
    }
}
