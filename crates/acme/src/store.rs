//! The files of ACME certificates in `state_dir`: replaced atomically, and readable only by their owner.
//!
//! | file below `state_dir/acme` | contents |
//! |---|---|
//! | `lock` | empty; locked by the process that orders |
//! | `AUTHORITY/account.json` | the account at an authority, with its key |
//! | `AUTHORITY/NAME-HASH.pem` | a private key, its certificate and chain |
//! | `AUTHORITY/NAME-HASH.json` | the open order with its key, failures, and the earliest time of the next order |

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_config::file::{self, ReadError};
use weir_config::snapshot::HttpUrl;
use weir_tls::identity::Identity;

use super::keys;

const FOLDER: &str = "acme";
const LOCK: &str = "lock";
const ACCOUNT: &str = "account.json";
/// Maximum size of a file; a larger one is invalid.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of characters of a host name in a file name.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a hash in a file name.
const HASH_BYTES: usize = 8;
/// Maximum number of stored certificates that are searched for a substitute.
const KEPT_MAX: usize = 10_000;

/// How long files of names that are not configured stay after their certificate has expired, or after the last order if
/// there is no certificate.
const UNUSED_KEPT_S: i64 = 30 * 24 * 60 * 60;

/// The stored state of the orders for a set of names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    /// The number of consecutive orders without success, including an open one.
    pub failures: u32,
    /// The reason for the last failure.
    pub reason: Option<String>,
    /// The time of the last order, in seconds since 1970.
    pub last_order_unix_s: i64,
    /// The earliest time of the next order.
    pub not_before_unix_s: i64,
    /// The open order.
    pub order: Option<PendingOrder>,
}

/// An order that the authority has accepted.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingOrder {
    /// The URL of the order.
    pub url: String,
    /// The private key of its certificate, in PEM.
    pub key_pem: String,
    /// The answers to its challenges: a process that takes over has them before it serves.
    #[serde(default)]
    pub proofs: Vec<Proof>,
}

/// The answer to a challenge (RFC 8555 section 8.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The name that it is for.
    pub name: String,
    /// The authority's token.
    pub token: String,
    /// The token, and the thumbprint of the account's key.
    pub key_authorization: String,
}

impl std::fmt::Debug for PendingOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingOrder").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A stored certificate and its key.
#[derive(Debug)]
pub struct CertificateOnDisk {
    /// Certificate and key, joined.
    pub identity: Identity,
    /// Whether the key has the requested type.
    pub is_of_kind: bool,
}

/// The files of one authority.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    folder: PathBuf,
}

