//! Paths in a configuration: JSON pointers (RFC 6901).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_config::document::NODE_DEPTH_MAX;
use weir_config::{Endpoint, clip, escaped};

use super::rules::is_in_members;

/// Maximum length of a pointer.
pub const POINTER_BYTES_MAX: usize = 4096;

/// A path such as `/pools/web/balance`. In a segment, `~1` means `/` and `~0` means `~`. For a list of members, a
/// segment is the address of a member, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(Arc<str>);

impl Pointer {
    /// Parses a pointer. An error describes the problem and its solution.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > POINTER_BYTES_MAX {
            return Err(format!("a path has at most {POINTER_BYTES_MAX} bytes"));
        }
        let Some(written) = text.strip_prefix('/') else {
            return Err(format!(
                "`{}` is not a path: write a JSON pointer such as /pools/web/balance",
                clip(text)
            ));
        };
        let mut segments = Vec::new();
        for segment in written.split('/') {
            if segment.is_empty() {
                let shown = clip(text);
                return Err(format!("`{shown}` has an empty segment: remove the extra `/`"));
            }
            if !is_escaped_well(segment) {
                let shown = clip(text);
                return Err(format!(
                    "`{shown}`: write `~0` for a `~`, and `~1` for a `/` in a name"
                ));
            }
            segments.push(unescaped(segment));
        }
        if segments.len() > NODE_DEPTH_MAX {
            return Err(format!("`{}` has more than {NODE_DEPTH_MAX} segments", clip(text)));
        }
        // One form per address, so that two changes of the same member are recognised.
        if is_in_members(&segments)
            && let Some(endpoint) = Endpoint::read(&segments[3])
        {
            let canonical = endpoint.to_string();
            if canonical != segments[3] {
                segments[3] = canonical;
                return Ok(Self::of(&segments));
            }
        }
        // There is one way to escape a segment.
        Ok(Self(text.into()))
    }

    fn of(segments: &[String]) -> Self {
        let text: String = segments.iter().flat_map(|it| ["/".to_owned(), escaped(it)]).collect();
        Self(text.into())
    }

    /// The path of a member, by its address in canonical form.
    pub(super) fn of_member(pool: &str, member: &str) -> Self {
        Self::of(&["pools", pool, "members", member].map(str::to_owned))
    }

    /// The pointer as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments without escapes.
    pub fn segments(&self) -> Vec<String> {
        self.0.split('/').skip(1).map(unescaped).collect()
    }
}

/// Whether each `~` of a segment begins an escape.
fn is_escaped_well(segment: &str) -> bool {
    let mut behind = segment.split('~').skip(1);
    behind.all(|rest| rest.starts_with(['0', '1']))
}

/// A segment without its escapes. Few have any.
fn unescaped(segment: &str) -> String {
    match segment.contains('~') {
        true => segment.replace("~1", "/").replace("~0", "~"),
        false => segment.to_owned(),
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers() {
        let check =
            |text: &str, expected: Result<&str, &str>| match (Pointer::parse(text), expected) {
                (Ok(pointer), Ok(expected)) => assert_eq!(pointer.as_str(), expected, "{text}"),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{text}: {error}"),
                (other, _) => panic!("{text}: {other:?}"),
            };
        check("/pools/web/balance", Ok("/pools/web/balance"));
        check("/pools/a~1b/queue", Ok("/pools/a~1b/queue"));
        check("/pools/web/members/[::FFFF:10.0.0.1]:80", Ok("/pools/web/members/10.0.0.1:80"));
        check(
            "/pools/web/members/Web.Example:80/weight",
            Ok("/pools/web/members/web.example:80/weight"),
        );
        check("/pools/web/members/unix:~1run~1a", Ok("/pools/web/members/unix:~1run~1a"));
        check("/pools/web/members/nonsense", Ok("/pools/web/members/nonsense"));
        check("", Err("is not a path"));
        check("pools/web", Err("such as /pools/web/balance"));
        check("/pools//web", Err("empty segment"));
        check("/pools/", Err("empty segment"));
        check("/a~2", Err("write `~0`"));
        check("/a~", Err("write `~0`"));
        check("/a~~01", Err("write `~0`"));
        check("/a~01~10", Ok("/a~01~10"));
        check(&"/a".repeat(NODE_DEPTH_MAX + 1), Err("more than 32 segments"));
        check(&format!("/{}", "a".repeat(POINTER_BYTES_MAX)), Err("at most 4096 bytes"));
        assert_eq!(Pointer::parse("/a~1b/~01").unwrap().segments(), ["a/b", "~1"]);
    }
}
