use super::*;

fn one(text: &str) -> DirectiveKind {
    let mut found = parse("rules.conf", text).unwrap_or_else(|problems| panic!("{problems:?}"));
    assert_eq!(found.len(), 1, "{text}");
    found.pop().expect("one").kind
}

fn refused(text: &str) -> String {
    let problems = parse("rules.conf", text).expect_err(text);
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_rule_is_read() {
    let text = "# a comment\nSecRule ARGS|!ARGS:/^id|x/|&TX:a \"@rx (?i)sel\\x65ct\" \\\n    \"id:1,\\\n    phase:2,\\\n\
                # another one\n    t:none,t:lowercase,\\\n    msg:'It\\'s, well, %{MATCHED_VAR_NAME}',setvar:tx.a=+%{tx.b},block\"\n";
    let DirectiveKind::Rule(rule) = one(text) else { panic!("no rule") };
    assert_eq!(rule.targets.len(), 3);
    assert!(rule.targets[1].selector.takes(b"ID5") && rule.targets[1].kind == TargetKind::Excluded);
    assert_eq!(rule.actions.len(), 7);
    let Action::Message(message) = &rule.actions[4] else { panic!("no message") };
    let expected =
        [Piece::Text("It's, well, ".into()), Piece::Variable(Variable::MatchedVarName, None)];
    assert_eq!(message.0, expected);
}

#[test]
fn chains_are_put_together() {
    let text = "SecRule ARGS a \"id:1,phase:2,deny,chain\"\nSecRule ARGS b chain\nSecRule ARGS c\n";
    let DirectiveKind::Rule(rule) = one(text) else { panic!("no rule") };
    let second = rule.chained.expect("a second one");
    assert!(second.chained.expect("a third one").chained.is_none());
}

#[test]
fn what_is_not_known_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "\n\nSecRule ARGS \"@rsub s/a/b/\" id:1",
            "rules.conf:3: the operator `@rsub` is not supported",
        ),
        ("SecRule ARG a id:1", "there is no variable `ARG`"),
        ("SecRule ARGS a \"id:1,frob\"", "there is no action `frob`"),
        ("SecRule ARGS a \"id:1,exec:/bin/x\"", "the action `exec` is not supported"),
        ("SecRule ARGS a \"id:1,t:rot13\"", "there is no transformation `t:rot13`"),
        ("SecRule ARGS \"@rx (?(1)a)\" id:1", "the regular expression cannot be used"),
        ("SecRule ARGS \"a id:1", "a quote \" is not closed"),
        ("SecRule ARGS a \"id:1,msg:'x\"", "a quote ' in the actions is not closed"),
        ("SecRule ARGS a \"id:1,chain\"", "no rule follows"),
        ("SecRule ARGS a \"id:1,chain\"\nSecMarker A", "no rule follows it"),
        ("SecRule ARGS a \"id:1,chain\"\nSecRule ARGS b id:2", "belong to the first rule"),
        ("SecRuleEngine On", "`mode: off`, `detect` or `block`"),
        ("SecFoo On", "weir has no such directive"),
        ("Listen 80", "which begin with Sec"),
        ("SecRule REQUEST_METHOD:a b id:1", "has no members"),
        ("SecRule ARGS \"@eq x\" id:1", "no whole number"),
        ("SecRule XML:/a/b x id:1", "XPath that is not supported"),
        ("SecRule ARGS \"@validateByteRange 9-1\" id:1", "ends before it begins"),
        ("SecRule ARGS a \"id:1,setvar:args.x=1\"", "no collection that rules write"),
        ("SecDefaultAction pass", "names no phase"),
        ("SecRule ARGS a \"id:1,msg:'%{FOO}'\"", "names no variable"),
    ] {
        let said = refused(text);
        assert!(said.contains(expected), "{text}\n{said}\n{expected}");
    }
}

#[test]
fn operators_are_read() {
    let of = |text: &str| {
        let DirectiveKind::Rule(rule) = one(&format!("SecRule ARGS \"{text}\" id:1")) else {
            panic!("no rule")
        };
        (rule.operator.is_negated, format!("{:?}", rule.operator.kind))
    };
    for (text, is_negated, expected) in [
        ("abc", false, "Rx(Linear(Regex(\"abc\")))"),
        ("!@rx \\x{ff}", true, "Rx(Linear(Regex(\"\\\\xff\")))"),
        ("@pm a |41 42| |4142|", false, "Pm([[97], [124, 52, 49], [52, 50, 124], [65, 66]])"),
        ("!@within %{tx.a}", true, "Within(Template([Variable(Tx, Some(\"a\"))]))"),
        (
            "@validateByteRange 0-1,63,64",
            false,
            "ValidateByteRange([9223372036854775811, 1, 0, 0])",
        ),
        ("@ipMatch 10.0.0.0/8,::1", false, "IpMatch([(10.0.0.0, 8), (::1, 128)])"),
        ("@unconditionalMatch", false, "UnconditionalMatch"),
    ] {
        assert_eq!(of(text), (is_negated, expected.to_owned()), "{text}");
    }
}
