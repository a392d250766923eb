//! Recall and false positives with mgm's collection of payloads.

use std::path::PathBuf;

use super::*;

/// The lines of a corpus file; `None`: the file does not exist.
fn lines(kind: &str, file: &str) -> Option<Vec<Vec<u8>>> {
    let corpora = std::env::var_os("WEIR_CORPORA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora")),
        PathBuf::from,
    );
    let text = std::fs::read(corpora.join("mgm/nuclei/payloads").join(kind).join(file)).ok()?;
    Some(
        text.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect(),
    )
}

/// A line as a server sees it after decoding the query.
fn decoded(line: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code =
            code.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = if code.is_some() { &after[2..] } else { after };
        value.push(code.unwrap_or(if byte == b'+' { b' ' } else { byte }));
    }
    value.retain(|byte| *byte != 0);
    value
}

/// The number of lines with a finding, and the number of all lines.
fn count(lines: &[Vec<u8>], detect: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    (lines.iter().filter(|line| detect(&decoded(line))).count(), lines.len())
}

#[test]
fn payloads_are_found() {
    let (Some(sql), Some(script)) =
        (lines("sqli", "true-positives.txt"), lines("xss", "true-positives.txt"))
    else {
        return weir_testing::skip_though_strict("no corpora: set WEIR_CORPORA");
    };
    let (found, of) = count(&sql, |value| detect_sql(value).is_some());
    println!("SQL: {found} of {of}");
    // libinjection finds about 70%.
    assert!(found * 1000 >= of * 980, "{found} of {of}");
    let (found, of) = count(&script, detect_script);
    println!("script: {found} of {of}");
    // libinjection finds about 95%.
    assert!(found * 1000 >= of * 990, "{found} of {of}");
}

#[test]
fn benign_lines_are_left_alone() {
    for kind in ["cmdexe", "log4shell", "shellshock", "sqli", "traversal", "xss", "xxe"] {
        let Some(benign) = lines(kind, "false-positives.txt") else {
            return weir_testing::skip_though_strict("no corpora: set WEIR_CORPORA");
        };
        assert!(!benign.is_empty());
        for line in benign {
            let value = decoded(&line);
            let text = String::from_utf8_lossy(&value);
            assert!(detect_sql(&value).is_none(), "{text}");
            assert!(!detect_script(&value), "{text}");
        }
    }
}
