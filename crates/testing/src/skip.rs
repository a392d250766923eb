/// Prints the reason why the running test ends early. Fails the test if `WEIR_TEST_STRICT` is set.
#[track_caller]
pub fn skip(reason: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or("?");
    assert!(std::env::var_os("WEIR_TEST_STRICT").is_none(), "{name} would be skipped: {reason}");
    println!("SKIPPED {name}: {reason}");
}

/// Skips a test because it lacks data or a feature of the kernel, which the project's scripts cannot install. It does not
/// fail with `WEIR_TEST_STRICT=1` either.
pub fn skip_though_strict(reason: &str) {
    let test = std::thread::current();
    println!("SKIPPED {}: {reason}", test.name().unwrap_or("?"));
}
