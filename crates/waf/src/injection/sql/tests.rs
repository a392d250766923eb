//! Injections by kind, and similar harmless values.

use super::*;

fn check(cases: &[(&str, bool)]) {
    let wrong: Vec<_> = cases
        .iter()
        .filter(|(value, expected)| detect_sql(value.as_bytes()).is_some() != *expected)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn conditions_that_are_known_beforehand() {
    check(&[
        ("77 OR 4=4", true),
        ("77 or 5", false),
        ("77 or 5 of them", false),
        ("-77' or 'k'='k", true),
        ("-77\" or \"k\"=\"j", true),
        ("nobody' and 31=32", true),
        ("nobody and 31=32", true),
        ("nobody and a=b", false),
        ("nobody' and a=b", true),
        ("red and size=10", false),
        ("7 and size=10", true),
        (" and size=10", false),
        (" and size=10 -- ", true),
        (" or name=name", true),
        ("7 or (4)=(4)", true),
        ("7 or not 4=5", true),
        ("7 or 4 in (4)", true),
        ("7 or 4 in 5 people", false),
        ("7 or 4 between 3 and 5", true),
        ("7 or 4 is not null", true),
        ("7 or 4 is enough", false),
        ("7 or -4=-4", true),
        ("7 or 4 = 4th", false),
        ("7||4=4", true),
        ("7 && 4=4", true),
        ("7 xor 4=4", true),
        ("7 or 0x41='A'", true),
        ("7 or binary 'a'='a'", true),
        ("7 or 'a' 'b'='ab'", true),
        ("x' or '{\"a\":2}'::jsonb <@ '{\"a\":2}", true),
        ("x' or name like 'a%", true),
        ("x' or 4=4 for update", true),
        ("x' or 4=4 lock in share mode -- ", true),
        ("[\"x' or 4=4]", true),
        ("x' or 4=4 of them", false),
        ("a=1 && b=2", false),
        ("if (x==7) select 5", false),
        ("if(7=7) select 5", true),
    ]);
}

#[test]
fn texts_that_the_query_closes() {
    check(&[
        ("' or '1", true),
        ("x' and 'y", true),
        ("'='", true),
        ("'-'", true),
        ("' or 1 or '", true),
        ("\"/\"", false),
        ("use \"/\" here", false),
        ("the word \"and\" is short", false),
        ("'and'", false),
        ("the boys' and the girls'", false),
        ("x'+sleep(20.to_i)+'", true),
        ("x\" sleep(10.to_i) \"", true),
        ("\" | type %SomeDrive%\\\\x.ini | \"", true),
        ("x'||(select extractvalue(xmltype('<?xml version=\"1.1\"?>", true),
        ("a','b", false),
    ]);
}

#[test]
fn second_queries() {
    check(&[
        ("7 union select 8", true),
        ("7 union all select null,null", true),
        ("7 union(select 8)", true),
        ("7.union select 8", true),
        ("7e0union select 8", true),
        ("7/**/union/**/select/**/8", true),
        ("7/*!50000union*//*!50000select*/8", true),
        ("7 union -- x\nselect 8", true),
        ("7 union values row(8)", true),
        ("7 except select name from people", true),
        ("x') UNION ALL select NULL --", true),
        ("/some/path.txt') UNION ALL select NULL --", true),
        ("union select name, password from people", true),
        ("union select committee", false),
        ("x' union all/bar", false),
        ("/a/b/24 union all select 1,2,3 from c/d", false),
        ("/a/b/24' union all select 1,2,3 from c/d", true),
        ("/a/*/*/2 union all/b", true),
        ("/a/*/*/2 and more/b", false),
        ("(select*from(select(sleep(5)))x)", true),
        ("7 and (select count(*) from people)>0", true),
        ("and (select name from people)", true),
        ("and (select one)", false),
        ("select @@version", true),
        ("select name from people;", true),
        ("select name from sysibm.systables", true),
        ("select a size from the list", false),
        ("select 1, 2 or 3", false),
    ]);
}

#[test]
fn statements() {
    check(&[
        ("x'; drop table people; --", true),
        ("7; drop table people", true),
        ("a; drop table people", false),
        ("a; drop me a line", false),
        ("x'; update people set a=1 where b=2 --", true),
        ("x'; insert into people values (1)", true),
        ("x'; delete from people where 1=1", true),
        ("x'; exec master..xp_cmdshell 'dir'", true),
        ("exec summary", false),
        ("x')waitfor delay'5:0:20'--", true),
        ("waitfor delay '0:0:5'", true),
        ("wait for delay '0:0:5'", false),
        ("declare @x varchar(10)", true),
        ("declare victory", false),
        ("x'; shutdown --", true),
        ("7; select pg_sleep(5)", true),
        ("7; select a seat", false),
        ("x' grant a to b; --", true),
        ("copy people to '/tmp/x'", true),
        ("copy me to bob", false),
    ]);
}

#[test]
fn calls() {
    check(&[
        ("sleep(20)", true),
        ("sleep (8 hours)", false),
        ("sleep(8 hours)", false),
        ("7-sleep(5)", true),
        ("7 and sleep (5)", true),
        ("x' and sleep(12) --", true),
        ("x\"xor(if(now()=sysdate(),sleep(6),0))xor\"y", true),
        ("7 || lpad(user,7,1)", true),
        ("7^ascii(substr(user(),1,1))", true),
        ("concat(0x41,hex(5))", true),
        ("concat(a, b)", false),
        ("max(min(1,2),3)", false),
        ("like(1,2)", false),
        ("'||utl_http.request('http://x/')||'", true),
        ("x'))) and (select*from(select(sleep(5)))x) --", true),
        ("readFile('a.txt', done)", false),
        ("7 and left(version(),1)=8", true),
        ("and left(side)", false),
        ("7 or @@version", true),
        ("7 and @x:=8", true),
    ]);
}

#[test]
fn comments_and_clauses() {
    check(&[
        ("admin'--", true),
        ("admin' -- ", true),
        ("admin'#", true),
        ("admin'/*", true),
        ("admin')--", true),
        ("try '--help' first", false),
        ("'--help'", false),
        ("7--", true),
        ("7 -- seven", false),
        ("admin--", false),
        ("7 order by 9--", true),
        (" order by 9#", true),
        ("order by 9", false),
        ("x' order by 9,8", true),
        ("x' group by a having 1=1 --", true),
        (" having 5=5", true),
        (" where 5=5", true),
        ("where are 5=5", false),
        ("7 limit 1,1 union select 8", true),
        ("x' into outfile '/tmp/x", true),
        ("7 procedure analyse(1)", true),
        (" as t where 5=5", true),
    ]);
}

#[test]
fn databases_differ() {
    check(&[
        // A backslash before a quote is an escape only in MySQL.
        ("\\' or 1=1 #", true),
        ("x\\\\' or 1=1 #", true),
        // Without a following blank, `--` does not begin a comment in MySQL.
        ("x'--x", true),
        ("7 or 4=4--x", true),
        // U+00A0 and 0xA0.
        ("7\u{a0}or\u{a0}4=4", true),
    ]);
    assert!(detect_sql(b"7\xa0or\xa04=4").is_some());
    assert!(detect_sql("Voil\u{e0} or fin".as_bytes()).is_none());
}

#[test]
fn fingerprints() {
    let of = |value: &str| {
        detect_sql(value.as_bytes()).map(|fingerprint| fingerprint.as_str().to_owned())
    };
    assert_eq!(of("7 or 4=4").as_deref(), Some("1&1o1"));
    assert_eq!(of("x' or 'a'='a").as_deref(), Some("s&sos"));
    assert_eq!(of("admin'--").as_deref(), Some("sc"));
    assert_eq!(of("hello"), None);
    let long = of(&format!("7{} or 4=4", ",7".repeat(50))).unwrap();
    assert_eq!(long.len(), FINGERPRINT_CHARS_MAX);
}

#[test]
fn words_are_found_whatever_their_case() {
    assert_eq!(words::classify(b"SeLeCt"), token::Class::Select);
    assert_eq!(words::classify(b"selects"), token::Class::Name);
    assert_eq!(words::classify(b"ctxsys.drithsx.sn"), token::Class::Weapon);
    assert_eq!(words::classify(b"master..xp_cmdshell"), token::Class::Weapon);
    assert_eq!(words::classify(&[b'a'; 1000]), token::Class::Name);
    assert_eq!(words::classify(b""), token::Class::Name);
}

/// The total number of bytes inspected in all contexts of a value.
fn steps(value: &[u8]) -> usize {
    let mut steps = 0;
    for dialect in [Dialect::MySql, Dialect::Ansi] {
        steps += Judge::unquoted(Tokens::new(value, 0, dialect)).steps();
        for quote in [b'\'', b'"'] {
            if let Some(end) = literals::text_end(value, 0, quote, dialect == Dialect::MySql) {
                steps += Judge::quoted(Tokens::new(value, end, dialect), quote, None).steps();
            }
        }
    }
    steps
}

/// Inputs that are repeated to measure the time.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
    "(", "((", ")", "'", "''", "\"", "' '", "/*", "/*/", "/**/", "/*!", "/*!0", "*/", "--\n", "#\n", "-", "+",
    "!", "~", "not ", "1,", "1+", "a.", ".", "..", "[", "[]", "`", "@", "@@", "$$", "{", "{a", "case ",
    "select ", "(select ", "select(", "union ", "union all ", "union select ", ";", "1;", "or ", "1 or ",
    "if(", "sleep(", "concat(", "x(", "\\", "\\'", "e'", "N'", "1e", "0x", "<", "as a ", "between ",
    "1 between 1 and ", "in (", "begin ", "if exists ", "\0", "\u{a0}", "\n", "a", "1",
];

#[test]
fn work_grows_with_the_length_alone() {
    for unit in HOSTILE {
        for start in ["", "1 ", "x' ", "x\" or ", "1 union select ", "; ", "select "] {
            let sizes: &[usize] = if start.is_empty() { &[1, 10, 100] } else { &[1, 10] };
            for kilobytes in sizes.iter().copied().chain(is_long(unit).then_some(1000)) {
                let value = format!("{start}{}", unit.repeat(kilobytes * 1024 / unit.len()));
                let steps = steps(value.as_bytes());
                assert!(
                    steps <= 20 * value.len() + 200,
                    "{start}{unit}: {steps} steps for {} bytes",
                    value.len()
                );
            }
        }
    }
}

/// Whether the input is one of the few that are repeated up to a megabyte.
fn is_long(unit: &str) -> bool {
    ["((", "''", "/*/*", "1,"].contains(&unit)
}
