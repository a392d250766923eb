use super::super::testing::{Event, Outcome, argument, check_cuts, mutated, noise, outcome};
use super::*;
use weir_testing::Random;

impl Outcome for Json {
    fn outcome(&self) -> String {
        outcome(self.failure(), self.differences(), self.repeated_key())
    }
}

fn read_as(names: JsonNames, body: &[u8], limits: Limits) -> (Vec<Event>, Json) {
    check_cuts(
        body,
        || Json::new(names, limits),
        |parser, bytes, to| parser.feed(bytes, to),
        |parser, to| parser.finish(to),
    )
}

fn read(body: &str) -> (Vec<Event>, Json) {
    read_as(JsonNames::ModSecurity, body.as_bytes(), Limits::DEFAULT)
}

fn arguments(expected: &[(&str, &str)]) -> Vec<Event> {
    expected.iter().map(|(name, value)| argument(name.as_bytes(), value.as_bytes())).collect()
}

#[test]
fn leaves_are_named_by_their_paths() {
    for (body, expected) in [
        ("", &[][..]),
        ("{}", &[]),
        (" [ ] ", &[]),
        ("\"a\"", &[("json", "a")]),
        ("-1.5e+3", &[("json", "-1.5e+3")]),
        ("true", &[("json", "true")]),
        ("{\"a\":1}", &[("json.a", "1")]),
        (
            "{\"a\":\"x\",\"b\":{\"c\":false,\"d\":null}}",
            &[("json.a", "x"), ("json.b.c", "false"), ("json.b.d", "")],
        ),
        ("[1,\"b\"]", &[("json.array_0", "1"), ("json.array_1", "b")]),
        (
            "[[1],[2,3]]",
            &[
                ("json.array_0.array_0", "1"),
                ("json.array_1.array_0", "2"),
                ("json.array_1.array_1", "3"),
            ],
        ),
        (
            "{\"ops\":[{\"a\":[5]},{\"b\":6}]}",
            &[("json.ops.array_0.a.array_0", "5"), ("json.ops.array_1.b", "6")],
        ),
        (
            "{\"a\":{\"b\":[]},\"c\":{},\"d\":[[]]}",
            &[("json.a.b", ""), ("json.c", ""), ("json.d.array_0", "")],
        ),
        ("{\"\":{\"\":0}}", &[("json.empty-key.empty-key", "0")]),
        ("{\"a.b\":0,\"a\\u0041\\n\":1}", &[("json.a.b", "0"), ("json.aA\n", "1")]),
        (
            " { \"a\" :\t[ 0 , 0.5 ] ,\r\n \"b\" : \"\" } \n",
            &[("json.a.array_0", "0"), ("json.a.array_1", "0.5"), ("json.b", "")],
        ),
    ] {
        let (events, parser) = read(body);
        assert_eq!((events, parser.failure()), (arguments(expected), None), "{body}");
        assert!(parser.differences().is_empty(), "{body}");
    }
}

#[test]
fn arrays_may_be_named_as_in_coraza() {
    for (body, expected) in [
        ("{\"a\":[1,{\"b\":2}]}", &[("json.a.0", "1"), ("json.a.1.b", "2"), ("json.a", "2")][..]),
        ("[7]", &[("json.0", "7"), ("json", "1")]),
        ("{\"\":0,\"b\":[]}", &[("json.", "0"), ("json.b", "")]),
    ] {
        let (events, parser) = read_as(JsonNames::Coraza, body.as_bytes(), Limits::DEFAULT);
        assert_eq!((events, parser.failure()), (arguments(expected), None), "{body}");
    }
}

