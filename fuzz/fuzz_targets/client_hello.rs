//! Inspection of a ClientHello: no panic, no read beyond the input, and further bytes never change a result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_tls::client_hello::{Peek, SERVER_NAME_BYTES_MAX, peek};

fuzz_target!(|input: &[u8]| {
    let whole = peek(input);
    if let Peek::Hello(hello) = &whole {
        assert!(hello.server_name.len() <= SERVER_NAME_BYTES_MAX);
        assert_eq!(hello.server_name, hello.server_name.to_ascii_lowercase());
        assert!(hello.protocols().map(<[u8]>::len).sum::<usize>() <= hello.alpn.len());
    }
    for cut in [input.len() / 2, input.len().saturating_sub(1)] {
        match peek(&input[..cut]) {
            Peek::Partial(bytes) => assert!(bytes > cut),
            said => assert_eq!(said, whole),
        }
    }
});
