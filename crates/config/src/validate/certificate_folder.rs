//! Certificates in a folder, each with its key.
//!
//! | file | contents |
//! |---|---|
//! | `NAME.crt` | a certificate with its chain; its key is `NAME.key` |
//! | `NAME.pem` | the same, and its key: in one file, or `NAME.key` |
//! | `NAME.ocsp` | its OCSP response |
//! | others | ignored |

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::decode::{Context, Spanned};
use crate::file::READ_TIME_MAX;
use crate::raw::tls::Certificate;
use crate::shapes::{FilePath, OcspSource};

/// Maximum number of files in a folder: with more, it is probably the wrong folder.
const FILES_MAX: usize = 400_000;

/// Endings of files that are probably certificates, and in capitals those of the table.
const LIKE_CERTIFICATES: [&str; 10] =
    ["crt", "pem", "key", "ocsp", "cer", "cert", "der", "p12", "pfx", "chain"];

/// Maximum number of files that the warning of others names.
const OTHERS_TOLD_MAX: usize = 3;

/// The certificates of a folder, sorted by name; at least one.
pub(super) fn certificates(
    folder: &Spanned<FilePath>,
    directory: &Path,
    context: &mut Context,
) -> Option<Vec<Certificate>> {
    let path = directory.join(&folder.value.0);
    let mut names = match list(&path) {
        Ok(names) => names,
        Err(error) => {
            let reason = crate::file::without_number(&error);
            let help = "a relative path starts at the configuration's directory";
            let message = format!("cannot read the directory {}: {reason}", path.display());
            context.error_help(folder.span, message, help);
            return None;
        }
    };
    if names.len() > FILES_MAX {
        let message = format!("{} has more than {FILES_MAX} files", path.display());
        context.error(folder.span, message);
        return None;
    }
    names.sort_unstable();
    let file = |name: &Path| Spanned {
        value: FilePath(folder.value.0.join(name)),
        span: folder.span,
        given: true,
    };
    let is_there = |name: &PathBuf| names.binary_search(name).is_ok();
    let found = names.iter().filter_map(|name| {
        let key = name.with_extension("key");
        let is_pem = match name.extension()?.to_str()? {
            "crt" => false,
            "pem" => true,
            _ => return None,
        };
        let key = if is_pem && !is_there(&key) { name } else { &key };
        let ocsp = name.with_extension("ocsp");
        let ocsp = is_there(&ocsp).then(|| Spanned {
            value: OcspSource::File(file(&ocsp).value),
            span: folder.span,
            given: true,
        });
        Some(Certificate { cert: Some(file(name)), key: Some(file(key)), acme: None, ocsp })
    });
    let found: Vec<Certificate> = found.collect();
    if !found.is_empty() {
        warn_of_others(&names, folder, context);
    }
    if found.is_empty() {
        let message = format!("{} has no certificate in it", path.display());
        let help = "put `NAME.crt` and `NAME.key` there, or `NAME.pem` with both";
        context.error_help(folder.span, message, help);
        return None;
    }
    Some(found)
}

/// Warns of files that look like a part of a certificate and are not read: with the ending of another program or in
/// capitals, and keys and responses without a certificate.
fn warn_of_others(names: &[PathBuf], folder: &Spanned<FilePath>, context: &mut Context) {
    let is_there = |name: PathBuf| names.binary_search(&name).is_ok();
    let is_left_out = |name: &&PathBuf| {
        let Some(ending) = name.extension().and_then(|ending| ending.to_str()) else {
            return false;
        };
        match ending {
            "crt" | "pem" => false,
            "key" | "ocsp" => {
                !is_there(name.with_extension("crt")) && !is_there(name.with_extension("pem"))
            }
            _ => LIKE_CERTIFICATES.iter().any(|like| like.eq_ignore_ascii_case(ending)),
        }
    };
    let mut others = names.iter().filter(is_left_out);
    let told: Vec<String> =
        others.by_ref().take(OTHERS_TOLD_MAX).map(|name| name.display().to_string()).collect();
    if told.is_empty() {
        return;
    }
    let more = match others.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = folder.value.0.display();
    let message = format!("{shown}: not read: {}{more}", told.join(", "));
    let help = "certificates are `NAME.crt` with `NAME.key`, or `NAME.pem`, with `NAME.ocsp`";
    context.warning_help(folder.span, message, help);
}

/// The file names, at most one more than the maximum; hidden files are skipped.
fn list(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let deadline = Instant::now() + READ_TIME_MAX;
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        if Instant::now() >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        let name = PathBuf::from(entry?.file_name());
        if name.as_os_str().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        names.push(name);
        if names.len() > FILES_MAX {
            break;
        }
    }
    Ok(names)
}
