//! The configuration of the demo: an ordinary file, which can be edited and reloaded during the demo.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The example configuration with its default ports.
pub const TEMPLATE: &str = include_str!("../../../../examples/demo.yaml");

/// The address of the virtual server in [`TEMPLATE`].
pub const LISTEN: &str = "127.0.0.1:8080";

/// The address of the admin listener in [`TEMPLATE`].
pub const ADMIN: &str = "127.0.0.1:9900";

/// The addresses of the members in [`TEMPLATE`], in the order of [`super::members::Member::all`].
pub const MEMBERS: [&str; 4] =
    ["127.0.0.1:9001", "127.0.0.1:9002", "127.0.0.1:9003", "127.0.0.1:9004"];

/// Replaces addresses in `template`, all in one pass: inserted text is not searched.
pub fn fill(template: &str, replacements: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(character) = rest.chars().next() {
        let found = replacements.iter().find_map(|(from, to)| Some((rest.strip_prefix(from)?, to)));
        match found {
            Some((after, to)) => {
                filled.push_str(to);
                rest = after;
            }
            None => {
                filled.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    filled
}

/// The file, in a directory that is removed when this is dropped.
#[derive(Debug)]
pub struct ConfigurationFile {
    directory: PathBuf,
    path: PathBuf,
}

impl ConfigurationFile {
    /// Writes the file into a directory that only this user can access.
    pub fn write(text: &str) -> io::Result<Self> {
        let name = format!("weir-demo-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        // Fails if the directory or a link of this name exists.
        DirBuilder::new().mode(0o700).create(&directory)?;
        let path = directory.join("demo.yaml");
        let file = Self { directory, path };
        std::fs::write(&file.path, text)?;
        Ok(file)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ConfigurationFile {
    fn drop(&mut self) {
        // Removes only the demo's own file. An editor's backup prevents the removal of the directory.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_in_the_example_once() {
        for address in [LISTEN, ADMIN].into_iter().chain(MEMBERS) {
            assert_eq!(TEMPLATE.matches(address).count(), 1, "{address}");
        }
    }

    #[test]
    fn replacements_do_not_meet_each_other() {
        let replacements = [("a:1", "b:2".to_owned()), ("b:2", "c:3".to_owned())];
        assert_eq!(fill("x a:1 b:2 é a:1", &replacements), "x b:2 c:3 é b:2");
    }

    #[test]
    fn what_is_served_is_sound() {
        let listen = "[::1]:40000".to_owned();
        let text = fill(TEMPLATE, &[(LISTEN, listen.clone())]);
        let loaded = weir_config::parse("demo.yaml", &text);
        assert_eq!(loaded.diagnostics, []);
        let config = loaded.config.expect("a sound configuration");
        let snapshot = config.snapshot(&weir_config::Resolutions::new());
        assert_eq!(snapshot.virtual_servers[0].listen[0].to_string(), listen);
        let members = snapshot.pools[0].members.iter();
        let members: Vec<&str> = members.map(|member| &*member.label).collect();
        assert_eq!(members, MEMBERS);
    }

    #[test]
    fn the_file_goes_with_the_demo() {
        let file = ConfigurationFile::write("x").unwrap();
        let path = file.path().to_owned();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
        drop(file);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }
}
