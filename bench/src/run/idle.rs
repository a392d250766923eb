//! The behaviour of idle cores.
//!
//! The hypervisor gives a halted virtual core to other machines. The time to get it back depends on their load. This
//! noise comes from no product, and affects products that sleep, at fixed rates. At 3,000 requests per second, the
//! hypervisor took 3.7 s of two cores that were busy for 3.4 s, and only 0.01 s when the cores did not halt (decision
//! 0010).

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use super::RunError;

/// While a process holds this file open with a number of microseconds written to it, no core enters a sleep state with
/// a longer wake-up time. With 0, no core sleeps (Linux, Documentation/power/pm_qos_interface.rst).
const LATENCY_DEVICE: &str = "/dev/cpu_dma_latency";

/// The file with the name of the idle driver. Without a driver, the request above has no effect.
const DRIVER_FILE: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// The behaviour of idle cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// The core halts, as on a machine in normal use.
    Halt,
    /// The core polls for work without halting, so that the hypervisor does not give it away.
    Poll,
}

impl Idle {
    /// The behaviour's name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Poll => "poll",
        }
    }

    /// The behaviour with that name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Halt, Self::Poll].into_iter().find(|idle| idle.name() == name)
    }
}

/// Fixes the idle behaviour of all cores until dropped.
#[derive(Debug)]
pub struct IdleGuard {
    /// The behaviour.
    pub idle: Idle,
    _device: Option<File>,
}

impl IdleGuard {
    /// Sets the wanted behaviour. The default is polling if it helps and is permitted: for root, on a virtual machine
    /// without energy counters.
    pub fn to(
        wanted: Option<Idle>,
        is_virtual: bool,
        energy_readable: bool,
    ) -> Result<Self, RunError> {
        let halting = Self { idle: Idle::Halt, _device: None };
        let device = Path::new(LATENCY_DEVICE);
        // No file means no idle driver.
        let driver = std::fs::read_to_string(DRIVER_FILE).unwrap_or_default();
        match wanted {
            Some(Idle::Halt) => Ok(halting),
            Some(Idle::Poll) => Self::polling(device, &driver).map_err(|error| {
                RunError::Input(format!(
                    "cores cannot be kept from halting by {LATENCY_DEVICE}, which takes root: {error}; \
                     run it as root, or use --idle halt"
                ))
            }),
            None if is_virtual && !energy_readable => {
                Ok(Self::polling(device, &driver).unwrap_or(halting))
            }
            None => Ok(halting),
        }
    }

    fn polling(device: &Path, driver: &str) -> io::Result<Self> {
        if matches!(driver.trim(), "" | "none") {
            let text = "this kernel has no cpuidle driver, so the request has no effect";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let mut device = File::options().write(true).open(device)?;
        device.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { idle: Idle::Poll, _device: Some(device) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for idle in [Idle::Halt, Idle::Poll] {
            assert_eq!(Idle::of_name(idle.name()), Some(idle));
        }
        assert_eq!(Idle::of_name("auto"), None);
    }

    #[test]
    fn cores_halt_where_that_is_wanted_or_no_matter() {
        let kept = |wanted, is_virtual, energy| {
            IdleGuard::to(wanted, is_virtual, energy).expect("nothing is needed").idle
        };
        assert_eq!(kept(Some(Idle::Halt), true, false), Idle::Halt);
        assert_eq!(kept(None, false, false), Idle::Halt);
        assert_eq!(kept(None, true, true), Idle::Halt);
    }

    #[test]
    fn the_device_is_told_no_latency() {
        let folder = tempfile::tempdir().expect("a folder");
        let device = folder.path().join("device");
        assert!(IdleGuard::polling(&device, "haltpoll\n").is_err());
        File::create(&device).expect("a file");
        assert!(IdleGuard::polling(&device, "none\n").is_err());
        let kept = IdleGuard::polling(&device, "haltpoll\n").expect("writable");
        assert_eq!(kept.idle, Idle::Poll);
        assert_eq!(std::fs::read(&device).expect("a file"), [0; 4]);
    }
}
