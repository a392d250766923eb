use super::super::testing::{Event, Outcome, argument, check_cuts, mutated, noise, outcome, shown};
use super::*;
use weir_testing::Random;

impl Outcome for Multipart {
    fn outcome(&self) -> String {
        let flags: Vec<_> = self.flags().iter().collect();
        outcome(
            self.failure(),
            self.differences(),
            (flags, self.unmatched_boundary(), self.strict_error()),
        )
    }
}

const TYPE: &str = "multipart/form-data; boundary=aB1";

fn read_limited(body: &[u8], limits: Limits) -> (Vec<Event>, Multipart) {
    check_cuts(
        body,
        || Multipart::new(TYPE.as_bytes(), limits),
        |parser, bytes, to| parser.feed(bytes, to),
        |parser, to| parser.finish(to),
    )
}

fn read(body: &str) -> (Vec<Event>, Multipart) {
    read_limited(body.as_bytes(), Limits::DEFAULT)
}

/// A body that has one part with this Content-Disposition.
fn part(disposition: &str) -> String {
    format!("--aB1\r\nContent-Disposition: {disposition}\r\n\r\nv\r\n--aB1--\r\n")
}

/// The delivered values, without header lines.
fn values(events: Vec<Event>) -> Vec<Event> {
    events.into_iter().filter(|event| !matches!(event, Event::PartHeader(..))).collect()
}

fn field(name: &str, value: &str) -> Event {
    argument(name.as_bytes(), value.as_bytes())
}

fn file(name: &str, file_name: &str, content: &str) -> Vec<Event> {
    let (name, file_name) = (shown(name.as_bytes()), shown(file_name.as_bytes()));
    vec![
        Event::FileStart(name.clone(), file_name.clone()),
        Event::FileContent(content.to_owned()),
        Event::File(name, file_name, content.len() as u64),
    ]
}

#[test]
fn a_sound_body_is_taken_apart() {
    let body = "--aB1\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n\r\n--aB1\r\n\
        content-disposition:form-data;name=f; filename=\"x;\\\".png\"\r\nContent-Type: image/png\r\n\r\n\r\n\0-\r-\n--aB\r\n--aB1\r\n\
        Content-Disposition: form-data; name=\"\u{e4}\"\r\n\r\n\r\n--aB1--\r\n";
    let (events, parser) = read(body);
    let header = |part: &str, line: &str| Event::PartHeader(part.to_owned(), line.to_owned());
    let mut expected =
        vec![header("a", "Content-Disposition: form-data; name=\"a\""), field("a", "1\r\n2\r\n")];
    expected.push(header("f", "content-disposition:form-data;name=f; filename=\"x;\\\".png\""));
    expected.push(header("f", "Content-Type: image/png"));
    expected.extend(file("f", "x;\".png", "\r\n\0-\r-\n--aB"));
    expected.push(header("\u{e4}", "Content-Disposition: form-data; name=\"\u{e4}\""));
    expected.push(field("\u{e4}", ""));
    assert_eq!(events, expected);
    assert_eq!(parser.failure(), None);
    assert_eq!(parser.differences(), Differences::NONE);
    assert!(parser.flags().is_empty() && !parser.strict_error());
    assert_eq!(parser.unmatched_boundary(), 2);
}

#[test]
fn bodies_without_parts() {
    for (body, failure) in [
        ("", None),
        ("--aB1--\r\n", None),
        ("--aB1--", None),
        ("--aB1--\r", None),
        ("x", Some(Problem::BoundaryNever)),
        ("--aB1", Some(Problem::BoundaryNever)),
        ("--aB2--\r\n", Some(Problem::BoundaryNever)),
        ("--aB1\r\n", Some(Problem::BoundaryFinal)),
        ("--aB1\r\n--aB1--\r\n", Some(Problem::BoundaryLine)),
        ("--aB1\r\n\r\n--aB1--\r\n", Some(Problem::PartDisposition)),
    ] {
        let (events, parser) = read(body);
        assert_eq!(
            (events, parser.failure().map(|failure| failure.problem)),
            (vec![], failure),
            "{body:?}"
        );
        assert_eq!(parser.strict_error(), failure.is_some(), "{body:?}");
    }
}

