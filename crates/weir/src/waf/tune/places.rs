//! Paths of requests, as rules see them, and the folders that contain them.

use weir_http::path::{PathForm, canonicalise};

/// A path, or all paths below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// All paths below; the path then ends with a slash.
    pub is_prefix: bool,
    pub path: String,
}

impl Place {
    /// The path of a target, as in `REQUEST_FILENAME`. If a part of it cannot be written literally in a rule, the
    /// folder above that part is used.
    pub fn of_target(target: &str) -> Self {
        let path = target.split('?').next().unwrap_or_default();
        let path = match path.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => path,
        };
        let mut canonical = Vec::new();
        let made = canonicalise(path.as_bytes(), PathForm::default(), &mut canonical);
        let path = match made {
            Ok(()) if path.starts_with('/') => String::from_utf8(canonical).unwrap_or_default(),
            _ => path.to_owned(),
        };
        match path.find(|char: char| !is_plain(char)) {
            None if path.starts_with('/') => Self { is_prefix: false, path },
            None => Self { is_prefix: true, path: "/".into() },
            Some(at) => {
                let end = path[..at].rfind('/').map_or(0, |slash| slash + 1);
                let path = if end == 0 { "/".into() } else { path[..end].to_owned() };
                Self { is_prefix: true, path }
            }
        }
    }

    /// All paths in the folder of this one; `None`: there is no folder above.
    pub fn folder(&self) -> Option<Self> {
        let path = if self.is_prefix { &self.path[..self.path.len() - 1] } else { &self.path };
        let end = path.rfind('/')? + 1;
        Some(Self { is_prefix: true, path: path[..end].to_owned() })
    }

    /// The depth of the path.
    pub fn depth(&self) -> usize {
        self.path.bytes().filter(|byte| *byte == b'/').count()
    }

    /// Whether this contains the other path.
    pub fn has(&self, other: &Self) -> bool {
        if self.is_prefix {
            other.path.starts_with(&self.path)
        } else {
            !other.is_prefix && self.path == other.path
        }
    }

    /// The operator of a rule for this path.
    pub fn operator(&self) -> String {
        let name = if self.is_prefix { "beginsWith" } else { "streq" };
        format!("@{name} {}", self.path)
    }
}

/// Characters that need no escape in rules and in paths.
fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || "/._-~!$&()+,;=:@".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_places() {
        for (target, is_prefix, path) in [
            ("/a/b?c=/d", false, "/a/b"),
            ("/a/../%61", false, "/a"),
            ("http://h/a", false, "/a"),
            ("http://h", false, "/"),
            ("/a/b%20c/d", true, "/a/"),
            ("/a/token=***", true, "/a/"),
            ("/a\"b", true, "/"),
            ("*", true, "/"),
            ("", true, "/"),
        ] {
            let expected = Place { is_prefix, path: path.into() };
            assert_eq!(Place::of_target(target), expected, "{target}");
        }
    }

    #[test]
    fn places_have_folders() {
        let mut place = Some(Place { is_prefix: false, path: "/a/b/c".into() });
        let mut above = Vec::new();
        while let Some(here) = place {
            above.push(here.path.clone());
            place = here.folder();
        }
        assert_eq!(above, ["/a/b/c", "/a/b/", "/a/", "/"]);
    }
}
