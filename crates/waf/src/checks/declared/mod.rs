//! Positive security: checks requests against the application's OpenAPI 3 document.
//!
//! An [`Interface`] is loaded once ([`Interface::load`]). A request's path and method select an [`Operation`]; its
//! parameters and the named values of its body are then checked against that operation.

mod load;
mod schema;

pub use schema::{Kind, Schema};

use super::{Check, Findings};

/// The location of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// A parameter in the path.
    Path,
    /// A parameter in the query.
    Query,
    /// A parameter in a header.
    Header,
    /// A parameter in a cookie.
    Cookie,
}

/// A declared parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// The location.
    pub location: Location,
    /// The name.
    pub name: Box<str>,
    /// Whether the parameter is required.
    pub is_required: bool,
    /// The schema of the value.
    pub schema: Schema,
}

/// The declared values of a body with one media type.
#[derive(Debug, Clone)]
pub struct BodyValues {
    /// The values by name: whether each is required, and its schema. The parsers' names are used: `a`, or `json.a.b`.
    pub values: Vec<(Box<str>, bool, Schema)>,
    /// Names at and below which any value is accepted: `json.labels`.
    pub open: Vec<Box<str>>,
    /// Whether values with other names are accepted.
    pub takes_others: bool,
}

/// The operation of one path and method.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The method, in capitals.
    pub method: Box<str>,
    /// Parameters outside the body.
    pub parameters: Vec<Parameter>,
    /// Media types of the body, in lower case, with the declared values; empty: no body.
    pub bodies: Vec<(Box<str>, BodyValues)>,
    /// Whether a body is required.
    pub is_body_required: bool,
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(Box<str>),
    Parameter(Box<str>),
}

/// A path with its operations.
#[derive(Debug, Clone)]
struct PathItem {
    segments: Vec<Segment>,
    operations: Vec<Operation>,
}

/// The declared interface of an application.
#[derive(Debug, Clone, Default)]
pub struct Interface {
    /// Prefix of all paths, without a slash at its end.
    base: Box<str>,
    paths: Vec<PathItem>,
}

/// A request's values outside the body.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// Values of the query.
    pub query: &'a [(&'a [u8], &'a [u8])],
    /// Headers.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    /// Cookies.
    pub cookies: &'a [(&'a [u8], &'a [u8])],
}

/// The operation of a request, with the values of its path parameters.
#[derive(Debug)]
pub struct MatchedOperation<'a, 'p> {
    operation: &'a Operation,
    path_values: Vec<(&'a str, &'p [u8])>,
}

impl Interface {
    /// The operation for a method and path. An undeclared method or path is a finding.
    pub fn find<'a, 'p>(
        &'a self,
        method: &[u8],
        path: &'p [u8],
        findings: &mut Findings<'_>,
    ) -> Option<MatchedOperation<'a, 'p>> {
        let below = path
            .strip_prefix(self.base.as_bytes())
            .filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
        let matching = below.into_iter().flat_map(|rest| {
            self.paths.iter().filter_map(move |item| Some((item, item.values(rest)?)))
        });
        // A path with fewer parameters takes precedence.
        let Some((item, path_values)) = matching.min_by_key(|(_, values)| values.len()) else {
            findings.add(Check::UndeclaredPath, "path", path);
            return None;
        };
        let operation = item.operations.iter().find(|it| it.method.as_bytes() == method);
        let Some(operation) = operation else {
            findings.add(Check::UndeclaredMethod, "method", method);
            return None;
        };
        Some(MatchedOperation { operation, path_values })
    }
}

impl PathItem {
    /// The values of the path's parameters, if the path matches.
    fn values<'p>(&self, path: &'p [u8]) -> Option<Vec<(&str, &'p [u8])>> {
        let given = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/');
        let given: Vec<&[u8]> = given.collect();
        if given.len() != self.segments.len() {
            return None;
        }
        let mut values = Vec::new();
        for (segment, text) in self.segments.iter().zip(given) {
            match segment {
                Segment::Text(wanted) if wanted.as_bytes() == text => {}
                Segment::Text(_) => return None,
                Segment::Parameter(_) if text.is_empty() => return None,
                Segment::Parameter(name) => values.push((&**name, text)),
            }
        }
        Some(values)
    }
}

