//! The names of secrets: one list for logs, spans, records and explanations.
//!
//! | entry | where it counts |
//! |---|---|
//! | a part | anywhere in a name: `user[password]`, `PHPSESSIONID` |
//! | a word | alone: `pass`, `_pass`, `userPin`, but not `passenger` |
//! | a word of names | as a word, in a name but not in running text: `key` |
//! | an end | at the end of a name or before a separator: `dbpass` |
//!
//! Case is ignored, `-`, `.`, space and `+` count as `_`, and escapes are decoded.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;

/// Maximum number of times that a name is percent-decoded.
const DECODINGS_MAX: usize = 3;

/// Maximum length of an entity, such as `#x000070;`.
const ENTITY_BYTES_MAX: usize = 10;

/// Substrings that make a name secret.
const PARTS: [&str; 111] = [
    // `password`, `passwd`, `passwort`.
    "passw",
    "passphrase",
    "passcode",
    "passkey",
    "pwd",
    "secret",
    "token",
    "bearer",
    "jwt",
    "saml",
    "assertion",
    "credential",
    "api_key",
    "apikey",
    "appkey",
    "private_key",
    "privatekey",
    "privkey",
    "access_key",
    "accesskey",
    "encryption_key",
    "encryptionkey",
    "masterkey",
    "signingkey",
    "sshkey",
    "sharedkey",
    "signature",
    "session",
    "sessid",
    "auth",
    "csrf",
    "xsrf",
    "one_time",
    "onetime",
    "verifier",
    "verification_code",
    "verificationcode",
    "verify_code",
    "verifycode",
    "security_code",
    "securitycode",
    "security_answer",
    "securityanswer",
    "secret_answer",
    "recovery_code",
    "recoverycode",
    "backup_code",
    "backupcode",
    "device_code",
    "devicecode",
    "user_code",
    "usercode",
    "access_code",
    "accesscode",
    "login_code",
    "logincode",
    "reset_code",
    "resetcode",
    "activation_code",
    "activationcode",
    "confirmation_code",
    "confirmationcode",
    "wresult",
    "sms_code",
    "smscode",
    "otpcode",
    "oobcode",
    "pincode",
    "two_factor",
    "twofactor",
    "mnemonic",
    "seed_phrase",
    "seedphrase",
    "connection_string",
    "connectionstring",
    "conn_str",
    "connstr",
    "remember_me",
    "rememberme",
    "card",
    "cc_num",
    "ccnum",
    "cvv",
    "cvc",
    "ssn",
    // `password` in other languages.
    "kennwort",
    "mot_de_passe",
    "motdepasse",
    "contrase",
    "contrasinal",
    "wachtwoord",
    "senha",
    "palavra_passe",
    "parola",
    "haslo",
    "hasło",
    "heslo",
    "jelsz",
    "sifre",
    "şifre",
    "senord",
    "passord",
    "adgangskode",
    "salasana",
    "lozinka",
    "пароль",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
];

/// Substrings that make a name secret only as separate words.
const WORDS: [&str; 24] = [
    "pass", "pin", "otp", "totp", "hotp", "mfa", "2fa", "tan", "mtan", "puk", "sid", "sess", "sig",
    "hmac", "psk", "pw", "psw", "cvn", "csc", "jwe", "mdp", "clave", "geslo", "parol",
];

/// Words that make a name secret, but are common in running text.
const WORDS_OF_NAMES: [&str; 4] = ["key", "keys", "passe", "ticket"];

/// A whole name: the authorization code of OAuth (RFC 6749 section 4.1.2).
const WHOLE: &[u8] = b"code";

/// Ends of words that make a name secret.
const ENDS: [&str; 3] = ["pass", "pswd", "psw"];

/// Fields with secret values that no other entry recognizes.
///
/// Browsers cannot send `Authorization` with a WebSocket, so applications put tokens into the list of protocols.
const FIELDS: [&[u8]; 5] =
    [b"cookie", b"set-cookie", b"cookie2", b"dpop", b"sec-websocket-protocol"];

/// Fields whose names have a word of the list, although their values are no secrets.
const PLAIN_FIELDS: [&[u8]; 3] = [b"sec-websocket-key", b"idempotency-key", b"surrogate-key"];

/// Fields in which the configuration finds credentials, whatever their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialFields(Arc<[Box<str>]>);

