//! The paths of requests, as rules read them.

use weir_http::path::{PathForm, canonicalise};
use weir_waf::exclusion::Place;

/// The path of a target, as in `REQUEST_FILENAME`. If a part of it cannot be written literally in a rule, the folder above
/// that part is used.
pub fn place_of(target: &str) -> Place {
    let path = target.split('?').next().unwrap_or_default();
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => path,
    };
    let mut canonical = Vec::new();
    let made = canonicalise(path.as_bytes(), PathForm::default(), &mut canonical);
    match made {
        Ok(()) if path.starts_with('/') => {
            Place::of_path(&String::from_utf8(canonical).unwrap_or_default())
        }
        _ => Place::of_path(path),
    }
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
            assert_eq!(place_of(target), expected, "{target}");
        }
    }
}
