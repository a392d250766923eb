//! Compiled rules of the web application firewall, kept from one check of the configuration to the next.
//!
//! Compiling OWASP CRS takes most of a second, and most changes, such as a member's weight, do not concern rules.
//! Compiled rules are reused if all their source files have the same content. The cache holds weak references: it finds
//! only rules of configurations that are still in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use weir_waf::inspection::CommonTexts;
use weir_waf::plan::{Files, RuleSet, Settings, View};
use weir_waf::seclang::Problem;

use crate::rule_files::Disk;

/// Compiled rules.
#[derive(Debug, Default)]
pub struct RuleCache(Mutex<Vec<CachedRules>>);

/// Names and values of settings.
type Variables = Vec<(String, String)>;

/// Compiled rules and all files that they were read from.
#[derive(Debug)]
struct CachedRules {
    paths: Vec<String>,
    seen: Vec<DiskRead>,
    rules: Weak<RuleSet>,
    /// The rules, combined with settings.
    views: Vec<(Variables, Weak<CommonTexts>)>,
}

/// The result of reading the disk.
#[derive(Debug, PartialEq, Eq)]
enum DiskRead {
    Find { beside: String, pattern: String, found: Vec<String> },
    Read { path: String, content: Content },
}

/// The hash of a file's content; `None`: the file could not be read.
type Content = Option<[u8; SHA256_OUTPUT_LEN]>;

impl RuleCache {
    fn known(&self) -> MutexGuard<'_, Vec<CachedRules>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rules of these files; compiles them if they are not cached.
    pub fn rules(&self, paths: &[String], disk: &mut Disk) -> Result<Arc<RuleSet>, Vec<Problem>> {
        if let Some(rules) = self.find(paths, disk) {
            return Ok(rules);
        }
        let mut recorder = Recorder { disk, seen: Vec::new() };
        let rules = Arc::new(RuleSet::compile(paths, &mut recorder)?);
        let (paths, seen) = (paths.to_vec(), recorder.seen);
        let known = CachedRules { paths, seen, rules: Arc::downgrade(&rules), views: Vec::new() };
        self.known().push(known);
        Ok(rules)
    }

    /// Returns the cached rules of these files if the files have the same content.
    fn find(&self, paths: &[String], disk: &mut Disk) -> Option<Arc<RuleSet>> {
        let mut known = self.known();
        known.retain(|known| known.rules.strong_count() > 0);
        let same = |known: &&CachedRules| known.paths == paths && known.is_unchanged(disk);
        known.iter().find(same)?.rules.upgrade()
    }

    /// Returns the rules with these settings; builds them if they are not cached.
    pub fn view(
        &self,
        rules: &Arc<RuleSet>,
        settings: &Settings,
    ) -> Result<Arc<CommonTexts>, Vec<Problem>> {
        let make = || {
            let view = View::new(Arc::clone(rules), settings)?;
            Ok(Arc::new(CommonTexts::new(Arc::new(view))))
        };
        let variables = &settings.variables;
        let mut known = self.known();
        let of_rules = |known: &&mut CachedRules| known.rules.as_ptr() == Arc::as_ptr(rules);
        let Some(known) = known.iter_mut().find(of_rules) else { return make() };
        known.views.retain(|(_, view)| view.strong_count() > 0);
        let mut same = known.views.iter().filter(|(known, _)| known == variables);
        if let Some(view) = same.find_map(|(_, view)| view.upgrade()) {
            return Ok(view);
        }
        let view = make()?;
        known.views.push((variables.clone(), Arc::downgrade(&view)));
        Ok(view)
    }
}

impl CachedRules {
    /// Whether all reads of the disk still give the same results.
    fn is_unchanged(&self, disk: &mut Disk) -> bool {
        self.seen.iter().all(|seen| match seen {
            DiskRead::Find { beside, pattern, found } => disk.find(beside, pattern) == *found,
            DiskRead::Read { path, content } => content_of(&disk.read(path)) == *content,
        })
    }
}

fn content_of(read: &Result<Vec<u8>, String>) -> Content {
    let bytes = read.as_ref().ok()?;
    digest(&SHA256, bytes).as_ref().first_chunk().copied()
}

/// Records the results of reading the disk.
struct Recorder<'a> {
    disk: &'a mut Disk,
    seen: Vec<DiskRead>,
}

impl Files for Recorder<'_> {
    fn find(&mut self, beside: &str, pattern: &str) -> Vec<String> {
        let found = self.disk.find(beside, pattern);
        let (beside, pattern) = (beside.to_owned(), pattern.to_owned());
        self.seen.push(DiskRead::Find { beside, pattern, found: found.clone() });
        found
    }

    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let read = self.disk.read(path);
        self.seen.push(DiskRead::Read { path: path.to_owned(), content: content_of(&read) });
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a folder with a file of rules that includes other files and a word list.
    fn folder() -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("main.conf", "Include more-*.conf\n");
        write("more-1.conf", "SecRule ARGS \"@pmFromFile words\" \"id:1,phase:2,deny\"\n");
        write("words", "attack\n");
        let main = folder.path().join("main.conf").display().to_string();
        (folder, vec![main])
    }

    #[test]
    fn rules_are_compiled_once_while_their_files_are_the_same() {
        let (folder, paths) = folder();
        let cache = RuleCache::default();
        let rules = || cache.rules(&paths, &mut Disk::default()).unwrap();
        let first = rules();
        assert!(Arc::ptr_eq(&first, &rules()));
        let changes = [
            ("words", "attacks\n"),
            ("more-1.conf", "SecRule ARGS \"@pmFromFile words\" \"id:2,phase:2,deny\"\n"),
            // Another file that matches the pattern.
            ("more-2.conf", "SecAction \"id:3,phase:1,pass\"\n"),
            ("main.conf", "Include more-1.conf\n"),
        ];
        let mut before = first;
        for (name, text) in changes {
            std::fs::write(folder.path().join(name), text).unwrap();
            let after = rules();
            assert!(!Arc::ptr_eq(&before, &after), "{name}");
            assert!(Arc::ptr_eq(&after, &rules()), "{name}");
            before = after;
        }
        std::fs::remove_file(folder.path().join("words")).unwrap();
        assert!(cache.rules(&paths, &mut Disk::default()).is_err());
    }

    #[test]
    fn rules_that_nobody_uses_are_not_kept() {
        let (_folder, paths) = folder();
        let cache = RuleCache::default();
        let rules = cache.rules(&paths, &mut Disk::default()).unwrap();
        let gone = Arc::downgrade(&rules);
        drop(rules);
        assert!(gone.upgrade().is_none());
        cache.rules(&paths, &mut Disk::default()).unwrap();
        assert_eq!(cache.known().len(), 1);
    }
}
