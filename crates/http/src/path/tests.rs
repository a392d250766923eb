use super::*;

const DEFAULT: PathForm = PathForm::Canonical(Spellings {
    slashes: Slashes::Merge,
    encoded_slashes: EncodedSlashes::Refuse,
    backslash: Backslash::Refuse,
    parameters: Parameters::Keep,
    nul: Nul::Refuse,
});

fn form(change: impl FnOnce(&mut Spellings)) -> PathForm {
    let mut spellings = Spellings::default();
    change(&mut spellings);
    PathForm::Canonical(spellings)
}

/// The member's path and the path for decisions.
fn paths(path: &str, form: PathForm) -> Result<(String, String), PathError> {
    let mut out = b"left over".to_vec();
    let read = read(path.as_bytes(), form, &mut out)?;
    let text = |span: Span| String::from_utf8(span.of(&out).to_vec()).unwrap();
    let member = read.member.map_or(path.to_owned(), text);
    let decided = read.decided.map_or(member.clone(), text);
    let mut alone = b"left over".to_vec();
    canonicalise(path.as_bytes(), form, &mut alone)?;
    assert_eq!(alone, member.as_bytes(), "{path}");
    let decided_path = super::decided(path.as_bytes(), form)?;
    assert_eq!(decided_path, decided.as_bytes(), "{path}");
    Ok((member, decided))
}

#[track_caller]
fn check(form: PathForm, path: &str, member: &str, decided: &str) {
    let expected = (member.to_owned(), decided.to_owned());
    assert_eq!(paths(path, form), Ok(expected.clone()), "{path}");
    assert_eq!(paths(member, form), Ok(expected), "not stable: {path}");
    let again = super::decided(decided.as_bytes(), form);
    assert_eq!(again.as_deref(), Ok(decided.as_bytes()), "decided another way: {path}");
}

#[track_caller]
fn refused(form: PathForm, paths_and_reasons: &[(&str, PathError)]) {
    for (path, reason) in paths_and_reasons {
        assert_eq!(paths(path, form), Err(*reason), "{path}");
    }
}

#[test]
fn the_defaults_are_the_safe_ones() {
    assert_eq!(PathForm::default(), DEFAULT);
}

#[test]
fn canonical_paths() {
    for (path, expected) in [
        ("/", "/"),
        ("//", "/"),
        ("///a//b///", "/a/b/"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/b/../../c", "/c"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/..", "/"),
        ("/.", "/"),
        ("/../../a", "/a"),
        ("/a//../b", "/b"),
        ("/a//..", "/"),
        ("/.//a", "/a"),
        ("//..", "/"),
        ("/..//a", "/a"),
        ("/...", "/..."),
        ("/.well-known/x", "/.well-known/x"),
        ("/a/.b/..c/d.", "/a/.b/..c/d."),
        ("/a../b./", "/a../b./"),
        ("/%2e%2E/a", "/a"),
        ("/a/.%2e/b", "/b"),
        ("/a/%2e", "/a/"),
        ("/%41%7e%2d", "/A~-"),
        ("/%252e%252f", "/%252e%252f"),
        ("/%25%32%65", "/%252e"),
        ("/a|b^c{d}[e]`", "/a%7Cb%5Ec%7Bd%7D%5Be%5D%60"),
        ("/%c3%a9%c0%ae", "/%C3%A9%C0%AE"),
        ("/é\"<>", "/%C3%A9%22%3C%3E"),
        ("/a=b,d:@!$&'()*+", "/a=b,d:@!$&'()*+"),
        ("/%0a%0D%20%3f%23%3b", "/%0A%0D%20%3F%23%3B"),
    ] {
        check(DEFAULT, path, expected, expected);
    }
}

#[test]
fn decisions_read_one_spelling_of_what_a_segment_may_have() {
    check(DEFAULT, "/%40admin", "/%40admin", "/@admin");
    check(DEFAULT, "/@admin", "/@admin", "/@admin");
    let encoded = "/%21%24%26%27%28%29%2a%2B%2C%3a%3d";
    check(DEFAULT, encoded, "/%21%24%26%27%28%29%2A%2B%2C%3A%3D", "/!$&'()*+,:=");
    check(DEFAULT, "/a%3Bb%25", "/a%3Bb%25", "/a%3Bb%25");
}

