//! Values with scripts, by the way they introduce them, and similar values without scripts.

use super::*;

fn check(cases: &[(&str, bool)]) {
    let wrong: Vec<_> = cases
        .iter()
        .filter(|(value, expected)| detect_script(value.as_bytes()) != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn elements() {
    check(&[
        ("<script>f()</script>", true),
        ("<SCRIPT/x", true),
        ("<scr\0ipt>", true),
        ("x<script", true),
        ("<x:script xmlns:x=\"http://www.w3.org/1999/xhtml\" src=\"data:,f(1)\" />", true),
        ("<iframe>", true),
        ("<iframe src=javascript:f()>", true),
        ("<iframe src=//site.example>", true),
        ("<iframe src=https://site>", true),
        ("<iframe src=https://user@site.example>", true),
        ("<iframe src=/page>", true),
        ("<iframe src=http://site.example>", true),
        ("<iframe src=https://site.example/embed/x>", false),
        (
            "<p>x</p><IFRAME width=1 SRC='https://site.example:8443/x?y=z' allowfullscreen></iframe>",
            false,
        ),
        ("<iframe src=https://site.example onload=f()>", true),
        ("<iframe src=https://site.example srcdoc=x>", true),
        ("<iframe src=https://site.example><iframe>", true),
        ("<iframe width=1 src", true),
        ("<iframe width=1 <script>", true),
        ("<svg/onload=f()>", true),
        ("<svg viewBox='0 0 1 1'><path d='M0 0'/></svg>", false),
        ("<svg><animate attributeName=href values=x>", true),
        ("<svg><a xlink:href='javascript:f()'>", true),
        ("<svg><style>", true),
        ("<svg viewBox=0 onfocusin=f()>", true),
        ("<svgs>", true),
        ("<object data=x>", true),
        ("Vec<Object>", false),
        ("<scripts>", false),
        ("< script>", false),
        ("</script>", false),
        ("<b>bold</b>", false),
        ("script", false),
        ("www.example.com<script><img><iframe>", true),
        ("<<script>f()", true),
        ("<a title=\"x\"<script>", true),
    ]);
}

#[test]
fn handlers() {
    check(&[
        ("<img src=x onerror=f()>", true),
        ("<img src=x onerror = 'f()'>", true),
        ("<img/onerror\n=\nf()>", true),
        ("<img src=x onerror>", false),
        ("<img src=x onerror=>", false),
        ("<x onneverheardof=f(1)>", true),
        ("<x on=1>", false),
        ("<img src=`x`onerror=f()>", true),
        ("<img src=\"x\"onerror=f()>", true),
        ("</br onclick=f()>", true),
        ("<a \"=\">\" onclick=f()>", true),
        ("\"onmouseover='f(document.cookie)'\"", true),
        ("\" onfocus=f() autofocus x=\"", true),
        ("' onfocus=f() ", true),
        ("` onfocus=f() ", true),
        ("x onfocus=f()", true),
        ("onfocus=f()", true),
        ("x onneverheardof=1", false),
        ("x once=1", false),
        ("on=1", false),
        ("x\" y=\"z", false),
        ("<set attributename=onclick to=f()>", true),
        ("a > onclick=f()", false),
    ]);
}

#[test]
fn addresses() {
    check(&[
        ("<a href=javascript:f()>", true),
        ("<a href=' java\tscript:f()'>", true),
        ("<a href='&#106;avascript&colon;f()'>", true),
        ("<a href='&#x6A;avascript:f()'>", true),
        ("<a href='java&Tab;script:f()'>", true),
        ("<a href=vbscript:f>", true),
        ("<a href='https://example.com/javascript:'>", false),
        ("<a href='data:text/html,x'>", true),
        ("<img src='data:image/png;base64,AAAA'>", false),
        ("<img src='data:image/svg+xml,x'>", true),
        ("<p title='data: x'>", false),
        ("<p srcdoc='x'>", true),
        ("javascript:f()", true),
        ("javascript: a language", false),
        ("javascript:the good parts", false),
        ("JavaScript: f() and more", false),
    ]);
}

#[test]
fn styles_and_comments() {
    check(&[
        ("<p style='color:red'>", false),
        ("<p style='width:expression(f())'>", true),
        ("<p style='width:exp/**/res\\sion (f())'>", true),
        ("<p style='-moz-binding:url(x)'>", true),
        ("<p style='background:url(x.png)'>", false),
        ("x\" style=\"behavior:url(x)", true),
        ("<!-- note -->", false),
        ("<!--[if gte IE 4]><script>f()</script><![endif]-->", true),
        ("<!--><img src=x onerror=f()>-->", true),
        ("<!-- <img src=x onerror=f()> -->", true), // within a tag that is not a comment
        ("<!-- --!><img src=x onerror=f()>", true),
        ("<!ENTITY x 'y'>", true),
        ("<!ENTITY x 'http://a.example/ns#'>", false),
        ("<!DOCTYPE a [ <!ENTITY x 'http://a.example/' > <!ENTITY nbsp \"\u{a0}\"> ]>", false),
        ("<!DOCTYPE a [<!ENTITY x 'javascript:f()'>]>", true),
        ("<!DOCTYPE a [<!ENTITY x 'http://a.example/'><!ENTITY y 'z'>]>", true),
        ("<!--[if gte mso 9]><xml><w:View>Normal</w:View></xml><![endif]-->", false),
        ("<!--[if IE]><a onclick=f()>x</a><![endif]-->", true),
        ("<!--[if IE]", true),
        ("<meta charset=\"utf-8\">", false),
        ("<meta name=Generator content=\"Microsoft Word 15\">", false),
        ("<meta http-equiv=content-type content='text/html; charset=utf-8'>", false),
        ("<meta http-equiv=refresh content=1>", true),
        ("<meta charset=utf-7>", true),
        ("<meta property=x>", true),
        ("<style type='text/css'>p { margin: 0 }</style>", false),
        ("<style><!-- p { margin: 0 } --></style>", false),
        ("<style>p{}</STYLE >", false),
        ("<style>p{}", true),
        ("<style>p{}<b></style>", true),
        ("<style>@IMPORT 'x'</style>", true),
        ("<style>a{b:url(x)}</style>", true),
        ("<style>a{b:u\\rl(x)}</style>", true),
        ("<style>a{b:exp/**/ression(f())}</style>", true),
        ("<style onload=f()>p{}</style>", true),
        ("<a href='javascript:void(0)'>", false),
        ("<a href=\" JavaScript:;\">", false),
        ("<a href='javascript:void(0),f()'>", true),
        ("<a href='javascript:f()'>", true),
        ("<?xml version='1.0'?><a/>", false),
        ("<!doctype html>", false),
    ]);
}

/// Inputs that are repeated to measure the time.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    "<", "<a ", "<a", "<a<", "<a b=", "<a b=\"", "<a b='", "=", "a=", "a=b ", "\"", "'", "`", "=`", "=``",
    ">", "<!", "<!--", "<!-->", "-->", "--!", "<!--<", "<?", "</", "</a ", "/", " ", "\0", "&", "&#", "&#x0",
    "=&#1;", "a", "style=/*", "style=a", "on", "<style ", "=javascript", "<style>a</style>", "<!--[if",
];

#[test]
fn work_grows_with_the_length_alone() {
    for unit in HOSTILE {
        for start in ["", "<a ", "<a b=", "\" ", "x ", "<!--", "javascript:"] {
            let sizes: &[usize] = if start.is_empty() { &[1, 10, 100] } else { &[1, 10] };
            for kilobytes in sizes.iter().copied().chain(is_long(unit).then_some(1000)) {
                let value = format!("{start}{}", unit.repeat(kilobytes * 1024 / unit.len()));
                let mut steps = 0;
                for place in PLACES {
                    let mut tokenizer = Tokenizer::new(value.as_bytes(), place);
                    let tokens = tokenizer.by_ref().count();
                    steps += tokenizer.steps.get() + tokens;
                }
                assert!(
                    steps <= 4 * PLACES.len() * value.len() + 200,
                    "{start}{unit}: {steps} steps for {} bytes",
                    value.len()
                );
            }
        }
    }
}

/// Whether the input is one of the few that are repeated up to a megabyte.
fn is_long(unit: &str) -> bool {
    ["<a ", "<!--", "a=b ", "=``"].contains(&unit)
}
