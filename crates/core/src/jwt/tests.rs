//! Accepted and refused tokens.

use weir_http::h1::{HeadLimits, parse_request};
use weir_http::message::RequestHead;
use weir_http::path::TargetForm;

use super::testing::{Issuer, keys, settings};
use super::*;

/// The claims of RFC 7515 appendix A.
const CLAIMS: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
/// The `exp` of these claims.
const EXPIRES_S: u64 = 1_300_819_380;
/// The key of RFC 7515 appendix A.2.
const RFC_RSA: &str = concat!(
    r#"{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJ"#,
    "PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5re",
    "xMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoud",
    r#"F8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}"#
);
const RFC_RSA_SIGNATURE: &str = concat!(
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdb",
    "F9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383",
    "LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWy",
    "wlVmtVrBp0igcN_IoypGlUPQGe77Rw"
);
/// The key of RFC 7515 appendix A.3.
const RFC_EC: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
const RFC_EC_SIGNATURE: &str =
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
/// The key of RFC 8037 appendix A.2.
const RFC_ED: &str =
    r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
/// The token of RFC 8037 appendix A.4, whose payload is not JSON.
const RFC_ED_TOKEN: &str = concat!(
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.",
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
);

fn reader(all: &[&str]) -> TokenReader {
    let all: Vec<String> = all.iter().map(|key| (*key).to_owned()).collect();
    TokenReader::new(settings(), Some(keys(&all)))
}

fn read(reader: &TokenReader, token: &str, now_s: u64) -> Result<Arc<Claims>, Refusal> {
    let mut cache = TokenCache::default();
    let first =
        reader.read(token.as_bytes(), now_s, &mut cache).map(|claims| format!("{claims:?}"));
    let second = reader.read(token.as_bytes(), now_s, &mut cache);
    let again = second.as_ref().map(|claims| format!("{claims:?}")).map_err(|why| *why);
    assert_eq!(first, again, "a cache changes nothing: {token}");
    second
}

fn refusal(reader: &TokenReader, token: &str, now_s: u64) -> Option<Refusal> {
    read(reader, token, now_s).err()
}

#[test]
fn the_tokens_of_the_standards() {
    let all = reader(&[RFC_RSA, RFC_EC, RFC_ED]);
    let rs256 = format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}.{RFC_RSA_SIGNATURE}");
    let es256 = format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}.{RFC_EC_SIGNATURE}");
    for token in [&rs256, &es256] {
        let claims = read(&all, token, EXPIRES_S - 1).unwrap();
        let mut text = Vec::new();
        assert!(claims.write("iss", &mut text) && text == b"joe");
        text.clear();
        assert!(claims.write("http://example.com/is_root", &mut text) && text == b"true");
        assert_eq!(refusal(&all, token, EXPIRES_S), Some(Refusal::Expired));
    }
    // Its signature is valid, but the signed content is not claims.
    assert_eq!(refusal(&all, RFC_ED_TOKEN, 0), Some(Refusal::Malformed));
    let (signed, signature) = RFC_ED_TOKEN.rsplit_once('.').unwrap();
    let signature = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
    let key = keys(&[RFC_ED.to_owned()]);
    let mut candidates = key.candidates(Algorithm::EdDsa, None);
    assert!(candidates.next().unwrap().verifies(signed.as_bytes(), &signature));
}

