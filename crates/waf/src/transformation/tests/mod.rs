//! Tables for each transformation, and properties of random inputs.

mod best_fit;
mod code;
mod encodings;
mod names;
mod properties;
mod reference;
mod scan;
mod spaces;
mod text;
mod url;

use super::Transformation;

/// The output of a transformation, and whether it reports a change.
fn transformed(transformation: Transformation, input: &[u8]) -> (bool, Vec<u8>) {
    let mut output = Vec::new();
    let changed = transformation.apply(input, &mut output);
    assert!(changed || output.is_empty(), "{}: leftovers of {input:?}", transformation.name());
    if !changed {
        output.extend_from_slice(input);
    }
    (changed, output)
}

/// Compares the output for each input. An unchanged input must be reported as unchanged.
fn check<I: AsRef<[u8]>, O: AsRef<[u8]>>(
    transformation: Transformation,
    cases: impl IntoIterator<Item = (I, O)>,
) {
    let mut count = 0;
    for (input, expected) in cases {
        let (input, expected) = (input.as_ref(), expected.as_ref());
        let name = transformation.name();
        let shown = input.escape_ascii();
        let (changed, output) = transformed(transformation, input);
        assert_eq!(
            output.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{name} of «{shown}»"
        );
        assert_eq!(changed, input != expected, "{name} of «{shown}»: whether it changes");
        count += 1;
    }
    assert!(count >= 12, "{}: only {count} cases", transformation.name());
}
