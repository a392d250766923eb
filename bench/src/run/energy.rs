//! Energy of the processor packages, where the kernel shows the RAPL counters.

use std::fs;
use std::path::{Path, PathBuf};

const POWERCAP: &str = "/sys/class/powercap";

/// The readable counters, one per package.
#[derive(Debug, Default)]
pub struct Meter {
    packages: Vec<Package>,
}

#[derive(Debug)]
struct Package {
    counter: PathBuf,
    /// The counter wraps around to 0 after this value.
    range_uj: u64,
}

/// Counter values at one moment.
#[derive(Debug, Clone)]
pub struct EnergyReading(Vec<u64>);

impl Meter {
    /// Finds the counters of this machine; most virtual machines have none.
    pub fn find() -> Self {
        Self::find_in(Path::new(POWERCAP))
    }

    fn find_in(folder: &Path) -> Self {
        let zones = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut packages: Vec<Package> =
            zones.filter_map(|zone| Package::open(&zone.path())).collect();
        packages.sort_by(|a, b| a.counter.cmp(&b.counter));
        Self { packages }
    }

    /// Whether the machine has counters.
    pub fn is_readable(&self) -> bool {
        !self.packages.is_empty()
    }

    /// Reads all counters; `None` without counters.
    pub fn read(&self) -> Option<EnergyReading> {
        if self.packages.is_empty() {
            return None;
        }
        self.packages
            .iter()
            .map(|package| number(&package.counter))
            .collect::<Option<_>>()
            .map(EnergyReading)
    }

    /// Joules between two readings.
    pub fn joules(&self, before: &EnergyReading, after: &EnergyReading) -> f64 {
        let pairs = before.0.iter().zip(&after.0).zip(&self.packages);
        let total_uj: u64 = pairs
            .map(|((before, after), package)| {
                after.checked_sub(*before).unwrap_or_else(|| after + package.range_uj - before)
            })
            .sum();
        total_uj as f64 / 1e6
    }
}

impl Package {
    /// Whether the zone is a whole package, which includes its parts (cores, memory).
    fn open(zone: &Path) -> Option<Self> {
        let name = fs::read_to_string(zone.join("name")).ok()?;
        let counter = zone.join("energy_uj");
        // On most systems only root can read it.
        number(&counter)?;
        let range_uj = number(&zone.join("max_energy_range_uj"))?;
        name.starts_with("package-").then_some(Self { counter, range_uj })
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_summed_and_counters_wrap() {
        let folder = std::env::temp_dir().join(format!("weir-bench-energy-{}", std::process::id()));
        let zone = |name: &str, kind: &str, uj: &str| {
            let zone = folder.join(name);
            fs::create_dir_all(&zone).expect("a folder");
            fs::write(zone.join("name"), kind).expect("a file");
            fs::write(zone.join("energy_uj"), uj).expect("a file");
            fs::write(zone.join("max_energy_range_uj"), "10000000\n").expect("a file");
        };
        zone("intel-rapl:0", "package-0\n", "9000000\n");
        zone("intel-rapl:1", "package-1\n", "1000000\n");
        zone("intel-rapl:0:0", "core\n", "5\n");
        let meter = Meter::find_in(&folder);
        let before = meter.read().expect("counters");
        zone("intel-rapl:0", "package-0\n", "1000000\n");
        zone("intel-rapl:1", "package-1\n", "1500000\n");
        let after = meter.read().expect("counters");
        assert!((meter.joules(&before, &after) - 2.5).abs() < 1e-9);
        fs::remove_dir_all(&folder).expect("removing it");
        assert!(!Meter::find_in(&folder).is_readable());
        assert!(Meter::find_in(&folder).read().is_none());
    }
}