#[test]
fn flags_are_set() {
    use MultipartFlag::*;
    let sound = part("form-data; name=a");
    for (body, expected) in [
        (sound.clone(), &[][..]),
        (sound.trim_end().to_owned(), &[]),
        (sound.replace('\r', ""), &[LfLine]),
        (sound.replacen("\r\n--aB1--", "\n--aB1--", 1), &[LfLine, CrlfLfLines]),
        (sound.replacen("--aB1--\r\n", "--aB1--\n", 1), &[LfLine, CrlfLfLines]),
        (format!("x\r\n{sound}"), &[DataBefore]),
        (format!("\r\n{sound}"), &[]),
        (format!("\r\n\r\n{sound}"), &[]),
        (format!("\r\r\n{sound}"), &[DataBefore]),
        (format!("\rx\r\n{sound}"), &[DataBefore]),
        (format!(" \r\n{sound}"), &[DataBefore]),
        (format!("-\r\n{sound}"), &[DataBefore]),
        (format!("\r\n\n{sound}"), &[DataBefore]),
        (format!("\n{sound}"), &[DataBefore]),
        (format!("{sound}\r\n\n"), &[]),
        (format!("{sound}\r\nx"), &[DataAfter]),
        (format!("{sound}--aB1\r\n"), &[DataAfter]),
        (sound.replace("; name", ";\r\n name"), &[HeaderFolding]),
        (sound.replace("; name", ";\r\n\x0b name"), &[HeaderFolding, InvalidHeaderFolding]),
        (sound.replace("=a\r\n", "=a\r\n \r\n"), &[HeaderFolding, InvalidHeaderFolding]),
        (part("form-data; name='a'"), &[InvalidQuoting]),
        (part("form-data; name=\"a"), &[InvalidQuoting]),
        (sound.replacen("v\r\n", "", 1), &[InvalidPart]),
    ] {
        let (events, parser) = read(&body);
        assert_eq!(parser.flags().iter().collect::<Vec<_>>(), expected, "{body:?}");
        assert_eq!(
            (parser.failure(), parser.strict_error()),
            (None, !expected.is_empty()),
            "{body:?}"
        );
        let value = if body.contains('v') { "v" } else { "" };
        assert_eq!(values(events), [field("a", value)], "{body:?}");
    }
}

#[test]
fn lines_like_boundaries_are_told() {
    let body = |data: &str| part("form-data; name=a").replace("v\r\n", &format!("{data}\r\n"));
    for (body, unmatched, value) in [
        (body("v"), 0, "v"),
        (body("--"), 2, "--"),
        (body("--x"), 2, "--x"),
        (body("-x"), 0, "-x"),
        (body("x--aB1"), 2, "x--aB1"),
        (body("x\r--aB1"), 2, "x\r--aB1"),
        (body("x--aB2"), 0, "x--aB2"),
        (body("---aB1"), 2, "---aB1"),
        (body("-- aB2"), 2, "-- aB2"),
        (format!("--x\r\n{}", body("v")), 2, "v"),
        (format!("x--a\nB1\r\n{}", body("v")), 0, "v"),
    ] {
        let (events, parser) = read(&body);
        assert_eq!((values(events), parser.failure()), (vec![field("a", value)], None), "{body:?}");
        assert_eq!(parser.unmatched_boundary(), unmatched, "{body:?}");
    }
    let (_, parser) = read(&body("x\r--aB1"));
    assert!(parser.differences().have(Difference::BoundaryInLine));
    let (_, parser) = read(&body("v").replace("\r\n--aB1--\r\n", "\r\n--aB2"));
    assert_eq!(parser.unmatched_boundary(), 1);
}