impl CredentialFields {
    /// Fields with these names.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<Box<str>> = names.map(|name| name.to_ascii_lowercase().into()).collect();
        names.sort_unstable();
        names.dedup();
        Self(names.into())
    }

    /// Whether a field has credentials. A name that only some members read as one of these counts too: `X_Jwt`.
    pub fn have(&self, name: &[u8]) -> bool {
        self.0.iter().any(|known| {
            let pairs = known.bytes().zip(name);
            known.len() == name.len() && pairs.into_iter().all(|(one, it)| fold(one) == fold(*it))
        })
    }

    /// Whether a field's value is a secret: by these fields, or by its name.
    pub fn is_secret(&self, name: &[u8]) -> bool {
        self.have(name) || is_secret_field(name)
    }
}

/// Whether the value of an argument of this name is a secret. The name may be percent-encoded.
pub fn is_secret_name(name: &[u8]) -> bool {
    decodings(name, |name| is_secret_as_written(name, true))
}

/// Whether a text, such as a document, contains the name of a secret.
pub fn mentions_secret(text: &[u8]) -> bool {
    decodings(text, |text| is_secret_as_written(text, false))
}

/// Whether a field's value is a secret.
pub fn is_secret_field(name: &[u8]) -> bool {
    let is_one_of = |fields: &[&[u8]]| fields.iter().any(|it| name.eq_ignore_ascii_case(it));
    is_one_of(&FIELDS) || (!is_one_of(&PLAIN_FIELDS) && is_secret_name(name))
}

/// Whether a test is true of a text, or of what it is when it is percent-decoded.
fn decodings(text: &[u8], is_true: impl Fn(&[u8]) -> bool) -> bool {
    let mut text = Cow::Borrowed(text);
    for _ in 0..DECODINGS_MAX {
        if is_true(&text) {
            return true;
        }
        match decoded(&text) {
            Some(once_more) => text = Cow::Owned(once_more),
            None => return false,
        }
    }
    is_true(&text)
}

/// What an entry of the lists has to be in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Anywhere.
    Part,
    /// A word.
    Word,
    /// A word, unless the text is running text.
    WordOfNames,
    /// The end of a word, unless the text is running text.
    End,
}

/// All entries of the lists, which are found in one pass over a text.
struct Entries {
    automaton: NFA,
    /// The length in bytes and the place of each pattern of the automaton.
    places: Vec<(usize, Place)>,
}

impl Entries {
    fn new() -> Self {
        let parts = PARTS.iter().map(|entry| (*entry, Place::Part));
        let words = WORDS.iter().map(|entry| (*entry, Place::Word));
        let words_of_names = WORDS_OF_NAMES.iter().map(|entry| (*entry, Place::WordOfNames));
        let ends = ENDS.iter().map(|entry| (*entry, Place::End));
        let all: Vec<_> = parts.chain(words).chain(words_of_names).chain(ends).collect();
        let automaton = NFA::new(all.iter().map(|(entry, _)| entry)).expect("the lists are short");
        Self { automaton, places: all.iter().map(|(entry, place)| (entry.len(), *place)).collect() }
    }

    /// Whether an entry has its place in a text. `folded`: the folded bytes of the text.
    fn are_in(&self, text: &[u8], is_name: bool, folded: impl Iterator<Item = u8>) -> bool {
        let automaton = &self.automaton;
        let mut state = automaton.start_state(Anchored::No).expect("the automaton has a start");
        for (at, byte) in folded.enumerate() {
            state = automaton.next_state(Anchored::No, state, byte);
            if automaton.is_match(state) {
                let mut found = (0..automaton.match_len(state))
                    .map(|index| self.places[automaton.match_pattern(state, index).as_usize()]);
                if found.any(|(length, place)| {
                    let range = at + 1 - length..at + 1;
                    match place {
                        Place::Part => true,
                        Place::Word => is_word_end(text, &range) && is_word_start(text, &range),
                        Place::WordOfNames => {
                            is_name && is_word_end(text, &range) && is_word_start(text, &range)
                        }
                        Place::End => is_name && is_word_end(text, &range),
                    }
                }) {
                    return true;
                }
            }
        }
        false
    }
}

fn is_secret_as_written(text: &[u8], is_name: bool) -> bool {
    static ENTRIES: LazyLock<Entries> = LazyLock::new(Entries::new);
    if text.is_ascii() {
        let is_whole = || text.eq_ignore_ascii_case(WHOLE);
        let folded = text.iter().map(|byte| fold(*byte));
        return ENTRIES.are_in(text, is_name, folded) || (is_name && is_whole());
    }
    ENTRIES.are_in(text, is_name, folded(text).into_iter())
}

