//! OCSP responses: no panic, and an unsigned response is never valid.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use weir_tls::identity::read_certificates;
use weir_tls::ocsp::verify;

/// A time at which the certificate is valid, in seconds since 1970.
const NOW_UNIX_S: i64 = 1_800_000_000;

fuzz_target!(|input: &[u8]| {
    static CHAIN: OnceLock<Vec<weir_tls::CertificateDer<'static>>> = OnceLock::new();
    let chain = CHAIN.get_or_init(|| {
        let text = include_bytes!("../../examples/tls/shop-ec.crt");
        read_certificates(text).expect("the example's chain")
    });
    if let Ok(validity) = verify(input, &chain[0], &chain[1], NOW_UNIX_S) {
        assert!(validity.until_unix_s > NOW_UNIX_S);
    }
});
