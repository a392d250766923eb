//! Targets of logs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::decode::{Context, Decode, Invalid, Registry, ShownDefault, decode_text};
use crate::document::{Node, NodeValue};
use crate::quote::clip;
use crate::raw::log::Syslog;

/// The target of log lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogPath {
    Stdout,
    File(PathBuf),
    Syslog(Box<Syslog>),
}

impl Decode for LogPath {
    fn expected() -> String {
        "`stdout`, a file's path, or `{ syslog: ADDRESS }`".into()
    }

    fn schema(registry: &mut Registry) -> Value {
        let text = json!({ "type": "string", "pattern": "^(stdout|.*[./].*)$" });
        json!({ "anyOf": [text, Syslog::schema(registry)] })
    }

    fn decode(node: &Node, context: &mut Context) -> Option<Self> {
        if let NodeValue::Map(_) = node.value {
            return Syslog::decode(node, context).map(Box::new).map(Self::Syslog);
        }
        let to = decode_text(node, context, |text| {
            if text == "stdout" {
                return Ok(Self::Stdout);
            }
            if text.is_empty() || text.contains('\0') {
                return Err(Invalid::plainly());
            }
            // Without this check, `to: stdot` would silently create a file of that name.
            if !text.contains(['/', '.']) {
                return Err(Invalid::plainly().help(format!(
                    "did you mean `stdout`? A file beside the configuration is written ./{}",
                    clip(text)
                )));
            }
            if text.ends_with('/') || Path::new(text).file_name().is_none() {
                return Err(Invalid::because("this is a directory, not a file"));
            }
            Ok(Self::File(PathBuf::from(text)))
        })?;
        if let Self::File(path) = &to {
            context.uses_file(node.span, &path.to_string_lossy());
        }
        Some(to)
    }
}

impl ShownDefault for LogPath {
    fn shown(&self) -> Value {
        match self {
            Self::Stdout => "stdout".into(),
            Self::File(path) => path.to_string_lossy().into(),
            Self::Syslog(syslog) => {
                json!({ "syslog": syslog.syslog.as_ref().map(|server| server.value.to_string()) })
            }
        }
    }
}
