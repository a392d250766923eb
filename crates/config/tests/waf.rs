//! `waf`: its meaning, shared parts, and findings.

mod waf_support;

use std::fs;
use std::sync::Arc;

use waf_support::{Folder, check, findings, server, servers, virtual_server};
use weir_config::snapshot::{LogTarget, Record, Syslog, SyslogServer, UnjudgedAction};
use weir_config::{Resolutions, parse};
use weir_core::policy::{Action, WafMode};
use weir_waf::body::Limits;

/// A rule set with the settings of CRS, with a rule for the paranoia level 2.
const RULES: &str = r#"SecAction "id:1,phase:1,pass,nolog,setvar:tx.blocking_paranoia_level=1,setvar:tx.own=1"
SecRule TX:blocking_paranoia_level "@lt 2" "id:2,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@contains x" "id:3,phase:2,deny"
SecMarker END
SecRule ARGS "@contains y" "id:4,phase:2,deny"
"#;

#[test]
fn defaults() {
    let waf = server("waf: { mode: block }").waf.expect("an inspection");
    assert_eq!((waf.mode, waf.unjudged), (WafMode::Block, UnjudgedAction::Block));
    assert_eq!(waf.limits, Limits::DEFAULT);
    assert_eq!((waf.body_bytes_max, waf.work_bytes_max), (1 << 20, 256 << 20));
    assert_eq!(&*waf.common.view().rules().signatures[0], "Weirgate built-in rules");
    assert!(waf.common.view().warnings.is_empty());
    assert!(server("server_timing: true").waf.is_none());
}

#[test]
fn every_setting_arrives() {
    let text = "waf: { mode: off, rules: [ builtin ], body_size_max: 2KiB, arguments_max: 3, depth_max: 4, \
                work_max: 5MiB, unjudged: pass }";
    let waf = server(text).waf.expect("an inspection");
    assert_eq!((waf.mode, waf.unjudged), (WafMode::Off, UnjudgedAction::Pass));
    assert_eq!(waf.limits, Limits { arguments_max: 3, depth_max: 4, ..Limits::DEFAULT });
    assert_eq!((waf.body_bytes_max, waf.work_bytes_max), (2 << 10, 5 << 20));
    let waf = server("waf: { mode: detect }").waf.expect("an inspection");
    assert_eq!(waf.mode, WafMode::Detect);
}

/// The number of evaluated rules shows the level in force.
#[test]
fn settings_are_those_of_rules() {
    let folder = Folder::new(&[("own.conf", RULES)]);
    let rules = |more: &str| {
        let loaded = folder.load(&format!("waf: {{ mode: block, rules: own.conf{more} }}"), "");
        assert!(loaded.config.is_some(), "{:?}", loaded.diagnostics);
        let snapshot = loaded.config.expect("a configuration").snapshot(&Resolutions::new());
        snapshot.virtual_servers[0].waf.as_ref().expect("an inspection").common.view().rules_count()
    };
    assert_eq!((rules(""), rules(", paranoia: 1"), rules(", paranoia: 2")), (1, 1, 2));
    assert_eq!(rules(", variables: { Blocking_Paranoia_Level: 3 }"), 2);
}

#[test]
fn limits_of_rules_hold_unless_the_section_has_others() {
    let text = "SecArgumentsLimit 7\nSecRequestBodyJsonDepthLimit 8\n";
    let folder = Folder::new(&[("own.conf", text)]);
    for (more, arguments_max, depth_max) in [("", 7, 8), (", arguments_max: 9", 9, 8)] {
        let loaded = folder.load(&format!("waf: {{ mode: block, rules: own.conf{more} }}"), "");
        let snapshot = loaded.config.expect("a configuration").snapshot(&Resolutions::new());
        let limits = snapshot.virtual_servers[0].waf.as_ref().expect("an inspection").limits;
        assert_eq!(limits, Limits { arguments_max, depth_max, ..Limits::DEFAULT });
    }
}

