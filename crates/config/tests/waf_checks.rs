//! `waf.checks`: its meaning, and findings.

#[expect(dead_code, reason = "other tests use the rest")]
mod waf_support;

use waf_support::{Folder, check, server};
use weir_waf::checks::{Action, Check, FileTypes, Policy};

#[test]
fn without_a_word_all_checks_have_their_own_actions() {
    let waf = server("waf: { mode: block }").waf.expect("an inspection");
    let checks = waf.checks.as_ref().expect("checks");
    assert_eq!(checks.policy, Policy::default());
    assert!(checks.interface.is_none());
    let waf = server("waf: { mode: block, checks: off }").waf.expect("an inspection");
    assert!(waf.checks.is_none());
}

#[test]
fn every_setting_arrives() {
    let text = "waf: { mode: block, checks: { actions: { nul_byte: off, host_is_address: block }, methods: [ GET ], \
                extensions_refused: [ BAK ], path_size_max: 10B, parameters: [ { name: q, size_max: 5B } ], cookies_max: 3 } }";
    let waf = server(text).waf.expect("an inspection");
    let policy = &waf.checks.as_ref().expect("checks").policy;
    assert_eq!(policy.action(Check::NulByte), Action::Off);
    assert_eq!(policy.action(Check::HostIsAddress), Action::Block);
    assert_eq!(policy.action(Check::PercentU), Check::PercentU.default_action());
    assert_eq!(policy.methods, ["GET".into()]);
    assert_eq!(policy.file_types, FileTypes::AllBut(vec!["bak".into()]));
    assert_eq!((policy.limits.url_bytes_max, policy.limits.cookies_max), (10, 3));
    assert_eq!(policy.parameter_limits, [("q".into(), 5)]);
    let text = "waf: { mode: block, checks: { extensions: [ { name: \"\" }, { name: PHP, query_size_max: 7B } ] } }";
    let waf = server(text).waf.expect("an inspection");
    let FileTypes::Only(kinds) = &waf.checks.as_ref().expect("checks").policy.file_types else {
        panic!("only these");
    };
    let told: Vec<_> = kinds.iter().map(|it| (&*it.extension, it.query_bytes_max)).collect();
    assert_eq!(told, [("", None), ("php", Some(7))]);
}

#[test]
fn mistakes_are_told() {
    for (checks, expected) in [
        (
            "{ actions: { nulbyte: off } }",
            "error 5:46 there is no check `nulbyte` -> did you mean `nul_byte`?",
        ),
        (
            "{ actions: { zzz: off } }",
            "error 5:46 there is no check `zzz` -> docs/waf.md has a table of all checks",
        ),
        (
            "{ extensions_refused: [ .bak ] }",
            "error 5:57 `.bak` is not a file extension -> write only the extension: `bak`",
        ),
        (
            "{ extensions_refused: [ bak ], extensions: [ { name: php } ] }",
            "error 5:55 both `extensions` and `extensions_refused` are given -> keep one of them",
        ),
    ] {
        check(&format!("waf: {{ mode: block, checks: {checks} }}"), "", &[expected]);
    }
}

#[test]
fn descriptions_of_applications_are_read() {
    let good = "openapi: 3.0.0\npaths:\n  /a:\n    get: {}\n";
    let folder = Folder::new(&[("good.yaml", good), ("bad.yaml", "openapi: 2.0.0\n")]);
    let with = |name: &str| {
        folder.load(&format!("waf: {{ mode: block, checks: {{ openapi: {name} }} }}"), "")
    };
    let loaded = with("good.yaml");
    assert_eq!(loaded.diagnostics, []);
    for (name, expected) in
        [("bad.yaml", "documents of version 3 are read"), ("none.yaml", "cannot open")]
    {
        let loaded = with(name);
        assert!(loaded.config.is_none());
        let told: Vec<_> = loaded.diagnostics.iter().map(|it| it.message.clone()).collect();
        assert!(told.len() == 1 && told[0].contains(expected), "{told:?}");
    }
}
