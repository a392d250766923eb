//! Size limits. Code above a limit is listed with its size, which may only shrink.

use std::collections::BTreeMap;

use weir_tests::repository;
use weir_tests::source::{self, File, Item, Kind};

/// The path of this file, for messages.
const HERE: &str = "tests/tests/tidy/sizes.rs";

/// A limit, and the code that exceeds it.
struct Bound {
    /// The unit of the sizes.
    unit: &'static str,
    max: usize,
    /// Names of code above the limit, with sizes. Sizes may only shrink, and no name may be added.
    beyond: &'static [(&'static str, usize)],
    /// Advice about code above the limit.
    advice: &'static str,
}

/// Lines from the name of a function to its last line. Tests are often tables, and have their own limit.
const FUNCTIONS: Bound = Bound {
    unit: "lines",
    max: 70,
    beyond: &[("bench/src/report/markdown.rs section", 76)],
    advice: "divide it into functions that do one thing each",
};

const TEST_FUNCTIONS: Bound = Bound {
    unit: "lines",
    max: 100,
    beyond: &[
        ("crates/http/tests/cases/flaws.rs bodies", 117),
        ("crates/http/tests/cases/h2.rs header_cases", 150),
        ("crates/http/tests/cases/h2_messages.rs malformed_pseudo", 120),
        ("crates/http/tests/cases/h2_messages.rs responses", 122),
        ("crates/http/tests/cases/h2_messages.rs sound", 174),
        ("crates/http/tests/cases/request_fields.rs syntax", 135),
    ],
    advice: "divide it into several tests or tables",
};

/// Number of methods of a type in its whole crate, except those of traits. A free function is a method of its first argument if it may
/// change that, and if its crate has the type.
const METHODS: Bound = Bound {
    unit: "methods",
    max: 30,
    beyond: &[
        ("bench/src/load/engine.rs Engine", 45),
        ("bench/src/run/session.rs Session", 47),
        ("crates/config/src/validate/compiler.rs Compiler", 39),
        ("crates/control/src/supervisor.rs Supervisor", 35),
        ("crates/core/src/expression/check/mod.rs Checker", 37),
        ("crates/dataplane/src/worker/router.rs Router", 40),
        ("crates/exchange/src/parts/transaction_ends.rs TransactionEnds", 40),
        ("crates/exchange/src/transaction/exchange.rs Exchange", 40),
        ("crates/exchange/tests/simulation/router.rs Router", 63),
        ("crates/http/src/h2/connection/mod.rs Connection", 82),
        ("crates/waf/src/inspection/handle.rs Inspection", 31),
        ("crates/waf/src/inspection/message.rs Message", 40),
        ("crates/waf/src/inspection/state.rs State", 36),
        ("tests/src/client.rs Client", 37),
        ("tests/src/http2.rs Peer", 44),
        ("tests/src/proxy.rs Proxy", 47),
        ("tests/tagged/src/http2.rs Http2", 31),
    ],
    advice: "find the type that part of its work belongs to",
};

const FIELDS: Bound = Bound {
    unit: "fields",
    max: 20,
    beyond: &[
        ("bench/src/command/load.rs Arguments", 28),
        ("bench/src/load/engine.rs Engine", 24),
        ("crates/http/src/h2/connection/mod.rs Connection", 23),
        ("crates/http/src/h2/limits.rs Limits", 27),
    ],
    advice: "put fields that belong together into a type of their own",
};

const FILES: Bound = Bound {
    unit: "lines",
    max: 800,
    beyond: &[],
    advice: "divide it into files about one thing each",
};

/// The size of an item.
#[derive(Debug, PartialEq, Eq)]
struct Size {
    /// The name in the list.
    name: String,
    /// The line of its definition.
    line: usize,
    size: usize,
}

#[test]
fn functions_are_short() {
    let is_bound_by = |test| move |item: &Item| item.is_test == test;
    let mut findings = findings(&FUNCTIONS, &functions(source::files(), is_bound_by(false)));
    let tests = functions(source::files(), is_bound_by(true));
    findings.extend(self::findings(&TEST_FUNCTIONS, &tests));
    repository::expect_none(&findings);
}

#[test]
fn types_have_few_methods() {
    repository::expect_none(&findings(&METHODS, &methods(source::files())));
}