#[test]
fn a_thousand_virtual_servers_share_everything() {
    let profile = "profiles: { waf: { strict: { mode: block, paranoia: 2 } } }\n";
    let named = servers(1_000, |_| "waf: strict".into(), profile);
    let first = named[0].waf.as_ref().expect("an inspection");
    assert!(named.iter().all(|it| it.waf.as_ref().is_some_and(|it| Arc::ptr_eq(it, first))));

    let inline = |index: usize| {
        let mode = if index.is_multiple_of(2) { "block" } else { "detect" };
        let level = 1 + index % 4 / 2;
        format!("waf: {{ mode: {mode}, paranoia: {level} }}")
    };
    let all = servers(1_000, inline, "");
    let waf = |index: usize| all[index].waf.as_ref().expect("an inspection");
    for index in 4..1_000 {
        assert!(Arc::ptr_eq(waf(index), waf(index % 4)), "{index}");
    }
    // Virtual servers that differ only in their modes share rules and settings; with different settings, they share the
    // rules.
    assert!(
        !Arc::ptr_eq(waf(0), waf(1)) && Arc::ptr_eq(waf(0).common.view(), waf(1).common.view())
    );
    assert!(!Arc::ptr_eq(waf(0).common.view(), waf(2).common.view()));
    assert!(std::ptr::eq(waf(0).common.view().rules(), waf(2).common.view().rules()));
}

