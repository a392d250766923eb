//! Rule files on this host.

use std::fs;
use std::path::{Path, PathBuf};

use weir_waf::builtin;
use weir_waf::plan::{Files, RuleSet};
use weir_waf::seclang::Problem;

/// Where packages and people put OWASP CRS.
const PLACES: [&str; 6] = [
    "/usr/share/modsecurity-crs",
    "/usr/share/coreruleset",
    "/etc/coreruleset",
    "/opt/coreruleset",
    "/usr/local/share/coreruleset",
    "./coreruleset",
];

/// Where Debian keeps the set-up of its package.
const DEBIAN_SETUP: &str = "/etc/modsecurity/crs/crs-setup.conf";

/// In place of a path: the rules that come with the program.
pub const BUILTIN: &str = "builtin";

/// Reads files of this host, and those that come with the program.
struct Disk;

impl Files for Disk {
    fn find(&mut self, beside: &str, pattern: &str) -> Vec<String> {
        let own = builtin::files().find(beside, pattern);
        if !own.is_empty() {
            return own;
        }
        let folder = Path::new(beside).parent().unwrap_or(Path::new(""));
        let path = folder.join(pattern);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some((before, behind)) = name.as_deref().and_then(|name| name.split_once('*')) else {
            // A star in a folder's name is not understood either.
            let is_there = path.is_file() || pattern.contains('*');
            return if is_there { vec![text(&path)] } else { Vec::new() };
        };
        // One `*` in the name is what is understood; reading what this names says that there is no such file.
        let is_other = pattern.contains(['?', '[']) || pattern.matches('*').count() > 1;
        if is_other {
            return vec![text(&path)];
        }
        let parent = path.parent().unwrap_or(folder);
        let mut found: Vec<String> = fs::read_dir(parent)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.len() >= before.len() + behind.len()
                    && name.starts_with(before)
                    && name.ends_with(behind)
            })
            .map(|path| text(&path))
            .collect();
        found.sort();
        found
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        if let Ok(bytes) = builtin::files().read(path) {
            return Ok(bytes);
        }
        fs::read(path).map_err(|error| error.to_string())
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Folders of this host that have rules of CRS.
pub fn found() -> Vec<PathBuf> {
    PLACES.iter().map(PathBuf::from).filter(|place| place.join("rules").is_dir()).collect()
}

/// The files that a path stands for, in the order in which they are read: a file, a folder of CRS, or `builtin`.
pub fn of_path(path: &Path) -> Result<Vec<String>, String> {
    if path == Path::new(BUILTIN) {
        return Ok(builtin::paths());
    }
    if path.is_file() {
        return Ok(vec![text(path)]);
    }
    if !path.is_dir() {
        return Err(format!("`{}` is neither a file nor a folder", path.display()));
    }
    let rules = if path.join("rules").is_dir() { path.join("rules") } else { path.to_owned() };
    let setups = [
        path.join("crs-setup.conf"),
        PathBuf::from(DEBIAN_SETUP),
        path.join("crs-setup.conf.example"),
    ];
    let is_debian = path.starts_with("/usr/share/modsecurity-crs");
    let setup = setups
        .into_iter()
        .find(|setup| setup.is_file() && (is_debian || setup != Path::new(DEBIAN_SETUP)));
    let mut files: Vec<String> = setup.iter().map(|setup| text(setup)).collect();
    // Plugins stand before and behind the rules (CRS 4).
    let plugins = path.join("plugins");
    files.extend(named(&plugins, "-config.conf"));
    files.extend(named(&plugins, "-before.conf"));
    let own = named(&rules, ".conf");
    if own.is_empty() {
        return Err(format!("`{}` has no file *.conf", rules.display()));
    }
    files.extend(own);
    files.extend(named(&plugins, "-after.conf"));
    Ok(files)
}

/// The files of a folder whose names end so, in the order of their names.
fn named(folder: &Path, end: &str) -> Vec<String> {
    let mut files: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| text(&entry.path()))
        .filter(|path| path.ends_with(end))
        .collect();
    files.sort();
    files
}

/// Compiles the rules of these paths.
pub fn compile(paths: &[PathBuf]) -> Result<RuleSet, String> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(of_path(path)?);
    }
    RuleSet::compile(&files, &mut Disk).map_err(|problems| told(&problems))
}

/// Problems, one in a line.
pub fn told(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| {
            let help = problem.help.as_ref().map(|help| format!("\n  {help}"));
            format!("{}: {}{}", problem.place, problem.message, help.unwrap_or_default())
        })
        .collect();
    lines.join("\n")
}
