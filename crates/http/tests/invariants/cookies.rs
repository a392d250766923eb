//! Invariants of Cookie fields.

use weir_http::cookies::{RemainingCookies, cookie, cookies, write_without};

type Pair<'a> = (&'a [u8], &'a [u8]);

/// Checks all invariants of a Cookie field's value.
pub fn check(field: &[u8]) {
    let pairs: Vec<Pair<'_>> = cookies(field).collect();
    check_pairs(field, &pairs);
    for (name, _) in &pairs {
        check_removal(field, &pairs, |(other, _)| other == *name);
    }
    for (_, value) in &pairs {
        check_removal(field, &pairs, |(_, other)| other == *value);
    }
    check_removal(field, &pairs, |_| true);
    check_removal(field, &pairs, |_| false);
}

/// Checks that the names and values are found, and that they are the same after they were written.
fn check_pairs(field: &[u8], pairs: &[Pair<'_>]) {
    for (name, value) in pairs {
        assert!(!name.is_empty() && !name.contains(&b'=') && !name.contains(&b';'));
        assert!(!value.contains(&b';'));
        let first = pairs.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        assert_eq!(cookie(field, name), first);
    }
    let written: Vec<Vec<u8>> =
        pairs.iter().map(|(name, value)| [*name, b"=", *value].concat()).collect();
    let written = written.join(&b"; "[..]);
    assert_eq!(cookies(&written).collect::<Vec<_>>(), pairs);
}

/// Checks that removed cookies are absent, and that the others keep their order.
fn check_removal(field: &[u8], pairs: &[Pair<'_>], is_removed: impl Fn(Pair<'_>) -> bool) {
    let mut out = b"before".to_vec();
    let remaining = write_without(field, |name, value| is_removed((name, value)), &mut out);
    let written = out.strip_prefix(b"before").expect("what stood there stays");
    let kept: Vec<Pair<'_>> = pairs.iter().copied().filter(|pair| !is_removed(*pair)).collect();
    match remaining {
        RemainingCookies::Unchanged => assert!(written.is_empty() && kept == pairs),
        RemainingCookies::Nothing => {
            assert!(written.is_empty() && kept.is_empty() && !pairs.is_empty())
        }
        RemainingCookies::Rewritten => {
            assert!(!written.is_empty() && kept.len() < pairs.len());
            assert_eq!(cookies(written).collect::<Vec<_>>(), kept);
        }
    }
}