/// The text in lower case, with one separator, of the same length.
fn folded(text: &[u8]) -> Vec<u8> {
    let mut folded: Vec<u8> = text.iter().map(|byte| fold(*byte)).collect();
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            let length = character.len_utf8();
            let lower: String = character.to_lowercase().collect();
            // A few letters have lower cases of another length. They are in no name of the list.
            if !character.is_ascii() && lower.len() == length {
                folded[at..at + length].copy_from_slice(lower.as_bytes());
            }
            at += length;
        }
        at += chunk.invalid().len();
    }
    folded
}

/// The lower-case byte. Other separators become `_`, because servers treat them as equal.
fn fold(byte: u8) -> u8 {
    match byte {
        b'-' | b'.' | b' ' | b'+' => b'_',
        other => other.to_ascii_lowercase(),
    }
}

/// Whether a word begins with this range, as in `pin`, `card_pin`, `userPin`.
fn is_word_start(text: &[u8], range: &Range<usize>) -> bool {
    range.start == 0 || is_bound(text[range.start - 1], text[range.start])
}

/// Whether a word ends with this range.
fn is_word_end(text: &[u8], range: &Range<usize>) -> bool {
    text.get(range.end).is_none_or(|behind| is_bound(text[range.end - 1], *behind))
}

/// Whether a word ends between two bytes.
fn is_bound(left: u8, right: u8) -> bool {
    let is_camel = left.is_ascii_lowercase() && right.is_ascii_uppercase();
    is_camel || !left.is_ascii_alphabetic() || !right.is_ascii_alphabetic()
}

/// The text with its escapes (`%70`, `%u0070`, `\u0070`, `\x70`, `&#112;`, `&lt;`) decoded once; `None`: it contains none.
pub fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr3(b'%', b'\\', b'&', text)?;
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = match byte {
            b'%' => escape(behind),
            b'\\' if matches!(behind.first(), Some(b'u' | b'x')) => {
                escape(behind.strip_prefix(b"x").unwrap_or(behind))
            }
            b'&' => entity(behind),
            _ => None,
        }
        .unwrap_or((byte, behind));
        out.push(byte);
        rest = behind;
    }
    (out.len() < text.len()).then_some(out)
}

/// The byte of an escape after its `%`, such as `70` or `u0070`, and the text after the escape.
fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = match text.strip_prefix(b"u00").or_else(|| text.strip_prefix(b"U00")) {
        Some(digits) => digits,
        None => text,
    };
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    Some(((digit(0)? * 16 + digit(1)?) as u8, &digits[2..]))
}

