//! Invariants of paths: the path that rules see equals the path as members read it.

use weir_http::h1::parse_request;
use weir_http::message::RequestHead;
use weir_http::path::{
    Backslash, EncodedSlashes, Nul, Parameters, PathForm, RawBytes, Slashes, Spellings, TargetForm,
    canonicalise, encode_raw_bytes,
};

use super::LIMITS;
use super::resolvers::{SERVERS, Server, merged, resolve, spell};

/// The default form, and forms that contain every value of each setting.
pub fn forms() -> impl Iterator<Item = PathForm> {
    let kept = Spellings {
        slashes: Slashes::Keep,
        encoded_slashes: EncodedSlashes::Keep,
        backslash: Backslash::Keep,
        parameters: Parameters::Keep,
        nul: Nul::Keep,
    };
    let changed = Spellings {
        slashes: Slashes::Merge,
        encoded_slashes: EncodedSlashes::Decode,
        backslash: Backslash::Slash,
        parameters: Parameters::Remove,
        nul: Nul::Refuse,
    };
    let forms = [
        Spellings::default(),
        kept,
        changed,
        Spellings { encoded_slashes: EncodedSlashes::Keep, ..Spellings::default() },
        Spellings { encoded_slashes: EncodedSlashes::Decode, ..Spellings::default() },
        Spellings { slashes: Slashes::Keep, ..changed },
        Spellings { parameters: Parameters::Refuse, ..kept },
        Spellings { parameters: Parameters::Remove, ..kept },
    ];
    forms.into_iter().map(PathForm::Canonical).chain([PathForm::Keep])
}

/// The form of targets with this path form, in which raw bytes are encoded.
pub fn encoding(path: PathForm) -> TargetForm {
    TargetForm { path, raw_bytes: RawBytes::Encode }
}

/// Checks a request with this path, in every form.
pub fn check_spelling(path: &str) {
    for form in forms() {
        let input = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        let mut head = RequestHead::new();
        if parse_request(&input, &LIMITS, encoding(form), &mut head).is_ok() {
            check(&head, &input, form);
        }
    }
}

/// Checks the paths of a request head that was parsed with this form.
pub fn check(head: &RequestHead, input: &[u8], form: PathForm) {
    let (member_path, decided) = (head.member_path(input), head.path(input));
    if decided == b"*" {
        return;
    }
    let told = || format!("{} in the form {form:?}", head.received_path(input).escape_ascii());
    let mut again = Vec::new();
    assert_eq!(canonicalise(member_path, form, &mut again), Ok(()), "{}", told());
    assert_eq!(again, member_path, "not stable: {}", told());
    // The head for an HTTP/2 member is derived from the head for HTTP/1.
    assert_eq!(canonicalise(member_path, PathForm::Keep, &mut again), Ok(()), "{}", told());
    if form == PathForm::Keep {
        let mut received = Vec::new();
        encode_raw_bytes(head.received_path(input), &mut received);
        assert_eq!(member_path, received, "{}", told());
    } else {
        assert!(!member_path.starts_with(b"//"), "may be taken for a host: {}", told());
    }
    // `weir check` warns of texts that differ from their form in decisions.
    let decided_again = weir_http::path::decided(decided, form);
    assert_eq!(decided_again.as_deref(), Ok(decided), "decided another way: {}", told());
    for server in SERVERS {
        // A server that refuses a path cannot read it in another way.
        let Some(mut resolved) = resolve(server, member_path) else { continue };
        if server == Server::Url && form != PathForm::default() {
            // This server does not merge repeated slashes.
            resolved = merged(&resolved);
        }
        assert_eq!(
            String::from_utf8_lossy(decided),
            spell(&resolved),
            "{server:?} reads another path: {}",
            told()
        );
    }
}
