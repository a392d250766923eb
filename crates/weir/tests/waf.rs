//! Tests of the command `weir waf`: exit status and streams.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RULES: &str = r#"SecComponentSignature "Own/1.0"
SecAction "id:1,phase:1,pass,nolog,setvar:tx.inbound_anomaly_score_threshold=5,setvar:tx.blocking_paranoia_level=1"
SecRule ARGS "@rx (?i)union\s+select" \
    "id:10,phase:2,pass,log,t:none,t:urlDecodeUni,msg:'UNION in %{MATCHED_VAR_NAME}',severity:CRITICAL,\
    setvar:tx.blocking_inbound_anomaly_score=+5"
SecRule TX:blocking_paranoia_level "@lt 2" "id:11,phase:2,pass,nolog,skipAfter:END"
SecRule ARGS "@contains '" "id:12,phase:2,pass,log,msg:'A quote',setvar:tx.blocking_inbound_anomaly_score=+5"
SecMarker END
SecRule TX:blocking_inbound_anomaly_score "@ge %{tx.inbound_anomaly_score_threshold}" "id:13,phase:2,deny,nolog"
"#;

/// A folder with a rule file, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, rules: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-waf-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a writable temporary directory");
        std::fs::write(path.join("own.conf"), rules).expect("a file");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("waf")
        .args(arguments)
        .output()
        .expect("the command")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8 output")
}

