//! Network devices of the namespaces, and the cores that process their received packets.
//!
//! The kernel processes a packet of a virtual link on the sender's core. With a thread of its own (threaded NAPI), the
//! device processes the packet on the receiver's core, as a physical device does.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::namespaces::{Namespaces, Role};
use super::process::{find_program, output_of};

/// The product's device on the clients' side.
pub const FROM_CLIENTS: &str = "clients";
/// The product's device on the servers' side.
pub const TO_SERVERS: &str = "servers";
/// The only device of client and origin.
pub const DEVICE: &str = "product";

/// Devices with a NAPI thread each. Dropping this removes the threads.
#[derive(Debug)]
pub struct DeviceThreads {
    devices: Vec<Device>,
    /// The threads, in the order of the given devices.
    pub threads: Vec<u32>,
}

/// A device, and the command prefix for its namespace.
#[derive(Debug)]
struct Device {
    prefix: Vec<OsString>,
    name: &'static str,
}

impl DeviceThreads {
    /// Gives each of these devices a thread on its cores; the error names the missing requirement.
    pub fn make(
        namespaces: &Namespaces,
        devices: &[(Role, &'static str, &[usize])],
    ) -> Result<Self, String> {
        if find_program("ethtool").is_none() {
            return Err("the program ethtool is needed: apt-get install ethtool".into());
        }
        let mut made = Self { devices: Vec::new(), threads: Vec::new() };
        for (role, name, cores) in devices {
            made.devices.push(Device { prefix: namespaces.prefix(*role), name });
            let Some(device) = made.devices.last() else { continue };
            // A virtual link without an XDP program has NAPI only with this setting.
            device.run(&["ethtool", "-K", name, "gro", "on"])?;
            made.threads.push(device.threaded(cores)?);
        }
        Ok(made)
    }
}

impl Drop for DeviceThreads {
    fn drop(&mut self) {
        // The namespaces are removed with the run. Until then, later tests must find the original state.
        for device in &self.devices {
            let _ = device.set_threaded(false);
            let _ = device.run(&["ethtool", "-K", device.name, "gro", "off"]);
        }
    }
}

impl Device {
    fn run(&self, words: &[&str]) -> Result<(), String> {
        output(self.prefix.clone(), words).map(drop)
    }

    fn set_threaded(&self, is_on: bool) -> Result<(), String> {
        let line = format!("echo {} > /sys/class/net/{}/threaded", u8::from(is_on), self.name);
        self.run(&["sh", "-c", &line])
    }

    /// Gives the device a thread on these cores; returns the thread's id.
    fn threaded(&self, cores: &[usize]) -> Result<u32, String> {
        let name = self.name;
        let before = kernel_threads(name);
        self.set_threaded(true)?;
        let made = kernel_threads(name).into_iter().find(|thread| !before.contains(thread));
        let thread = made.ok_or_else(|| format!("the kernel made no thread for {name}"))?;
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        let id = i32::try_from(thread).ok().and_then(Pid::from_raw);
        sched_setaffinity(id, &set)
            .map_err(|error| format!("the kernel's thread for {name} cannot be moved: {error}"))?;
        Ok(thread)
    }
}

/// Runs a command in a namespace.
pub fn run_in(namespaces: &Namespaces, role: Role, words: &[&str]) -> Result<(), String> {
    output(namespaces.prefix(role), words).map(drop)
}

/// Reads a file of the namespace's own /sys.
pub fn read_in(namespaces: &Namespaces, role: Role, path: &str) -> Result<String, String> {
    // `ip netns exec` mounts the /sys of the namespace.
    output(namespaces.prefix(role), &["cat", path]).map(|text| text.trim().to_owned())
}

fn output(mut prefix: Vec<OsString>, words: &[&str]) -> Result<String, String> {
    prefix.extend(words.iter().map(OsString::from));
    output_of(&prefix, Path::new("/"))
}

/// The kernel's NAPI threads for devices of that name. Other namespaces may have such devices too.
fn kernel_threads(device: &str) -> Vec<u32> {
    let prefix = format!("napi/{device}-");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let is_its = |id: &u32| {
        fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with(&prefix))
    };
    ids.filter(is_its).collect()
}
