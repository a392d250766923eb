//! The interface that transactions require from their environment must stay small. A new feature should use the existing
//! methods.

use weir_tests::repository;

const METHODS_MAX: usize = 24;

#[test]
fn the_contract_of_transactions_stays_small() {
    let text = repository::read("crates/exchange/src/edge.rs");
    let (_, rest) = text.split_once("pub trait Edge: Witness {").expect("the contract");
    let (body, _) = rest.split_once("\n}\n").expect("its end");
    let methods = body.lines().filter(|line| line.starts_with("    fn ")).count();
    assert!(methods > 0, "none was found");
    assert!(
        methods <= METHODS_MAX,
        "`Edge` has {methods} methods, at most {METHODS_MAX}: a value or a state that one of them takes says the same"
    );
}