#[test]
fn structs_have_few_fields() {
    repository::expect_none(&findings(&FIELDS, &fields(source::files())));
}

#[test]
fn files_are_short() {
    repository::expect_none(&findings(&FILES, &lines(source::files())));
}

fn findings(bound: &Bound, sizes: &[Size]) -> Vec<String> {
    let Bound { unit, max, beyond, advice } = bound;
    let is_there = |listed: &str| sizes.iter().any(|it| it.name == listed && it.size > *max);
    let mut gone: Vec<_> = beyond.iter().filter(|(listed, _)| !is_there(listed)).collect();
    let mut findings = Vec::new();
    for Size { name, line, size } in sizes.iter().filter(|size| size.size > *max) {
        let place = name.replacen(' ', &format!(":{line}: "), 1);
        let moved = gone
            .iter()
            .position(|(listed, _)| what(listed).is_some_and(|it| Some(it) == what(name)));
        let listed = beyond.iter().find(|(listed, _)| listed == name);
        let Some((listed, allowed)) = listed.or_else(|| moved.map(|at| gone.remove(at))) else {
            findings.push(format!("{place}: {size} {unit}, at most {max}: {advice}"));
            continue;
        };
        if size > allowed {
            findings.push(format!(
                "{place}: {size} {unit}, and it had {allowed}: what is too large must not grow; {advice}"
            ));
        } else if size < allowed {
            findings.push(format!(
                "{place}: {size} {unit} now: lower its number in {HERE} from {allowed} to {size}"
            ));
        }
        if listed != name {
            findings
                .push(format!("{place} has moved: call it \"{name}\" in {HERE}, not \"{listed}\""));
        }
    }
    findings.extend(gone.iter().map(|(listed, _)| {
        format!("{HERE}: nothing called \"{listed}\" has more than {max} {unit}: remove it from the list")
    }));
    findings
}

/// The part of a listed name after the file.
fn what(name: &str) -> Option<&str> {
    name.split_once(' ').map(|(_, what)| what)
}

fn functions(files: &[File], is_meant: impl Fn(&Item) -> bool) -> Vec<Size> {
    let of_file = |file: &File| -> Vec<Size> {
        let functions = file.items.iter().filter(|item| item.is_function() && is_meant(item));
        functions
            .map(|item| Size { name: name(file, item), line: item.line, size: item.lines() })
            .collect()
    };
    files.iter().flat_map(of_file).collect()
}

/// The name in the list: "path/of/file.rs Type::function".
fn name(file: &File, item: &Item) -> String {
    let of = item.of.iter().map(|of| format!("{of}::"));
    format!("{} {}{}", file.path, of.collect::<String>(), item.name)
}

/// The number of methods of each type.
fn methods(files: &[File]) -> Vec<Size> {
    let definitions = definitions(files);
    let is_known = |file: &File, of: &str| definitions.contains_key(&(file.package(), of));
    let mut sizes: BTreeMap<String, Size> = BTreeMap::new();
    for file in files {
        for item in &file.items {
            let of = match item.kind {
                Kind::Method => item.of.as_ref(),
                Kind::Function => item.changes.as_ref().filter(|of| is_known(file, of)),
                _ => None,
            };
            let Some(of) = of else { continue };
            let (home, line) = home(&definitions, file, of);
            let name = format!("{} {of}", home.path);
            let size = sizes.entry(name.clone()).or_insert(Size { name, line, size: 0 });
            size.size += 1;
        }
    }
    sizes.into_values().collect()
}

/// The files and lines of type definitions, by crate and name.
type Definitions<'a> = BTreeMap<(&'a str, &'a str), Vec<(&'a File, usize)>>;

fn definitions(files: &[File]) -> Definitions<'_> {
    let mut definitions = Definitions::new();
    for file in files {
        let package = file.package();
        for item in file.items.iter().filter(|item| item.is_type()) {
            definitions.entry((package, &item.name)).or_default().push((file, item.line));
        }
    }
    definitions
}

/// The file and line of the type of an `impl` in `file`. If several types of the crate have that name, the nearest one.
fn home<'a>(definitions: &Definitions<'a>, file: &'a File, of: &str) -> (&'a File, usize) {
    let common = |(other, _): &&(&File, usize)| {
        let pairs = other.module().bytes().zip(file.module().bytes());
        pairs.take_while(|(one, other)| one == other).count()
    };
    let all = definitions.get(&(file.package(), of));
    all.and_then(|all| all.iter().max_by_key(common)).copied().unwrap_or((file, 1))
}