#[test]
fn raw_bytes_are_encoded_in_paths_that_are_kept() {
    check(PathForm::Keep, "/é//%41", "/%C3%A9//%41", "/%C3%A9/A");
    check(PathForm::Keep, "/é", "/%C3%A9", "/%C3%A9");
    check(PathForm::Keep, "/\"%22", "/%22%22", "/%22%22");
}

#[test]
fn paths_without_a_form() {
    let always = [
        ("/%", PathError::Escape),
        ("/%4", PathError::Escape),
        ("/%zz", PathError::Escape),
        ("/%2%65", PathError::Escape),
        ("/%+1", PathError::Escape),
        ("/%u002e", PathError::Escape),
        ("/a b", PathError::Character),
        ("/a?b", PathError::Character),
        ("/a#b", PathError::Character),
        ("a", PathError::Character),
        ("", PathError::Character),
    ];
    refused(DEFAULT, &always);
    refused(PathForm::Keep, &always);
    refused(DEFAULT, &[("/%00", PathError::Nul), ("/a%00.png", PathError::Nul)]);
    assert!(PathError::Nul.is_by_form() && !PathError::Escape.is_by_form());
}

#[test]
fn repeated_slashes() {
    let kept = form(|it| it.slashes = Slashes::Keep);
    check(kept, "/a//b", "/a//b", "/a/b");
    check(kept, "/a//", "/a//", "/a/");
    check(kept, "/a//../b", "/a/b", "/a/b");
    check(kept, "//admin//", "/admin//", "/admin/");
    check(kept, "/..//a", "/a", "/a");
    check(kept, "/a//b/..", "/a//", "/a/");
    check(kept, "/a/b", "/a/b", "/a/b");
}

#[test]
fn encoded_slashes() {
    refused(
        DEFAULT,
        &[
            ("/a%2fb", PathError::EncodedSlash),
            ("/..%2Fadmin", PathError::EncodedSlash),
            ("/a;b%2F", PathError::EncodedSlash),
        ],
    );
    let decoded = form(|it| it.encoded_slashes = EncodedSlashes::Decode);
    check(decoded, "/a%2fb", "/a/b", "/a/b");
    check(decoded, "/public/..%2fadmin/", "/admin/", "/admin/");
    check(decoded, "/public%2f%2e%2e%2fadmin", "/admin", "/admin");
    check(decoded, "/%2fadmin", "/admin", "/admin");
    check(decoded, "/a%252fb", "/a%252fb", "/a%252fb");
    let kept = form(|it| it.encoded_slashes = EncodedSlashes::Keep);
    check(kept, "/api/group%2fproject", "/api/group%2Fproject", "/api/group/project");
    check(kept, "/queues/%2F/name", "/queues/%2F/name", "/queues/name");
    check(kept, "/%2fadmin", "/%2Fadmin", "/admin");
    check(kept, "/a%2Fb/../c", "/c", "/c");
    check(kept, "/a%2Fb;x=1/c", "/a%2Fb;x=1/c", "/a/b/c");
    check(kept, "/a%2F;x", "/a%2F;x", "/a/");
    refused(
        kept,
        &[
            ("/public/..%2fadmin", PathError::EncodedSlash),
            ("/public/%2e%2E%2Fadmin", PathError::EncodedSlash),
            ("/public%2F..", PathError::EncodedSlash),
            ("/public%2f../admin", PathError::EncodedSlash),
            ("/a%2F.%2Fb", PathError::EncodedSlash),
            ("/a%2F..;x", PathError::EncodedSlash),
            ("/a;x%2Fb", PathError::EncodedSlash),
            ("/a%2F;x/b", PathError::Parameters),
        ],
    );
}

