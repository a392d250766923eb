use super::super::query::Query;
use super::super::testing::{Event, Outcome, argument, check_cuts, noise, outcome};
use super::*;
use weir_testing::Random;

impl Outcome for UrlEncoded {
    fn outcome(&self) -> String {
        outcome(self.failure(), self.differences(), self.bad_escapes())
    }
}

const SMALL: Limits =
    Limits { arguments_max: 3, name_bytes_max: 4, value_bytes_max: 6, ..Limits::DEFAULT };

fn read(body: &[u8], separator: u8, limits: Limits) -> (Vec<Event>, UrlEncoded) {
    check_cuts(
        body,
        || UrlEncoded::new(separator, limits),
        |parser, bytes, to| parser.feed(bytes, to),
        |parser, to| parser.finish(to),
    )
}

/// The same by [`Query`].
fn read_query(query: &[u8], separator: u8, limits: Limits) -> (Vec<Event>, Query) {
    let mut arguments = Query::new();
    arguments.read(b"left=over&%", b'&', &Limits::DEFAULT);
    arguments.read(query, separator, &limits);
    (arguments.arguments().map(|(name, value)| argument(name, value)).collect(), arguments)
}

#[test]
fn bodies_and_queries_are_divided_and_decoded() {
    for (body, expected, bad_escapes) in [
        (&b""[..], &[][..], 0),
        (b"a=b", &[("a", "b")], 0),
        (b"a=b&c=d", &[("a", "b"), ("c", "d")], 0),
        (b"a", &[("a", "")], 0),
        (b"a=", &[("a", "")], 0),
        (b"=b", &[("", "b")], 0),
        (b"=", &[("", "")], 0),
        (b"&&a=1&&b=2&", &[("a", "1"), ("b", "2")], 0),
        (b"a=b=c", &[("a", "b=c")], 0),
        (b"a+b=c+d", &[("a b", "c d")], 0),
        (b"%61%3D=%26%2b", &[("a=", "&+")], 0),
        (b"a=%", &[("a", "%")], 1),
        (b"a=%4", &[("a", "%4")], 1),
        (b"a=%4&b=%", &[("a", "%4"), ("b", "%")], 2),
        (b"a%4=1", &[("a%4", "1")], 1),
        (b"a=%zz%41", &[("a", "%zzA")], 1),
        (b"a=%%41%4%41", &[("a", "%A%4A")], 2),
        (b"a=%4+%+", &[("a", "%4 % ")], 2),
        (b"a=%u0041", &[("a", "%u0041")], 1),
        (b"a;b=1;c", &[("a;b", "1;c")], 0),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| argument(name.as_bytes(), value.as_bytes()))
            .collect();
        let (events, parser) = read(body, b'&', Limits::DEFAULT);
        assert_eq!(
            (&events, parser.bad_escapes(), parser.failure()),
            (&expected, bad_escapes, None),
            "{body:?}"
        );
        assert_eq!(parser.differences().have(Difference::InvalidEscape), bad_escapes > 0);
        let (events, query) = read_query(body, b'&', Limits::DEFAULT);
        assert_eq!(
            (events, query.bad_escapes(), query.problem()),
            (expected, bad_escapes, None),
            "{body:?}"
        );
    }
}

#[test]
fn the_separator_is_a_parameter() {
    let expected = vec![argument(b"a", b"1&b=2"), argument(b"c", b"%3")];
    assert_eq!(read(b"a=1&b=2;c=%3;", b';', Limits::DEFAULT).0, expected);
    assert_eq!(read_query(b"a=1&b=2;c=%3;", b';', Limits::DEFAULT).0, expected);
    // Splitting precedes decoding, with any separator.
    let expected = vec![argument(b"a", b"%4"), argument(b"2", b"")];
    assert_eq!(
        read(b"a=%4122", b'1', Limits::DEFAULT).0,
        vec![argument(b"a", b"%4"), argument(b"22", b"")]
    );
    assert_eq!(read_query(b"a=%412", b'1', Limits::DEFAULT).0, expected);
}

#[test]
fn limits_are_problems() {
    for (body, expected, problem, offset) in [
        (&b"a=1&b=2&c=3"[..], &[("a", "1"), ("b", "2"), ("c", "3")][..], None, 0),
        (b"a=1&b=2&c=3&&&", &[("a", "1"), ("b", "2"), ("c", "3")], None, 0),
        (
            b"a=1&b=2&c=3&d&e",
            &[("a", "1"), ("b", "2"), ("c", "3")],
            Some(Problem::ArgumentsLimit),
            13,
        ),
        (b"abcd=1", &[("abcd", "1")], None, 0),
        (b"abcde=1&f=2", &[("abcd", "")], Some(Problem::NameLimit), 4),
        (b"a=123456&b=1", &[("a", "123456"), ("b", "1")], None, 0),
        (b"a=1234567&b=1", &[("a", "123456")], Some(Problem::ValueLimit), 8),
        (b"a=12345%36%37", &[("a", "123456")], Some(Problem::ValueLimit), 12),
    ] {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, value)| argument(name.as_bytes(), value.as_bytes()))
            .collect();
        let (events, parser) = read(body, b'&', SMALL);
        let failure = problem.map(|problem| Failure { problem, offset });
        assert_eq!((&events, parser.failure()), (&expected, failure), "{body:?}");
        let (events, query) = read_query(body, b'&', SMALL);
        assert_eq!((&events, query.problem()), (&expected, problem), "{body:?}");
    }
}

#[test]
fn noise_is_read_alike_by_both() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let body = noise(&mut random, b"a=&%+;4f\xff\0", 60);
        for limits in [Limits::DEFAULT, SMALL] {
            let (events, parser) = read(&body, b'&', limits);
            let (query_events, query) = read_query(&body, b'&', limits);
            assert_eq!(events, query_events, "seed {seed}: {body:?}");
            assert_eq!(
                parser.failure().map(|failure| failure.problem),
                query.problem(),
                "seed {seed}"
            );
            if query.problem().is_none() {
                assert_eq!(parser.bad_escapes(), query.bad_escapes(), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_million_separators_cost_little() {
    let mut parser = UrlEncoded::new(b'&', Limits::DEFAULT);
    let mut to = Vec::<Event>::new();
    parser.feed(&vec![b'&'; 1_000_000], &mut to);
    parser.feed(b"a=1", &mut to);
    parser.finish(&mut to);
    assert_eq!(to, [argument(b"a", b"1")]);
}