#[test]
fn the_action_of_policies() {
    let policy = "policies: { q: { strategy: all_match, rules: [ { then: [ { waf: off } ] }, { then: [ { waf: detect } ] }, \
                  { then: [ { waf: block } ] } ] } }\n";
    let server = virtual_server("waf: { mode: off }\n    policies: [ q ]", policy);
    let actions: Vec<&Action> =
        server.policies[0].request.all().iter().flat_map(|rule| &rule.actions).collect();
    let modes: Vec<WafMode> = actions
        .iter()
        .map(|action| match action {
            Action::Inspection(mode) => *mode,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(modes, [WafMode::Off, WafMode::Detect, WafMode::Block]);
    assert!(server.policies[0].response.is_empty());

    let policy = "policies: { q: { rules: [ { when: \"response.status == 500\", then: [ { waf: block } ] } ] } }\n";
    check(
        "waf: { mode: off }\n    policies: [ q ]",
        policy,
        &[
            "error 7:69 this rule reads the response: by then the request has been sent -> do it in a rule that reads the request only",
        ],
    );
    let policy = "policies: { q: { rules: [ { then: [ { waf: on } ] } ] } }\n";
    check(
        "policies: [ q ]",
        policy,
        &[
            "error 6:44 `policies.q.rules[0].then[0].waf` must be `off`, `detect` or `block`, found the text \"on\" -> -",
        ],
    );
}

#[test]
fn an_action_without_rules() {
    let policies = "policies:\n  p: { rules: [ { then: [ { trace: x } ] } ] }\n  q: { rules: [ { then: [ { waf: block } ] } ] }\n";
    check(
        "policies: [ p, q ]",
        policies,
        &[
            "warning 5:20 `waf` of the policy `q` does nothing here: this virtual server has no `waf` -> \
             add `waf` with the mode for all other requests, such as `off`",
        ],
    );
    check("policies: [ p, q ]\n    waf: { mode: off }", policies, &[]);
}

#[test]
fn where_findings_are_logged() {
    let log = |log: &str| {
        let text = format!("{}{log}", waf_support::file("waf: { mode: block }", ""));
        let loaded = parse("dir/weir.yaml", &text);
        assert_eq!(loaded.diagnostics, [], "{text}");
        loaded.config.expect("a configuration").snapshot(&Resolutions::new()).log.clone()
    };
    let file = |name: &str| LogTarget::File(name.into());
    assert_eq!(log("").waf_to, LogTarget::Stdout);
    assert_eq!(log("log: { access: { to: ./a.log } }\n").waf_to, file("dir/./a.log"));
    let syslog = |server, facility, tag: &str| {
        LogTarget::Syslog(Syslog { server, facility, tag: tag.into() })
    };
    for (to, expected) in [
        ("unix:/dev/log", syslog(SyslogServer::Unix("/dev/log".into()), 16, "weir")),
        ("192.0.2.1:99", syslog(SyslogServer::Udp("192.0.2.1:99".into()), 16, "weir")),
        ("192.0.2.1", syslog(SyslogServer::Udp("192.0.2.1:514".into()), 16, "weir")),
        (
            "'[::1]', transport: tcp, facility: local7, tag: edge",
            syslog(SyslogServer::Tcp("[::1]:514".into()), 23, "edge"),
        ),
        (
            "log.example, transport: tcp",
            syslog(SyslogServer::Tcp("log.example:514".into()), 16, "weir"),
        ),
    ] {
        let read = log(&format!("log: {{ access: {{ to: {{ syslog: {to} }} }} }}\n"));
        assert_eq!((&read.access_to, &read.waf_to), (&expected, &expected), "{to}");
    }
    for (to, server, name) in [
        ("log.example, transport: tls, tls: { verify: false }", "log.example:6514", "log.example"),
        (
            "'[::1]:99', transport: tls, tls: { verify: false, server_name: a.example }",
            "[::1]:99",
            "a.example",
        ),
        ("192.0.2.1, transport: tls, tls: { verify: false }", "192.0.2.1:6514", "192.0.2.1"),
    ] {
        let read = log(&format!("log: {{ access: {{ to: {{ syslog: {to} }} }} }}\n"));
        let LogTarget::Syslog(Syslog { server: SyslogServer::Tls(tls), .. }) = &read.access_to
        else {
            panic!("{:?}", read.access_to)
        };
        assert_eq!((&*tls.server, &*tls.name), (server, name), "{to}");
    }
    let both = log("log: { access: { to: ./a.log }, waf: { to: ./w.log } }\n");
    assert_eq!((both.access_to, both.waf_to), (file("dir/./a.log"), file("dir/./w.log")));
    assert_eq!(
        log("log: { access: { to: ./a.log }, waf: { to: stdout } }\n").waf_to,
        LogTarget::Stdout
    );
    check(
        "waf: { mode: block }",
        "log: { waf: { to: . } }\n",
        &["error 6:19 `log.waf.to`: this is a directory, not a file -> -"],
    );
}

#[test]
fn what_does_not_fit() {
    check(
        "waf: { mode: block, paranoia: 3, detection_paranoia: 2 }",
        "",
        &[
            "error 5:58 `detection_paranoia` is below `paranoia`, 3: rules that score are always evaluated -> \
             set it to 3 or more",
        ],
    );
    check("waf: { mode: block, paranoia: 2, detection_paranoia: 2 }", "", &[]);
    check(
        "waf: { mode: block, paranoia: 1, variables: { PARANOIA_LEVEL: 2 } }",
        "",
        &["error 5:51 `paranoia_level` is what `paranoia` sets -> keep one of them"],
    );
    check(
        "waf: { mode: block, variables: { a: 2, A: 3 } }",
        "",
        &["error 5:44 `a` is listed twice -> names are the same in either case"],
    );
    check(
        "waf: { mode: block, variables: { \"tx:a\": 2, \"b c\": 3 } }",
        "",
        &[
            "error 5:38 `virtual_servers.a.waf.variables`: \"tx:a\" is not a valid variable name -> write `a`",
            "error 5:49 `virtual_servers.a.waf.variables`: \"b c\" is not a valid variable name -> \
             a name has letters, digits and `.` `_` `-`, 128 of them at most",
        ],
    );
    check(
        "waf: {}",
        "",
        &[
            "error 5:10 `virtual_servers.a.waf` lacks `mode` -> add `mode:` with `off`, `detect` or `block`",
        ],
    );
    check(
        "waf: { mode: on, paranoia: 5, threshold: 0, work_max: 1KiB }",
        "",
        &[
            "error 5:18 `virtual_servers.a.waf.mode` must be `off`, `detect` or `block`, found the text \"on\" -> -",
            "error 5:32 `virtual_servers.a.waf.paranoia` must be a whole number from 1 to 4, found the number 5 -> -",
            "error 5:46 `virtual_servers.a.waf.threshold` must be a whole number from 1 to 1000000, found the number 0 -> -",
            "error 5:59 `virtual_servers.a.waf.work_max` must be a size from 1MiB to 64GiB (units: B, KiB, MiB, GiB), found the text \"1KiB\" -> -",
        ],
    );
}

#[test]
fn profiles_by_name() {
    check(
        "waf: strikt",
        "profiles: { waf: { strict: { mode: block } } }\n",
        &["error 5:10 waf profile `strikt` is not defined -> did you mean `strict`?"],
    );
    check(
        "server_timing: true",
        "profiles: { waf: { strict: { mode: block } } }\n",
        &[
            "warning 6:20 the waf profile `strict` is never used -> use it in a virtual server, or remove it",
        ],
    );
    // Reported once, for any number of virtual servers.
    let profile =
        "profiles: { waf: { strict: { mode: block, paranoia: 2, detection_paranoia: 1 } } }\n";
    let text = waf_support::many(3, |_| "waf: strict".into(), profile);
    let loaded = parse("weir.yaml", &text);
    assert_eq!(loaded.diagnostics.len(), 1, "{:?}", loaded.diagnostics);
}

#[test]
fn types_without_requests_have_no_inspection() {
    for kind in ["tcp", "udp", "fast_l4"] {
        let text = format!(
            "virtual_servers: {{ a: {{ type: {kind}, listen: 127.0.0.1:80, pool: p, waf: {{ mode: block }} }} }}\n\
             pools: {{ p: {{ members: [ 127.0.0.2:80 ] }} }}\n"
        );
        let expected = format!("`waf` does not apply to a virtual server of type {kind}");
        let said = findings("weir.yaml", &text);
        assert!(said.len() == 1 && said[0].contains(&expected), "{said:?}");
    }
}

#[test]
fn settings_that_no_rule_knows() {
    check(
        "waf: { mode: block, variables: { critical_anomaly_scor: 4, unheard_of: 1 } }",
        "",
        &[
            "warning 5:38 no rule names the variable `critical_anomaly_scor` -> did you mean `critical_anomaly_score`?",
            "warning 5:64 no rule names the variable `unheard_of` -> remove it",
        ],
    );
    let folder =
        Folder::new(&[("own.conf", "SecRule ARGS \"@contains x\" \"id:1,phase:2,deny\"\n")]);
    folder.check(
        "waf: { mode: block, rules: own.conf, paranoia: 2, threshold: 3, early_blocking: false }",
        &[
            "warning 5:52 `paranoia` has no effect: no rule names `blocking_paranoia_level` or `paranoia_level` -> remove it",
            "warning 5:66 `threshold` has no effect: no rule names `inbound_anomaly_score_threshold` -> remove it",
            "warning 5:85 `early_blocking` has no effect: no rule names `early_blocking` -> remove it",
        ],
    );
}

#[test]
fn rules_with_mistakes_are_named_by_file_and_line() {
    let folder = Folder::new(&[
        ("own.conf", "# fine\nSecRule ARGS \"@contains x\" \"id:1,phase:2,deny\"\nSecRull ARGS\n"),
        ("many.conf", &"SecRull ARGS\n".repeat(25)),
        ("open.conf", &opening(12)),
        ("geo.conf", "SecRule REMOTE_ADDR \"@geoLookup\" \"id:1,phase:1,deny\"\n"),
        ("include.conf", "Include absent.conf\n"),
        ("words.conf", "SecRule ARGS \"@pmFromFile absent.data\" \"id:1,phase:2,deny\"\n"),
        ("marked.conf", "SecRule ARGS \"@pmFromFile marked.data\" \"id:1,phase:2,deny\"\n"),
        ("marked.data", "one\n\u{feff}two\n"),
    ]);
    let said = |file: &str| folder.findings(&format!("waf: {{ mode: block, rules: {file} }}"));
    let one = said("own.conf");
    assert!(one.len() == 1 && one[0].starts_with("error 5:32 own.conf:3: "), "{one:?}");
    let marked = said("marked.conf");
    assert!(
        marked.len() == 1 && marked[0].contains("byte order mark (EF BB BF) in line 2"),
        "{marked:?}"
    );
    let many = said("many.conf");
    assert_eq!(many.len(), 11, "{many:?}");
    assert!(many[9].starts_with("error 5:32 many.conf:10: "), "{many:?}");
    assert_eq!(many[10], "error 5:32 … and 15 more -> -");
    let warnings = said("open.conf");
    assert_eq!(warnings.len(), 11, "{warnings:?}");
    assert_eq!(
        warnings[0],
        "warning 5:32 open.conf:1: variables of `IP` are not kept from request to request -> \
         limit requests of a client by `limit` in a rule of weir's"
    );
    assert_eq!(warnings[10], "warning 5:32 … and 2 more -> -");
    for (file, expected) in [
        ("geo.conf", "geo.conf:1: "),
        ("include.conf", "include.conf:1: there is no file `absent.conf`"),
        ("words.conf", "words.conf:1: there is no file `absent.data`"),
    ] {
        let said = said(file);
        assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
    }
}

fn opening(count: usize) -> String {
    let rule = |id| format!("SecAction \"id:{id},phase:1,pass,initcol:ip=%{{REMOTE_ADDR}}\"\n");
    (1..=count).map(rule).collect()
}

#[test]
fn files_that_are_not_there() {
    let folder = Folder::new(&[("empty/readme.txt", "no rules"), ("large.conf", "")]);
    let help = "name files of rules, folders of CRS, or `builtin`; a relative path starts at the configuration's directory";
    folder.check(
        "waf: { mode: block, rules: [ builtin, absent.conf, empty, /dev/null ] }",
        &[
            &format!("error 5:43 cannot open absent.conf: No such file or directory -> {help}"),
            &format!("error 5:56 empty has no file *.conf -> {help}"),
        ],
    );
    folder.check(
        "waf: { mode: block, rules: /dev/zero }",
        &["error 5:32 /dev/zero:1: `/dev/zero` cannot be read: it is a device, not a file -> -"],
    );
    let large = fs::File::create(folder.path().join("large.conf")).expect("a file");
    large.set_len(weir_config::rule_files::FILE_BYTES_MAX + 1).expect("a long file");
    folder.check(
        "waf: { mode: block, rules: large.conf }",
        &["error 5:32 large.conf:1: `large.conf` cannot be read: it is larger than 16 MiB -> -"],
    );
}

#[test]
fn files_are_bounded_in_number() {
    let folder = Folder::new(&[("own.conf", "IncludeOptional many/*.conf\n"), ("many/x", "")]);
    for index in 0..weir_waf::plan::FILES_MAX {
        fs::write(folder.path().join(format!("many/{index}.conf")), "").expect("a file");
    }
    let found = folder.findings("waf: { mode: block, rules: own.conf }");
    assert!(found.len() == 1 && found[0].contains("own.conf:1: `"), "{found:?}");
    assert!(found[0].contains("is one file of rules too many: 1000 are read"), "{found:?}");
    let found = folder.findings("waf: { mode: block, rules: many }");
    assert_eq!(found, Vec::<String>::new());
}

/// A rule of each file that reports its position shows the order.
#[test]
fn a_folder_of_crs() {
    let file = |signature: &str| format!("SecComponentSignature \"{signature}\"\n");
    let names = [
        ("crs-setup.conf.example", "example"),
        ("rules/REQUEST-901.conf", "901"),
        ("rules/REQUEST-949.conf", "949"),
        ("rules/words.data", "data"),
        ("plugins/a-before.conf", "before"),
        ("plugins/a-config.conf", "config"),
        ("plugins/a-after.conf", "after"),
        ("plugins/b-config.conf", "config b"),
    ];
    let texts = names.map(|(name, signature)| (name, file(signature)));
    let files: Vec<(&str, &str)> =
        texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = Folder::new(&[]);
    folder.add("crs", &files);
    let signatures = || {
        let loaded = folder.load("waf: { mode: block, rules: [ crs ] }", "");
        let snapshot = loaded.config.expect("a configuration").snapshot(&Resolutions::new());
        let waf = snapshot.virtual_servers[0].waf.clone().expect("an inspection");
        waf.common.view().rules().signatures.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let rest = ["config", "config b", "before", "901", "949", "after"];
    assert_eq!(signatures(), [&["example"][..], &rest].concat());
    folder.add("crs", &[("crs-setup.conf", &file("own"))]);
    assert_eq!(signatures(), [&["own"][..], &rest].concat());
}

#[test]
fn what_is_recorded() {
    let folder = Folder::new(&[]);
    for (more, expected) in [
        ("", Record::Off),
        (", record: off", Record::Off),
        (", record: told", Record::Told),
        (", record: all", Record::All),
    ] {
        let log = format!("log: {{ waf: {{ to: stdout{more} }} }}\n");
        let loaded = folder.load("waf: { mode: detect }", &log);
        assert!(loaded.config.is_some(), "{:?}", loaded.diagnostics);
        let snapshot = loaded.config.expect("a configuration").snapshot(&Resolutions::new());
        let waf = snapshot.virtual_servers[0].waf.as_ref().expect("an inspection");
        assert_eq!(waf.record, expected, "{more}");
    }
}

#[test]
fn exclusions_are_in_front_of_the_rules() {
    let all = "waf: { mode: block, exclusions: { b: { rule: 1003001, variable: \"ARGS:text\", path: /a/* }, \
               a: { rule: 1003001, variable: \"ARGS:text\", path: /b }, twice: { rule: 1003001, variable: \"ARGS:text\", path: /b } } }";
    let waf = server(all).waf.expect("an inspection");
    let told: Vec<(bool, &str)> =
        waf.exclusions.iter().map(|it| (it.place.is_prefix, it.place.path.as_str())).collect();
    assert_eq!(told, [(false, "/b"), (true, "/a/")], "two that say the same are one");
    let count = |waf: &weir_config::snapshot::Waf| waf.common.view().rules().rules.len();
    let without = server("waf: { mode: block }").waf.expect("an inspection");
    assert_eq!(count(&waf), count(&without) + 2);
    assert_eq!((waf.profile.as_deref(), without.profile.as_deref()), (None, None));
    let profile = "profiles: { waf: { strict: { mode: block } } }\n";
    let named = virtual_server("waf: strict", profile).waf.expect("an inspection");
    assert_eq!(named.profile.as_deref(), Some("strict"));
    for (exclusion, expected) in [
        (
            "rule: 7, variable: \"ARGS:a\", path: /",
            "warning 5:50 no rule has the id 7: the exclusion has no effect -> remove it, or correct the id",
        ),
        (
            "rule: 1003001, variable: \"TX:a\", path: /",
            "error 5:69 an exclusion names a variable that a client sends, without quotes -> write the variable as the log \
             of the firewall names it: `ARGS:text`, `REQUEST_COOKIES:session`, `REQUEST_HEADERS:User-Agent`",
        ),
        (
            "rule: 1003001, variable: \"ARGS:a\", path: a",
            "error 5:85 a path begins with `/` -> write the path that the member gets, or `/folder/*` for all paths in it",
        ),
    ] {
        check(
            &format!("waf: {{ mode: block, exclusions: {{ a: {{ {exclusion} }} }} }}"),
            "",
            &[expected],
        );
    }
}
