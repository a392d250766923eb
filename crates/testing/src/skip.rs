/// Prints the reason why the running test ends early. Fails the test if `WEIR_TEST_STRICT` is set.
#[track_caller]
pub fn skip(reason: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or("?");
    assert!(std::env::var_os("WEIR_TEST_STRICT").is_none(), "{name} would be skipped: {reason}");
    println!("SKIPPED {name}: {reason}");
}

/// Skips a test because it lacks data that is neither part of the project nor installed by its scripts. Never fails the
/// test.
pub fn skip_without_data(reason: &str) {
    let test = std::thread::current();
    println!("SKIPPED {}: {reason}", test.name().unwrap_or("?"));
}
