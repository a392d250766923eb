//! What editors, office programs and query interfaces send, and attacks that look like it.

use super::{check, field, json, named, part, serde_json};
use crate::send::Sent;

#[test]
fn contents_of_editors_and_interfaces_pass() {
    let frame =
        |src: &str| format!("<iframe width=\"560\" src=\"{src}\" allowfullscreen></iframe>");
    let embedded = [
        "https://www.google.com/maps/embed?pb=!1m18!1m12",
        "https://www.youtube.com/embed/dQw4w9WgXcQ?si=abc",
        "https://player.vimeo.com/video/76979871?badge=0&amp;autopause=0",
        "https://open.spotify.com/embed/track/1",
    ]
    .map(|src| format!("{{\"a\":{{\"html\":{}}}}}", serde_json(&frame(src))));
    let page = "{\"a\":{\"html\":\"<meta charset=\\\"utf-8\\\"><b>Hi</b>\"}}".to_owned();
    let embedded = [&embedded[..], &[page]].concat();
    check(named(&embedded, field), false);
    check(named(&embedded, json), false);
    let texts = [
        "<meta charset=\"utf-8\"><b style=\"font-weight:normal;\" id=\"docs-internal-guid-x\"><p dir=\"ltr\">Hi</p></b>",
        "<style type=\"text/css\">p.p1 {margin: 0.0px; font: 12.0px Helvetica}</style><p class=\"p1\">Hi</p>",
        "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=utf-8\"><style type=\"text/css\" style=\"display:none;\"><!-- P {margin-top:0;} --></style></head><body dir=\"ltr\">Hi</body></html>",
        "<p class=\"MsoNormal\" style=\"mso-margin-top-alt:auto\">Hi<o:p></o:p></p><!--[if gte mso 9]><xml><w:WordDocument><w:View>Normal</w:View></w:WordDocument></xml><![endif]-->",
        "<style><!-- /* Font Definitions */ @font-face {font-family:Calibri; panose-1:2 15;} @page WordSection1 {size:8.5in 11in;} --></style>",
        "<p><a href=\"javascript:void(0)\">x</a> <a href='javascript:;'>y</a></p>",
        "javascript:void(0)",
        "I'd like to order 5 or more = discount",
        "smb://nas/share",
        "SELECT is a keyword",
    ];
    check(named(texts, field), false);
    check(named(texts, |text| json(&format!("{{\"body\":{}}}", serde_json(text)))), false);
    let spans =
        "{\"resourceSpans\":[{\"spans\":[{\"value\":\"SELECT * FROM users WHERE id = ?\"}]}]}";
    let queries = [
        Sent::query("/api/x", &[("filters[name][$eq]", b"a"), ("populate", b"*")]),
        Sent::query("/classes/x", &[("where", b"{\"score\":{\"$gte\":1000,\"$lte\":3000}}")]),
        json("{\"filter\":{\"age\":{\"$gt\":5},\"$or\":[{\"a\":1},{\"b\":{\"$in\":[1,2]}}]}}"),
        Sent::post("/v1/traces", "application/json", spans),
    ];
    check(queries.into_iter().map(|sent| (format!("{sent:.300?}"), sent)), false);
}

#[test]
fn contents_of_builders_of_pages_pass() {
    let elementor = r#"{"save_builder":{"action":"save_builder","data":{"elements":[{"id":"1","settings":{"__globals__":{"background_color":"globals/colors?id=primary"},"__dynamic__":{"url":"[elementor-tag id=\"1\" name=\"post-url\" settings=\"%7B%7D\"]"}}}]}}}"#;
    let fields = [("actions", elementor.as_bytes()), ("action", b"elementor_ajax")];
    check([("Elementor".to_owned(), Sent::form("/wp-admin/admin-ajax.php", &fields))], false);
    check([("Elementor, JSON".to_owned(), json(elementor))], false);
    let texts = [
        "[vc_row full_width=\"stretch_row\" css=\".vc_custom_1{margin-top: 0px !important;}\"][vc_column width=\"1/2\"][vc_column_text]Hi[/vc_column_text][vc_single_image image=\"12\"][/vc_column][/vc_row]",
        "[et_pb_section fb_built=\"1\" _builder_version=\"4.16\" global_colors_info=\"{}\"][et_pb_row _builder_version=\"4.16\"][et_pb_column type=\"4_4\" custom_padding=\"|||\"]<p>Hi</p>[/et_pb_column][/et_pb_row][/et_pb_section]",
        "[color=\"red\"][size=\"3\"]Hi[/size][/color] [quote=\"Tom\"][b]x[/b][/quote]",
        "data[\"a\"][\"b\"] and x['a'][0]",
        "a = [\"b\"]\n[section]\nc = \"d\"",
    ];
    check(named(texts, field), false);
    let objects = [
        r#"{"process":{"env":{"A":"b"},"kill":{"x":1}},"child_process":{"pid":1}}"#,
        r#"{"kernel":{"system":"x","open":1}}"#,
        r#"{"document":{"location":"https://a.example/","cookie":"a"},"window":{"location":"/b"}}"#,
        r#"{"information_schema":{"tables":1}}"#,
        r#"{"require":{"main":"a.js"},"this":{"constructor":{"constructor":"x"}}}"#,
    ];
    check(named(objects, json), false);
}

