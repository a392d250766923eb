//! Seeds of inputs.

pub const RULES: [&str; 12] = [
    super::requests::RULES,
    "SecRule ARGS|!ARGS:/^a|b$/|&REQUEST_HEADERS:Host \"!@rx ^[^\\\"']*$\" \"id:1,phase:2,t:none,deny\"",
    "SecRule REQUEST_URI '@beginsWith /a' \\\n  'id:1,\\\n  pass,skip:2'\n# a comment\nSecMarker A",
    "SecAction \"id:1,setvar:'tx.a_%{ARGS.b}=+%{tx.c}',initcol:ip=%{REMOTE_ADDR},expirevar:ip.a=60\"",
    "SecRuleUpdateTargetById 1-9 !ARGS:x\nSecRuleRemoveByTag ^a\nSecRuleUpdateActionById 1 pass",
    "SecRule TX:pl \"@lt 2\" \"id:1,pass,nolog,skipAfter:END\"\nSecRule ARGS \"@pm a |62 63| d\" \"id:2,deny,status:406\"\nSecMarker END",
    "SecRule ARGS \"(?i)a(?=b)\\1[[:alpha:]\\x{41}-z]{2,3}+?\" \"id:1,block,capture,multiMatch,chain\"\nSecRule MATCHED_VARS \"@within %{tx.1}\" \"\"",
    "SecRule REMOTE_ADDR \"@ipMatch 10.0.0.0/8,::1\" \"id:1,allow:request,ctl:ruleRemoveTargetById=1-2;ARGS:a\"",
    "SecDefaultAction \"phase:2,log,auditlog,deny,status:403,t:lowercase\"\nSecComponentSignature a\nSecArgumentSeparator ;",
    "Include words.data\nIncludeOptional no/*.conf\nSecCollectionTimeout 60",
    "SecRule XML:/*|XML://@* \"@validateByteRange 1-9,32\" \"id:1,redirect:'/%{rule.id}',severity:2,logdata:'%{rule.msg}'\"",
    "SecRule ARGS \"@pmFromFile words.data\" \"id:1,ctl:ruleEngine=Off\"\nSecRule ARGS \"@ipMatchFromFile words.data\" \"id:2\"",
];

pub const TEXTS: [&[u8]; 12] = [
    b"%3Cscr%u0131pt%3e&lt;&#x41;\\u0041\\41 /**/ -- \0 .././a//b",
    b"Zm9vYmFy\nYmFy=0x414243",
    b"\xc3\xa9\xe2\x82\xac\xff\xc0\xaf\xef\xbc\x9c",
    b"c^at \"/et\\c/pa''sswd\" ; ,  x",
    b"1' or '1'='1' -- ",
    b"1 union/*!50000select*/ a,b from c where d=e;",
    b"-1' UNION ALL SELECT null, concat(0x3a, user()), @@version#",
    b"\" onmouseover=alert(1) x=\"",
    b"<svg/onload=alert(1)>",
    b"<a href=\" java&#x73;cript:alert(1)\">x</a>",
    b"<style>*{x:expression(alert(1))}</style><!--[if IE]>",
    b"it's 5 o'clock, and 1 < 2 or 3 > 2",
];

pub const MULTIPART: [&[u8]; 5] = [
    b"\x10multipart/form-data; boundary=b\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nfoo\r\n--b--\r\n",
    b"\x20multipart/form-data; boundary=\"b\"\n--b\r\nContent-Disposition: form-data; name=a; filename=\"x.php\"\r\nContent-Type: text/plain\r\n\r\n<?\r\n--b\r\n\r\n\r\n--b--",
    b"\x05multipart/form-data; boundary=b\nbefore\r\n--b\nContent-Disposition: form-data;\r\n name='a'; filename*=utf-8''b\n\nx\n--b--behind",
    b"\x05multipart/form-data; boundary=\n--\r\n",
    b"\x31multipart/form-data; boundary=b\n--b\r\nContent-Disposition: form-data; name=\"a\\\"b\"; name=\"c\"\r\nContent-Transfer-Encoding: base64\r\n\r\nx\r\n--bb\r\n--b",
];

pub const JSON: [&[u8]; 5] = [
    b"\x04{\"a\": [1, -2.5e+3, {\"b\": null}], \"c\": \"\\u00e9\\ud83d\\ude00\\n\", \"a\": true}",
    b"\x02[[[[[[[[[]]]]]]]]]",
    b"\x03\"foo\\x\"",
    b"\x01{\"\": 01}",
    b"\x05 {\"a\":1} {\"b\":2}",
];

