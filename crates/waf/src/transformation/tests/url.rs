//! URLs, UTF-8 and paths.

use super::super::Transformation;
use super::{check, transformed};

const BOTH: [(&[u8], &[u8]); 22] = [
    (b"", b""),
    (b"plain-text_0", b"plain-text_0"),
    (b"a+b", b"a b"),
    (b"+++", b"   "),
    (b"%41%4a%4A", b"AJJ"),
    (b"%00", b"\0"),
    (b"a\0%20\0", b"a\0 \0"),
    (b"%ff%FE\xff", b"\xff\xfe\xff"),
    (b"%", b"%"),
    (b"%4", b"%4"),
    (b"100%", b"100%"),
    (b"%zz%4g%g4", b"%zz%4g%g4"),
    (b"%%41", b"%A"),
    (b"%4%41", b"%4A"),
    (b"%2541", b"%41"),
    (b"%252525", b"%2525"),
    (b"%+1", b"% 1"),
    (b"%%%%%%%%%%%%%%%%%%%%20", b"%%%%%%%%%%%%%%%%%%% "),
    (b"\x80\xc3%", b"\x80\xc3%"),
    (b"x%3Cscript%3E", b"x<script>"),
    (b"%:0%@A%`a%Ga%/0", b"%:0%@A%`a%Ga%/0"),
    (b"0123456789abcdef0123456789%2f", b"0123456789abcdef0123456789/"),
];

#[test]
fn url_decode() {
    let own: [(&[u8], &[u8]); 2] = [(b"%u0041", b"%u0041"), (b"%uff1c%3c", b"%uff1c<")];
    check(Transformation::UrlDecode, BOTH.into_iter().chain(own));
}

#[test]
fn url_decode_uni() {
    let own: [(&[u8], &[u8]); 24] = [
        (b"%u0041", b"A"),
        (b"%U003c", b"<"),
        (b"%u003Cscript%u003E", b"<script>"),
        (b"%uff1cscript%uFF1E", b"<script>"),
        (b"%uff01%uff5e", b"!~"),
        (b"%uff00%uff5f%uffff", b"\0\x5f\xff"),
        (b"%u0000", b"\0"),
        (b"%u", b"%u"),
        (b"%u0", b"%u0"),
        (b"%u004", b"%u004"),
        (b"%u004g", b"%u004g"),
        (b"%ug041%41", b"%ug041A"),
        (b"%u00%41", b"%u00A"),
        (b"%u%u0041", b"%uA"),
        (b"%%u0041", b"%A"),
        (b"%u00411", b"A1"),
        // Without a best fit, the low byte is used.
        (b"%u4e3c", b"<"),
        (b"%u0430", b"0"),
        // Best fits of quotes, letters and spaces.
        (b"%u02bc or 1=1", b"' or 1=1"),
        (b"%u2019%u201c", b"'\""),
        (b"%u015fcript", b"script"),
        (b"%u00e9%u00a0", b"e "),
        (b"%u00bc", b"\xbc"),
        (b"%u1f600", b"`0"),
    ];
    check(Transformation::UrlDecodeUni, BOTH.into_iter().chain(own));
}

#[test]
fn url_encode() {
    check(
        Transformation::UrlEncode,
        [
            (&b""[..], &b""[..]),
            (b"azAZ09*", b"azAZ09*"),
            (b" ", b"+"),
            (b"a b", b"a+b"),
            (b"+", b"%2b"),
            (b"%41", b"%2541"),
            (b"-_.~", b"%2d%5f%2e%7e"),
            (b"\0", b"%00"),
            (b"\xff\x80", b"%ff%80"),
            (b"<script>", b"%3cscript%3e"),
            (b"/@:[`{", b"%2f%40%3a%5b%60%7b"),
            (b"\r\n", b"%0d%0a"),
            (b"0123456789abcdef0123456789abcdef!", b"0123456789abcdef0123456789abcdef%21"),
        ],
    );
}

