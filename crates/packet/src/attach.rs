//! Attaches the programs to interfaces. The links are pinned, so that they can outlive the process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::xdp::XdpLink;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType, Xdp, XdpMode};

use crate::error::{Error, kernel};
use crate::layout;
use crate::maps::{Maps, chain, map_error};
use crate::netlink::{self, Hardware};
use crate::options::RungsAllowed;
use crate::{Attachment, RefusedRung, Rung, unpin};

/// Names of the programs in the object.
pub const XDP: &str = "weirgate_xdp";
pub const TCX: &str = "weirgate_tcx";

/// A VLAN device.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Vlan {
    name: String,
    tag: u32,
    parent: String,
}

/// A device that XDP is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Device {
    index: u32,
    hardware: Hardware,
    sends: bool,
}

/// The state of interfaces that [`crate::PacketPath::attach`] depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceState {
    /// `None`: the device does not exist, or cannot be queried.
    devices: Vec<Option<Device>>,
    vlans: Vec<Vlan>,
}

/// Reads the state of interfaces. If it has changed, programs must be attached again.
pub fn look(interfaces: &[String]) -> InterfaceState {
    let device = |name: &String| Device::of(index_of(name).ok()?).ok();
    let mut vlans = vlans();
    vlans.retain(|vlan| interfaces.contains(&vlan.parent));
    InterfaceState { devices: interfaces.iter().map(device).collect(), vlans }
}

impl Device {
    fn of(index: u32) -> Result<Self, Error> {
        let hardware = netlink::hardware_of(index)?.unwrap_or_default();
        Ok(Self { index, hardware, sends: netlink::sends_for_xdp(index)? })
    }

    /// The index in the table of devices.
    fn place(&self) -> u32 {
        self.index % layout::DEVICES
    }
}

/// The held links, by the paths of their pins.
#[derive(Debug, Default)]
pub struct Links {
    held: BTreeMap<PathBuf, FdLink>,
}

/// The tools for attaching.
pub struct Attacher<'a> {
    pub object: &'a mut Ebpf,
    pub maps: &'a mut Maps,
    pub links: &'a mut Links,
    pub folder: &'a Path,
}

/// The number of an interface in the network namespace of this thread.
pub fn index_of(interface: &str) -> Result<u32, Error> {
    let fail = |error: rustix::io::Errno| match error {
        rustix::io::Errno::NODEV => {
            Error::Unknown { what: format!("there is no interface {interface}") }
        }
        error => kernel(&format!("looking up the interface {interface}"), error.to_string()),
    };
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::DGRAM, None)
            .map_err(fail)?;
    rustix::net::netdevice::name_to_index(&socket, interface).map_err(fail)
}

/// The XDP program.
pub fn xdp(object: &mut Ebpf) -> Result<&mut Xdp, Error> {
    let program = object
        .program_mut(XDP)
        .ok_or_else(|| kernel("reading the object", format!("it has no {XDP}")))?;
    program.try_into().map_err(|error| kernel("reading the object", chain(&error)))
}

/// The tcx program.
pub fn tcx(object: &mut Ebpf) -> Result<&mut SchedClassifier, Error> {
    let program = object
        .program_mut(TCX)
        .ok_or_else(|| kernel("reading the object", format!("it has no {TCX}")))?;
    program.try_into().map_err(|error| kernel("reading the object", chain(&error)))
}

/// VLAN devices of this network namespace.
fn vlans() -> Vec<Vlan> {
    // Absent without the kernel's module: then there are no VLANs.
    let text = std::fs::read_to_string("/proc/thread-self/net/vlan/config").unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim);
        let (name, tag, parent) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Vlan { name: name.to_owned(), tag: tag.parse().ok()?, parent: parent.to_owned() })
    };
    text.lines().filter_map(row).collect()
}