/// The byte of an entity of HTML or XML after its `&`, such as `lt;` or `#x70;`, and the text after it.
fn entity(text: &[u8]) -> Option<(u8, &[u8])> {
    let end = text.iter().take(ENTITY_BYTES_MAX).position(|byte| *byte == b';')?;
    let (name, behind) = (&text[..end], &text[end + 1..]);
    let byte = match name {
        b"lt" => b'<',
        b"gt" => b'>',
        b"amp" => b'&',
        b"quot" => b'"',
        b"apos" => b'\'',
        _ => {
            let digits = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
            match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u8::from_str_radix(digits, 16).ok()?,
                None => digits.parse().ok()?,
            }
        }
    };
    Some((byte, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        let secret = "password user[password] PassWd new-pwd client_secret csrfToken api_key apikey \
            X-Api-Key api.key PHPSESSIONID PHPSESSID oauth cardNumber CVV2 ssn pin PIN card_pin userPin pin2 \
            pass%77ord %70%61%73%73%77%64 pass%2577ord %u0070wd api%20key p%69n pass _pass user[pass] userPass \
            pass2 login.pass dbpass userpass passphrase passcode otp otp_code userOtp jwt my-jwt sid SID connect.sid \
            kennwort mot_de_passe mot-de-passe contrase%C3%B1a credential X-Amz-Credential private_key privateKey sig \
            X-Amz-Signature X-Amz-Security-Token AWSAccessKeyId key X-Auth-Key access_key SAMLResponse code \
            code_verifier mfa 2fa totp tan pw xsrf client_assertion pincode pinCode sms_code smscode verifyCode \
            otpcode two_factor twoFactorCode backup_code security_answer securityAnswer mtan mTAN puk cc_number \
            ccnum cc-csc psw passw userpsw mdp mdp_user clave claveUsuario heslo jelszo jelszó sifre şifre ŞIFRE \
            hasło HASŁO lösenord LÖSENORD losenord l%C3%B6senord l%F6senord пароль Пароль ПАРОЛЬ \
            %D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C 密码 用户密码 密碼 パスワード 비밀번호 passord salasana privkey \
            mnemonic connectionString conn_str rememberMe remember_me pass\\u0077ord p\\x61ssword pass&#119;ord \
            pass&#x77;ord ticket device_code userCode wresult resetCode access-code";
        for name in secret.split_ascii_whitespace() {
            assert!(is_secret_name(name.as_bytes()), "{name}");
        }
        let plain = "id user pine shipping pinterest spin q% %7 pas%zzword passenger passport side inside design \
            sigma tank stand keyword monkey turkey country_code zipcode codec power q page enclave autoclave puke \
            tickets ticketing country_codes имя 名前 größe a&b &amp; \\u \\x7 &#; &#999;";
        for name in plain.split_ascii_whitespace().chain([""]) {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
    }

    /// What the lists mean, one entry after another.
    fn is_secret_by_each_entry(text: &[u8], is_name: bool) -> bool {
        let folded = folded(text);
        let has = |entry: &str, is_in_place: fn(&[u8], &Range<usize>) -> bool| {
            let windows = folded.windows(entry.len()).enumerate();
            let mut found = windows.filter(|(_, window)| *window == entry.as_bytes());
            found.any(|(at, _)| is_in_place(text, &(at..at + entry.len())))
        };
        let is_word = |text: &[u8], range: &Range<usize>| {
            is_word_start(text, range) && is_word_end(text, range)
        };
        PARTS.iter().any(|it| has(it, |_, _| true))
            || WORDS.iter().any(|it| has(it, is_word))
            || (is_name
                && (folded == WHOLE
                    || WORDS_OF_NAMES.iter().any(|it| has(it, is_word))
                    || ENDS.iter().any(|it| has(it, is_word_end))))
    }

    #[test]
    fn one_pass_finds_what_a_search_for_each_entry_finds() {
        let lists = [&PARTS[..], &WORDS, &WORDS_OF_NAMES, &ENDS].concat();
        let between = ["", "", "_", "-", ".", "x", "X", "é", "2", "s", "Ş", "code", "\u{130}"];
        let mut state = 1_u64;
        let mut below = |max: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % max
        };
        let mut secrets = 0;
        for round in 0..20_000 {
            let mut text = String::new();
            for _ in 0..1 + below(3) {
                let entry = lists[below(lists.len())];
                let starts = entry.char_indices().map(|(at, _)| at).chain([entry.len()]);
                let starts: Vec<usize> = starts.collect();
                let (start, end) = match below(3) {
                    0 => (0, entry.len()),
                    1 => (starts[below(starts.len())], entry.len()),
                    _ => (0, starts[below(starts.len())]),
                };
                let entry = &entry[start..end];
                let entry = if below(4) == 0 { entry.to_uppercase() } else { entry.to_owned() };
                text.push_str(between[below(between.len())]);
                text.push_str(&entry);
            }
            text.push_str(between[below(between.len())]);
            for is_name in [false, true] {
                let expected = is_secret_by_each_entry(text.as_bytes(), is_name);
                let found = is_secret_as_written(text.as_bytes(), is_name);
                assert_eq!(found, expected, "round {round}: {text}");
                secrets += usize::from(found);
            }
        }
        assert!((10_000..38_000).contains(&secrets), "{secrets}");
    }

    #[test]
    fn texts_that_mention_secrets() {
        for text in ["the password is x", "<pass>x</pass>", "{\"otp\":1}", "<sid>a</sid>"] {
            assert!(mentions_secret(text.as_bytes()), "{text}");
            let long = format!("{}{text}", "a ".repeat(256));
            assert!(mentions_secret(long.as_bytes()), "{text}, behind a long text");
        }
        for text in ["the key of the house", "code", "it's fine", "a passenger"] {
            assert!(!mentions_secret(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn fields_with_secrets() {
        for name in [
            "Cookie",
            "SET-COOKIE",
            "Cookie2",
            "DPoP",
            "Authorization",
            "X-Upstream-Key",
            "Cf-Access-Jwt-Assertion",
            "Sec-WebSocket-Protocol",
        ] {
            assert!(is_secret_field(name.as_bytes()), "{name}");
        }
        for name in ["Accept", "Sec-WebSocket-Key", "Idempotency-Key", "Host", "X-Who"] {
            assert!(!is_secret_field(name.as_bytes()), "{name}");
        }
        let fields = CredentialFields::new(["X-Who", "X-Who"].into_iter());
        for (name, expected) in
            [("x-who", true), ("X_WHO", true), ("X-Whom", false), ("Cookie", true)]
        {
            assert_eq!(fields.is_secret(name.as_bytes()), expected, "{name}");
        }
    }
}
