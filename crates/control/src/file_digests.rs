//! Digests of the files of a configuration, which show whether a file has changed since it was read.

use std::path::PathBuf;

use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;
use weir_api::files::ConfigurationFile;
use weir_sources::Files;

/// The digests of the files as they were read, the main file first. Relative paths are resolved against the working
/// directory.
pub fn of(files: &Files) -> Vec<ConfigurationFile> {
    let absolute = |name: &str| std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
    files
        .contents()
        .map(|(name, text)| ConfigurationFile {
            path: absolute(name).display().to_string(),
            sha256: HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_the_text() {
        let read = |text: &str| of(&Files::of_text("/etc/weir/weir.yaml", text));
        let found = read("abc");
        assert_eq!(found[0].path, "/etc/weir/weir.yaml");
        // The output of `printf abc | sha256sum`.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((found.len(), &*found[0].sha256), (1, expected));
        assert_ne!(read("abd"), found);
    }

    #[test]
    fn paths_are_absolute() {
        let found = of(&Files::of_text("weir.yaml", ""));
        let expected = std::env::current_dir().unwrap().join("weir.yaml");
        assert_eq!(found[0].path, expected.display().to_string());
    }
}