pub const NESTED: [&[u8]; 5] = [
    b"{\"a\":\"{\\\"b\\\":\\\"\\\\u0027\\\"}\",\"c\":[1,\"\\x41\"]}",
    b" \xef\xbb\xbfj:[\"\\u{27}\",\"[[]]\"]",
    b"{user(id:\"\\ud83d\\ude00\\U00000041\"){x}}",
    b"a\\073\\\"b;c\" d",
    b"\"\\\\u0027\"",
];

pub const XML: [&[u8]; 5] = [
    b"\x08<?xml version=\"1.0\"?><a b='c' d=\"&lt;&#65;\"> x <!-- y --><c/>z<![CDATA[<]]></a>",
    b"\x09<!DOCTYPE a [<!ENTITY b \"c\"><!ENTITY d SYSTEM \"file:///etc/passwd\">]><a>&b;&d;</a>",
    b"\x04<a><b></a></b>",
    b"\x02<a:b xmlns:a='x' a:c='1' c='2' c='3'/>",
    b"\x07\xef\xbb\xbf<a>\xff</a> <b/>",
];

/// A byte for the type, a byte for a cut, and a body.
pub const CONTENT: [&[u8]; 10] = [
    b"\x01\x05\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01&a=b",
    b"\x02\x05\0\0\0\0\x07\x0a\x05first\0\0\0\0\x02\x08\x01",
    b"\x02\x06AAAAAAcKBWhlbGxv",
    b"\x03\x01\x0a\x2455\x12\x03abc",
    b"\x04\x010032want 0a53e9ddeaddad63ad106860237bbf53411d11a7\n0000",
    b"\0\0\xff\xfe<\0a\0>\0\x3d\xd8\0\xde<\0/\0a\0>\0",
    b"\0\0\0\0\0{\0\0\0\"\0\0\0a\0\x01\xf6\0",
    b"\0\0\x4c\x6f\xa7\x94\x93\x40\xa5\x85\x99\xa2\x89\x96\x95\x7e",
    b"\0\0\xef\xbb\xbf \xc2\xa0{\"a\":1}",
    b"\x01\0GIF89a\x01\0\x01\0\x80\0\0&id=1%27",
];

/// Encoded bodies, after one byte for the codings and one for the split.
pub fn encoded() -> Vec<Vec<u8>> {
    let chains: [&[&str]; 7] = [
        &["gzip"],
        &["deflate"],
        &["br"],
        &["zstd"],
        &["gzip", "br"],
        &["zstd", "gzip"],
        &["br", "raw-deflate"],
    ];
    let text = b"a=b&c=%20d&e=".repeat(9);
    let seed = |(choice, chain): (usize, &&[&str])| {
        let encode = |body: Vec<u8>, coding: &&str| weir_testing::encode(coding, &body);
        let body = chain.iter().fold(text.clone(), encode);
        [&[choice as u8, 20][..], &body].concat()
    };
    chains.iter().enumerate().map(seed).collect()
}

pub const REQUESTS: [&[u8]; 8] = [
    super::requests::REQUEST,
    b"\x04/free?z=foo\nContent-Type: application/json\nfoo: bar\n{\"a\": \"select 1\", \"b\": [\"Zm9v\"]}",
    b"\x08/\nContent-Type: text/xml\nx: y\n<a b='foo'>union all</a>",
    b"\x10/?a=1&b=2&c=3\nContent-Type: multipart/form-data; boundary=b\nx: y\n--b\r\nContent-Disposition: form-data; name=\"x\"; filename=\"foo\"\r\n\r\nfoo\r\n--b--\r\n",
    b"\x30/?a=1;c''at&b={\"a\":1}=2\nContent-Type: multipart/form-data; boundary=b\nReferer: /?x=%5Cu0027\n--b\r\nContent-Disposition: form-data; name=\"x\"; filename=\"=?utf-8?B?YS5wbmc=?=\"\r\n\r\n\x89PNG<?/*x*/if($a){f0('b',\"c\")}#\n?><%@ page x=y%><?=`id`?>\r\n--b--\r\n",
    b"\x09/a.png\nContent-Type: any\nSlug: a.php\n\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01<?$x=[1,2]; foo($x[0])?>",
    b"\x05/?a=8;X=cu\\rl;$X+/b??/c?t&b=<a>%26%2339;</a>\nContent-Type: text/any\nCookie: a=%257B%2522b%2522%253A1%257D\n\x4c\x6f\xa7\x94\x93\x40",
    b"\x00/?a=1'+or+'1'='1&b=<svg/onload=alert(1)>\nContent-Type: application/x-www-form-urlencoded\nCookie: a=select\nx=1&y=2",
];