#[test]
fn attacks_like_contents_of_builders_are_found() {
    let texts = [
        "x']|//user/*[a='b",
        "x'] | //*",
        "x'][1]|//a",
        "x'] or 'a'='a",
        "x\"] [\"a\"=\"a",
        "a[x'][@role='admin",
        "a[x'][contains(name,'a",
        "[x'][role='admin",
        "x'][role='admin",
        "x'][1=1",
        "x'][ 'a'='a",
        "{{x.__globals__.os}}",
        "foo.__globals__['os']",
        "a.__init__.__globals__",
        "process.env.SECRET",
        "x=process.mainModule.require('child_process').exec('id')",
        "java.lang.Runtime",
    ];
    check(named(texts, field), true);
    let names = [
        Sent::query("/", &[("process.mainModule.require('child_process')", b"1")]),
        Sent::query("/", &[("a.__init__.__globals__.x", b"1")]),
        json(r#"{"a":{"__init__":{"__globals__":{"x":1}}}}"#),
        json(r#"{"process.mainModule.require('fs').x":1}"#),
    ];
    check(names.into_iter().map(|sent| (format!("{sent:.300?}"), sent)), true);
}

#[test]
fn attacks_like_contents_of_editors_are_found() {
    check(
        named(
            [
                "<iframe src=\\\"https:evil\\\"></iframe>",
                "<iframe src=\"//evil.example/\"></iframe>",
                "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.example/\">",
                "<meta http-equiv='Set-Cookie' content='a=b'>",
                "<meta charset=\"utf-7\">",
                "<meta content=\"0;javascript:alert(1)\" http-equiv=refresh>",
                "<style>@import 'https://evil.example/x.css';</style>",
                "<style>a{background:url(https://evil.example/x)}</style>",
                "<style>*{x:expression(alert(1))}</style>",
                "<style>*{x:exp/**/ression(alert(1))}</style>",
                "<style>p{}",
                "<style onload=alert(1)>p{}</style>",
                "<style>p{}</style><script>alert(1)</script>",
                "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
                "<!--[if gte IE 4]><img src=x onerror=alert(1)><![endif]-->",
                "<xml id=x><a>b</a></xml>",
                "<a href=\"javascript:void(0);alert(1)\">x</a>",
                "<a href=\"javascript:void(alert(1))\">x</a>",
                "<a href=\"javascript:void(0)\">x</a><a href=\"javascript:alert(1)\">y</a>",
                "5 or 1=1",
                "x 5 or 1=1--",
                "smb://evil.example/share",
                "smb://192.0.2.1/share",
                "ldap://dc.example.com/DC=x",
            ],
            field,
        ),
        true,
    );
    let queries = [
        Sent::query("/login", &[("password[$ne]", b"x")]),
        Sent::query("/api", &[("filters[$where]", b"1")]),
        Sent::query("/api", &[("query[$ne]", b"1")]),
        Sent::query("/api", &[("where", b"{\"$ne\":1}")]),
        json("{\"filter\":{\"$gt\":\"\"}}"),
        Sent::query("/api", &[("where", b"{\"$where\":\"sleep(1)\"}")]),
        Sent::query("/api", &[("user", b"{\"$ne\":null}")]),
        json("{\"password\":{\"$ne\":null}}"),
        json("{\"$or\":[{\"a\":1}]}"),
        Sent::post("/v1/tracesx", "application/json", "{\"a\":\"1' UNION SELECT a FROM b-- \"}"),
    ];
    check(queries.into_iter().map(|sent| (format!("{sent:.300?}"), sent)), true);
    let file = |name: &str, content: &str| {
        (
            format!("{name} {content}"),
            part(&format!("name=\"f\"; filename=\"{name}\""), "", content.as_bytes()),
        )
    };
    check(
        [
            file("shell.php.jpg", "x"),
            file("shell.php;.pdf", "x"),
            file("shell.php%00.pdf", "x"),
            file("shell.php.pdf", "%PDF-1.4 <?php system(1);"),
            file("shell.cer", "<%eval request(1)%>"),
            file("a.xsl", "<xsl:stylesheet><xsl:include href='http://e/x.xsl'/></xsl:stylesheet>"),
            file(
                "a.xsl",
                "<xsl:stylesheet><xsl:value-of select=\"document('/etc/x')\"/></xsl:stylesheet>",
            ),
            file(
                "a.xsl",
                "<xsl:stylesheet xmlns:r=\"http://xml.apache.org/xalan/java/java.lang.Runtime\"/>",
            ),
            file("a.xsl", "<xsl:element name=\"{concat('scr','ipt')}\"/>"),
            file("a.svg", "<!DOCTYPE svg [<!ENTITY x \"javascript:alert(1)\">]><svg/>"),
            file("a.svg", "<!DOCTYPE svg [<!ENTITY x 'http://e/\"<script'>]><svg/>"),
            file("a.svg", "<!DOCTYPE svg [<!ATTLIST svg onload CDATA 'a()'>]><svg/>"),
            file("a.svg", "<svg><foreignObject><body/></foreignObject></svg>"),
        ],
        true,
    );
    let illustrator = "<?xml version=\"1.0\"?><!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd\" [\n\t<!ENTITY ns_extend \"http://ns.adobe.com/Extensibility/1.0/\">\n]>\n<svg xmlns:x=\"&ns_extend;\"><switch><foreignObject requiredExtensions=\"&ns_extend;\" x=\"0\"/></switch></svg>";
    check(
        [
            file("a.cer", "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"),
            file("report.cgi.pdf", "%PDF-1.4\n"),
            file("intro.php.pdf", "%PDF-1.4\n"),
            file("app.war", "PK\u{3}\u{4}"),
            file(
                "a.xsl",
                "<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\"><xsl:template match=\"/\"><xsl:value-of select=\"count(a)\"/></xsl:template></xsl:stylesheet>",
            ),
            file("logo.svg", illustrator),
            file(
                "a.plist",
                "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\"><plist/>",
            ),
        ],
        false,
    );
}
