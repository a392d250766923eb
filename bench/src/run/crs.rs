//! OWASP CRS: one copy for all products.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variable with the folder of the rules.
const VARIABLE: &str = "WEIR_CRS";
/// Folders of Debian's package modsecurity-crs: the rules, and the separate setup.
const DEBIAN_FOLDER: &str = "/usr/share/modsecurity-crs";
const DEBIAN_SETUP: &str = "/etc/modsecurity/crs/crs-setup.conf";

/// A file with the version of the rules.
const INITIALIZATION: &str = "REQUEST-901-INITIALIZATION.conf";
/// A file that CRS 3 has and CRS 4 does not.
const DOS_PROTECTION: &str = "REQUEST-912-DOS-PROTECTION.conf";

/// Rules that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crs {
    /// The folder, absolute.
    pub folder: PathBuf,
    /// Setup and rules, in reading order.
    files: Vec<PathBuf>,
}

impl Crs {
    /// Finds the rules in the environment's folder, or in Debian's. The error has a fix.
    pub fn find() -> Result<Self, String> {
        Self::in_folder(std::env::var_os(VARIABLE))
    }

    fn in_folder(given: Option<OsString>) -> Result<Self, String> {
        let folder = given.map_or_else(|| PathBuf::from(DEBIAN_FOLDER), PathBuf::from);
        let folder = std::path::absolute(&folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let absent = || {
            format!(
                "no OWASP CRS in {}: apt-get install modsecurity-crs, or name its folder by {VARIABLE}",
                folder.display()
            )
        };
        let rules = rules(&folder.join("rules")).filter(|rules| !rules.is_empty());
        let mut files = vec![setup(&folder).ok_or_else(absent)?];
        files.extend(rules.ok_or_else(absent)?);
        Ok(Self { folder, files })
    }

    /// Whether the rules need persistent collections, as CRS 3 does.
    pub fn asks_for_collections(&self) -> bool {
        self.files.iter().any(|file| file.file_name().is_some_and(|name| name == DOS_PROTECTION))
    }

    /// The version of the rules, as engines read it.
    pub fn version(&self) -> Option<String> {
        let is_first = |file: &&PathBuf| file.ends_with(INITIALIZATION);
        let text = std::fs::read_to_string(self.files.iter().find(is_first)?).ok()?;
        let version = text.split("ver:'OWASP_CRS/").nth(1)?.split('\'').next()?;
        Some(version.to_owned())
    }

    /// ModSecurity directives that include setup and rules.
    pub fn includes(&self) -> String {
        let line = |file: &PathBuf| format!("        Include {}", file.display());
        self.files.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The setup: from the rules' folder, from Debian, or the unchanged example.
fn setup(folder: &Path) -> Option<PathBuf> {
    let of_debian = (folder == Path::new(DEBIAN_FOLDER)).then(|| DEBIAN_SETUP.into());
    let own = Some(folder.join("crs-setup.conf"));
    let example = Some(folder.join("crs-setup.conf.example"));
    [own, of_debian, example].into_iter().flatten().find(|file| file.is_file())
}

/// Rule files, sorted by name.
fn rules(folder: &Path) -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).ok()?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "conf")).collect();
    files.sort();
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let given = || Some(folder.path().into());
        let reason = Crs::in_folder(given()).expect_err("empty");
        assert!(reason.contains("apt-get install modsecurity-crs"), "{reason}");
        std::fs::create_dir(folder.path().join("rules")).expect("a folder");
        for file in ["crs-setup.conf.example", "rules/b.conf", "rules/a.conf", "rules/a.data"] {
            std::fs::write(folder.path().join(file), "").expect("a file");
        }
        let crs = Crs::in_folder(given()).expect("rules");
        let names = |crs: &Crs| -> Vec<String> {
            let name = |line: &str| line.rsplit('/').next().unwrap_or_default().to_owned();
            crs.includes().lines().map(name).collect()
        };
        assert_eq!(names(&crs), ["crs-setup.conf.example", "a.conf", "b.conf"]);
        std::fs::write(folder.path().join("crs-setup.conf"), "").expect("a file");
        let crs = Crs::in_folder(given()).expect("rules");
        assert_eq!(names(&crs), ["crs-setup.conf", "a.conf", "b.conf"]);
        assert_eq!(crs.version(), None);
        let text = "SecAction \"id:901100,ver:'OWASP_CRS/4.1.0',nolog\"";
        std::fs::write(folder.path().join("rules").join(INITIALIZATION), text).expect("a file");
        let crs = Crs::in_folder(given()).expect("rules");
        assert_eq!(crs.version().as_deref(), Some("4.1.0"));
    }
}