#[test]
fn dispositions_are_read() {
    use Difference::*;
    let a = || vec![field("a", "v")];
    for (disposition, expected, differences) in [
        ("form-data; name=a", a(), &[][..]),
        ("form-data;name=\"a\"", a(), &[]),
        ("Form-Data; Name=a", a(), &[ParameterCase]),
        ("form-data; name = a", a(), &[ParameterBlanks]),
        ("form-data; name=\"a\" ; filename=f", file("a", "f", "v"), &[]),
        ("form-data; filename=f; name=a", file("a", "f", "v"), &[]),
        ("form-data; name=a; filename=\"\"", a(), &[FileNameEmpty]),
        (
            "form-data; name=a; filename=\"C:\\x\\y.txt\"",
            file("a", "C:\\x\\y.txt", "v"),
            &[Backslash],
        ),
        ("form-data; name=a; filename=\"a\\\"b\\\\c\"", file("a", "a\"b\\c", "v"), &[Backslash]),
        ("form-data; name=a; filename=\"a\\\"b\"", file("a", "a\"b", "v"), &[]),
        ("form-data; name=a; filename=\"a\\\"\"", file("a", "a\"", "v"), &[]),
        ("form-data; filename=\"a\\\"b\\\"\"; name=a", file("a", "a\"b\"", "v"), &[]),
        // Whoever ends a value at the first quote finds another file name in these.
        ("form-data; name=a; filename=\"a\\\"; b\"", file("a", "a\"; b", "v"), &[Backslash]),
        ("form-data; name=a; filename=\"a\\\" b=c\"", file("a", "a\" b=c", "v"), &[Backslash]),
        ("form-data; name=\"a\\\"b\"", vec![field("a\"b", "v")], &[Backslash]),
        ("form-data; name='a;b'", vec![field("a;b", "v")], &[SingleQuotes]),
        ("form-data; name=a'b", vec![field("a'b", "v")], &[SingleQuotes]),
        ("form-data; name=\"a'b\"", vec![field("a'b", "v")], &[]),
        ("form-data; name=\"a", a(), &[QuoteUnclosed]),
        ("form-data; name=a; name=b", a(), &[NameRepeated]),
        ("form-data; name=a; filename=f; filename=g", file("a", "f", "v"), &[FileNameRepeated]),
        (
            "form-data; name=a; filename=f; filename*=utf-8''g%C3%A4",
            file("a", "f", "v"),
            &[FileNameExtended],
        ),
        ("form-data; name=a; x=y", a(), &[ParameterUnknown]),
        (
            "form-data; name=a\r\nContent-Disposition: form-data; name=b",
            a(),
            &[DispositionRepeated],
        ),
        ("form-data; name=a\r\nX: 1\r\nx: 2", a(), &[HeaderRepeated]),
        ("form-data; name=a\r\nX: 1\r2", a(), &[BareCarriageReturn]),
        ("form-data; name=a\r\nContent-Transfer-Encoding: base64", a(), &[TransferEncoding]),
        ("form-data; name=a\r\nContent-Transfer-Encoding: 8Bit", a(), &[]),
    ] {
        let (events, parser) = read(&part(disposition));
        assert_eq!((values(events), parser.failure()), (expected, None), "{disposition}");
        assert_eq!(parser.differences().iter().collect::<Vec<_>>(), differences, "{disposition}");
    }
    // The part is a file for some servers and a field for others, so it is delivered as both.
    let (events, parser) = read(&part("form-data; name=a; filename*=utf-8'en'%41b"));
    let start = Event::FileStart("a".to_owned(), "Ab".to_owned());
    assert_eq!(
        values(events),
        [
            start,
            Event::FileContent("v".to_owned()),
            Event::File("a".to_owned(), "Ab".to_owned(), 1),
            field("a", "v")
        ]
    );
    assert!(parser.differences().have(FileNameExtendedAlone) && !parser.strict_error());
}