#[test]
fn a_request_is_judged_rule_by_rule() {
    let folder = Folder::new("judged", RULES);
    let rules = folder.file("own.conf");
    let output =
        weir(&["test", "--rules", &rules, "--url", "https://a.example/?id=1%20UNION%20%20SELECT"]);
    let expected = format!(
        "blocked with 403 by rule 13, score 5 of 5\n\n  10 CRITICAL UNION in ARGS:id\n    {rules}:3\n    ARGS:id = 1 UNION  SELECT\n"
    );
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(1));
    for (arguments, code, first) in [
        (&["--url", "a.example/?id=union"][..], 0, "passes, score 0 of 5"),
        (&["--url", "a.example/?id=it's"], 0, "passes, score 0 of 5"),
        (
            &["--url", "a.example/?id=it's", "--paranoia", "2"],
            1,
            "blocked with 403 by rule 13, score 5 of 5",
        ),
        (
            &["--url", "a.example/?id=it's", "--paranoia", "2", "--threshold", "6"],
            0,
            "passes, score 5 of 6",
        ),
        (
            &["--url", "a.example/", "--data", "q=union+select"],
            1,
            "blocked with 403 by rule 13, score 5 of 5",
        ),
        (
            &["--url", "a.example/?q=union+select", "--set", "inbound_anomaly_score_threshold=9"],
            0,
            "passes, score 5 of 9",
        ),
    ] {
        let output = weir(&[&["test", "--rules", &rules], arguments].concat());
        assert_eq!(text(&output.stdout).lines().next(), Some(first), "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn a_request_comes_from_a_file_and_the_answer_as_json() {
    let folder = Folder::new("file", RULES);
    let request = folder.file("request.http");
    let body = "{\"a\":{\"b\":[\"union select\"]}}";
    let head = format!(
        "POST /x HTTP/1.1\nHost: a.example\nContent-Type: application/json\nContent-Length: {}\n\n",
        body.len()
    );
    std::fs::write(&request, format!("{head}{body}")).expect("a file");
    let output =
        weir(&["test", "--rules", &folder.file("own.conf"), "--request", &request, "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["verdict"], "blocked with 403 by rule 13");
    assert_eq!((&told["score"], &told["threshold"]), (&5.into(), &5.into()));
    assert_eq!(told["rules"][0]["id"], 10);
    assert_eq!(told["rules"][0]["severity"], "CRITICAL");
    assert_eq!(told["rules"][0]["values"][0]["variable"], "ARGS:json.a.b.array_0");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_could_not_be_judged_does_not_pass() {
    let folder = Folder::new("unjudged", RULES);
    let rules = folder.file("own.conf");
    let json = "Content-Type: application/json";
    let output = weir(&[
        "test",
        "--no-checks",
        "--rules",
        &rules,
        "--url",
        "a/",
        "-H",
        json,
        "--data",
        "{\"a\":NaN}",
    ]);
    let told = text(&output.stdout);
    assert!(told.starts_with("not judged: the body cannot be read"), "{told}");
    assert_eq!(output.status.code(), Some(1));
    let many = "a=1&".repeat(10_001);
    let output = weir(&["test", "--no-checks", "--rules", &rules, "--url", &format!("a/?{many}")]);
    let told = text(&output.stdout);
    assert!(told.starts_with("not judged: the limit of arguments was reached"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn rules_are_described_and_what_is_wrong_has_its_place() {
    let folder = Folder::new("described", RULES);
    let output = weir(&["rules", &folder.file("own.conf")]);
    let told = text(&output.stdout);
    assert!(
        told.starts_with("  Own/1.0\n  5 rules\n  paranoia level 1: 2 of them are evaluated\n"),
        "{told}"
    );
    assert!(told.contains("paranoia level 2: 3 of them are evaluated\n"), "{told}");
    assert_eq!(output.status.code(), Some(0));

    std::fs::write(
        Path::new(&folder.0).join("bad.conf"),
        "\nSecRule ARGS \"@rx (\" id:1\nSecFoo\n",
    )
    .expect("a file");
    let output = weir(&["rules", &folder.file("bad.conf")]);
    let told = text(&output.stderr);
    assert!(
        told.contains("bad.conf:2: the regular expression cannot be used: unclosed group"),
        "{told}"
    );
    assert!(
        told.contains("bad.conf:3: `SecFoo` is not supported\n  weir has no such directive"),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(1));

    let output = weir(&["rules", &folder.file("absent.conf")]);
    assert!(text(&output.stderr).contains("absent.conf: No such file or directory"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn wrong_usage_is_2_and_what_is_missing_is_told() {
    for arguments in [
        &["test"][..],
        &["test", "--url", "a", "--request", "b"],
        &["test", "--url", "a", "--paranoia", "5"],
        &["frob"],
    ] {
        assert_eq!(weir(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let folder = Folder::new("usage", RULES);
    let rules = folder.file("own.conf");
    for (arguments, expected) in [
        (&["--url", "/x"][..], "`/x` names no host"),
        (&["--url", "a/b c"], "has a blank in it"),
        (&["--url", "a", "-H", "x"], "`x` is no header"),
        (&["--url", "a", "--set", "x"], "as in --set arg_length=400"),
        (&["--request", "/nonexistent"], "/nonexistent: No such file"),
    ] {
        let output = weir(&[&["test", "--rules", &rules], arguments].concat());
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn checks_are_done_and_can_be_left_out() {
    let folder = Folder::new("checks", RULES);
    let rules = folder.file("own.conf");
    let asked = ["test", "--rules", &rules, "--url", "a.example/copy.bak"];
    let output = weir(&asked);
    let told = text(&output.stdout);
    assert!(told.starts_with("blocked with 403 by the check file_type"), "{told}");
    assert!(told.contains("\n  check file_type (block): "), "{told}");
    assert_eq!(output.status.code(), Some(1));
    let output = weir(&[&asked[..], &["--json"]].concat());
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["checks"][0]["name"].as_str(), Some("file_type"));
    let output = weir(&[&asked[..], &["--no-checks"]].concat());
    assert_eq!(text(&output.stdout), "passes, score 0 of 5\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn requests_are_read_as_the_data_path_reads_them() {
    let folder = Folder::new("wire", RULES);
    let (rules, request) = (folder.file("own.conf"), folder.file("request.http"));
    let form = "Content-Type: application/x-www-form-urlencoded";
    for (head, body, code, expected) in [
        (
            "Transfer-Encoding: chunked",
            "7\r\nq=union\r\n7\r\n+select\r\n0\r\n\r\n",
            1,
            "blocked with 403 by rule 13",
        ),
        ("Content-Length: 14", "q=union+select", 1, "blocked with 403 by rule 13"),
        ("Content-Length: 15", "q=union+select", 2, "14 of 15 bytes"),
        ("Content-Length: 7", "q=union+select", 2, "7 bytes behind the 7"),
        ("X: y", "q=union+select", 2, "say `Content-Length: 14`"),
        ("Content-Length: 1\nTransfer-Encoding: chunked", "q", 2, "weir answers it with 400"),
    ] {
        let head = format!(
            "POST / HTTP/1.1\nHost: a.example\nUser-Agent: x\nAccept: */*\n{form}\n{head}\n\n"
        );
        std::fs::write(&request, head + body).expect("a file");
        let output = weir(&["test", "--rules", &rules, "--request", &request]);
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(told.contains(expected), "{told}");
        assert_eq!(output.status.code(), Some(code), "{told}");
    }
}

#[test]
fn a_virtual_server_of_a_configuration_is_gone_by() {
    let folder = Folder::new("config", RULES);
    let config = folder.file("weir.yaml");
    let yaml = "virtual_servers:\n  shop: { listen: \"127.0.0.1:0\", pool: p, waf: { mode: block, rules: own.conf, paranoia: 2 } }\n  \
                bare: { listen: \"127.0.0.1:0\", pool: p }\npools: { p: { members: [ 127.0.0.1:1 ] } }\n";
    std::fs::write(&config, yaml).expect("a file");
    let asked = ["test", "--config", &config, "--url", "a.example/?id=it's"];
    let output = weir(&asked);
    let told = text(&output.stdout);
    assert!(told.starts_with("blocked with 403 by rule 13, score 5 of 5"), "{told}");
    for (more, expected) in [
        (&["--virtual-server", "bare"][..], "`bare` has no `waf`"),
        (&["--virtual-server", "other"], "there is no virtual server `other`"),
        (&["--paranoia", "1"], "cannot be used with"),
    ] {
        let output = weir(&[&asked[..], more].concat());
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        assert_eq!(output.status.code(), Some(2));
    }
    std::fs::write(&config, "virtual_servers: 1").expect("a file");
    let output = weir(&asked);
    assert!(text(&output.stderr).contains("cannot be used"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn answers_are_tried_too() {
    let rules = "SecRule RESPONSE_BODY \"@contains stack trace\" \"id:20,phase:4,deny,status:502,log,msg:'A leak'\"\n\
                 SecRule RESPONSE_STATUS \"@streq 500\" \"id:21,phase:3,pass,log,msg:'An error'\"\n";
    let folder = Folder::new("answers", rules);
    let (rules, answer) = (folder.file("own.conf"), folder.file("answer.http"));
    std::fs::write(&answer, "HTTP/1.1 500 Oh no\nContent-Type: text/html\n\na stack trace\n")
        .expect("a file");
    let output = weir(&["test", "--rules", &rules, "--url", "a.example/", "--response", &answer]);
    let told = text(&output.stdout);
    assert!(told.starts_with("blocked with 502 by rule 20"), "{told}");
    assert!(told.contains("21  An error"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}

/// A log with one line per request; each request is from another client. The flag decides whether the request is recorded.
fn log(targets: &[(&str, bool)]) -> String {
    let line = |(index, (target, is_recorded)): (usize, &(&str, bool))| {
        let mut line = serde_json::json!({
            "type": "waf", "request_id": format!("{index:032x}"), "method": "GET", "target": target,
            "client": format!("192.0.2.{index}:1"), "virtual_server": "shop", "outcome": "detected",
            "rule": 13, "score": 5, "threshold": 5,
            "rules": [{
                "id": 10, "message": "UNION", "severity": "CRITICAL",
                "values": [{ "variable": "ARGS:q", "value": "union select" }],
            }],
        });
        if *is_recorded {
            let head =
                format!("GET {target} HTTP/1.1\r\nHost: h\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n");
            line["request"] = serde_json::json!({ "head": head, "body": "" });
        }
        line.to_string() + "\n"
    };
    targets.iter().enumerate().map(line).collect()
}

#[test]
fn rules_are_tuned_and_compared() {
    let folder = Folder::new("tuned", RULES);
    let (rules, tuned, waf_log) =
        (folder.file("own.conf"), folder.file("tuned.conf"), folder.file("waf.log"));
    let (found, fine) = ("/search?q=union+select", "/search?q=shoes");
    let lines = log(&[(found, true), (found, true), (found, true), (fine, true), (found, false)]);
    std::fs::write(&waf_log, lines + "other\n").expect("a file");
    let output = weir(&["tune", "--min", "3", &waf_log]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("5 of 5 requests would no longer be blocked"));
    std::fs::write(&tuned, &output.stdout).expect("a file");

    let both = format!("{tuned},{rules}");
    let output = weir(&["diff", &rules, &both, &waf_log]);
    let told = text(&output.stdout);
    let first = "00000000000000000000000000000000 GET /search?q=union+select\n  \
                 old: blocked with 403 by rule 13, score 5\n  new: passes, score 0\n  gone: 10\n\n";
    assert!(told.starts_with(first), "{told}");
    assert!(
        told.ends_with(
            "4 requests judged, 3 decided differently: 3 pass now, 0 are blocked now, 0 otherwise\n\
         1 lines had no recorded request; 1 other line was skipped\n"
        ),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(1));
    let output = weir(&["diff", &both, &rules, &waf_log]);
    assert!(text(&output.stdout).contains("  added: 10\n"), "{}", text(&output.stdout));
    let output = weir(&["diff", &rules, &rules, &waf_log]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    for arguments in [
        &["diff", &rules, &rules][..],
        &["diff", &rules, "/nonexistent", &waf_log],
        &["tune", "/nonexistent"],
        &["tune"],
    ] {
        assert_eq!(weir(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn configurations_are_compared() {
    let folder = Folder::new("compared", RULES);
    let (old, new, waf_log) =
        (folder.file("old.yaml"), folder.file("new.yaml"), folder.file("waf.log"));
    for (file, paranoia) in [(&old, 1), (&new, 2)] {
        let waf = format!("{{ mode: block, rules: own.conf, paranoia: {paranoia}, checks: off }}");
        let yaml = format!(
            "virtual_servers:\n  shop: {{ listen: \"127.0.0.1:0\", pool: p, waf: {waf} }}\n\
             pools: {{ p: {{ members: [ 127.0.0.1:1 ] }} }}\n"
        );
        std::fs::write(file, yaml).expect("a file");
    }
    std::fs::write(&waf_log, log(&[("/?q=it's", true), ("/?q=its", true)])).expect("a file");
    let asked = ["diff", "--config-old", &old, "--config-new", &new, &waf_log];
    let output = weir(&asked);
    let told = text(&output.stdout);
    assert!(
        told.contains("2 requests judged, 1 decided differently: 0 pass now, 1 are blocked now"),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let output = weir(&[&asked[..], &["--virtual-server", "other"]].concat());
    assert!(text(&output.stdout).starts_with("0 requests judged"));
    assert_eq!(output.status.code(), Some(0));
}
