//! Escapes and comments of languages, and command lines.

use super::super::Transformation;
use super::check;

#[test]
fn html_entity_decode() {
    check(
        Transformation::HtmlEntityDecode,
        [
            (&b""[..], &b""[..]),
            (b"plain; #text", b"plain; #text"),
            (b"&", b"&"),
            (b"&#", b"&#"),
            (b"&#x", b"&#x"),
            (b"&#;&#x;&;", b"&#;&#x;&;"),
            (b"&#xg&#g", b"&#xg&#g"),
            (b"a&b=c&d", b"a&b=c&d"),
            (b"&#60;&#62", b"<>"),
            (b"&#x3c;&#X3E", b"<>"),
            (b"&#60script", b"<script"),
            (b"&#x3cscript", b"<script"),
            // A number includes all digits that follow.
            (b"&#x3ca", b"\xcf\x8a"),
            (b"&#00000000000000000000000036;{", b"${"),
            (b"&#x0000000000000000000000024;", b"$"),
            (b"&#0;&#x0", b"\0\0"),
            (b"&#160;&#255", b"\xa0\xff"),
            (b"&#256;&#8217;", "Ā’".as_bytes()),
            (b"&#x1f600;", "😀".as_bytes()),
            (b"&#xd800;&#x110000;&#99999999999999999999", "\u{fffd}\u{fffd}\u{fffd}".as_bytes()),
            (b"&quot;&amp;&lt;&gt;&nbsp;", b"\"&<>\xa0"),
            (b"&quot&amp&lt&gt&nbsp", b"\"&<>\xa0"),
            (b"&QUOT;&Amp;&LT;&gT;&NBSP", b"\"&<>\xa0"),
            (b"&ltscript&gt", b"<script>"),
            (b"&&lt;&", b"&<&"),
            (b"&l&lt;", b"&l<"),
            (b"&amp;lt;", b"&lt;"),
            (b"javascript&colon;alert&lpar;1&rpar;", b"javascript:alert(1)"),
            (b"j&Tab;a&NewLine;v", b"j\ta\nv"),
            (b"&colon &Colon; &tab;", b"&colon &Colon; &tab;"),
            (b"$&lbrace;jndi&rcub;&apos;&DiacriticalGrave;", b"${jndi}'`"),
            (b"&DiacriticalGraveX;&unknown;", b"&DiacriticalGraveX;&unknown;"),
            (b"\xff&lt\xff\0", b"\xff<\xff\0"),
        ],
    );
}

#[test]
fn js_decode() {
    check(
        Transformation::JsDecode,
        [
            (&b""[..], &b""[..]),
            (b"plain", b"plain"),
            (b"\\", b"\\"),
            (b"end\\", b"end\\"),
            (b"\\\\", b"\\"),
            (b"\\\\\\", b"\\\\"),
            (b"\\a\\b\\f\\n\\r\\t\\v", b"\x07\x08\x0c\n\r\t\x0b"),
            (b"\\'\\\"\\?\\z", b"'\"?z"),
            (b"\\u0061lert\\u003C", b"alert<"),
            (b"\\uff1c\\uFF1E\\uff01\\uff5e", b"<>!~"),
            (b"\\uff00\\uff5f", b"\0\x5f"),
            (b"\\u02bc\\u1161", b"\xbca"),
            (b"\\u006", b"u006"),
            (b"\\u", b"u"),
            (b"\\u{61}", b"u{61}"),
            (b"\\U0061", b"U0061"),
            (b"\\x61\\x3C", b"a<"),
            (b"\\x6", b"x6"),
            (b"\\xg1", b"xg1"),
            (b"\\X61", b"X61"),
            (b"\\141\\74\\0", b"a<\0"),
            (b"\\377\\400\\777", b"\xff\x200\x3f7"),
            (b"\\1412\\8\\18", b"a28\x018"),
            (b"\\\0\\\xff", b"\0\xff"),
            (b"\\\\u0061", b"\\u0061"),
        ],
    );
}

#[test]
fn escape_seq_decode() {
    check(
        Transformation::EscapeSeqDecode,
        [
            (&b""[..], &b""[..]),
            (b"plain", b"plain"),
            (b"\\", b"\\"),
            (b"end\\", b"end\\"),
            (b"\\\\\\", b"\\\\"),
            (b"\\a\\b\\f\\n\\r\\t\\v", b"\x07\x08\x0c\n\r\t\x0b"),
            (b"\\\\\\?\\'\\\"", b"\\?'\""),
            (b"\\x61\\X3c", b"a<"),
            (b"\\x6\\xg\\x", b"x6xgx"),
            (b"\\141\\74\\0", b"a<\0"),
            (b"\\377\\400\\777", b"\xff\0\xff"),
            (b"\\1412\\8\\18", b"a28\x018"),
            (b"\\u0061\\z", b"u0061z"),
            (b"c\\at /et\\c/pas\\swd", b"c\x07t /etc/passwd"),
            (b"\\\0\\\xff", b"\0\xff"),
        ],
    );
}