#[test]
fn strings_are_decoded() {
    for (body, expected, is_lone) in [
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t", false),
        (r#""\u0041\u00e4\u20AC\u0000""#, "A\u{e4}\u{20ac}\0", false),
        (r#""a\ud83d\ude00b""#, "a\u{1f600}b", false),
        (r#""\ud83d""#, "\u{fffd}", true),
        (r#""\ud83dx""#, "\u{fffd}x", true),
        (r#""\ud83d\n""#, "\u{fffd}\n", true),
        (r#""\ud83d\u0041""#, "\u{fffd}A", true),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}", true),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}", true),
        ("\"\u{e4}\u{1f600}\u{7f}\"", "\u{e4}\u{1f600}\u{7f}", false),
    ] {
        let (events, parser) = read(body);
        assert_eq!((events, parser.failure()), (arguments(&[("json", expected)]), None), "{body}");
        assert_eq!(parser.differences().have(Difference::LoneSurrogate), is_lone, "{body}");
    }
}

#[test]
fn malformed_bodies_are_problems() {
    use Problem::{JsonNumber, JsonString, JsonSyntax, JsonTrailing, Unfinished, Utf8};
    for (body, expected, problem, offset) in [
        (&b" "[..], &[][..], Unfinished, 1),
        (b"{", &[], Unfinished, 1),
        (b"test", &[], JsonSyntax, 1),
        (b"{\"a\":1", &[("json.a", "1")], Unfinished, 6),
        (b"{\"a\":1,", &[("json.a", "1")], Unfinished, 7),
        (b"{\"a\":1,}", &[("json.a", "1")], JsonSyntax, 7),
        (b"{\"a\":\"<scr", &[("json.a", "<scr")], Unfinished, 10),
        (b"{\"a\":\"x\\q\"}", &[("json.a", "x")], JsonString, 8),
        (b"{\"a\":\"x\n\"}", &[("json.a", "x")], JsonString, 7),
        (b"{\"a\":\"x\\u00g0\"}", &[("json.a", "x")], JsonString, 11),
        (b"{\"a\":\"\xff\"}", &[("json.a", "\\xff")], Utf8, 7),
        (b"{\"a", &[("json.a", "")], Unfinished, 3),
        (b"{\"a\"}", &[("json.a", "")], JsonSyntax, 4),
        (b"{\"a\":}", &[("json.a", "")], JsonSyntax, 5),
        (b"{\"a\":{x", &[("json.a", "")], JsonSyntax, 6),
        (b"{\"a\":nul}", &[("json.a", "")], JsonSyntax, 8),
        (b"{a:1}", &[], JsonSyntax, 1),
        (b"{'a':1}", &[], JsonSyntax, 1),
        (b"[1 2]", &[("json.array_0", "1")], JsonSyntax, 3),
        (b"[,1]", &[], JsonSyntax, 1),
        (b"[1,]", &[("json.array_0", "1")], JsonSyntax, 3),
        (b"[1}", &[("json.array_0", "1")], JsonSyntax, 2),
        (b"]", &[], JsonSyntax, 0),
        (b"1 2", &[("json", "1")], JsonTrailing, 2),
        (b"{}x", &[], JsonTrailing, 2),
        (b"01", &[("json", "0")], JsonTrailing, 1),
        (b"[01]", &[("json.array_0", "0")], JsonSyntax, 2),
        (b"-", &[("json", "-")], Unfinished, 1),
        (b"[-x", &[("json.array_0", "-")], JsonNumber, 2),
        (b"[1.]", &[("json.array_0", "1.")], JsonNumber, 3),
        (b"[1e]", &[("json.array_0", "1e")], JsonNumber, 3),
        (b"[1e+", &[("json.array_0", "1e+")], Unfinished, 4),
        (b"[+1]", &[], JsonSyntax, 1),
        (b"[NaN]", &[], JsonSyntax, 1),
        (b"// x\n1", &[], JsonSyntax, 0),
        (b"\0", &[], JsonSyntax, 0),
        (b"\xff\xfe{\0", &[], JsonSyntax, 0),
        (b"\xef\xbb1", &[], JsonSyntax, 2),
        (b" \xef\xbb\xbf1", &[], JsonSyntax, 1),
    ] {
        let (events, parser) = read_as(JsonNames::ModSecurity, body, Limits::DEFAULT);
        let failure = Some(Failure { problem, offset });
        assert_eq!(
            (events, parser.failure()),
            (arguments(expected), failure),
            "{}",
            body.escape_ascii()
        );
    }
}

#[test]
fn oddities_are_noted() {
    let (events, parser) = read("\u{feff}{\"a\":{\"k\":1,\"x\":{\"k\":2},\"\\u006b\":3},\"a\":4}");
    assert_eq!(
        events,
        arguments(&[("json.a.k", "1"), ("json.a.x.k", "2"), ("json.a.k", "3"), ("json.a", "4")])
    );
    assert_eq!(
        parser.differences(),
        Differences::NONE.with(Difference::ByteOrderMark).with(Difference::DuplicateKey)
    );
    assert_eq!(parser.repeated_key(), Some(&b"json.a.k"[..]));
    let (_, parser) = read("[{\"a\":1},{\"a\":2}]");
    assert_eq!((parser.differences(), parser.repeated_key()), (Differences::NONE, None));
}

const SMALL: Limits = Limits {
    arguments_max: 3,
    name_bytes_max: 10,
    value_bytes_max: 4,
    depth_max: 2,
    ..Limits::DEFAULT
};

#[test]
fn limits_are_problems() {
    use Problem::{ArgumentsLimit, DepthLimit, NameLimit, ValueLimit};
    for (body, expected, problem) in [
        (
            "{\"a\":1,\"b\":2,\"c\":3}",
            &[("json.a", "1"), ("json.b", "2"), ("json.c", "3")][..],
            None,
        ),
        (
            "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5}",
            &[("json.a", "1"), ("json.b", "2"), ("json.c", "3")],
            Some((ArgumentsLimit, 24)),
        ),
        ("\"1234\"", &[("json", "1234")], None),
        ("\"12345\"", &[("json", "1234")], Some((ValueLimit, 5))),
        ("\"123\\u00e4\"", &[("json", "123\\xc3")], Some((ValueLimit, 9))),
        ("12345", &[("json", "1234")], Some((ValueLimit, 4))),
        ("{\"12345\":0}", &[("json.12345", "0")], None),
        ("{\"123456\":0}", &[("json.12345", "")], Some((NameLimit, 8))),
        ("{\"12345678901\":0}", &[("json.12345", "")], Some((NameLimit, 12))),
        ("{\"1234\":[0]}", &[("json.1234.", "")], Some((NameLimit, 9))),
        ("[[0]]", &[("json.array", "")], Some((NameLimit, 1))),
        ("{\"a\":{\"b\":0}}", &[("json.a.b", "0")], None),
        ("{\"a\":{\"b\":{", &[("json.a.b", "")], Some((DepthLimit, 10))),
    ] {
        let (events, parser) = read_as(JsonNames::ModSecurity, body.as_bytes(), SMALL);
        let failure = problem.map(|(problem, offset)| Failure { problem, offset });
        assert_eq!((events, parser.failure()), (arguments(expected), failure), "{body}");
    }
}

#[test]
fn noise_never_panics_and_cuts_do_not_matter() {
    let valid = br#"{"a":["x\n\ud83d\ude00",-1.5e3,true,null,{}],"b":{"c":"d"}}"#;
    let alphabet = br#"{}[]",:\u0dea1-.+tfn "#;
    for seed in 0..250 {
        let mut random = Random::new(seed);
        for body in [mutated(&mut random, valid, alphabet), noise(&mut random, alphabet, 40)] {
            read_as(JsonNames::ModSecurity, &body, Limits::DEFAULT);
            read_as(JsonNames::Coraza, &body, SMALL);
        }
    }
}

#[test]
fn hostile_bodies_cost_little() {
    let read = |body: &[u8]| {
        let mut parser =
            Json::new(JsonNames::ModSecurity, Limits { name_bytes_max: 8192, ..Limits::DEFAULT });
        let mut to = Vec::<Event>::new();
        parser.feed(body, &mut to);
        parser.finish(&mut to);
        (to.len(), parser.failure())
    };
    let deep = read(&vec![b'['; 1_000_000]);
    assert_eq!(deep.1, Some(Failure { problem: Problem::DepthLimit, offset: 512 }));
    let nested = read(&b"{\"a\":".repeat(100_000));
    assert_eq!(nested.1.map(|failure| failure.problem), Some(Problem::DepthLimit));
    let wide = read(&[b"[".to_vec(), b"0,".repeat(1_000_000)].concat());
    assert_eq!(
        (wide.0, wide.1.map(|failure| failure.problem)),
        (Limits::DEFAULT.arguments_max as usize, Some(Problem::ArgumentsLimit))
    );
    let blank = read(&vec![b' '; 1_000_000]);
    assert_eq!(blank.1, Some(Failure { problem: Problem::Unfinished, offset: 1_000_000 }));
}

#[test]
fn names_are_together_a_bounded_number_of_times_as_long_as_the_body() {
    let read = |key: usize, leaves: usize| {
        let body = format!("{{\"{}\":[{}0]}}", "a".repeat(key), "1,".repeat(leaves));
        let mut parser = Json::new(JsonNames::ModSecurity, Limits::DEFAULT);
        let mut to = Vec::<Event>::new();
        for piece in body.as_bytes().chunks(7) {
            parser.feed(piece, &mut to);
        }
        parser.finish(&mut to);
        let names = to.iter().map(|event| match event {
            Event::Argument(name, _) => name.len(),
            other => panic!("{other:?}"),
        });
        let names_max = NAMES_BYTES_FREE as usize + NAMES_PER_BYTE as usize * body.len();
        assert!(names.sum::<usize>() <= names_max, "{key}, {leaves}");
        (to.len(), parser.failure().map(|failure| failure.problem))
    };
    assert_eq!(read(10, 5_000), (5_001, None));
    assert_eq!(read(150, 5_000), (5_001, None));
    assert_eq!(read(4_000, 10), (11, None));
    let (leaves, problem) = read(4_000, 5_000);
    assert_eq!(problem, Some(Problem::NamesLimit));
    assert!((100..300).contains(&leaves), "{leaves}");
}
