//! Configuration files: any bytes result in diagnostics or a snapshot, never in a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_config::{Colour, Resolutions, Severity};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let loaded = weir_config::parse("fuzz.yaml", text);
    let errors = loaded.diagnostics.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(loaded.config.is_none(), errors);
    let rendered = weir_config::render_text(&loaded.diagnostics, Colour::Always);
    assert!(rendered.lines().count() >= loaded.diagnostics.len());
    weir_config::render_json(&loaded.diagnostics);
    if let Some(config) = loaded.config {
        let resolutions: Resolutions = config
            .host_names()
            .map(|name| (name.to_owned(), vec![[127, 0, 0, 1].into()]))
            .collect();
        let snapshot = config.snapshot(&resolutions);
        for server in &snapshot.virtual_servers {
            assert!(server.pool < snapshot.pools.len());
            assert!(!server.listen.is_empty());
        }
        for pool in &snapshot.pools {
            let mut addresses: Vec<String> =
                pool.members.iter().map(|member| member.address.to_string()).collect();
            addresses.sort();
            addresses.dedup();
            assert_eq!(addresses.len(), pool.members.len(), "an address twice");
        }
    }
});