#[test]
fn css_decode() {
    check(
        Transformation::CssDecode,
        [
            (&b""[..], &b""[..]),
            (b"plain", b"plain"),
            (b"\\", b""),
            (b"end\\", b"end"),
            (b"\\\\", b"\\"),
            (b"\\\n\\\r", b"\r"),
            (b"a\\\nb", b"ab"),
            (b"\\61\\062\\0063\\00064\\000065", b"abcde"),
            (b"\\00000661", b"\x0661".as_slice()),
            (b"\\6a\\61vascript", b"javascript"),
            (b"\\61 b\\61  c", b"aba c"),
            (b"\\61\tb\\61\x0bc\\61\nd", b"abacad"),
            (b"\\ja\\vascr\\ipt", b"javascript"),
            (b"\\ff1c\\0ff1E\\00ff01\\ff5E", b"<>!~"),
            (b"\\ff00\\ff5f\\1ff1c", b"\0\x5f\x1c"),
            (b"\\0\\1\\123", b"\0\x01\x23"),
            (b"\\\0\\\xff\\g", b"\0\xffg"),
            (b"\\6", b"\x06"),
            (b"\\61 ", b"a"),
        ],
    );
}

#[test]
fn cmd_line() {
    check(
        Transformation::CmdLine,
        [
            ("", ""),
            ("plain", "plain"),
            ("cat /etc/passwd", "cat/etc/passwd"),
            ("cat file", "cat file"),
            ("c^m^d \"/c\" 'x'", "cmd/c x"),
            ("C\\m\\D", "cmd"),
            ("a,b;c", "a b c"),
            ("a , ; b", "a b"),
            ("a\t\r\n  b", "a b"),
            ("a  ", "a "),
            ("  ", " "),
            (" ", " "),
            (" a ", " a "),
            ("a (b)", "a(b)"),
            ("a,/b;(c", "a/b(c"),
            ("a \"\" /b", "a/b"),
            (" /", "/"),
            ("/ (", "/("),
            ("/etc/passwd", "/etc/passwd"),
            ("(a)", "(a)"),
            ("\"'\\^", ""),
            ("a\0B", "a\0b"),
            ("a\x0bb", "a\x0bb"),
            ("É", "É"),
            ("0123456789abcde  f", "0123456789abcde f"),
            ("0123456789abcdef /", "0123456789abcdef/"),
            ("0123456789abcde /0123456789abcdef", "0123456789abcde/0123456789abcdef"),
        ],
    );
}

#[test]
fn replace_comments() {
    check(
        Transformation::ReplaceComments,
        [
            ("", ""),
            ("plain", "plain"),
            ("/", "/"),
            ("*", "*"),
            ("a*b/c*/d", "a*b/c*/d"),
            ("/**/", " "),
            ("UNION/* x */SELECT", "UNION SELECT"),
            ("a/*b", "a "),
            ("a/*", "a "),
            ("/*/", " "),
            ("/*/*/x", " x"),
            ("/* a */ b /* c */", "  b  "),
            ("//**/*", "/ *"),
            ("/***/x/****/", " x "),
            ("/*\0*/\0", " \0"),
            ("-- #/", "-- #/"),
            ("**/*a*/", "** "),
        ],
    );
}

#[test]
fn remove_comments() {
    check(
        Transformation::RemoveComments,
        [
            ("", ""),
            ("plain", "plain"),
            ("a/b-c<d>*/-->", "a/b-c<d>*/"),
            ("a/* b */c", "ac"),
            ("a<!-- b -->c", "ac"),
            ("a/* b --> c", "a c"),
            ("a<!-- b */ c", "a c"),
            ("a/* b", "a "),
            ("a<!--b", "a "),
            ("a -- b", "a "),
            ("a#b\nc", "a"),
            ("#", ""),
            ("--", ""),
            ("/**//**/x", "x"),
            ("/*a*/", ""),
            ("<!-", "<!-"),
            ("\0/*\0*/\0", "\0\0"),
        ],
    );
}

#[test]
fn remove_comments_char() {
    check(
        Transformation::RemoveCommentsChar,
        [
            ("", ""),
            ("plain", "plain"),
            ("a/b*c-d<e>f", "a/b*c-d<e>f"),
            ("/*a*/", "a"),
            ("<!--a-->", "a"),
            ("a--b", "ab"),
            ("a#b##", "ab"),
            ("/*/", "/"),
            ("*/*", "*"),
            ("---", "-"),
            ("--->", "->"),
            ("<!-", "<!-"),
            ("<!---", "-"),
            ("0123456789abcde/*", "0123456789abcde"),
            ("0123456789abcdef/", "0123456789abcdef/"),
            ("\0#\0", "\0\0"),
        ],
    );
}