fn fields(files: &[File]) -> Vec<Size> {
    let of_file = |file: &File| -> Vec<Size> {
        let structs = file.items.iter().filter_map(|item| match item.kind {
            Kind::Struct(size) => Some(Size { name: name(file, item), line: item.line, size }),
            _ => None,
        });
        structs.collect()
    };
    files.iter().flat_map(of_file).collect()
}

fn lines(files: &[File]) -> Vec<Size> {
    files.iter().map(|file| Size { name: file.path.clone(), line: 1, size: file.lines }).collect()
}

/// Prints the largest sizes, to compare commits: `cargo test -p weir-tests --test tidy figures -- --ignored --nocapture`.
#[test]
#[ignore = "prints figures and checks nothing"]
fn figures() {
    let files = source::files();
    let is_code = |file: &&File| !file.is_test;
    let of_heart = |file: &&File| is_code(file) && HEART.contains(&file.package());
    println!("| what | how many | where |\n|---|---|---|");
    print_largest("methods of a type", methods(files));
    print_largest("fields of a struct", fields(files));
    print_largest("lines of a function", functions(files, |item| !item.is_test));
    for name in ["Worker", "Client", "Exchange"] {
        let (fields, booleans) = parts(files, name, false);
        println!("| fields of {name}; booleans of them | {fields}; {booleans} | |");
        let (fields, booleans) = parts(files, name, true);
        println!("| the same, with structs that are its fields | {fields}; {booleans} | |");
    }
    for (what, files) in [
        ("all code", files.iter().filter(is_code).collect::<Vec<_>>()),
        ("the heart", files.iter().filter(of_heart).collect()),
    ] {
        let mut lines: Vec<usize> = files.iter().map(|file| file.lines).collect();
        lines.sort_unstable();
        let (count, median, most) = (lines.len(), lines[lines.len() / 2], lines[lines.len() - 1]);
        println!("| files of {what}; median and most lines | {count}; {median} and {most} | |");
    }
}

fn print_largest(what: &str, sizes: Vec<Size>) {
    let largest = sizes.into_iter().max_by_key(|it| it.size).expect("there is code");
    println!("| {what} | {} | {} |", largest.size, largest.name);
}

/// The crates of the data path.
const HEART: [&str; 4] =
    ["crates/connection", "crates/dataplane", "crates/exchange", "crates/telemetry"];