#[test]
fn a_token_that_anybody_could_have_made_is_refused() {
    let all = reader(&[RFC_RSA, RFC_EC, RFC_ED]);
    let encode = |text: &str| BASE64URL_NOPAD.encode(text.as_bytes());
    // RFC 7519 section 6.1
    let unsecured = format!("eyJhbGciOiJub25lIn0.{CLAIMS}.");
    // RFC 7515 appendix A.1
    let hs256 = format!(
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{CLAIMS}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    );
    for token in [unsecured.clone(), hs256] {
        assert_eq!(refusal(&all, &token, 0), Some(Refusal::Algorithm), "{token}");
    }
    for name in
        ["none", "None", "NONE", "HS256", "HS384", "HS512", "RS512", "PS256", "ES384", "rs256", ""]
    {
        let header = encode(&format!(r#"{{"alg":"{name}"}}"#));
        for signature in ["", RFC_RSA_SIGNATURE] {
            let token = format!("{header}.{CLAIMS}.{signature}");
            assert_eq!(refusal(&all, &token, 0), Some(Refusal::Algorithm), "{name}");
        }
    }
    // The public key as the secret of an HMAC.
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, RFC_RSA.as_bytes());
    let signed = format!("{}.{CLAIMS}", encode(r#"{"alg":"HS256"}"#));
    let tag = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
    let token = format!("{signed}.{}", BASE64URL_NOPAD.encode(tag.as_ref()));
    assert_eq!(refusal(&all, &token, 0), Some(Refusal::Algorithm));
}

#[test]
fn a_key_verifies_its_own_algorithm_alone() {
    for signs in Algorithm::ALL {
        let issuer = Issuer::new(signs);
        let own = reader(&[&issuer.jwk("")]);
        for named in Algorithm::ALL {
            let token = issuer.sign(&format!(r#"{{"alg":"{}"}}"#, named.name()), r#"{"exp":10}"#);
            let expected = (named != signs).then_some(Refusal::UnknownKey);
            assert_eq!(refusal(&own, &token, 0), expected, "{signs:?} {named:?}");
        }
        // There are keys of all kinds, but of other owners.
        let others = Algorithm::ALL
            .map(|it| if it == Algorithm::EdDsa { Issuer::ed(8) } else { Issuer::new(it) });
        let others = others.map(|it| it.jwk(""));
        let others = reader(&others.each_ref().map(String::as_str));
        for named in Algorithm::ALL {
            let token = issuer.sign(&format!(r#"{{"alg":"{}"}}"#, named.name()), r#"{"exp":10}"#);
            assert_eq!(
                refusal(&others, &token, 0),
                Some(Refusal::Signature),
                "{signs:?} {named:?}"
            );
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let issuer = Issuer::ed(7);
    let own = reader(&[&issuer.jwk("")]);
    let token = issuer.sign(r#"{"alg":"EdDSA"}"#, r#"{"exp":10,"sub":"a"}"#);
    assert_eq!(refusal(&own, &token, 0), None);
    for at in 0..token.len() {
        for byte in *b"Aa0_.=" {
            let mut changed = token.clone().into_bytes();
            if std::mem::replace(&mut changed[at], byte) != byte {
                let changed = String::from_utf8(changed).unwrap();
                assert!(refusal(&own, &changed, 0).is_some(), "{at}: {changed}");
            }
        }
    }
    for length in 0..token.len() {
        assert!(refusal(&own, &token[..length], 0).is_some(), "{length}");
    }
}

#[test]
fn malformed_tokens() {
    let issuer = Issuer::ed(7);
    let own = reader(&[&issuer.jwk(r#","kid":"a""#)]);
    for (header, claims, expected) in [
        (r#"{"alg":"EdDSA"}"#, r#"{"exp":1}"#, None),
        (r#"{"alg":"Ed25519","kid":"a","typ":"JWT"}"#, r#"{"exp":1}"#, None),
        (r#"{"alg":"EdDSA","kid":"b"}"#, r#"{"exp":1}"#, Some(Refusal::UnknownKey)),
        (r#"{"alg":"EdDSA","kid":1}"#, r#"{"exp":1}"#, Some(Refusal::Malformed)),
        (r#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#, r#"{"exp":1}"#, Some(Refusal::Critical)),
        (r#"{"alg":"EdDSA","alg":"EdDSA"}"#, r#"{"exp":1}"#, Some(Refusal::Malformed)),
        (r#"{"alg":1}"#, r#"{"exp":1}"#, Some(Refusal::Malformed)),
        ("{}", r#"{"exp":1}"#, Some(Refusal::Malformed)),
        ("", r#"{"exp":1}"#, Some(Refusal::Malformed)),
        (r#"{"alg":"EdDSA"}"#, r#"{"exp":1,"exp":9}"#, Some(Refusal::Malformed)),
        (r#"{"alg":"EdDSA"}"#, r#"{"exp":"1"}"#, Some(Refusal::Malformed)),
        (r#"{"alg":"EdDSA"}"#, "[]", Some(Refusal::Malformed)),
        (r#"{"alg":"EdDSA"}"#, "{}", Some(Refusal::Endless)),
    ] {
        let token = issuer.sign(header, claims);
        assert_eq!(refusal(&own, &token, 0), expected, "{header} {claims}");
    }
    let long = issuer.sign(
        r#"{"alg":"EdDSA"}"#,
        &format!(r#"{{"exp":1,"a":"{}"}}"#, "a".repeat(TOKEN_BYTES_MAX)),
    );
    assert_eq!(refusal(&own, &long, 0), Some(Refusal::TooLong));
    let id = "a".repeat(KEY_ID_BYTES_MAX + 1);
    let token = issuer.sign(&format!(r#"{{"alg":"EdDSA","kid":"{id}"}}"#), r#"{"exp":1}"#);
    assert_eq!(refusal(&own, &token, 0), Some(Refusal::Malformed));
    // An encrypted token has five parts.
    for token in ["", "a", "a.b", "..", "a.b.c.d.e", "e30.e30.", "=.=.="] {
        assert_eq!(refusal(&own, token, 0), Some(Refusal::Malformed), "{token}");
    }
}

#[test]
fn time_issuer_and_audience() {
    let issuer = Issuer::ed(7);
    let mut own = reader(&[&issuer.jwk("")]);
    own.settings.leeway_s = 5;
    own.settings.issuers = vec!["https://a.example/".into(), "b".into()];
    own.settings.audiences = vec!["shop".into(), "api".into()];
    for (claims, now_s, expected) in [
        (r#"{"exp":100,"iss":"b","aud":"shop"}"#, 99, None),
        (r#"{"exp":100,"iss":"b","aud":"shop"}"#, 104, None),
        (r#"{"exp":100,"iss":"b","aud":"shop"}"#, 105, Some(Refusal::Expired)),
        (r#"{"exp":100.5,"iss":"b","aud":"shop"}"#, 104, None),
        (r#"{"exp":100,"nbf":50,"iss":"b","aud":"shop"}"#, 45, None),
        (r#"{"exp":100,"nbf":50,"iss":"b","aud":"shop"}"#, 44, Some(Refusal::NotYet)),
        (r#"{"exp":18446744073709551615,"iss":"b","aud":"shop"}"#, u64::MAX - 1, None),
        (r#"{"exp":100,"aud":"shop"}"#, 0, Some(Refusal::Issuer)),
        (r#"{"exp":100,"iss":"https://a.example","aud":"shop"}"#, 0, Some(Refusal::Issuer)),
        (r#"{"exp":100,"iss":["b"],"aud":"shop"}"#, 0, Some(Refusal::Issuer)),
        (r#"{"exp":100,"iss":"b"}"#, 0, Some(Refusal::Audience)),
        (r#"{"exp":100,"iss":"b","aud":["x","api"]}"#, 0, None),
        (r#"{"exp":100,"iss":"b","aud":[]}"#, 0, Some(Refusal::Audience)),
        (r#"{"exp":100,"iss":"b","aud":"shops"}"#, 0, Some(Refusal::Audience)),
        (r#"{"exp":100,"iss":"b","aud":{"shop":1}}"#, 0, Some(Refusal::Audience)),
    ] {
        let token = issuer.sign(r#"{"alg":"EdDSA"}"#, claims);
        assert_eq!(refusal(&own, &token, now_s), expected, "{claims} at {now_s}");
    }
}

#[test]
fn a_token_that_is_remembered_still_ends() {
    let (issuer, other) = (Issuer::ed(7), Issuer::ed(8));
    let own = reader(&[&issuer.jwk("")]);
    let token = issuer.sign(r#"{"alg":"EdDSA"}"#, r#"{"exp":100}"#);
    let mut cache = TokenCache::default();
    let mut read = |now_s| own.read(token.as_bytes(), now_s, &mut cache).map(|_| ());
    assert_eq!([read(99), read(100), read(99)], [Ok(()), Err(Refusal::Expired), Ok(())]);
    // Other keys: verifications with the previous ones are not valid any more.
    own.set_keys(Arc::new(keys(&[other.jwk("")])));
    assert_eq!(read(99), Err(Refusal::Signature));
    own.set_keys(Arc::new(keys(&[issuer.jwk("")])));
    assert_eq!(read(99), Ok(()));
    let none = TokenReader::new(settings(), None);
    assert_eq!(
        none.read(token.as_bytes(), 0, &mut TokenCache::default()).err(),
        Some(Refusal::NoKeys)
    );
}

#[test]
fn keys_are_found_by_their_names() {
    let issuers: Vec<Issuer> = (0..8).map(Issuer::ed).collect();
    let names = ["a", "b", "", "d", "e", "f", "g", "h"];
    let jwk = |at: usize| {
        let more =
            if names[at].is_empty() { String::new() } else { format!(r#","kid":"{}""#, names[at]) };
        issuers[at].jwk(&more)
    };
    let all: Vec<String> = (0..issuers.len()).map(jwk).collect();
    let own = TokenReader::new(settings(), Some(keys(&all)));
    let check = |at: usize, header: &str, expected| {
        let token = issuers[at].sign(header, r#"{"exp":10}"#);
        assert_eq!(refusal(&own, &token, 0), expected, "{at} {header}");
    };
    check(1, r#"{"alg":"EdDSA","kid":"b"}"#, None);
    check(0, r#"{"alg":"EdDSA","kid":"b"}"#, Some(Refusal::Signature));
    // A key without a name may be the right one.
    check(2, r#"{"alg":"EdDSA","kid":"c"}"#, None);
    // Without a name, only a few keys are tried.
    check(KEYS_TRIED_MAX - 1, r#"{"alg":"EdDSA"}"#, None);
    check(KEYS_TRIED_MAX, r#"{"alg":"EdDSA"}"#, Some(Refusal::Signature));
    // The named key is tried before those without a name, however many precede it.
    let mut all: Vec<String> = (10..15).map(|seed| Issuer::ed(seed).jwk("")).collect();
    all.push(jwk(1));
    let own = TokenReader::new(settings(), Some(keys(&all)));
    let token = issuers[1].sign(r#"{"alg":"EdDSA","kid":"b"}"#, r#"{"exp":10}"#);
    assert_eq!(refusal(&own, &token, 0), None);
}

#[test]
fn odd_keys_of_others_are_passed_over() {
    let (ed, odd) = (Issuer::ed(1).jwk(""), Issuer::ed(2).jwk(r#","kid":7"#));
    let count = |keys: &[&str]| {
        let text = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
        Keys::parse_published(text.as_bytes()).map(|keys| keys.count())
    };
    assert_eq!(count(&[&odd, "{}", "1", &ed]), Ok(1));
    assert_eq!(count(&[&odd, "{}"]), Err(KeysError::Key(1, "has a `kid` that is not text")));
    assert_eq!(count(&[]), Err(KeysError::NoneUsable));
}

#[test]
fn key_sets() {
    let ed = Issuer::ed(1).jwk("");
    let set = |keys: &str| format!(r#"{{"keys":[{keys}]}}"#);
    let with = |more: &str| set(&Issuer::ed(1).jwk(more));
    let count = |text: &str| Keys::parse(text.as_bytes()).map(|keys| keys.count());
    for (text, expected) in [
        (set(&ed), Ok(1)),
        (format!("\u{feff}{}", set(&ed)), Err(KeysError::ByteOrderMark)),
        (set(&[RFC_RSA, RFC_EC, RFC_ED].join(",")), Ok(3)),
        (with(r#","use":"sig","alg":"EdDSA","key_ops":["sign","verify"],"x5c":["a"]"#), Ok(1)),
        (with(r#","use":"enc""#), Err(KeysError::NoneUsable)),
        (with(r#","key_ops":["sign"]"#), Err(KeysError::NoneUsable)),
        (with(r#","alg":"RS256""#), Err(KeysError::NoneUsable)),
        (with(r#","alg":7"#), Err(KeysError::NoneUsable)),
        (with(r#","kid":7"#), Err(KeysError::Key(1, "has a `kid` that is not text"))),
        (
            set(r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T"}"#),
            Err(KeysError::NoneUsable),
        ),
        (set(&RFC_EC.replace("P-256", "P-384")), Err(KeysError::NoneUsable)),
        (set(&RFC_EC.replace("f83O", "f83P")), Err(KeysError::Key(1, "is not a point of P-256"))),
        (
            set(&format!(r#"{ed},{{"kty":"OKP","crv":"Ed25519","x":"AA"}}"#)),
            Err(KeysError::Key(2, "has no `x` of 32 bytes in base64url")),
        ),
        (
            set(r#"{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbj"}"#),
            Err(KeysError::Key(1, "has a modulus that is not of 2048 to 8192 bits")),
        ),
        (
            set(&RFC_RSA.replace("AQAB", "")),
            Err(KeysError::Key(1, "has an exponent that RSA does not use")),
        ),
        (set("{}"), Err(KeysError::Key(1, "has no `kty`"))),
        (set("1"), Err(KeysError::Key(1, "is not a JSON object"))),
        (set(""), Err(KeysError::NoneUsable)),
        ("{}".into(), Err(KeysError::NoList)),
        (r#"{"keys":{}}"#.into(), Err(KeysError::NoList)),
        ("[]".into(), Err(KeysError::NoObject)),
        (String::new(), Err(KeysError::NoObject)),
        (" ".repeat(JWKS_BYTES_MAX + 1), Err(KeysError::TooLong)),
        (set(&vec![ed.clone(); KEYS_MAX].join(",")), Ok(KEYS_MAX)),
        (set(&vec![ed.clone(); KEYS_MAX + 1].join(",")), Err(KeysError::TooMany)),
    ] {
        assert_eq!(count(&text), expected, "{}", &text[..text.len().min(200)]);
    }
}

/// Tokens by such keys are refused: the operator has to know.
#[test]
fn keys_for_signatures_that_are_not_used_are_told() {
    let ed = Issuer::ed(1).jwk("");
    let others = [
        RFC_EC.replace("P-256", "P-384"),
        r#"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ"}"#.into(),
        Issuer::ed(1).jwk(r#","alg":"RS256""#),
        RFC_EC.replace("P-256", "P-384").replacen('{', r#"{"use":"enc","#, 1),
    ];
    let text = format!(r#"{{"keys":[{},{ed}]}}"#, others.join(","));
    let keys = Keys::parse(text.as_bytes()).expect("one is usable");
    let skipped: Vec<_> = keys.skipped().iter().map(|(at, kind)| (*at, &**kind)).collect();
    assert_eq!(skipped, [(1, "EC with P-384"), (2, "oct"), (3, "OKP for RS256")]);
}

#[test]
fn where_tokens_are() {
    let find = |place: &TokenPlace, fields: &str| {
        let input = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut head = RequestHead::new();
        let limits = HeadLimits { head_size_max: 65_536, headers_max: 100 };
        parse_request(input.as_bytes(), &limits, TargetForm::default(), &mut head).unwrap();
        place.find(&head, input.as_bytes()).map(|token| String::from_utf8(token.to_vec()).unwrap())
    };
    let check = |place: &TokenPlace, fields: &str, expected: Result<&str, Refusal>| {
        assert_eq!(find(place, fields), expected.map(str::to_owned), "{place:?} {fields}");
    };
    let bearer = TokenPlace::Authorization;
    check(&bearer, "Authorization: Bearer a.b.c\r\n", Ok("a.b.c"));
    check(&bearer, "authorization: bEARER   a.b.c\r\n", Ok("a.b.c"));
    check(&bearer, "Authorization: Basic YTpi\r\n", Err(Refusal::Missing));
    check(&bearer, "Authorization: Bearerx a\r\n", Err(Refusal::Missing));
    check(&bearer, "Authorization: Bearer\r\n", Err(Refusal::Missing));
    check(&bearer, "", Err(Refusal::Missing));
    check(&bearer, "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", Err(Refusal::Several));
    let header = TokenPlace::Header("x-token".into());
    check(&header, "X-Token: a.b.c\r\n", Ok("a.b.c"));
    check(&header, "X-Token: Bearer a.b.c\r\n", Ok("a.b.c"));
    check(&header, "X-Token:\r\n", Err(Refusal::Missing));
    check(&header, "Authorization: Bearer a.b.c\r\n", Err(Refusal::Missing));
    check(&header, "X-Token: a\r\nx-token: b\r\n", Err(Refusal::Several));
    let cookie = TokenPlace::Cookie("session".into());
    check(&cookie, "Cookie: a=b; session=a.b.c\r\n", Ok("a.b.c"));
    check(&cookie, "Cookie: Session=a.b.c\r\n", Err(Refusal::Missing));
    check(&cookie, "Cookie: session=\r\n", Err(Refusal::Missing));
}