#[test]
fn malformed_parts_are_problems() {
    use Problem::{PartDisposition, PartHeader, PartName};
    for (disposition, problem) in [
        ("form-data", PartName),
        ("form-data; filename=f", PartName),
        ("form-data; name=\"\"", PartName),
        ("", PartDisposition),
        ("attachment; name=a", PartDisposition),
        ("form-dat", PartDisposition),
        ("form-data name=a", PartDisposition),
        ("form-data; name=a;", PartDisposition),
        ("form-data; name", PartDisposition),
        ("form-data; =a", PartDisposition),
        ("form-data; name=", PartDisposition),
        ("form-data; name=\"a\" filename=b", PartDisposition),
        ("form-data; name=\"a\"b\"", PartDisposition),
        ("form-data; name=a\u{e4}", PartDisposition),
        ("form-data; name=a; filename*=x", PartDisposition),
        ("form-data; name=a; filename*=''x", PartDisposition),
        ("form-data; name=a; filename*=utf-8''%4", PartDisposition),
        ("form-data; name=a; filename*=utf-8''\"x\"", PartDisposition),
        ("form-data; name=a\r\nx", PartHeader),
        ("form-data; name=a\r\n: x", PartHeader),
        ("form-data; name=a\r\nX : x", PartHeader),
        ("form-data; name=a\r\nX\u{e4}: x", PartHeader),
        ("form-data; name=a\0b", PartHeader),
    ] {
        let (events, parser) = read(&part(disposition));
        assert_eq!(parser.failure().map(|failure| failure.problem), Some(problem), "{disposition}");
        assert!(parser.strict_error());
        // The header is delivered for rules that inspect it.
        let last = disposition.lines().last().unwrap_or_default();
        assert!(
            matches!(events.last(), Some(Event::PartHeader(part, line)) if part.is_empty() && line.ends_with(last)),
            "{events:?}"
        );
        assert!(values(events).is_empty(), "{disposition}");
    }
    let (_, parser) = read("--aB1\r\n folded\r\n\r\n");
    assert_eq!(parser.failure(), Some(Failure { problem: PartHeader, offset: 15 }));
    let (_, parser) = read(&part("form-data; name=a\0b"));
    assert!(parser.differences().have(Difference::NulInHeader));
}

#[test]
fn malformed_boundaries_are_problems_behind_what_came_before() {
    use Difference::*;
    let sound = part("form-data; name=a");
    for (end, problem, difference) in [
        ("", Problem::BoundaryFinal, FinalBoundaryMissing),
        ("--aB1", Problem::BoundaryFinal, FinalBoundaryMissing),
        ("--aB1-", Problem::BoundaryFinal, FinalBoundaryMissing),
        ("--aB12\r\n", Problem::BoundaryLine, BoundaryPrefix),
        ("--aB1-\r\n", Problem::BoundaryLine, BoundaryPrefix),
        ("--aB1 \r\n", Problem::BoundaryLine, BoundaryPadding),
        ("--aB1--\t\r\n", Problem::BoundaryLine, BoundaryPadding),
        ("--aB1\rx", Problem::BoundaryLine, BareCarriageReturn),
        ("--aB1\r\r\n", Problem::BoundaryLine, BareCarriageReturn),
        ("-- aB1\r\n", Problem::BoundaryLine, BoundaryPrefix),
        ("--\"aB1\"\r\n", Problem::BoundaryLine, BoundaryPrefix),
    ] {
        let body = sound.replace("--aB1--\r\n", end);
        let (events, parser) = read(&body);
        assert_eq!(parser.failure().map(|failure| failure.problem), Some(problem), "{end:?}");
        assert!(parser.differences().have(difference) && parser.strict_error(), "{end:?}");
        let value = if end.is_empty() { "v\r\n" } else { "v" };
        assert!(
            matches!(values(events).as_slice(), [Event::Argument(name, seen)] if name == "a" && seen.starts_with(value)),
            "{end:?}"
        );
    }
    let (events, parser) =
        read("--aB1\r\nContent-Disposition: form-data; name=a; filename=f\r\n\r\nxy");
    assert_eq!(
        (values(events), parser.failure().map(|failure| failure.problem)),
        (file("a", "f", "xy"), Some(Problem::BoundaryFinal))
    );
}