/// The number of fields of a struct of the data path, and how many of them are booleans. With `deep`, the fields of
/// contained structs of the data path are included.
fn parts(files: &[File], name: &str, deep: bool) -> (usize, usize) {
    let of_heart = |file: &&File| HEART.contains(&file.package()) && !file.is_test;
    let items = files.iter().filter(of_heart).flat_map(|file| &file.items);
    let is_field = |item: &&Item| item.of.as_deref() == Some(name) && item.field_type.is_some();
    let (mut fields, mut booleans) = (0, 0);
    for field_type in items.filter(is_field).filter_map(|item| item.field_type.as_deref()) {
        let within =
            if deep && field_type != name { parts(files, field_type, deep) } else { (0, 0) };
        fields += if within.0 == 0 { 1 } else { within.0 };
        booleans += within.1 + usize::from(field_type == "bool");
    }
    (fields, booleans)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Bound =
        Bound { unit: "lines", max: 3, beyond: &[("a.rs T::long", 5)], advice: "divide it" };

    fn file(path: &str, text: &str) -> File {
        source::read(path, text)
    }

    fn names(sizes: &[Size]) -> Vec<(&str, usize)> {
        sizes.iter().map(|size| (size.name.as_str(), size.size)).collect()
    }

    #[track_caller]
    fn check(sizes: &[(&str, usize)], expected: &[&str]) {
        let sized =
            |(name, size): &(&str, usize)| Size { name: (*name).to_owned(), line: 9, size: *size };
        let sizes: Vec<Size> = sizes.iter().map(sized).collect();
        assert_eq!(findings(&SMALL, &sizes), expected);
    }

    #[test]
    fn growth_is_found_and_shrinking_lowers_the_number() {
        let long = |size| [("a.rs T::long", size), ("a.rs f", 3)];
        check(&long(5), &[]);
        check(
            &long(6),
            &["a.rs:9: T::long: 6 lines, and it had 5: what is too large must not grow; divide it"],
        );
        check(
            &long(4),
            &[
                "a.rs:9: T::long: 4 lines now: lower its number in tests/tests/tidy/sizes.rs from 5 to 4",
            ],
        );
        let gone = "tests/tests/tidy/sizes.rs: nothing called \"a.rs T::long\" has more than 3 lines: \
                    remove it from the list";
        check(&long(3), &[gone]);
        check(&[], &[gone]);
        check(&[long(5)[0], ("a.rs f", 4)], &["a.rs:9: f: 4 lines, at most 3: divide it"]);
    }

    #[test]
    fn what_has_moved_keeps_its_number() {
        let moved = "b.rs:9: T::long has moved: call it \"b.rs T::long\" in tests/tests/tidy/sizes.rs, \
                     not \"a.rs T::long\"";
        check(&[("b.rs T::long", 5)], &[moved]);
        let grown =
            "b.rs:9: T::long: 6 lines, and it had 5: what is too large must not grow; divide it";
        check(&[("b.rs T::long", 6)], &[grown, moved]);
        let both = [("a.rs T::long", 5), ("b.rs T::long", 5)];
        check(&both, &["b.rs:9: T::long: 5 lines, at most 3: divide it"]);
    }

    #[test]
    fn functions_are_measured() {
        let text = "#[inline]\nfn a() {\n    b();\n}\nimpl T {\n    fn b() {}\n}\n\
                    trait I {\n    fn c();\n    fn d() {\n    }\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn e() {\n        fn f() {}\n    }\n}\n";
        let files = [file("crates/x/src/a.rs", text)];
        let code = functions(&files, |item| !item.is_test);
        let name = |name: &'static str, size| (name, size);
        let expected = [
            name("crates/x/src/a.rs a", 3),
            name("crates/x/src/a.rs T::b", 1),
            name("crates/x/src/a.rs I::c", 1),
            name("crates/x/src/a.rs I::d", 2),
        ];
        assert_eq!(names(&code), expected);
        let tests = functions(&files, |item| item.is_test);
        let expected = [name("crates/x/src/a.rs e", 3), name("crates/x/src/a.rs f", 1)];
        assert_eq!(names(&tests), expected);
    }

    #[test]
    fn methods_are_counted_per_type_and_crate() {
        let files = [
            file("crates/x/src/one.rs", "struct T; impl T { fn a() {} fn b() {} }"),
            file(
                "crates/x/src/one/more.rs",
                "impl super::T { fn c() {} } impl Drop for T { fn drop() {} }",
            ),
            file("crates/x/src/other.rs", "struct T; impl<A> T<A> { fn d() {} }"),
            file("crates/y/src/one.rs", "struct T; impl T { fn e() {} }"),
        ];
        let expected = [
            ("crates/x/src/one.rs T", 3),
            ("crates/x/src/other.rs T", 1),
            ("crates/y/src/one.rs T", 1),
        ];
        assert_eq!(names(&methods(&files)), expected);
    }

    #[test]
    fn free_functions_count_for_what_they_change() {
        let files = [file(
            "crates/x/src/one.rs",
            "struct T; struct U; impl T { fn a(&mut self, u: &mut U) {} }
             fn b(t: &mut T) {} fn c(t: &mut T<'_>, u: &mut U) {} fn d(t: &T) {}
             fn e(u: &mut super::U) {} fn f(t: &T, u: &mut U) {} fn g(v: &mut Vec<T>) {}",
        )];
        let expected = [("crates/x/src/one.rs T", 3), ("crates/x/src/one.rs U", 1)];
        assert_eq!(names(&methods(&files)), expected);
    }

    #[test]
    fn fields_and_lines_are_counted() {
        let files =
            [file("crates/x/src/a.rs", "struct A(u8, u8);\nstruct B {\n    a: A,\n}\nstruct C;\n")];
        let expected =
            [("crates/x/src/a.rs A", 2), ("crates/x/src/a.rs B", 1), ("crates/x/src/a.rs C", 0)];
        assert_eq!(names(&fields(&files)), expected);
        assert_eq!(names(&lines(&files)), [("crates/x/src/a.rs", 5)]);
    }
}