impl MatchedOperation<'_, '_> {
    /// Checks the parameters outside the body.
    pub fn parameters(&self, values: &Values<'_>, findings: &mut Findings<'_>) {
        for parameter in &self.operation.parameters {
            let name = parameter.name.as_bytes();
            let given: Vec<&[u8]> = match parameter.location {
                Location::Path => {
                    let own = self.path_values.iter().filter(|(known, _)| known.as_bytes() == name);
                    own.map(|(_, value)| *value).collect()
                }
                Location::Query => of_name(values.query, |known| known == name),
                Location::Cookie => of_name(values.cookies, |known| known == name),
                Location::Header => {
                    of_name(values.headers, |known| known.eq_ignore_ascii_case(name))
                }
            };
            let place = format!("parameter {}", parameter.name);
            if given.is_empty() && parameter.is_required {
                findings.add(Check::ParameterMissing, &place, b"");
            }
            for value in given {
                hold(&parameter.schema, value, &place, findings);
            }
        }
        for (name, _) in values.query {
            let is_declared = self.operation.parameters.iter().any(|parameter| {
                parameter.location == Location::Query && parameter.name.as_bytes() == *name
            });
            if !is_declared {
                let place = format!("parameter {}", name.escape_ascii());
                findings.add(Check::UndeclaredParameter, &place, name);
            }
        }
    }

    /// Checks the presence and the media type of the body.
    pub fn body_type(&self, given: Option<&str>, has_body: bool, findings: &mut Findings<'_>) {
        let Operation { bodies, is_body_required, .. } = self.operation;
        if !has_body {
            if *is_body_required {
                findings.add(Check::ParameterMissing, "body", b"");
            }
            return;
        }
        let is_declared =
            given.is_some_and(|given| bodies.iter().any(|(known, _)| **known == *given));
        if !is_declared {
            findings.add(Check::UndeclaredBody, "body", given.unwrap_or_default().as_bytes());
        }
    }

    /// Checks the values of a body with this media type.
    pub fn body(&self, media_type: &str, given: &[(&[u8], &[u8])], findings: &mut Findings<'_>) {
        let Some((_, declared)) =
            self.operation.bodies.iter().find(|(known, _)| **known == *media_type)
        else {
            return findings.add(Check::UndeclaredBody, "body", media_type.as_bytes());
        };
        for (name, is_required, schema) in &declared.values {
            let values: Vec<&[u8]> = of_name(given, |known| is_of(known, name.as_bytes()));
            let place = format!("parameter {name}");
            if values.is_empty() && *is_required {
                findings.add(Check::ParameterMissing, &place, b"");
            }
            for value in values {
                hold(schema, value, &place, findings);
            }
        }
        if declared.takes_others {
            return;
        }
        for (name, _) in given {
            let is_below = |open: &str| {
                let rest = name.strip_prefix(open.as_bytes());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
            };
            let is_open = declared.open.iter().any(|open| is_below(open));
            let is_declared =
                declared.values.iter().any(|(known, ..)| is_of(name, known.as_bytes()));
            if !is_open && !is_declared {
                let place = format!("parameter {}", name.escape_ascii());
                findings.add(Check::UndeclaredParameter, &place, name);
            }
        }
    }
}

fn of_name<'v>(given: &[(&[u8], &'v [u8])], is_it: impl Fn(&[u8]) -> bool) -> Vec<&'v [u8]> {
    given.iter().filter(|(name, _)| is_it(name)).map(|(_, value)| *value).collect()
}

/// Whether a name matches the declared name: `*` stands for the index of an array element.
fn is_of(name: &[u8], declared: &[u8]) -> bool {
    let (mut given, mut wanted) =
        (name.split(|byte| *byte == b'.'), declared.split(|byte| *byte == b'.'));
    loop {
        match (given.next(), wanted.next()) {
            (None, None) => return true,
            (Some(one), Some(b"*")) => {
                let number = one.strip_prefix(b"array_").unwrap_or(one);
                if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
                    return false;
                }
            }
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

fn hold(schema: &Schema, value: &[u8], place: &str, findings: &mut Findings<'_>) {
    if let Err(check) = schema.hold(value) {
        findings.add(check, place, value);
    }
}

#[cfg(test)]
mod tests;