impl Store {
    /// The files of the authority with this directory.
    pub fn of(state_dir: &Path, directory: &HttpUrl) -> Self {
        let root = state_dir.join(FOLDER);
        let name = format!("{}-{}", clip(&directory.host), hash(&[directory.to_string()]));
        Self { folder: root.join(name), root }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folders and the lock file.
    pub fn prepare(&self) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.root.join(LOCK))
    }

    /// The stored certificate for these sorted names.
    pub fn certificate(
        &self,
        names: &[String],
        kind: weir_config::snapshot::KeyKind,
    ) -> io::Result<Option<CertificateOnDisk>> {
        let Some(text) = read(&self.path(names, "pem"))? else { return Ok(None) };
        let identity = keys::identity(&text, &text).map_err(io::Error::other)?;
        Ok(Some(CertificateOnDisk { identity, is_of_kind: keys::is_of_kind(&text, kind) }))
    }

    /// The stored certificate with most of these names. Of several, the one that expires last.
    pub fn nearest(&self, names: &[String], now_unix_s: i64) -> Option<Identity> {
        let entries = fs::read_dir(&self.folder).ok()?.take(KEPT_MAX);
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let of_pem = paths.filter(|path| path.extension().is_some_and(|it| it == "pem"));
        let identities = of_pem.filter_map(|path| {
            let text = read(&path).ok()??;
            keys::identity(&text, &text).ok()
        });
        let common =
            |identity: &Identity| identity.names.iter().filter(|name| names.contains(name)).count();
        identities
            .filter(|it| common(it) > 0 && it.not_after_unix_s > now_unix_s)
            .max_by_key(|it| (common(it), it.not_after_unix_s))
    }

    /// Stores a certificate with its chain and key, and replaces the previous one.
    pub fn keep_certificate(&self, names: &[String], key: &str, chain: &str) -> io::Result<()> {
        let text = format!("{}\n{}", key.trim_end(), chain.trim_start());
        self.write(&self.path(names, "pem"), text.as_bytes())
    }

    /// The stored state of the orders for these sorted names.
    pub fn progress(&self, names: &[String]) -> io::Result<Progress> {
        Ok(self.json(&self.path(names, "json"))?.unwrap_or_default())
    }

    /// Stores the state of orders.
    pub fn keep_progress(&self, names: &[String], progress: &Progress) -> io::Result<()> {
        self.write_json(&self.path(names, "json"), progress)
    }

    /// The stored account.
    pub fn account<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        self.json(&self.folder.join(ACCOUNT))
    }

    /// Stores the account.
    pub fn keep_account(&self, account: &impl Serialize) -> io::Result<()> {
        self.write_json(&self.folder.join(ACCOUNT), account)
    }

    /// Deletes the account, because the authority does not know it.
    pub fn forget_account(&self) -> io::Result<()> {
        fs::remove_file(self.folder.join(ACCOUNT))
    }

    fn path(&self, names: &[String], extension: &str) -> PathBuf {
        let first = names.first().map_or("", String::as_str);
        let end = if extension.is_empty() { String::new() } else { format!(".{extension}") };
        self.folder.join(format!("{}-{}{end}", clip(first), hash(names)))
    }

    fn json<T: DeserializeOwned>(&self, path: &Path) -> io::Result<Option<T>> {
        let Some(text) = read(path)? else { return Ok(None) };
        let value = serde_json::from_str(&text);
        value.map(Some).map_err(|error| {
            io::Error::other(format!("{} is damaged: {error}; remove it", path.display()))
        })
    }

    fn write_json(&self, path: &Path, value: &impl Serialize) -> io::Result<()> {
        self.write(path, &serde_json::to_vec(value).map_err(io::Error::other)?)
    }

    /// Replaces a file atomically.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let temporary = path.with_file_name(name);
        // A temporary file of an earlier process with the same id.
        let _ = fs::remove_file(&temporary);
        let written = write_new(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
        if let Err(error) = written {
            // A full disk stays less full. If this fails, too, the first error says more.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        File::open(&self.folder)?.sync_all()
    }

    /// Removes the files of names that are not configured, when they are of no use: the certificate expired a month ago, or
    /// there is none, and the last order began a month ago. Returns the number of removed files. Damaged files,
    /// and those that this does not know, stay.
    pub fn prune(&self, configured: &[Vec<String>], now_unix_s: i64) -> io::Result<usize> {
        let used: HashSet<PathBuf> = configured.iter().map(|names| self.path(names, "")).collect();
        let mut removed = 0;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let is_kept = used.contains(&path.with_extension(""));
            if !is_kept
                && is_own(&path)
                && last_use(&path).is_some_and(|at| at < now_unix_s - UNUSED_KEPT_S)
            {
                fs::remove_file(&path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Whether the name of a file has the form of those that this module writes: `NAME-HASH.pem`, `NAME-HASH.json`, and either
/// with `.PROCESS.new`.
fn is_own(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let Some((_, end)) = name.rsplit_once('-') else { return false };
    let mut parts = end.split('.');
    let is_hash = parts.next().is_some_and(|hash| {
        hash.len() == 2 * HASH_BYTES && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    is_hash && parts.next().is_some_and(|kind| matches!(kind, "pem" | "json"))
}

/// The last second in which a kept file is of use, without the files beside it; `None`: it says nothing about that.
fn last_use(path: &Path) -> Option<i64> {
    match path.extension()?.to_str()? {
        "pem" => {
            let text = read(path).ok()??;
            Some(keys::identity(&text, &text).ok()?.not_after_unix_s)
        }
        "json" => {
            let progress: Progress = serde_json::from_str(&read(path).ok()??).ok()?;
            Some(progress.last_order_unix_s.max(progress.not_before_unix_s))
        }
        "new" => {
            let modified = fs::metadata(path).ok()?.modified().ok()?;
            let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        }
        _ => None,
    }
}

/// The text of a file; `None`: there is no such file.
fn read(path: &Path) -> io::Result<Option<String>> {
    let bytes = match file::read(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(ReadError::Open(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(ReadError::Open(error) | ReadError::Read(error)) => return Err(error),
        Err(other) => return Err(io::Error::other(other)),
    };
    String::from_utf8(bytes).map(Some).map_err(|_| io::Error::other("it is not text"))
}

/// A host name as part of a file name. Other characters do not occur in host names.
fn clip(name: &str) -> String {
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let clipped: String = name.chars().filter(is_plain).take(NAME_BYTES_MAX).collect();
    clipped.trim_start_matches('.').to_owned()
}

fn hash(texts: &[String]) -> String {
    let found = digest(&SHA256, texts.join("\n").as_bytes());
    found.as_ref()[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use weir_config::snapshot::KeyKind;

    use super::*;

    fn directory(path: &str) -> HttpUrl {
        HttpUrl {
            is_secure: true,
            authority: "ca.example".into(),
            host: "ca.example".into(),
            port: 443,
            path: path.into(),
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn certificate(of: &[&str]) -> (String, String) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new(names(of)).expect("names");
        let certificate = params.self_signed(&key).expect("a certificate");
        (key.serialize_pem(), certificate.pem())
    }

    #[test]
    fn files_are_kept_whole_and_for_the_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::of(&folder.path().join("state"), &directory("/dir"));
        store.prepare().expect("it can be made");
        let own = names(&["shop.example", "www.shop.example"]);
        assert!(store.certificate(&own, KeyKind::EcdsaP256).expect("none").is_none());
        let (key, chain) = certificate(&["shop.example", "www.shop.example"]);
        store.keep_certificate(&own, &key, &chain).expect("kept");
        let progress = Progress { failures: 3, reason: Some("no".into()), ..Progress::default() };
        store.keep_progress(&own, &progress).expect("kept");
        store.keep_account(&serde_json::json!({ "key": 1 })).expect("kept");
        let kept = store.certificate(&own, KeyKind::EcdsaP256).expect("read").expect("there");
        assert_eq!((kept.identity.names, kept.is_of_kind), (own.clone(), true));
        let kept = store.certificate(&own, KeyKind::Rsa2048).expect("read").expect("there");
        assert!(!kept.is_of_kind);
        assert_eq!(store.progress(&own).expect("read"), progress);
        let files: Vec<_> = fs::read_dir(store.folder()).expect("a folder").flatten().collect();
        assert_eq!(files.len(), 3, "nothing temporary is left: {files:?}");
        for file in files {
            let mode = file.metadata().expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file:?}");
        }
        let mode = fs::metadata(store.folder()).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        store.forget_account().expect("gone");
        assert!(store.account::<serde_json::Value>().expect("none").is_none());
    }

    #[test]
    fn authorities_and_sets_of_names_are_apart() {
        let folder = Path::new("/state");
        let (one, other) =
            (Store::of(folder, &directory("/a")), Store::of(folder, &directory("/b")));
        assert_ne!(one.folder, other.folder);
        let path = |of: &[&str]| one.path(&names(of), "pem");
        assert_ne!(path(&["a.example"]), path(&["a.example", "b.example"]));
        assert_ne!(path(&["a.example", "b"]), path(&["a.example", "c"]));
        assert!(path(&[&"x".repeat(300)]).file_name().expect("a name").len() < 100);
    }

    #[test]
    fn the_nearest_has_the_most_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::of(folder.path(), &directory("/dir"));
        store.prepare().expect("it can be made");
        for of in [&["a.example"][..], &["a.example", "b.example"], &["other.example"]] {
            let (key, chain) = certificate(of);
            store.keep_certificate(&names(of), &key, &chain).expect("kept");
        }
        fs::write(store.folder().join("broken.pem"), "no certificate").expect("a file");
        let nearest = |of: &[&str]| store.nearest(&names(of), 0).map(|it| it.names);
        let both = names(&["a.example", "b.example"]);
        assert_eq!(nearest(&["a.example", "b.example", "c.example"]), Some(both.clone()));
        assert_eq!(nearest(&["b.example"]), Some(both));
        assert_eq!(nearest(&["c.example"]), None);
        assert!(store.nearest(&names(&["a.example"]), i64::MAX).is_none(), "all are over");
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::of(folder.path(), &directory("/dir"));
        store.prepare().expect("it can be made");
        let own = names(&["a.example"]);
        fs::create_dir(store.path(&own, "json")).expect("a folder in the file's place");
        store.keep_progress(&own, &Progress::default()).expect_err("it cannot be replaced");
        let files: Vec<_> = fs::read_dir(store.folder()).expect("a folder").flatten().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[test]
    fn only_what_is_of_no_use_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::of(folder.path(), &directory("/dir"));
        store.prepare().expect("it can be made");
        let (used, unused) = (names(&["used.example"]), names(&["unused.example"]));
        for of in [&used, &unused] {
            let key = rcgen::KeyPair::generate().expect("a key");
            let mut params = rcgen::CertificateParams::new(of.clone()).expect("names");
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 4, 1);
            let chain = params.self_signed(&key).expect("a certificate").pem();
            store.keep_certificate(of, &key.serialize_pem(), &chain).expect("kept");
            let last_order_unix_s = 1_577_836_800;
            let progress = Progress { last_order_unix_s, ..Progress::default() };
            store.keep_progress(of, &progress).expect("kept");
        }
        store.keep_account(&serde_json::json!({ "key": 1 })).expect("kept");
        fs::write(store.folder().join("damaged.pem"), "no certificate").expect("a file");
        fs::write(store.folder().join("notes.txt"), "mine").expect("a file");
        fs::write(store.folder().join("account-old.json"), "{}").expect("a file");
        let expires = 1_585_699_200; // 2020-04-01
        let all = [used.clone(), unused.clone()];
        let prune = |configured: &[Vec<String>], now| store.prune(configured, now).expect("read");
        // The state of the order, long before the certificate.
        assert_eq!(prune(&all[..1], expires), 1);
        assert_eq!(prune(&all, i64::MAX), 0);
        assert_eq!(prune(&all[..1], expires + UNUSED_KEPT_S), 0);
        assert_eq!(prune(&all[..1], expires + UNUSED_KEPT_S + 1), 1);
        assert!(!store.path(&unused, "pem").exists());
        assert!(store.path(&used, "pem").exists() && store.path(&used, "json").exists());
        let left = fs::read_dir(store.folder()).expect("a folder").count();
        assert_eq!(left, 6, "two of the name in use, the account, and three unknown ones");
    }

    #[test]
    fn damaged_files_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::of(folder.path(), &directory("/dir"));
        store.prepare().expect("it can be made");
        let own = names(&["a.example"]);
        fs::write(store.path(&own, "json"), "{").expect("a file");
        let error = store.progress(&own).expect_err("damaged").to_string();
        assert!(error.contains("is damaged") && error.contains("remove it"), "{error}");
        fs::write(store.path(&own, "pem"), "no certificate").expect("a file");
        assert!(store.certificate(&own, KeyKind::EcdsaP256).is_err());
    }
}
