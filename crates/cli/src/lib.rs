//! What the programs `weir` and `weir-bench` share: output whose reader may be gone, values of options, facts about the build.
#![forbid(unsafe_code)]

pub mod output;
pub mod values;

/// The answer to `--version` behind the program's name: version, commit and TLS library. Records of benchmarks contain these lines.
pub const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("WEIR_COMMIT"),
    "\nTLS: ",
    env!("WEIR_TLS")
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_version_tells_commit_and_tls_library() {
        let lines: Vec<&str> = LONG_VERSION.lines().collect();
        let [version, commit, tls] = lines[..] else { panic!("{LONG_VERSION}") };
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        assert!(commit.len() > "commit: ".len() && commit.starts_with("commit: "), "{commit}");
        assert!(tls.starts_with("TLS: rustls 0.") && tls.contains(", aws-lc-rs 1."), "{tls}");
    }
}