#[test]
fn boundaries_are_taken_from_the_type() {
    use MultipartFlag::*;
    for (content_type, flags) in [
        ("multipart/form-data; boundary=aB1", &[][..]),
        ("Multipart/Form-Data;boundary=aB1", &[]),
        ("multipart/form-data; boundary=aB1; charset=utf-8", &[]),
        ("multipart/form-data; charset=utf-8; boundary=aB1", &[]),
        ("multipart/form-data; BOUNDARY=aB1", &[]),
        ("multipart/form-data; boundary=\"aB1\"", &[BoundaryQuoted]),
        ("multipart/form-data; boundary = aB1", &[BoundaryWhitespace]),
        ("multipart/form-data; boundary= \"aB1\" ", &[BoundaryQuoted, BoundaryWhitespace]),
        ("multipart/form-data boundary=aB1", &[MissingSemicolon]),
    ] {
        let mut parser = Multipart::new(content_type.as_bytes(), Limits::DEFAULT);
        let mut events = Vec::<Event>::new();
        parser.feed(part("form-data; name=a").as_bytes(), &mut events);
        parser.finish(&mut events);
        assert_eq!(
            (parser.failure(), values(events)),
            (None, vec![field("a", "v")]),
            "{content_type}"
        );
        let mut seen: Vec<_> = parser.flags().iter().collect();
        seen.sort_by_key(|flag| *flag as u8);
        assert_eq!(seen, flags, "{content_type}");
        // A quoted boundary is no error.
        let is_odd = !matches!(flags, [] | [BoundaryQuoted]);
        let differs = !parser.differences().and(Differences::STRICT).is_empty();
        assert_eq!(parser.strict_error(), is_odd || differs, "{content_type}");
    }
    let differences =
        |content_type: &str| Multipart::new(content_type.as_bytes(), Limits::DEFAULT).differences();
    assert!(differences("multipart/form-data; a=b; boundary=x").have(Difference::ParameterOrder));
    for order in
        ["charset=UTF-8;boundary=x", " Charset=utf-8; boundary=x", "charset=\"a\";boundary=x"]
    {
        let found = differences(&format!("multipart/form-data;{order}"));
        assert_eq!(found, Differences::NONE, "{order}");
    }
    let spaced = differences("multipart/form-data; charset = a; boundary=x");
    assert!(spaced.have(Difference::ParameterOrder));
    assert!(differences("multipart/form-data; Boundary=x").have(Difference::ParameterCase));
    assert!(differences("multipart/form-data; boundary=x=y").have(Difference::BoundaryUnquoted));
    assert!(
        !differences("multipart/form-data; boundary=\"x=y\"").have(Difference::BoundaryUnquoted)
    );
}

