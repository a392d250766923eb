//! Names and numbers of the transformations.

use super::super::Transformation;

#[test]
fn numbers_are_dense() {
    let numbers: Vec<usize> = Transformation::all().map(|one| one as usize).collect();
    assert_eq!(numbers, (0..Transformation::COUNT).collect::<Vec<_>>());
}

#[test]
fn each_is_found_by_its_name() {
    for one in Transformation::all() {
        for name in [one.name(), &one.name().to_uppercase(), &one.name().to_lowercase()] {
            assert_eq!(Transformation::from_name(name), Some(one), "{name}");
        }
    }
}

#[test]
fn other_names() {
    for (name, expected) in [
        ("normalisePath", Some(Transformation::NormalizePath)),
        ("normalisepathwin", Some(Transformation::NormalizePathWin)),
        ("base64decode", Some(Transformation::Base64Decode)),
        ("utf8ToUnicode", Some(Transformation::Utf8ToUnicode)),
        ("none", None),
        ("", None),
        ("trim ", None),
        ("urlDecodeUnix", None),
    ] {
        assert_eq!(Transformation::from_name(name), expected, "{name}");
    }
}
