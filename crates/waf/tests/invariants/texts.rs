//! Invariants of transformations and detectors.

use weir_waf::injection::{detect_definition, detect_script, detect_sql, may_be_definition};
use weir_waf::transformation::Transformation;

/// Maximum number of consecutive steps.
const STEPS_MAX: usize = 5;
/// Maximum length of a transformed text, because some steps make texts longer.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Checks each transformation alone, and a sequence of several that the first bytes select.
pub fn check_transformations(input: &[u8]) {
    for step in Transformation::all() {
        let _ = applied(step, input);
    }
    let all: Vec<Transformation> = Transformation::all().collect();
    let (steps, text) = input.split_at(input.len().min(STEPS_MAX));
    let mut text = text.to_vec();
    for step in steps.iter().map(|byte| all[usize::from(*byte) % all.len()]) {
        if text.len() <= TEXT_BYTES_MAX {
            text = applied(step, &text);
        }
    }
}

fn applied(step: Transformation, input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    if !step.apply(input, &mut output) {
        assert!(output.is_empty(), "{step:?} writes what it does not mean");
        return input.to_vec();
    }
    let length_max = step.output_len_max(input.len());
    assert!(output.len() <= length_max, "{step:?}: {} bytes of {length_max}", output.len());
    output
}

/// Checks that detectors terminate, with the same result each time.
pub fn check_injection(input: &[u8]) {
    let fingerprint = detect_sql(input);
    if let Some(fingerprint) = &fingerprint {
        let text = fingerprint.as_str();
        assert!(!text.is_empty() && text.is_ascii(), "{text:?}");
    }
    assert_eq!(detect_sql(input), fingerprint);
    assert_eq!(detect_script(input), detect_script(input));
    let definition = detect_definition(input);
    assert_eq!(detect_definition(input), definition);
    assert!(definition.is_none() || input.iter().any(|byte| may_be_definition(*byte)));
}
