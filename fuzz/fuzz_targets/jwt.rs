//! Tokens and key sets: any bytes are parsed or refused. A token that the issuer has not signed is never accepted.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use weir_core::jwt::{
    Algorithm, Keys, Refusal, TokenCache, TokenPlace, TokenReader, TokenSettings,
};

/// The keys of RFC 8037 appendix A.2 and RFC 7515 appendix A.3.
const KEYS: &str = r#"{"keys":[
    {"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
/// The token of RFC 7515 appendix A.3, the only one that is signed with one of the keys.
const TOKEN: &[u8] = b"eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const EXPIRES_S: u64 = 1_300_819_380;

static READER: LazyLock<TokenReader> = LazyLock::new(|| {
    let settings = TokenSettings {
        place: TokenPlace::Authorization,
        algorithms: Algorithm::ALL.to_vec(),
        issuers: Vec::new(),
        audiences: Vec::new(),
        leeway_s: 0,
    };
    TokenReader::new(settings, Some(Keys::parse(KEYS.as_bytes()).expect("keys")))
});

fuzz_target!(|data: &[u8]| {
    let mut cache = TokenCache::default();
    let found = READER.read(data, EXPIRES_S - 1, &mut cache);
    assert!(found.is_err() || data == TOKEN, "what nobody has signed is taken");
    // After any input, the valid token is accepted, and the result for the input is the same.
    assert!(READER.read(TOKEN, EXPIRES_S - 1, &mut cache).is_ok());
    assert_eq!(READER.read(TOKEN, EXPIRES_S, &mut cache).err(), Some(Refusal::Expired));
    assert_eq!(READER.read(data, EXPIRES_S - 1, &mut cache).err(), found.err());
    if let Ok(keys) = Keys::parse(data) {
        let settings = TokenSettings {
            place: TokenPlace::Authorization,
            algorithms: vec![Algorithm::Rs256],
            issuers: Vec::new(),
            audiences: Vec::new(),
            leeway_s: 0,
        };
        let reader = TokenReader::new(settings, None);
        reader.set_keys(Arc::new(keys));
        assert!(reader.read(TOKEN, 0, &mut cache).is_err(), "an EC signature is none of RSA");
    }
});
