//! Both detectors with ordinary values, with the corpora if they are available, and with input designed to be slow.

mod corpora;
mod ordinary;

use super::*;

#[test]
fn ordinary_values_are_left_alone() {
    let found: Vec<_> = ordinary::ORDINARY
        .iter()
        .filter_map(|value| {
            let sql =
                detect_sql(value.as_bytes()).map(|fingerprint| fingerprint.as_str().to_owned());
            let script = detect_script(value.as_bytes());
            (sql.is_some() || script).then_some((value, sql, script))
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(ordinary::ORDINARY.len() >= 250);
}

#[test]
fn any_bytes_are_read() {
    let mut random = weir_testing::Random::new(1);
    let alphabet = b"'\"`\\-#/*!|&()<>=[]{}@$.;:, \n\0\xa0\xc2\xffaxonUNION1e0";
    for length in 0..400 {
        let mut value: Vec<u8> = Vec::new();
        for _ in 0..length % 40 {
            value.push(alphabet[random.below(alphabet.len())]);
        }
        let fingerprint = detect_sql(&value);
        assert!(
            fingerprint.is_none_or(|fingerprint| !fingerprint.as_str().is_empty()),
            "{value:?}"
        );
        detect_script(&value);
    }
}
