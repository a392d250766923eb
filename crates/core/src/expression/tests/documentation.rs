//! The statements of the users' documentation are true.

use crate::expression::names::{
    FUNCTIONS, Group, METHODS, POOL_FACTS, ROOTS, TOKEN_FIELDS, TOKENS,
};
use crate::expression::testing::Sample;
use crate::expression::{
    Condition, NESTING_MAX, NODES_MAX, Purpose, TEXT_LENGTH_BYTES_MAX, Template,
};

const DOCUMENT: &str = include_str!("../../../../../docs/expressions.md");

/// Lines of the code blocks of a language.
fn examples(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks = DOCUMENT.split(&fence).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter(|line| !line.is_empty()).collect()
}

#[test]
fn examples_compile() {
    let mut sample = Sample::new("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (conditions, templates) = (examples("cel"), examples("template"));
    assert!(conditions.len() > 10 && templates.len() > 2);
    for text in conditions {
        let condition = Condition::compile(text, &mut sample.scope());
        assert!(condition.is_ok_and(|condition| condition.constant().is_none()), "{text}");
    }
    for text in templates {
        let template = Template::compile(text, Purpose::Plain, &mut sample.scope());
        assert!(template.is_ok_and(|template| template.constant().is_none()), "{text}");
    }
}

#[test]
fn every_name_is_described() {
    let mut missing = Vec::new();
    let groups = ROOTS.into_iter().chain([Group::ClientCertificate]);
    for (group, (name, _)) in
        groups.flat_map(|group| group.members().iter().map(move |member| (group, member)))
    {
        missing.push(format!("`{}.{name}", group.path()));
    }
    for (group, (name, _)) in
        ROOTS.into_iter().flat_map(|group| group.readers().iter().map(move |it| (group, it)))
    {
        missing.push(format!("`{}.{name}(", group.path()));
    }
    missing.extend(POOL_FACTS.iter().map(|(name, _)| format!("`pools['name'].{name}`")));
    missing.extend(TOKEN_FIELDS.iter().map(|(name, _)| format!("`{TOKENS}['NAME'].{name}")));
    missing.extend(METHODS.iter().map(|(name, _)| format!(".{name}(")));
    missing.extend(FUNCTIONS.iter().map(|(name, _)| format!("`{name}(")));
    missing.retain(|name| !DOCUMENT.contains(name.as_str()));
    assert!(missing.is_empty(), "docs/expressions.md does not describe {missing:?}");
}

#[test]
fn limits_are_as_described() {
    for limit in [
        format!("{} KiB", TEXT_LENGTH_BYTES_MAX / 1024),
        format!("{NESTING_MAX} levels"),
        format!("{NODES_MAX} parts"),
    ] {
        assert!(DOCUMENT.contains(&limit), "docs/expressions.md does not say {limit}");
    }
}