#[test]
fn backslashes() {
    refused(DEFAULT, &[("/a\\b", PathError::Backslash), ("/a%5cb", PathError::Backslash)]);
    let slash = form(|it| it.backslash = Backslash::Slash);
    check(slash, "/a\\b%5Cc", "/a/b/c", "/a/b/c");
    check(slash, "/public\\..%5cadmin", "/admin", "/admin");
    let kept = form(|it| it.backslash = Backslash::Keep);
    check(kept, "/a\\b%5cc", "/a%5Cb%5Cc", "/a%5Cb%5Cc");
    check(kept, "/public/..%5cadmin", "/public/..%5Cadmin", "/public/..%5Cadmin");
}

#[test]
fn parameters() {
    check(DEFAULT, "/admin;x/y", "/admin;x/y", "/admin/y");
    check(DEFAULT, "/a;jsessionid=1.n;y=%2e", "/a;jsessionid=1.n;y=.", "/a");
    check(DEFAULT, "/shop/;jsessionid=1", "/shop/;jsessionid=1", "/shop/");
    check(DEFAULT, "/;jsessionid=1", "/;jsessionid=1", "/");
    check(DEFAULT, "/a;x/../b", "/b", "/b");
    check(DEFAULT, "/a;x//b;%26", "/a;x/b;%26", "/a/b");
    check(DEFAULT, "/..%3Bx/a", "/..%3Bx/a", "/..%3Bx/a");
    let ambiguous = [
        ("/public/..;/admin", PathError::Parameters),
        ("/public/.;x/admin", PathError::Parameters),
        ("/public/%2e%2e;x", PathError::Parameters),
        ("/;x/admin", PathError::Parameters),
        ("/a/;/admin", PathError::Parameters),
    ];
    refused(DEFAULT, &ambiguous);
    refused(PathForm::Keep, &ambiguous);
    let removed = form(|it| it.parameters = Parameters::Remove);
    check(removed, "/admin;x/y;z=1", "/admin/y", "/admin/y");
    check(removed, "/public/..;/admin", "/admin", "/admin");
    check(removed, "/;x/admin;", "/admin", "/admin");
    refused(removed, &[("/a;%2F", PathError::EncodedSlash), ("/a;%zz", PathError::Escape)]);
    let none = form(|it| it.parameters = Parameters::Refuse);
    refused(none, &[("/a;", PathError::Parameters), ("/a;b=c/d", PathError::Parameters)]);
    check(none, "/a%3Bb", "/a%3Bb", "/a%3Bb");
}

#[test]
fn zero_bytes() {
    let kept = form(|it| it.nul = Nul::Keep);
    check(kept, "/a%00b", "/a%00b", "/a%00b");
}

#[test]
fn kept_paths_are_the_received_ones_and_decided_by_their_meaning() {
    for (path, decided) in [
        ("/a", "/a"),
        ("/a/../b", "/b"),
        ("/a/%2e%2e/b", "/b"),
        ("/bucket//key", "/bucket/key"),
        ("//bucket/./key", "/bucket/key"),
        ("/bucket/a%2fb", "/bucket/a/b"),
        ("/bucket/%61;x=1/%7Cc|d", "/bucket/a/%7Cc%7Cd"),
        ("/a%00%5cb%40", "/a%00%5Cb@"),
        ("/a;x/../b", "/b"),
        ("/../a", "/a"),
    ] {
        check(PathForm::Keep, path, path, decided);
    }
    refused(
        PathForm::Keep,
        &[
            ("/a\\b", PathError::Backslash),
            ("/a//../b", PathError::DotSegment),
            ("/a/.//..", PathError::DotSegment),
            ("/a/b%2Fc/../d", PathError::DotSegment),
            ("/a/..%2Fb", PathError::EncodedSlash),
        ],
    );
}

#[test]
fn combined_spellings() {
    let all = PathForm::Canonical(Spellings {
        slashes: Slashes::Keep,
        encoded_slashes: EncodedSlashes::Decode,
        backslash: Backslash::Slash,
        parameters: Parameters::Remove,
        nul: Nul::Keep,
    });
    check(all, "/a;x%2Fb\\..%5C%2e;y/c%00//", "/a/c%00//", "/a/c%00/");
    check(all, "\u{2f}%2f\\a", "/a", "/a");
}
