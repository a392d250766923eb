//! The files of a configuration: a main file, and those that it includes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir_config::document::{Document, Node};
use weir_config::source_keys::state_dir;
use weir_config::{MergedValues, RuleCache};

use crate::documents::Documents;
use crate::include::include;
use crate::member_index::MemberIndex;
use crate::source::Source;
use crate::text::{self, DecodedText};

/// The files of a configuration, read but not yet checked.
#[derive(Debug, Clone)]
pub struct Files {
    documents: Documents,
    /// The sections of all files; `None`: there are none.
    root: Option<Node>,
    compiled_rules: Arc<RuleCache>,
    /// Where `root` has members, made at the first question.
    member_index: OnceLock<Arc<MemberIndex>>,
}

impl Files {
    /// Reads a file and the files that it includes. Relative paths start at its directory. A check of the configuration reports
    /// errors.
    pub fn read(path: &Path) -> Self {
        Self::of_main(&path.display().to_string(), text::read(path), &[])
    }

    /// Uses a text instead of a file. `name` is its name in diagnostics, and relative paths start at the directory of
    /// `name`.
    pub fn of_text(name: &str, text: &str) -> Self {
        Self::of_main(name, Ok(text.to_owned()), &[])
    }

    /// Uses bytes instead of a file.
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Self {
        Self::of_main(name, text::decoded(bytes), &[])
    }

    fn of_main(name: &str, read: DecodedText, before: &[Arc<Document>]) -> Self {
        let mut documents = Documents::beside(name, before);
        let main = documents.add(name.to_owned(), read);
        let root = main.root.clone().map(|root| include(root, &mut documents));
        documents.complete();
        Self { documents, root, compiled_rules: Arc::default(), member_index: OnceLock::new() }
    }

    /// Reads the files again. A file with the same text is not parsed again, and rules whose files have the same content are
    /// not compiled again.
    pub fn read_again(&self, path: &Path) -> Self {
        let read = text::read(path);
        let files = Self::of_main(&path.display().to_string(), read, &self.documents.all);
        Self { compiled_rules: Arc::clone(&self.compiled_rules), ..files }
    }

    /// The names of the files: of the main file as given, and of the included ones.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.documents.all.iter().map(|document| &*document.name)
    }

    /// The names of the files, and their texts as they were read.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &str)> {
        self.documents.all.iter().map(|document| (&*document.name, &*document.text))
    }

    /// The directory for data that must survive a restart. An overlay is stored in it, so it cannot change it.
    pub fn state_dir(&self) -> PathBuf {
        self.documents.directory.join(state_dir(self.root.as_ref()))
    }

    /// The sections of all files.
    pub(crate) fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// Where [`Self::root`] has members.
    pub(crate) fn member_index(&self) -> &MemberIndex {
        self.member_index.get_or_init(|| Arc::new(MemberIndex::of(self.root())))
    }

    /// What is merged into: nothing, with what the check of these files needs.
    pub(crate) fn nothing_merged(&self) -> MergedValues {
        MergedValues::new(self.documents.directory.clone(), Arc::clone(&self.compiled_rules))
    }

    /// What the places of the values refer to.
    #[cfg(test)]
    pub(crate) fn places(&self) -> weir_config::Places {
        self.documents.places()
    }
}

impl Source for Files {
    fn merge_into(&self, merged: &mut MergedValues) {
        merged.root = self.root.clone();
        merged.places.documents.extend(self.documents.all.iter().cloned());
        merged.findings.extend(self.documents.findings.iter().cloned());
        merged.is_incomplete |= self.documents.is_incomplete;
    }
}
