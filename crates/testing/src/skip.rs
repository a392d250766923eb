/// Prints why the running test ends early. With `WEIR_TEST_STRICT` in the environment that is a failure.
#[track_caller]
pub fn skip(reason: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or("?");
    assert!(std::env::var_os("WEIR_TEST_STRICT").is_none(), "{name} would be skipped: {reason}");
    println!("SKIPPED {name}: {reason}");
}

/// Skips because data is missing that is no part of the project and that nothing installs: never a failure.
pub fn skip_without_data(reason: &str) {
    let test = std::thread::current();
    println!("SKIPPED {}: {reason}", test.name().unwrap_or("?"));
}
