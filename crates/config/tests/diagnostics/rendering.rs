//! Output of findings: as text, as JSON, and their number.

use weir_config::{Colour, render_json, render_text};

use super::*;

/// All at once, in the file's order, and the rest is still checked.
const FAULTY: &str = "\
virtual_servers:
  shop:
    lisen: 127.0.0.1:8080
    pool: wed
    waf: { rules: [] }
pools:
  web:
    members: [ 127.0.0.1:9001, 127.0.0.1:9001 ]
    retries: 99
";

#[test]
fn text_rendering() {
    let loaded = parse("weir.yaml", FAULTY);
    let expected = "\
weir.yaml:3:5: error: unknown key `lisen` in `virtual_servers.shop`
 3 |     lisen: 127.0.0.1:8080
   |     ^^^^^
help: did you mean `listen`?
weir.yaml:4:11: error: pool `wed` is not defined
 4 |     pool: wed
   |           ^^^
help: did you mean `web`?
weir.yaml:5:10: error: `virtual_servers.shop.waf` lacks `mode`
 5 |     waf: { rules: [] }
   |          ^^
help: add `mode:` with `off`, `detect` or `block`
weir.yaml:5:19: error: `virtual_servers.shop.waf.rules` is empty; it needs at least one item
 5 |     waf: { rules: [] }
   |                   ^
weir.yaml:8:32: error: `127.0.0.1:9001` is a member of pool `web` twice; the first is in line 8
 8 |     members: [ 127.0.0.1:9001, 127.0.0.1:9001 ]
   |                                ^^^^^^^^^^^^^^
help: keep one; `weight` gives a member more traffic
weir.yaml:9:14: error: `pools.web.retries` must be a whole number from 0 to 16, found the number 99
 9 |     retries: 99
   |              ^^
";
    assert_eq!(render_text(&loaded.diagnostics, Colour::Never), expected);
}

#[test]
fn json_rendering() {
    let loaded = parse(
        "weir.yaml",
        &sound("    lisen: 1\n", "").replace("listen: 127.0.0.1:80", "listen: 127.0.0.1:0"),
    );
    assert_eq!(
        render_json(&loaded.diagnostics).to_string(),
        concat!(
            r#"{"diagnostics":[{"severity":"warning","message":"port 0 of virtual server `a`: "#,
            r#"the system picks another port at each start","file":"weir.yaml","line":3,"#,
            r#""column":13,"suggestion":"give a port, unless this is a test"},"#,
            r#"{"severity":"error","message":"unknown key `lisen` in `virtual_servers.a`","#,
            r#""file":"weir.yaml","line":5,"column":5,"suggestion":"did you mean `listen`?"}]}"#,
        )
    );
}

#[test]
fn findings_are_bounded() {
    let many: String = (0..3000).map(|index| format!("key{index}: 1\n")).collect();
    let loaded = parse("weir.yaml", &many);
    assert_eq!(loaded.diagnostics.len(), weir_config::DIAGNOSTICS_MAX + 1);
    let last = loaded.diagnostics.last().map(show);
    assert_eq!(last.as_deref(), Some("error - 2001 more findings are not shown -> -"));
}
