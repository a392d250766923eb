//! Folders and files of the data path depend on each other in one direction: data, then the contract, then decisions and
//! actions.

use weir_tests::repository;

/// The parts of one folder. Each part may use only the parts before it.
struct Order {
    root: &'static str,
    /// The common prefix of module paths.
    prefix: &'static str,
    places: &'static [&'static str],
}

const EXCHANGE: Order = Order {
    root: "crates/exchange/src/",
    prefix: "crate::",
    places: &["shared", "local", "parts", "edge", "transaction"],
};

const WORKER: Order = Order {
    root: "crates/dataplane/src/worker/",
    prefix: "crate::worker::",
    places: &["state", "world", "edge", "client", "member"],
};

impl Order {
    fn place_of(&self, name: &str) -> Option<usize> {
        self.places.iter().position(|other| *other == name)
    }

    /// The index of the part that contains a file.
    fn place(&self, path: &str) -> Option<usize> {
        let first = path.strip_prefix(self.root)?.split('/').next()?;
        self.place_of(first.strip_suffix(".rs").unwrap_or(first))
    }

    fn findings(&self, texts: &[(String, String)]) -> Vec<String> {
        let mut findings = Vec::new();
        for (path, text) in texts {
            let Some(own) = self.place(path) else { continue };
            let is_code = |line: &str| !line.trim_start().starts_with("//");
            for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_code(line)) {
                if line.contains("super::super") || line.contains("crate::{") {
                    findings.push(format!("{path}:{number}: write the whole path of each name"));
                }
                for used in line.split(self.prefix).skip(1) {
                    let end = used.find(|it: char| !it.is_alphanumeric() && it != '_');
                    let used = self.place_of(&used[..end.unwrap_or(used.len())]);
                    if let Some(used) = used.filter(|used| *used > own) {
                        findings.push(format!(
                            "{path}:{number}: `{}` stands below `{}` and uses it",
                            self.places[own], self.places[used]
                        ));
                    }
                }
            }
        }
        findings
    }
}

#[test]
fn folders_use_those_before_them() {
    for order in [EXCHANGE, WORKER] {
        let files = repository::files("rs").into_iter();
        let files: Vec<String> = files.filter(|path| path.starts_with(order.root)).collect();
        for (place, name) in order.places.iter().enumerate() {
            let is_there = files.iter().any(|path| order.place(path) == Some(place));
            assert!(is_there, "{}{name} is gone", order.root);
        }
        let texts: Vec<(String, String)> =
            files.into_iter().map(|path| (path.clone(), repository::read(&path))).collect();
        repository::expect_none(&order.findings(&texts));
    }
}

#[test]
fn what_looks_up_is_found() {
    let check = |order: &Order, path: &str, line: &str| {
        let text = format!("//! [`{}transaction`]\n{line}\n", order.prefix);
        order.findings(&[(format!("{}{path}", order.root), text)])
    };
    assert_eq!(
        check(&EXCHANGE, "parts/tries.rs", "use crate::edge::Edge;"),
        ["crates/exchange/src/parts/tries.rs:2: `parts` stands below `edge` and uses it"]
    );
    for (order, path, line) in [
        (&EXCHANGE, "local/pool.rs", "fn a(at: &mut crate::transaction::Transaction) {}"),
        (&WORKER, "state/client.rs", "use crate::worker::edge::WorkerEdge;"),
        (&WORKER, "world.rs", "use crate::worker::client;"),
        (&WORKER, "state/client.rs", "use super::super::edge;"),
        (&EXCHANGE, "parts/end.rs", "use crate::{edge::Edge, arena::Arena};"),
    ] {
        assert_eq!(check(order, path, line).len(), 1, "{path}");
    }
    for (order, path, line) in [
        (&EXCHANGE, "transaction/connections.rs", "use crate::edge::{Edge, Flow};"),
        (&EXCHANGE, "edge.rs", "use crate::parts::transaction_ends::TransactionEnds;"),
        (&EXCHANGE, "parts/transaction_ends.rs", "use crate::arena::ClientKey;"),
        (&EXCHANGE, "arena.rs", "use crate::transaction::Transaction;"),
        (&WORKER, "client/http1.rs", "use crate::worker::state::stage::Stage;"),
        (&WORKER, "state/frames.rs", "use crate::worker::body::COALESCE_BYTES;"),
    ] {
        assert_eq!(check(order, path, line), [""; 0], "{path}");
    }
}