#[test]
fn invalid_types_are_problems() {
    use Problem::*;
    let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
    let huge = format!("multipart/form-data; boundary=x; a={}", "x".repeat(1024));
    for (content_type, problem) in [
        ("", MediaType),
        ("multipartmixed; boundary=x", MediaType),
        ("multipart/form-datax; boundary=x", MediaType),
        ("multipart/form-data, boundary=x", MediaType),
        ("multipart/form-data; boundary", MediaType),
        ("multipart/form-data; boundary=x;", MediaType),
        ("multipart/form-data; =x", MediaType),
        (&huge, MediaType),
        ("multipart/form-data", BoundaryMissing),
        ("multipart/form-data; charset=x", BoundaryMissing),
        ("multipart/form-data; boundary=x; boundary=y", BoundaryRepeated),
        ("multipart/form-data; boundary=x; BOUNDARY=x", BoundaryRepeated),
        ("multipart/form-data; boundary=boundary=x", BoundaryRepeated),
        ("multipart/form-data; boundary=", BoundaryLength),
        ("multipart/form-data; boundary=\"\"", BoundaryLength),
        (&long, BoundaryLength),
        ("multipart/form-data; boundary=x!y", BoundaryCharacter),
        ("multipart/form-data; boundary=\"x\\y\"", BoundaryCharacter),
        ("multipart/form-data; boundary=\"x \"", BoundaryCharacter),
        ("multipart/form-data; boundary=x\u{e4}", BoundaryCharacter),
        ("multipart/form-data; boundary=\"x", BoundaryQuoting),
        ("multipart/form-data; boundary=x\"", BoundaryQuoting),
        ("multipart/form-data; boundary=\"x\"y", MediaType),
    ] {
        let mut parser = Multipart::new(content_type.as_bytes(), Limits::DEFAULT);
        let mut events = Vec::<Event>::new();
        parser.feed(
            b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n--x--\r\n",
            &mut events,
        );
        parser.finish(&mut events);
        assert_eq!(
            (parser.failure(), events),
            (Some(Failure { problem, offset: 0 }), vec![]),
            "{content_type}"
        );
        assert!(parser.strict_error());
    }
}

#[test]
fn limits_are_problems() {
    use Problem::*;
    let limits = Limits {
        arguments_max: 2,
        value_bytes_max: 4,
        name_bytes_max: 6,
        parts_max: 3,
        files_max: 1,
        part_headers_max: 2,
        part_header_bytes_max: 60,
        ..Limits::DEFAULT
    };
    let fields = |count: usize| {
        let field = "--aB1\r\nContent-Disposition: form-data; name=a\r\n\r\nv\r\n";
        format!("{}--aB1--", field.repeat(count))
    };
    let files = |count: usize| fields(count).replace("=a", "=a; filename=f");
    let line = |header: &str| part(&format!("form-data; name=a\r\n{header}"));
    for (body, delivered, problem) in [
        (fields(2), 2, None),
        (fields(3), 2, Some(ArgumentsLimit)),
        (files(1), 3, None),
        (files(3), 9, None),
        (files(4), 9, Some(PartsLimit)),
        (part("form-data; name=a").replace("v\r", "1234\r"), 1, None),
        (part("form-data; name=a").replace("v\r", "12345\r"), 1, Some(ValueLimit)),
        (part("form-data; name=a").replace("v\r", "123\n5\r"), 1, Some(ValueLimit)),
        (part("form-data; name=a").replace("v\r", "123\r5\r"), 1, Some(ValueLimit)),
        (part("form-data; name=a").replace("v\r", "12\n--\r"), 1, Some(ValueLimit)),
        (part("form-data; name=123456"), 1, None),
        (part("form-data; name=1234567"), 0, Some(NameLimit)),
        (line("a: b"), 1, None),
        (line("a: b\r\nc: d"), 0, Some(PartHeadersLimit)),
        (line(&format!("a: {}", "b".repeat(56))), 1, None),
        (line(&format!("a: {}", "b".repeat(58))), 0, Some(PartHeaderLimit)),
        (line(&format!("a: {}\r\n {}", "b".repeat(30), "b".repeat(30))), 0, Some(PartHeaderLimit)),
    ] {
        let (events, parser) = read_limited(body.as_bytes(), limits);
        assert_eq!(parser.failure().map(|failure| failure.problem), problem, "{body:?}");
        assert_eq!(values(events).len(), delivered, "{body:?}");
        assert_eq!(
            parser.flags().have(MultipartFlag::FileLimitExceeded),
            body.matches("filename").count() > 1,
            "{body:?}"
        );
    }
    let (events, parser) =
        read_limited(part("form-data; name=a").replace("v\r", "123\r5\r").as_bytes(), limits);
    assert_eq!(values(events), [field("a", "123\r")]);
    assert_eq!(parser.failure().map(|failure| failure.offset), Some(7 + 40 + 4 + 4 - 2));
}

