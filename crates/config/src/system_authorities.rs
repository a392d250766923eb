//! The authorities that this system trusts.

use std::path::{Path, PathBuf};

use rustls_native_certs::{ErrorKind, load_certs_from_paths, load_native_certs};
use rustls_pki_types::CertificateDer;

/// Maximum number of files among which one with a mistake is searched for.
const FILES_MAX: usize = 2_000;

/// The files of the distributions, where no variable names others.
const KNOWN_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The authorities, and what could not be read of them.
#[derive(Debug, Default)]
pub struct SystemAuthorities {
    /// The certificates.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Problems with files of authorities, as sentences with file and reason.
    pub problems: Vec<String>,
}

/// Reads the authorities of this system. Files that cannot be read leave the others as they are.
pub fn read() -> SystemAuthorities {
    let loaded = load_native_certs();
    let mut problems: Vec<String> = Vec::new();
    let mut is_mistake = false;
    for error in &loaded.errors {
        match &error.kind {
            ErrorKind::Io { inner, path } => problems.push(problem(path, inner)),
            ErrorKind::Pem(_) => is_mistake = true,
            _ => problems.push(format!("authorities of this system: {error}")),
        }
    }
    // The library does not say in which file a mistake is.
    if is_mistake {
        let mistakes: Vec<String> = files().iter().filter_map(|file| mistake(file)).collect();
        match mistakes.is_empty() {
            true => {
                problems.push("a file of authorities of this system is no valid PEM".to_owned())
            }
            false => problems.extend(mistakes),
        }
    }
    SystemAuthorities { certificates: loaded.certs, problems }
}

fn problem(file: &Path, reason: &impl ToString) -> String {
    format!(
        "authorities of this system in {} cannot be read: {}",
        file.display(),
        reason.to_string()
    )
}

/// What is wrong in a file; `None`: nothing, or it cannot be read.
fn mistake(file: &Path) -> Option<String> {
    let loaded = load_certs_from_paths(Some(file), None);
    let mut mistakes = loaded.errors.into_iter().filter_map(|error| match error.kind {
        ErrorKind::Pem(error) => Some(error),
        _ => None,
    });
    mistakes.next().map(|error| problem(file, &error))
}

/// The files with authorities, as far as they are known.
fn files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = variable("SSL_CERT_FILE").map(PathBuf::from);
    let folders: Vec<PathBuf> = variable("SSL_CERT_DIR")
        .map(|folders| std::env::split_paths(&folders).collect())
        .unwrap_or_default();
    let is_named = named.is_some() || !folders.is_empty();
    let folders = if is_named { folders } else { vec!["/etc/ssl/certs".into()] };
    let known = KNOWN_FILES.iter().filter(|_| !is_named).map(PathBuf::from);
    let listed = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let listed = listed.filter_map(|entry| Some(entry.ok()?.path()));
    named.into_iter().chain(known).chain(listed).take(FILES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_file_and_reason() {
        let folder = std::env::temp_dir().join(format!("weir-authorities-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("ca.pem");
        for (text, is_wrong) in [
            ("", false),
            ("no certificate at all\n", false),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", true),
            ("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", true),
        ] {
            std::fs::write(&file, text).expect("written");
            let found = mistake(&file);
            assert_eq!(found.is_some(), is_wrong, "{text:?}: {found:?}");
            let is_told = |it: &String| it.contains(&file.display().to_string());
            assert!(found.iter().all(is_told), "{found:?}");
        }
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(mistake(&file), None);
    }
}