#[test]
fn utf8_to_unicode() {
    check(
        Transformation::Utf8ToUnicode,
        [
            (&b""[..], &b""[..]),
            (b"plain \0 ASCII \x7f", b"plain \0 ASCII \x7f"),
            ("é".as_bytes(), b"%u00e9"),
            ("aéb".as_bytes(), b"a%u00e9b"),
            ("€".as_bytes(), b"%u20ac"),
            ("＜script＞".as_bytes(), b"%uff1cscript%uff1e"),
            ("😀".as_bytes(), b"%u1f600"),
            ("\u{10ffff}\u{10000}".as_bytes(), b"%u10ffff%u10000"),
            ("\u{80}\u{7ff}\u{800}\u{ffff}".as_bytes(), b"%u0080%u07ff%u0800%uffff"),
            // Overlong forms and surrogates are converted.
            (b"\xc0\xbc\xc1\x81", b"%u003c%u0041"),
            (b"\xe0\x80\xbc\xf0\x80\x80\xbc", b"%u003c%u003c"),
            (b"\xed\xa0\x80", b"%ud800"),
            // Other malformed bytes are unchanged.
            (b"\x80\xbf", b"\x80\xbf"),
            (b"<\xffscript", b"<\xffscript"),
            (b"\xc3", b"\xc3"),
            (b"\xc3a\xc3", b"\xc3a\xc3"),
            (b"\xe2\x82", b"\xe2\x82"),
            (b"\xe2\x82a\xe2\x82\xac", b"\xe2\x82a%u20ac"),
            (b"\xf0\x9f\x98", b"\xf0\x9f\x98"),
            (b"\xf4\x90\x80\x80", b"\xf4\x90\x80\x80"),
            (b"\xf5\x80\x80\x80\xfe", b"\xf5\x80\x80\x80\xfe"),
            (b"\xc3\xc3\xa9", b"\xc3%u00e9"),
            (
                b"0123456789abcdef0123\xc3\xa9456789abcdef\xc3\xa9",
                b"0123456789abcdef0123%u00e9456789abcdef%u00e9",
            ),
        ],
    );
}

const BOTH_PATHS: [(&str, &str); 30] = [
    ("", ""),
    ("/", "/"),
    ("//", "/"),
    ("///", "/"),
    ("/a/b", "/a/b"),
    ("/a/b/", "/a/b/"),
    ("a", "a"),
    (".", ""),
    ("./", ""),
    ("..", ".."),
    ("../", "../"),
    ("/.", "/"),
    ("/..", "/"),
    ("/../..", "/"),
    ("/../../etc/passwd", "/etc/passwd"),
    ("../../etc/passwd", "../../etc/passwd"),
    ("a/..", ""),
    ("a/../", ""),
    ("a/../..", ".."),
    ("a/../../b", "../b"),
    ("../a/../b", "../b"),
    ("/a//b///c", "/a/b/c"),
    ("/a/./b/./", "/a/b/"),
    ("/a/b/../../c", "/c"),
    ("./a/b", "a/b"),
    ("/.htaccess", "/.htaccess"),
    (".htaccess", ".htaccess"),
    ("/foo../bar", "/foo../bar"),
    ("/.../..a/.a.", "/.../..a/.a."),
    ("/\0/../\0/", "/\0/"),
];

#[test]
fn normalize_path() {
    let own = [("\\a\\..\\b", "\\a\\..\\b"), ("/a\\../b", "/a\\../b")];
    check(Transformation::NormalizePath, BOTH_PATHS.into_iter().chain(own));
    assert_eq!(
        transformed(Transformation::NormalizePath, b"/\xff/../\xfe"),
        (true, b"/\xfe".to_vec())
    );
}

#[test]
fn normalize_path_win() {
    let own = [
        ("\\", "/"),
        ("\\\\", "/"),
        ("a\\b", "a/b"),
        ("\\a\\..\\b", "/b"),
        ("..\\..\\boot.ini", "../../boot.ini"),
        ("c:\\windows/./system32\\", "c:/windows/system32/"),
        ("a/\\b\\/c", "a/b/c"),
        ("a\\", "a/"),
        ("/a/b\\..", "/a"),
    ];
    check(Transformation::NormalizePathWin, BOTH_PATHS.into_iter().chain(own));
}
