//! Checks of bodies: the results of the body parsers, and GraphQL.

use std::collections::HashMap;

use super::{Check, Findings};
use crate::body::{Body, Difference, Problem};

/// Adds the findings of a body's parser.
pub fn of_body(body: &Body, findings: &mut Findings<'_>) {
    let place = "body";
    if let Some(failure) = body.failure() {
        let check = of_problem(body, failure.problem);
        let detail = format!("{} at byte {}", failure.problem.name(), failure.offset);
        if let Some(check) = check {
            findings.add(check, place, detail.as_bytes());
        }
    }
    for difference in body.differences().iter() {
        if let Some(check) = of_difference(body, difference) {
            findings.add(check, place, difference.name().as_bytes());
        }
    }
}

fn of_problem(body: &Body, problem: Problem) -> Option<Check> {
    let (depth, size, other) = match body {
        Body::Json(_) => (Check::JsonDepth, Check::JsonSize, Check::JsonMalformed),
        Body::Xml(_) => (Check::XmlDepth, Check::XmlSize, Check::XmlMalformed),
        Body::Multipart(_) => {
            (Check::MultipartMalformed, Check::ParameterCount, Check::MultipartMalformed)
        }
        Body::UrlEncoded(_) => {
            (Check::ParameterCount, Check::ParameterCount, Check::ParameterLength)
        }
        Body::None => return None,
    };
    Some(match problem {
        Problem::DepthLimit => depth,
        Problem::ArgumentsLimit
        | Problem::NameLimit
        | Problem::NamesLimit
        | Problem::ValueLimit
        | Problem::AttributesLimit
        | Problem::OpenNamesLimit => size,
        _ => other,
    })
}

fn of_difference(body: &Body, difference: Difference) -> Option<Check> {
    Some(match (body, difference) {
        (Body::Json(_), Difference::DuplicateKey) => Check::JsonRepeatedKey,
        (Body::Json(_), _) => return None,
        (_, Difference::DocumentType) => Check::XmlDoctype,
        (
            _,
            Difference::EntityInternal | Difference::EntityExternal | Difference::EntityReference,
        ) => Check::XmlEntity,
        // Both names, and the content as a file and as a field, are inspected. Many clients send such parts.
        (_, Difference::FileNameExtended | Difference::FileNameExtendedAlone) => return None,
        // The evasion checks report invalid escapes.
        (_, Difference::InvalidEscape) => return None,
        (Body::Multipart(_), _) => Check::MultipartAmbiguous,
        _ => return None,
    })
}

/// Checks a GraphQL document (the `query` of a request) by its tokens only, so the document may be invalid. `queries`: the
/// number of queries in the request.
pub fn graphql(document: &[u8], queries: usize, findings: &mut Findings<'_>) {
    let limits = findings.policy().limits.clone();
    let place = "GraphQL query";
    let shape = Shape::of(document);
    if shape.depth > limits.graphql_depth_max {
        findings.add(Check::GraphqlDepth, place, shape.depth.to_string().as_bytes());
    }
    if queries > limits.graphql_batch_max || shape.aliases > limits.graphql_batch_max {
        findings.add(Check::GraphqlBatch, place, shape.aliases.max(queries).to_string().as_bytes());
    }
    if shape.asks_for_schema {
        findings.add(Check::GraphqlIntrospection, place, b"__schema or __type");
    }
}

/// Metrics of a GraphQL document.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    /// Maximum nesting depth of selections, including their fragments.
    depth: usize,
    /// Number of aliased fields.
    aliases: usize,
    asks_for_schema: bool,
}

/// An operation or a fragment of a document.
#[derive(Debug, Default)]
struct Definition<'d> {
    /// The name of a fragment; empty for an operation.
    name: &'d [u8],
    depth: usize,
    /// Fragments spread in the definition, with the depth of each spread.
    spreads: Vec<(&'d [u8], usize)>,
}

/// Maximum number of nested fragments that are followed.
const FRAGMENTS_DEEP_MAX: usize = 64;

