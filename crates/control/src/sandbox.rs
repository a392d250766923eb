//! The decision whether worker threads may open files.

use std::io;

use weir_api::process::Sandbox;
use weir_config::snapshot::Sandbox as Setting;
use weir_event_loop::confine;

/// Decides whether to use the sandbox, by the setting and by a trial on a temporary thread. Fails if the sandbox is required
/// but not possible.
pub fn decide(setting: Setting) -> io::Result<Sandbox> {
    judge(setting, || {
        if !confine::may_be_asked_for() {
            let what = "a filter of system calls forbids it (systemd: add landlock_create_ruleset landlock_restrict_self to SystemCallFilter=)";
            return Err(io::Error::other(what));
        }
        let trial = std::thread::spawn(confine::without_files).join();
        trial.unwrap_or_else(|_| Err(io::Error::other("the trial panicked")))
    })
}

fn judge(setting: Setting, trial: impl FnOnce() -> io::Result<u32>) -> io::Result<Sandbox> {
    let mut status = Sandbox {
        setting: setting.as_str().to_owned(),
        is_on: false,
        landlock_version: None,
        why: None,
    };
    if setting == Setting::Off {
        return Ok(status);
    }
    match (trial(), setting) {
        (Ok(version), _) => {
            status.is_on = true;
            status.landlock_version = Some(version);
        }
        (Err(error), Setting::On) => return Err(error),
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
                let is_wanted_in_vain = setting == Setting::Auto && !can;
                assert_eq!(found.why.is_some(), is_wanted_in_vain, "{setting:?} {can}");
            }
        };
        check(Setting::Auto, true, Some(true));
        check(Setting::Auto, false, Some(false));
        check(Setting::On, true, Some(true));
        check(Setting::On, false, None);
        check(Setting::Off, true, Some(false));
    }
}
