//! Keys that sources need before a configuration is checked.

use std::path::PathBuf;

use crate::decode::{Context, Decode as _, OneOrMany, Spanned};
use crate::document::{Node, Span};
use crate::raw;
use crate::shapes::FilePath;

/// The key of further files.
pub const INCLUDE: &str = "include";

/// The value of `include`.
#[derive(Debug, Default)]
pub struct IncludeValue {
    /// The paths as they are written, and their places.
    pub paths: Vec<(PathBuf, Span)>,
    /// Whether all of the value is valid. A check of the whole configuration reports what is not.
    pub is_sound: bool,
}

/// The files that a document includes; `None`: it has no such key.
pub fn included(root: &Node) -> Option<IncludeValue> {
    let node = root.get(INCLUDE)?;
    let mut context = Context::default();
    let paths = OneOrMany::<Spanned<FilePath>>::decode(node, &mut context);
    let paths = paths.map_or_else(Vec::new, |paths| paths.0);
    let paths = paths.into_iter().map(|path| (path.value.0, path.span)).collect();
    Some(IncludeValue { paths, is_sound: !context.has_errors() })
}

/// The directory for data that must survive a restart, as written; without the key or with a wrong value: the default.
pub fn state_dir(root: Option<&Node>) -> PathBuf {
    let node = root.and_then(|root| root.get("state_dir"));
    let given = node.and_then(|node| FilePath::decode(node, &mut Context::default()));
    given.map_or_else(raw::default_state_dir, |path| path.0)
}
