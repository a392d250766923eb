//! The folders of `crates/exchange` use one another in one direction: data below the contract, the contract below what
//! decides.

use weir_tests::repository;

/// Each of them may use those before it.
const ORDER: [&str; 5] = ["shared", "local", "parts", "edge", "transaction"];
const ROOT: &str = "crates/exchange/src/";

#[test]
fn folders_of_the_exchange_use_those_before_them() {
    let files: Vec<String> =
        repository::files("rs").into_iter().filter(|path| path.starts_with(ROOT)).collect();
    for folder in ORDER {
        assert!(files.iter().any(|path| place(path) == place_of(folder)), "{folder} is gone");
    }
    let texts: Vec<(String, String)> =
        files.into_iter().map(|path| (path.clone(), repository::read(&path))).collect();
    repository::expect_none(&findings(&texts));
}

fn place_of(folder: &str) -> Option<usize> {
    ORDER.iter().position(|other| *other == folder)
}

/// Which of them a file belongs to.
fn place(path: &str) -> Option<usize> {
    let first = path.strip_prefix(ROOT)?.split('/').next()?;
    place_of(first.strip_suffix(".rs").unwrap_or(first))
}

fn findings(texts: &[(String, String)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, text) in texts {
        let Some(own) = place(path) else { continue };
        let code = (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"));
        for (number, line) in code {
            for used in line.split("crate::").skip(1) {
                let name = used.split(|byte: char| !byte.is_alphanumeric() && byte != '_').next();
                if let Some(of) = name.and_then(place_of).filter(|of| *of > own) {
                    findings.push(format!(
                        "{path}:{number}: `{}` stands below `{}` and uses it",
                        ORDER[own], ORDER[of]
                    ));
                }
            }
        }
    }
    findings
}

#[test]
fn what_looks_up_is_found() {
    let check = |path: &str, line: &str| {
        findings(&[(format!("{ROOT}{path}"), format!("//! [`crate::transaction`]\n{line}\n"))])
    };
    assert_eq!(
        check("parts/tries.rs", "use crate::edge::Edge;"),
        ["crates/exchange/src/parts/tries.rs:2: `parts` stands below `edge` and uses it"]
    );
    assert_eq!(check("local/pool.rs", "fn a(at: &mut crate::transaction::Loss) {}").len(), 1);
    for (path, line) in [
        ("transaction/ends.rs", "use crate::edge::{Edge, Flow};"),
        ("edge.rs", "use crate::parts::ends::Ends;"),
        ("parts/ends.rs", "use crate::arena::ClientKey;"),
        ("arena.rs", "use crate::transaction::Transaction;"),
    ] {
        assert_eq!(check(path, line), [""; 0], "{path}");
    }
}