#[test]
fn noise_never_panics_and_cuts_do_not_matter() {
    let valid =
        part("form-data; name=\"a\"; filename=\"f\"").replace("v\r", "1\r\n--aB\r\r\n\n-\r");
    let valid = valid.replace(
        "--aB1--",
        "--aB1\r\nContent-Disposition: form-data; name=b\r\n\r\n--x\r\n--aB1--",
    );
    let alphabet = b"--aB1\r\n\r\n: ;=\"'\\x\0";
    let small = Limits {
        value_bytes_max: 5,
        part_header_bytes_max: 50,
        parts_max: 2,
        arguments_max: 1,
        ..Limits::DEFAULT
    };
    for seed in 0..250 {
        let mut random = Random::new(seed);
        let mut changed = mutated(&mut random, valid.as_bytes(), alphabet);
        changed.truncate(250);
        read_limited(&changed, Limits::DEFAULT);
        read_limited(&changed, small);
        let mut data = b"--aB1\r\nContent-Disposition: form-data; name=a\r\n\r\n".to_vec();
        data.extend(noise(&mut random, b"--aB1\r\n", 50));
        read_limited(&data, Limits::DEFAULT);
        read_limited(&data, small);
    }
}

#[test]
fn hostile_bodies_cost_little() {
    let boundary = "a".repeat(70);
    let read = |data: &[u8]| {
        let mut parser = Multipart::new(
            format!("multipart/form-data; boundary={boundary}").as_bytes(),
            Limits::DEFAULT,
        );
        parser.feed(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=a; filename=f\r\n\r\n")
                .as_bytes(),
            &mut (),
        );
        for piece in data.chunks(4096) {
            parser.feed(piece, &mut ());
        }
        parser.finish(&mut ());
        parser.failure().map(|failure| failure.problem)
    };
    for near in [
        "a",
        "\r\n",
        "\n",
        "-",
        "--",
        "\r\n--",
        "\r",
        &format!("\r\n--{}", &boundary[1..]),
        &format!("--{}-", &boundary[1..]),
    ] {
        let data = near.as_bytes().repeat(2_000_000 / near.len());
        assert_eq!(read(&data), Some(Problem::BoundaryFinal), "{near:?}");
    }
}

#[test]
fn values_are_in_charsets_that_rules_can_read() {
    let body = |header: &str| {
        format!("--aB1\r\nContent-Disposition: form-data; {header}\r\n\r\nutf-7\r\n--aB1--\r\n")
    };
    for (header, expected) in [
        ("name=a\r\nContent-Type: text/plain; charset=UTF-8", None),
        ("name=a\r\nContent-Type: text/plain; charset=iso-8859-1", None),
        ("name=a\r\nContent-Type: text/plain; charset=ibm037", Some(Problem::PartCharset)),
        ("name=a\r\ncontent-type: text/plain;Charset=\"utf-7\"", Some(Problem::PartCharset)),
        ("name=a\r\nContent-Type: text/plain;\r\n charset=utf-7", Some(Problem::PartCharset)),
        (
            "name=a\r\nContent-Type: text/plain\r\nContent-Type: text/plain; charset=iso-2022-jp",
            Some(Problem::PartCharset),
        ),
        ("name=a; filename=b\r\nContent-Type: text/plain; charset=utf-16", None),
        (
            "name=a; filename*=utf-8''b\r\nContent-Type: text/plain; charset=utf-16",
            Some(Problem::PartCharset),
        ),
        ("name=_charset_", Some(Problem::PartCharset)),
        ("name=_CHARSET_", Some(Problem::PartCharset)),
        ("name=_charset_; filename=b", None),
        ("name=charset", None),
    ] {
        let (_, parser) = read(&body(header));
        assert_eq!(parser.failure().map(|it| it.problem), expected, "{header}");
    }
    let readable = body("name=_charset_").replace("utf-7", "UTF-8");
    assert_eq!(read(&readable).1.failure(), None);
}