/// The maximum depth of the definitions, including their fragments. For fragments that include each other, the depth grows
/// to the limit.
fn whole_depth(definitions: &[Definition<'_>]) -> usize {
    let named = definitions.iter().enumerate().filter(|(_, it)| !it.name.is_empty());
    let places: HashMap<&[u8], usize> = named.map(|(at, it)| (it.name, at)).collect();
    // For each definition, the deepest spread of each fragment.
    let taken: Vec<HashMap<usize, usize>> = definitions
        .iter()
        .map(|definition| {
            let mut deepest = HashMap::new();
            for (name, depth) in &definition.spreads {
                if let Some(place) = places.get(name) {
                    let known = deepest.entry(*place).or_insert(0);
                    *known = (*depth).max(*known);
                }
            }
            deepest
        })
        .collect();
    let mut whole: Vec<usize> = definitions.iter().map(|it| it.depth).collect();
    for _ in 0..FRAGMENTS_DEEP_MAX {
        let mut is_settled = true;
        for (at, taken) in taken.iter().enumerate() {
            // The braces of a fragment replace its spread, so they do not add a level.
            let deepest = taken.iter().map(|(place, depth)| whole[*place] + depth - 1).max();
            if let Some(deeper) = deepest.filter(|deepest| *deepest > whole[at]) {
                (whole[at], is_settled) = (deeper, false);
            }
        }
        if is_settled {
            break;
        }
    }
    whole.into_iter().max().unwrap_or(0)
}

impl Shape {
    fn of(document: &[u8]) -> Self {
        let mut shape = Self::default();
        let mut definitions = vec![Definition::default()];
        let (mut depth, mut in_arguments) = (0usize, 0usize);
        let (mut is_fragment, mut is_spread) = (false, false);
        let mut rest = document;
        while let Some((&byte, behind)) = rest.split_first() {
            let current = definitions.len() - 1;
            match byte {
                b'#' => {
                    let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                    rest = &rest[end.unwrap_or(rest.len())..];
                    continue;
                }
                b'"' => {
                    rest = behind_text(rest);
                    continue;
                }
                b'.' if behind.starts_with(b"..") => {
                    is_spread = depth > 0;
                    rest = &behind[2..];
                    continue;
                }
                b'(' => in_arguments += 1,
                b')' => in_arguments = in_arguments.saturating_sub(1),
                b'{' if in_arguments == 0 => {
                    depth += 1;
                    is_spread = false;
                    definitions[current].depth = definitions[current].depth.max(depth);
                }
                b'}' if in_arguments == 0 => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && definitions.len() < DEFINITIONS_MAX {
                        definitions.push(Definition::default());
                    }
                }
                // Outside arguments, a colon follows an alias.
                b':' if in_arguments == 0 && depth > 0 => shape.aliases += 1,
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                    let end = rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len());
                    let name = &rest[..end];
                    rest = &rest[end..];
                    shape.asks_for_schema |= matches!(name, b"__schema" | b"__type");
                    if depth == 0 && is_fragment {
                        definitions[current].name = name;
                    } else if std::mem::take(&mut is_spread) && name != b"on" {
                        definitions[current].spreads.push((name, depth));
                    }
                    is_fragment = depth == 0 && name == b"fragment";
                    continue;
                }
                _ => {}
            }
            rest = behind;
        }
        shape.depth = whole_depth(&definitions);
        shape
    }
}

/// Maximum number of distinct operations and fragments. Further ones count as one.
const DEFINITIONS_MAX: usize = 256;

/// The input after a string or block string.
fn behind_text(text: &[u8]) -> &[u8] {
    if let Some(block) = text.strip_prefix(b"\"\"\"") {
        return match memchr::memmem::find(block, b"\"\"\"") {
            Some(end) => &block[end + 3..],
            None => b"",
        };
    }
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' | b'\n' => return &text[at + 1..],
            _ => {}
        }
        at += 1;
    }
    b""
}
