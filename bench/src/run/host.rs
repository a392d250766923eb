//! The machine as the report describes it.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::accounting::parse_kib;
use crate::record::Machine;

/// Describes this machine; unknown values are `unknown` or 0.
pub fn describe(cores: usize, energy_readable: bool) -> Machine {
    let name = rustix::system::uname();
    let part = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    Machine {
        host: part(name.nodename()),
        kernel: format!(
            "{} {} {}",
            part(name.sysname()),
            part(name.release()),
            part(name.machine())
        ),
        system: value_of("/etc/os-release", "PRETTY_NAME", '='),
        cpu: value_of("/proc/cpuinfo", "model name", ':'),
        cores,
        memory_bytes: memory("MemTotal"),
        descriptors_max: descriptors_max(),
        energy_readable,
    }
}

/// Limit of open descriptors per process, after raising the soft limit to its maximum.
pub fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Whether the CPU flags report a hypervisor.
pub fn is_virtual() -> bool {
    let flags = value_of("/proc/cpuinfo", "flags", ':');
    flags.split_ascii_whitespace().any(|flag| flag == "hypervisor")
}

/// Memory still available to processes.
pub fn memory_available_bytes() -> u64 {
    memory("MemAvailable")
}

fn memory(name: &str) -> u64 {
    parse_kib(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), name).unwrap_or(0)
}

fn value_of(path: &str, key: &str, separator: char) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
    });
    value.unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine() {
        let machine = describe(3, false);
        assert!(machine.kernel.starts_with("Linux "), "{}", machine.kernel);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.descriptors_max >= 64);
        assert_eq!(value_of("/nonexistent", "x", '='), "unknown");
    }
}