impl Attacher<'_> {
    /// Attaches to these interfaces and no others. A missing interface has no rung.
    pub fn attach(
        &mut self,
        interfaces: &[String],
        allowed: RungsAllowed,
    ) -> Result<Vec<Attachment>, Error> {
        let vlans = vlans();
        let mut wanted = Vec::new();
        let mut devices: Vec<Device> = Vec::new();
        let mut attached = Vec::new();
        let mut attachments = Vec::new();
        for name in interfaces {
            let index = match index_of(name) {
                Ok(index) => index,
                Err(Error::Unknown { what }) => {
                    let refused = vec![RefusedRung { rung: Rung::Tcx, why: what }];
                    attachments.push(Attachment::none(name, refused));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut refused = Vec::new();
            let mut rung = None;
            let mut refuse =
                |rung, result: Result<PathBuf, String>, pins: &mut Vec<PathBuf>| match result {
                    Ok(pin) => {
                        pins.push(pin);
                        true
                    }
                    Err(why) => {
                        refused.push(RefusedRung { rung, why });
                        false
                    }
                };
            let has_place = devices.iter().all(|it| it.place() != index % layout::DEVICES);
            let result = match (allowed.xdp, has_place) {
                (true, true) => self.attach_xdp(index),
                (true, false) => Err(NO_PLACE.to_owned()),
                (false, _) => Err(NOT_ALLOWED.to_owned()),
            };
            // After attaching, because some drivers send only then. A failure detaches the program again.
            let result = result.and_then(|pin| {
                devices.push(Device::of(index).map_err(|error| error.to_string())?);
                Ok(pin)
            });
            let mut sends_for_xdp = false;
            if refuse(Rung::Xdp, result, &mut wanted) {
                rung = Some(Rung::Xdp);
                sends_for_xdp = devices.last().is_some_and(|device| device.sends);
            }
            // Below XDP, tcx takes the packets that XDP passes on: unresolved neighbours, other devices, VLANs.
            let is_needed = allowed.tcx || rung.is_some();
            let result =
                if is_needed { self.attach_tcx(name, index) } else { Err(NOT_ALLOWED.to_owned()) };
            if refuse(Rung::Tcx, result, &mut wanted) && rung.is_none() {
                rung = Some(Rung::Tcx);
            }
            if rung.is_some() {
                attached.push((name.clone(), index));
            }
            attachments.push(Attachment { interface: name.clone(), rung, sends_for_xdp, refused });
        }
        self.write_devices(&devices)?;
        self.write_vlans(&devices, &attached, &vlans)?;
        wanted.extend(self.attach_vlans(&attached, &vlans)?);
        self.links.held.retain(|path, _| wanted.contains(path));
        remove_others(self.folder, &wanted)?;
        Ok(attachments)
    }

    fn attach_xdp(&mut self, index: u32) -> Result<PathBuf, String> {
        let path = self.folder.join(format!("xdp-{index}"));
        let program = xdp(self.object).map_err(|error| error.to_string())?;
        if let Some(link) = pinned(&path)? {
            let link = XdpLink::try_from(link).map_err(|error| chain(&error))?;
            // The interface of an old link may be gone, and another interface may have its number.
            if let Ok(id) = program.attach_to_link(link) {
                let link = program.take_link(id).map_err(|error| chain(&error))?;
                let link = FdLink::try_from(link).map_err(|_| NO_LINK.to_owned())?;
                self.links.held.insert(path.clone(), link);
                return Ok(path);
            }
            remove(&path)?;
        }
        let id =
            program.attach_to_if_index(index, XdpMode::Driver).map_err(|error| chain(&error))?;
        let link = program.take_link(id).map_err(|error| chain(&error))?;
        // A link of the older kind is detached when it is dropped.
        self.hold(path, FdLink::try_from(link).map_err(|_| NO_LINK.to_owned())?)
    }

    fn attach_tcx(&mut self, name: &str, index: u32) -> Result<PathBuf, String> {
        let path = self.folder.join(format!("tcx-{index}"));
        let program = tcx(self.object).map_err(|error| error.to_string())?;
        if let Some(link) = pinned(&path)? {
            let link = SchedClassifierLink::try_from(link).map_err(|error| chain(&error))?;
            if let Ok(id) = program.attach_to_link(link) {
                let link = program.take_link(id).map_err(|error| chain(&error))?;
                let link = FdLink::try_from(link).map_err(|_| NO_LINK.to_owned())?;
                self.links.held.insert(path.clone(), link);
                return Ok(path);
            }
            remove(&path)?;
        }
        let options = TcAttachOptions::TcxOrder(LinkOrder::first());
        let id = program
            .attach_with_options(name, TcAttachType::Ingress, options)
            .map_err(|error| chain(&error))?;
        let link = program.take_link(id).map_err(|error| chain(&error))?;
        self.hold(path, FdLink::try_from(link).map_err(|_| NO_LINK.to_owned())?)
    }

    fn hold(&mut self, path: PathBuf, link: FdLink) -> Result<PathBuf, String> {
        let pinned =
            link.pin(&path).map_err(|error| format!("pinning the link: {}", chain(&error)))?;
        self.links.held.insert(path.clone(), FdLink::from(pinned));
        Ok(path)
    }

    /// Facts about devices for XDP: their hardware addresses, and whether they send packets from XDP.
    fn write_devices(&mut self, devices: &[Device]) -> Result<(), Error> {
        let fail = map_error("writing the devices");
        let mut table = vec![layout::DeviceBytes::default(); layout::DEVICES as usize];
        for device in devices {
            table[device.place() as usize] =
                layout::device_bytes(device.index, device.hardware, device.sends);
        }
        for (place, entry) in (0..).zip(&table) {
            if self.maps.devices.get(&place, 0).map_err(&fail)? != *entry {
                self.maps.devices.set(place, entry, 0).map_err(&fail)?;
            }
        }
        Ok(())
    }

    /// Writes the VLAN tags of devices.
    fn write_vlans(
        &mut self,
        devices: &[Device],
        attached: &[(String, u32)],
        vlans: &[Vlan],
    ) -> Result<(), Error> {
        let fail = map_error("writing the VLANs");
        let mut entries = Vec::new();
        for vlan in vlans {
            let parent = attached.iter().find(|(name, _)| *name == vlan.parent);
            let has_xdp = |index: u32| devices.iter().any(|device| device.index == index);
            let Some((_, parent)) = parent.filter(|(_, index)| has_xdp(*index)) else { continue };
            let own = index_of(&vlan.name)?;
            entries
                .push((layout::vlan_bytes(*parent, vlan.tag), layout::vlan_bytes(own, vlan.tag)));
            entries.push((
                layout::vlan_bytes(own, layout::VLAN_OF_DEVICE),
                layout::vlan_bytes(*parent, vlan.tag),
            ));
        }
        let old: Vec<layout::VlanBytes> =
            self.maps.vlans.keys().collect::<Result<_, _>>().map_err(&fail)?;
        for key in old.iter().filter(|old| entries.iter().all(|(key, _)| key != *old)) {
            self.maps.vlans.remove(key).map_err(&fail)?;
        }
        for (key, value) in entries {
            self.maps.vlans.insert(key, value, 0).map_err(&fail)?;
        }
        Ok(())
    }

    /// A tagged packet arrives at the VLAN's device, unless XDP has taken it.
    fn attach_vlans(
        &mut self,
        attached: &[(String, u32)],
        vlans: &[Vlan],
    ) -> Result<Vec<PathBuf>, Error> {
        let is_attached = |wanted: &String| attached.iter().any(|(name, _)| name == wanted);
        let mut pins = Vec::new();
        // A VLAN device that is configured itself has its program already.
        for vlan in vlans.iter().filter(|it| is_attached(&it.parent) && !is_attached(&it.name)) {
            let index = index_of(&vlan.name)?;
            let pin = self
                .attach_tcx(&vlan.name, index)
                .map_err(|why| kernel(&format!("attaching to {}", vlan.name), why))?;
            pins.push(pin);
        }
        Ok(pins)
    }
}

const NOT_ALLOWED: &str = "the configuration does not allow it";

const NO_PLACE: &str =
    "the number of another interface with XDP has the same place in the table of devices";

const NO_LINK: &str = "the kernel gives no link that can be kept";

/// The link that is pinned at this path.
fn pinned(path: &Path) -> Result<Option<FdLink>, String> {
    match PinnedLink::from_pin(path) {
        Ok(link) => Ok(Some(FdLink::from(link))),
        Err(LinkError::SyscallError(error))
            if error.io_error.kind() == std::io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(format!("taking over {}: {}", path.display(), chain(&error))),
    }
}

fn remove(path: &Path) -> Result<(), String> {
    unpin::detach(path).map_err(|error| format!("removing {}: {error}", path.display()))
}

/// Detaches pinned programs in the folder that are not wanted.
fn remove_others(folder: &Path, wanted: &[PathBuf]) -> Result<(), Error> {
    for path in pinned_links(folder)? {
        if !wanted.contains(&path) {
            unpin::detach(&path).map_err(|error| {
                kernel(&format!("detaching {}", path.display()), error.to_string())
            })?;
        }
    }
    Ok(())
}

/// The pins of links in a folder.
pub fn pinned_links(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail =
        |error: std::io::Error| kernel(&format!("reading {}", folder.display()), error.to_string());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("xdp-") || name.starts_with("tcx-") {
            paths.push(path);
        }
    }
    Ok(paths)
}

impl Links {
    /// The interfaces with attached programs, including interfaces of VLANs. All of them have a tcx program.
    pub fn interfaces(&self) -> BTreeSet<u32> {
        let index = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("tcx-")?.parse().ok();
        self.held.keys().filter_map(index).collect()
    }

    /// Closes the links; a link whose pin is gone is detached by this.
    pub fn close(&mut self) {
        self.held.clear();
    }
}
